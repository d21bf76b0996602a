#include "runtime/worker/prompts.h"

#include <stdlib.h>
#include <string.h>

void prompts_free(struct prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++) {
        free(prompts->items[i].ids);
        json_decref(prompts->items[i].row);
    }
    free(prompts->items);
    *prompts = (struct prompts){ 0 };
}

/* Leaves out the answer of a row of chat data. */
static void cut_answer(json_t *messages)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));

    if (role && strcmp(role, "assistant") == 0)
        json_array_remove(messages, json_array_size(messages) - 1);
}

static bool tokenize(const struct conversation_format *format, json_t *row, struct tokens *tokens, struct error *err)
{
    json_t *messages = json_object_get(row, "messages"), *text = json_object_get(row, "prompt");

    if (json_is_string(text))
        return tokenizer_encode(format->tokenizer, json_string_value(text), json_string_length(text), true, tokens, err);
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return error_set(err, ERROR_MISSING, "rows of a run on rollouts have `messages` or `prompt`", "the row has no prompt");
    if (!format->template)
        return error_set(err, ERROR_MISSING, "give rows with `prompt`", "the model has no chat template");
    cut_answer(messages);
    return conversation_prompt(format, row, tokens, err);
}

bool prompts_read(const struct conversation_format *format, const struct rows *rows, struct prompts *out, struct error *err)
{
    out->items = calloc(rows->count + 1, sizeof *out->items);
    if (!out->items)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu prompts", rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        json_t *row = rows_read(rows, i, err);
        struct tokens tokens = { 0 };
        bool ok = row && tokenize(format, row, &tokens, err);

        if (ok && tokens.count > 0 && tokens.count < format->context) {
            struct prompt *p = &out->items[out->count++];

            *p = (struct prompt){ .ids = malloc(tokens.count * sizeof *p->ids), .count = tokens.count, .row = json_incref(row) };
            memcpy(p->ids, tokens.ids, tokens.count * sizeof *p->ids);
        } else if (ok) {
            out->dropped++;
        }
        tokens_free(&tokens);
        json_decref(row);
        if (!ok)
            return row ? error_at(err, "%s:%u", rows->name, rows->rows[i].line) : false;
    }
    return true;
}
