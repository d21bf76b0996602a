/* conversation_world.h - rows, a chat template and the tokenizer of models/pocket, and what examples they give. The words below build rows. */
#ifndef RONDO_TESTS_CONVERSATION_WORLD_H
#define RONDO_TESTS_CONVERSATION_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/text/conversation.h"

struct world {
    struct tokenizer *tokenizer;
    struct template *template;
    struct conversation_format format;
    struct rows rows;
    struct examples examples;
    struct conversation_counts counts;
    struct error err;
};

static inline void open_world(struct world *w, const char *template, const char *data)
{
    struct buffer source = { 0 };

    *w = (struct world){ 0 };
    w->tokenizer = tokenizer_read_file(RONDO_SOURCE "/models/pocket/tokenizer.json", &w->err);
    assert_non_null(w->tokenizer);
    if (strchr(template, '{'))
        buffer_add_text(&source, template);
    else
        assert_true(file_read(template, 1 << 20, &source, &w->err));
    w->template = template_new((const char *)source.bytes, source.size, &w->err);
    assert_non_null(w->template);
    buffer_free(&source);
    w->format = (struct conversation_format){ .tokenizer = w->tokenizer, .template = w->template, .context = 4096 };
    assert_true(rows_of(&w->rows, "data.jsonl", data, strlen(data), &w->err));
}

static inline void close_world(struct world *w)
{
    examples_free(&w->examples);
    rows_free(&w->rows);
    template_free(w->template);
    tokenizer_free(w->tokenizer);
}

static inline bool read_all(struct world *w)
{
    for (size_t i = 0; i < w->rows.count; i++)
        if (!conversation_examples(&w->format, &w->rows, i, &w->examples, &w->counts, &w->err))
            return false;
    return true;
}

/* The text of the tokens with a weight. */
static inline void assert_trained(const struct world *w, const struct example *e, const char *want)
{
    struct buffer got = { 0 };

    for (size_t i = 0; i < e->count; i++)
        if (e->weights[i] > 0)
            assert_true(tokenizer_decode(w->tokenizer, e->ids + i, 1, true, &got, NULL));
    assert_string_equal(buffer_text(&got), want);
    buffer_free(&got);
}

#define POCKET RONDO_SOURCE "/models/pocket/chat_template.jinja"
#define TOOLS  RONDO_SOURCE "/scripts/runs/chatml_tools.jinja"
#define WEATHER                                                                                                                  \
    "{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Get the "                                   \
    "weather\",\"parameters\":{\"type\":"                                                                                        \
    "\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"day\":{\"type\":\"string\"}}}}}"
#define RENT                                                                                                                     \
    "{\"type\":\"function\",\"function\":{\"name\":\"rent_gpu\",\"description\":\"Rent a GPU\",\"parameters\":{\"type\":"        \
    "\"object\",\"properties\":{\"model\":{\"type\":\"string\"},\"hours\":{\"type\":\"number\"}}}}}"
#define CALL                                                                                                                     \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"rent_gpu\","       \
    "\"arguments\":\"{\\\"model\\\": \\\"EA\\\", \\\"hours\\\":  1}\"}}]}"
#define PLAIN                                                                                                                    \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n{% endfor %}"                             \
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
#define HI   "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"yo\"}]"
#define USER "{\"role\":\"user\",\"content\":\"a\"}"

#endif
