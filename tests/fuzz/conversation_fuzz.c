/* A data file of any bytes, read with a small tokenizer and a ChatML template: each row is a fault, a drop or sound examples. */
#include <stdlib.h>
#include <string.h>

#include "native/text/conversation.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char TOKENIZER[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"<\":2,\"ab\":3,\"{\":4,\"}\":5,\"\\\"\":6,\"\\u0120\":7,"
    "\"\\u010a\":8},"
    "\"merges\":[\"a b\"]},\"added_tokens\":[{\"id\":9,\"content\":\"<|end|>\",\"special\":true}],\"pre_tokenizer\":{\"type\":"
    "\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"}}";
static const char TEMPLATE[] =
    "{% for t in tools or [] %}{{ t.function | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% "
    "for c in "
    "m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}<|end|>\n{% endfor %}{% if "
    "add_generation_prompt %}<assistant>{% endif %}";

static void check(const struct example *e)
{
    if (e->values) {
        if (!e->count || !e->target_count || e->ids || e->weights)
            __builtin_trap();
        return;
    }
    if (e->trained_start > e->trained_end || e->trained_end > e->size)
        __builtin_trap();
    for (size_t i = 0; i < e->count; i++)
        if (!(e->weights[i] >= 0 && e->weights[i] <= 1) || e->ids[i] > 9)
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct tokenizer *tokenizer;
    static struct template *template;
    struct conversation_counts counts = { 0 };
    struct examples list = { 0 };
    struct rows rows;

    if (!tokenizer)
        tokenizer = tokenizer_read(TOKENIZER, sizeof TOKENIZER - 1, NULL);
    if (!template)
        template = template_new(TEMPLATE, sizeof TEMPLATE - 1, NULL);
    if (!tokenizer || !template)
        abort();

    struct conversation_format format = { .tokenizer = tokenizer, .template = template, .context = 512 };

    if (rows_of(&rows, "fuzz.jsonl", (const char *)bytes, size, NULL))
        for (size_t i = 0; i < rows.count; i++)
            conversation_examples(&format, &rows, i, &list, &counts, NULL);
    for (size_t i = 0; i < list.count; i++) {
        check(&list.items[i]);
        if (list.items[i].side == EXAMPLE_CHOSEN && (i + 1 == list.count || list.items[i + 1].side != EXAMPLE_REJECTED))
            __builtin_trap();
    }
    examples_free(&list);
    rows_free(&rows);
    return 0;
}
