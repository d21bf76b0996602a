/* What published templates train of a conversation: tests/golden/text/masks.txt, read by a person against each template. */
#include "native/text/conversation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"

/* A tokenizer of bytes and of the end tokens of all these templates. */
static struct tokenizer *byte_tokenizer(void)
{
    static const char *const ends[] = { "<|im_end|>",
                                        "<|eot_id|>",
                                        "<|end|>",
                                        "<|endoftext|>",
                                        "</s>",
                                        "<|eom_id|>",
                                        "<|return|>",
                                        "<|call|>",
                                        "<|END_OF_TURN_TOKEN|>",
                                        "<eos>",
                                        "<end_of_turn>",
                                        "<|assistant_end|>",
                                        "<seed:eos>",
                                        "[|endofturn|]",
                                        "<|eot|>",
                                        "<turn|>",
                                        "<｜end▁of▁sentence｜>",
                                        "<|observation|>",
                                        "<|user|>",
                                        "<|assistant|>",
                                        "<tool_call|>",
                                        "<|tool_calls_section_end|>",
                                        "<|END_ACTION|>",
                                        "<|END_RESPONSE|>",
                                        "<|START_RESPONSE|>",
                                        "<|START_THINKING|>",
                                        "<|END_THINKING|>",
                                        "<|START_ACTION|>",
                                        "<|CHATBOT_TOKEN|>",
                                        "<|START_OF_TURN_TOKEN|>",
                                        "<|tools_suffix|>",
                                        "<|tool_response>",
                                        "<|tool_call>",
                                        "<|channel>" };
    struct buffer json = { 0 };
    struct error err = { 0 };
    unsigned id = 256, next = 256;

    buffer_add_text(&json, "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (unsigned b = 0; b < 256; b++) {
        bool shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        buffer_printf(&json, "%s\"\\u%04x\":%u", b ? "," : "", shown ? b : next++, b);
    }
    buffer_add_text(&json, "}},\"added_tokens\":[");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        buffer_printf(&json, "%s{\"id\":%u,\"content\":\"%s\",\"special\":true}", i ? "," : "", id++, ends[i]);
    buffer_add_text(&json,
                    "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},\"decoder\":{"
                    "\"type\":\"ByteLevel\"}}");

    struct tokenizer *t = tokenizer_read(buffer_text(&json), json.size, &err);

    buffer_free(&json);
    if (!t)
        fail_msg("%s", err.message);
    return t;
}

#define TOOLS                                                                                                                    \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"lookup\",\"description\":\"d\",\"parameters\":{\"type\":"        \
    "\"object\",\"properties\":"                                                                                                 \
    "{\"city\":{\"type\":\"string\",\"description\":\"c\"}},\"required\":[]}}}]"
static const char *const ROWS[] = {
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Q1\"},{\"role\":\"assistant\",\"content\":\"A1\"},{\"role\":\"user\","
    "\"content\":"
    "\"Q2\"},{\"role\":\"assistant\",\"content\":\"A2\"}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Q1\"},{\"role\":\"assistant\",\"content\":\"A1\",\"reasoning_content\":"
    "\"R1\"},{"
    "\"role\":\"user\",\"content\":\"Q2\"},{\"role\":\"assistant\",\"content\":\"A2\",\"reasoning_content\":\"R2\"}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Q1\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"type\":"
    "\"function\",\"id\":\"abcdefghi\",\"function\":{\"name\":\"lookup\",\"arguments\":{\"city\":\"X\"}}}]},{\"role\":\"tool\","
    "\"content\":"
    "\"T1\",\"name\":\"lookup\",\"tool_call_id\":\"abcdefghi\"},{\"role\":\"assistant\",\"content\":\"A2\"}]," TOOLS "}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Q1\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"type\":"
    "\"function\",\"id\":\"abcdefghi\",\"function\":{\"name\":\"lookup\",\"arguments\":{\"city\":\"X\"}}},{\"type\":\"function\","
    "\"id\":"
    "\"abcdefghj\",\"function\":{\"name\":\"lookup\",\"arguments\":{\"city\":\"Y\"}}}]},{\"role\":\"tool\",\"content\":\"T1\","
    "\"name\":"
    "\"lookup\",\"tool_call_id\":\"abcdefghi\"},{\"role\":\"tool\",\"content\":\"T2\",\"name\":\"lookup\",\"tool_call_id\":"
    "\"abcdefghj\"},{\"role\":\"assistant\",\"content\":\"A2\"}]," TOOLS "}",
};

/* The runs of trained tokens between bars, control characters as in C. */
static void tell(const struct example *e, struct buffer *out)
{
    bool inside = false;

    buffer_printf(out, "%u ", e->turn);
    for (size_t i = 0; i < e->count; i++) {
        size_t start = i ? e->ends[i - 1] : 0;

        if ((e->weights[i] > 0) != inside)
            buffer_add_text(out, "|");
        inside = e->weights[i] > 0;
        for (size_t at = start; inside && at < e->ends[i]; at++)
            if (e->text[at] == '\n')
                buffer_add_text(out, "\\n");
            else
                buffer_add_u8(out, (uint8_t)e->text[at]);
    }
    buffer_add_text(out, inside ? "|\n" : "\n");
}

static void templates_train_what_the_assistant_says(void **state)
{
    const char *root = getenv("RONDO_FIXTURES");
    struct buffer got = { 0 }, want = { 0 };
    struct tokenizer *tokenizer = byte_tokenizer();
    struct error err = { 0 };
    char name[200], last[200] = "", path[700];
    FILE *list = fopen(RONDO_SOURCE "/tests/golden/text/template_renderings.txt", "r");
    json_t *variables = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");

    (void)state;
    assert_non_null(list);
    while (fscanf(list, "%199s %*s %*s", name) == 1) {
        struct buffer source = { 0 };

        if (!strcmp(name, last))
            continue;
        memcpy(last, name, sizeof last);
        snprintf(path, sizeof path, "%s/templates/%s", root ? root : RONDO_SOURCE "/../shared/fixtures", name);
        if (!file_read(path, 1 << 20, &source, &err)) {
            buffer_free(&source);
            buffer_free(&got);
            tokenizer_free(tokenizer);
            json_decref(variables);
            fclose(list);
            skip();
        }

        struct template *template = template_new(buffer_text(&source), source.size, &err);
        struct conversation_format format = { .tokenizer = tokenizer,
                                              .template = template,
                                              .variables = variables,
                                              .options = { .date = { 2026, 1, 1 } },
                                              .context = 1 << 20 };

        assert_non_null(template);
        buffer_printf(&got, "== %s\n", name);
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            struct conversation_counts counts = { 0 };
            struct examples examples = { 0 };
            struct rows rows;

            assert_true(rows_of(&rows, "row", ROWS[i], strlen(ROWS[i]), &err));
            if (!conversation_examples(&format, &rows, 0, &examples, &counts, &err))
                fail_msg("%s: %s", err.place, err.message);
            for (size_t k = 0; k < examples.count; k++)
                tell(&examples.items[k], &got);
            for (int k = 0; k < CONVERSATION_DROPS; k++)
                if (counts.dropped[k])
                    buffer_printf(&got, "dropped %s %s\n", conversation_drop_name(k), counts.first[k].detail);
            examples_free(&examples);
            rows_free(&rows);
        }
        template_free(template);
        buffer_free(&source);
    }
    fclose(list);
    json_decref(variables);
    tokenizer_free(tokenizer);

    bool read = file_read(RONDO_SOURCE "/tests/golden/text/masks.txt", 1 << 20, &want, &err);

    if (!read || want.size != got.size || memcmp(want.bytes, got.bytes, got.size) != 0) {
        fwrite(got.bytes, 1, got.size, stdout);
        fail_msg("not as tests/golden/text/masks.txt");
    }
    buffer_free(&got);
    buffer_free(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(templates_train_what_the_assistant_says) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
