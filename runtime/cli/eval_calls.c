#include "runtime/cli/eval_calls.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "native/text/rows.h"
#include "native/text/tool_calls.h"

enum { AT_ONCE = 256 }; /* rows of a job */

static const json_t *calls_of(const json_t *row)
{
    const json_t *messages = json_object_get(row, "messages");

    return json_object_get(json_array_get(messages, json_array_size(messages) - 1), "tool_calls");
}

/* All before the last turn; NULL if that calls no tool. */
static json_t *question_of(const json_t *row)
{
    json_t *before;

    if (json_array_size(calls_of(row)) == 0)
        return NULL;
    before = json_copy(json_object_get(row, "messages"));
    json_array_remove(before, json_array_size(before) - 1);
    return json_pack("{s:o, s:O*}", "messages", before, "tools", json_object_get(row, "tools"));
}

/* The word for what was written; NULL with `err` where the row's own calls cannot be read. */
static const char *judge(const json_t *row, const json_t *answer, struct error *err)
{
    struct error fault = { 0 };
    const json_t *given = json_object_get(row, "accepted"), *text = json_object_get(answer, "text");
    json_t *accepted = given ? json_incref((json_t *)(uintptr_t)given) : tool_calls_accepted(calls_of(row), err);
    json_t *calls = tool_calls_read(json_string_value(text), json_string_length(text), &fault);
    const char *end = json_string_value(json_object_get(answer, "end"));
    const char *why = strcmp(end, "context") == 0 ? "context" : !calls ? "syntax" : json_array_size(calls) == 0 ? "none" : NULL;

    if (!why)
        tool_calls_right(json_object_get(row, "tools"), calls, accepted, &why);
    json_decref(calls);
    if (!accepted)
        why = NULL;
    json_decref(accepted);
    return why;
}

struct tally {
    int64_t cases, right, tokens, prompt_tokens;
    json_t *why, *each;
    struct timespec start;
    bool shown;
};

static double seconds_since(struct timespec start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec);
}

static void count(struct tally *t, size_t row, const char *why, const json_t *answer)
{
    bool right = strcmp(why, "right") == 0;

    t->cases++;
    t->right += right;
    t->tokens += json_integer_value(json_object_get(answer, "tokens"));
    t->prompt_tokens += json_integer_value(json_object_get(answer, "prompt_tokens"));
    json_object_set_new(t->why, why, json_integer(json_integer_value(json_object_get(t->why, why)) + 1));
    json_array_append_new(t->each, json_pack("{s:I, s:b, s:s, s:O}", "row", (json_int_t)row + 1, "right", right, "why", why,
                                             "text", json_object_get(answer, "text")));
}

/* Rows that are asked at once. */
struct asked {
    json_t *rows[AT_ONCE];
    size_t index[AT_ONCE], count;
    json_t *items;
};

static void asked_free(struct asked *a)
{
    while (a->count > 0)
        json_decref(a->rows[--a->count]);
    json_decref(a->items);
    *a = (struct asked){ 0 };
}

/* The next rows that call a tool, `most` of them at most; *at moves behind them. */
static bool gather(const struct rows *rows, size_t *at, size_t most, struct asked *a, struct error *err)
{
    a->items = json_array();
    for (; *at < rows->count && a->count < most; ++*at) {
        json_t *row = rows_read(rows, *at, err), *question;
        char place[4200];

        if (!row)
            return false;
        question = question_of(row);
        if (!question) {
            json_decref(row);
            continue;
        }
        snprintf(place, sizeof place, "%s:%u", rows->name, rows->rows[*at].line);
        json_array_append_new(a->items, json_pack("{s:o, s:s}", "conversation", question, "place", place));
        a->index[a->count] = *at;
        a->rows[a->count++] = row;
    }
    return true;
}

static void told(void *context, json_t *progress)
{
    const struct tally *t = context;
    int64_t answered = t->cases + json_integer_value(json_object_get(progress, "answered"));
    int64_t tokens = t->tokens + json_integer_value(json_object_get(progress, "tokens"));

    if (t->shown && json_object_get(progress, "answered"))
        fprintf(stderr, "\r\033[K%lld answered, %lld tokens, %.1f a second", (long long)answered, (long long)tokens,
                (double)tokens / seconds_since(t->start));
}

static json_t *job_of(const struct eval_calls *how, const struct asked *a)
{
    return json_pack("{s:s, s:O, s:I, s:I, s:f, s:i, s:s*}", "job", "answer", "items", a->items, "rows", (json_int_t)how->batch,
                     "max_tokens", (json_int_t)how->max_tokens, "temperature", 0.0, "seed", 0, "constrain", how->constrain);
}

static bool ask(struct speaker *speaker, const struct eval_calls *how, const struct rows *rows, const struct asked *a,
                struct tally *t, struct error *err)
{
    json_t *result = speaker_job(speaker, job_of(how, a), told, t, err);
    bool ok = result != NULL;

    for (size_t i = 0; ok && i < a->count; i++) {
        const json_t *answer = json_array_get(json_object_get(result, "answers"), i);
        const char *why = judge(a->rows[i], answer, err);

        if (why)
            count(t, a->index[i], why, answer);
        else
            ok = error_at(err, "%s:%u", rows->name, rows->rows[a->index[i]].line);
    }
    json_decref(result);
    return ok;
}

json_t *eval_calls(struct invocation *in, struct speaker *speaker, const struct eval_calls *how, struct error *err)
{
    struct rows rows = { 0 };
    struct tally t = { .why = json_object(), .each = json_array(), .shown = !in->quiet && isatty(STDERR_FILENO) };
    bool ok = rows_open(&rows, how->data, err);
    json_t *result = NULL;
    double seconds;

    clock_gettime(CLOCK_MONOTONIC, &t.start);
    for (size_t at = 0; ok && at < rows.count && (how->most <= 0 || t.cases < how->most);) {
        size_t left = how->most > 0 && how->most - t.cases < AT_ONCE ? (size_t)(how->most - t.cases) : AT_ONCE;
        struct asked a = { 0 };

        ok = gather(&rows, &at, left, &a, err) && (a.count == 0 || ask(speaker, how, &rows, &a, &t, err));
        asked_free(&a);
    }
    seconds = seconds_since(t.start);
    if (ok && t.cases == 0)
        ok = error_set(err, ERROR_MISSING, "the last turn of a row must have tool_calls", "%s: no row calls a tool", how->data);
    if (ok)
        result = json_pack("{s:s, s:I, s:I, s:f, s:O, s:I, s:I, s:f, s:f, s:O*}", "data", how->data, "cases", (json_int_t)t.cases,
                           "right", (json_int_t)t.right, "accuracy", (double)t.right / (double)t.cases, "why", t.why,
                           "prompt_tokens", (json_int_t)t.prompt_tokens, "tokens", (json_int_t)t.tokens, "seconds", seconds,
                           "tokens_per_second", (double)t.tokens / seconds, "each", how->each ? t.each : NULL);
    json_decref(t.why);
    json_decref(t.each);
    rows_free(&rows);
    return result;
}
