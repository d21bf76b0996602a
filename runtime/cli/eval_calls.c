#include "runtime/cli/eval_calls.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "native/text/rows.h"
#include "native/text/tool_calls.h"

enum { TOKENS = 512 }; /* of an answer: no right call is longer */

/* The messages before the last turn; NULL if that calls no tool. */
static json_t *question_of(const json_t *row, const json_t **calls)
{
    const json_t *messages = json_object_get(row, "messages");
    size_t count = json_array_size(messages);
    json_t *before;

    *calls = count ? json_object_get(json_array_get(messages, count - 1), "tool_calls") : NULL;
    if (json_array_size(*calls) == 0)
        return NULL;
    before = json_copy((json_t *)(uintptr_t)messages);
    json_array_remove(before, count - 1);
    return json_pack("{s:o, s:O*}", "messages", before, "tools", json_object_get(row, "tools"));
}

/* The word for what was written; NULL with `err` where the row's own calls cannot be read. */
static const char *judge(const json_t *row, const json_t *own, const json_t *text, struct error *err)
{
    struct error fault = { 0 };
    const json_t *given = json_object_get(row, "accepted");
    json_t *accepted = given ? json_incref((json_t *)(uintptr_t)given) : tool_calls_accepted(own, err);
    json_t *calls = tool_calls_read(json_string_value(text), json_string_length(text), &fault);
    const char *why = !calls ? "syntax" : json_array_size(calls) == 0 ? "none" : NULL;

    if (!why)
        tool_calls_right(json_object_get(row, "tools"), calls, accepted, &why);
    json_decref(calls);
    if (!accepted)
        why = NULL;
    json_decref(accepted);
    return why;
}

struct tally {
    int64_t cases, right;
    json_t *why, *each;
};

static void count(struct tally *t, size_t row, const char *why, json_t *text)
{
    bool right = strcmp(why, "right") == 0;

    t->cases++;
    t->right += right;
    json_object_set_new(t->why, why, json_integer(json_integer_value(json_object_get(t->why, why)) + 1));
    json_array_append_new(
        t->each, json_pack("{s:I, s:b, s:s, s:O}", "row", (json_int_t)row + 1, "right", right, "why", why, "text", text));
}

static bool row_asked(struct speaker *speaker, const struct rows *rows, size_t index, struct tally *t, struct error *err)
{
    json_t *row = rows_read(rows, index, err), *question, *result;
    const json_t *calls;
    const char *why = NULL;

    if (!row)
        return false;
    question = question_of(row, &calls);
    if (!question) {
        json_decref(row);
        return true;
    }
    result = speaker_job(speaker,
                         json_pack("{s:s, s:o, s:i, s:f, s:i}", "job", "sample", "conversation", question, "max_tokens",
                                   (int)TOKENS, "temperature", 0.0, "seed", 0),
                         NULL, NULL, err);
    if (result)
        why = judge(row, calls, json_object_get(result, "text"), err);
    if (why)
        count(t, index, why, json_object_get(result, "text"));
    else
        error_at(err, "%s:%u", rows->name, rows->rows[index].line);
    json_decref(result);
    json_decref(row);
    return why != NULL;
}

json_t *eval_calls(struct invocation *in, struct speaker *speaker, const char *data, int64_t most, bool each, struct error *err)
{
    struct rows rows = { 0 };
    struct tally t = { .why = json_object(), .each = json_array() };
    bool ok = rows_open(&rows, data, err), shown = !in->quiet && isatty(STDERR_FILENO);
    json_t *result = NULL;

    for (size_t i = 0; ok && i < rows.count && (most <= 0 || t.cases < most); i++) {
        ok = row_asked(speaker, &rows, i, &t, err);
        if (shown)
            fprintf(stderr, "\r\033[K%lld of %lld calls right", (long long)t.right, (long long)t.cases);
    }
    if (ok && t.cases == 0)
        ok = error_set(err, ERROR_MISSING, "the last turn of a row must have tool_calls", "%s: no row calls a tool", data);
    if (ok)
        result =
            json_pack("{s:s, s:I, s:I, s:f, s:O, s:O*}", "data", data, "cases", (json_int_t)t.cases, "right", (json_int_t)t.right,
                      "accuracy", (double)t.right / (double)t.cases, "why", t.why, "each", each ? t.each : NULL);
    json_decref(t.why);
    json_decref(t.each);
    rows_free(&rows);
    return result;
}
