#include "runtime/cli/eval_choices.h"

#include <stdio.h>
#include <unistd.h>

#include "native/text/rows.h"

/* The job for a row; NULL with `err`. */
static json_t *question_of(const json_t *row, struct error *err)
{
    json_t *choices = json_object_get(row, "choices"), *prompt = json_object_get(row, "prompt"),
           *messages = json_object_get(row, "messages"), *choice;
    json_int_t answer = json_integer_value(json_object_get(row, "answer"));
    size_t i;

    json_array_foreach(choices, i, choice)
    {
        if (!json_is_string(choice) || json_string_length(choice) == 0) {
            error_set(err, ERROR_TYPE, NULL, "choices[%zu] is no text, or an empty one", i);
            return NULL;
        }
    }
    if (json_array_size(choices) < 2)
        error_set(err, ERROR_TYPE, NULL, "choices: a list of two texts at least is needed");
    else if (!json_is_integer(json_object_get(row, "answer")) || answer < 0 || answer >= (json_int_t)json_array_size(choices))
        error_set(err, ERROR_RANGE, "they count from 0", "answer: the number of a choice is needed");
    else if (json_is_string(prompt) == json_is_array(messages))
        error_set(err, ERROR_MISSING, NULL, "either prompt, a text, or messages, a list, is needed");
    else if (prompt)
        return json_pack("{s:s, s:O, s:O}", "job", "choose", "choices", choices, "prompt", prompt);
    else
        return json_pack("{s:s, s:O, s:{s:O, s:O*}}", "job", "choose", "choices", choices, "conversation", "messages", messages,
                         "tools", json_object_get(row, "tools"));
    return NULL;
}

/* The place of the greatest. */
static json_int_t likeliest(const json_t *choices, bool by_byte)
{
    const json_t *choice;
    double most = -__builtin_inf();
    json_int_t best = 0;
    size_t i;

    json_array_foreach(choices, i, choice)
    {
        double value = json_number_value(json_object_get(choice, "logprob")) /
                       (by_byte ? json_number_value(json_object_get(choice, "bytes")) : 1);

        if (value > most) {
            most = value;
            best = (json_int_t)i;
        }
    }
    return best;
}

json_t *eval_choices(struct invocation *in, struct speaker *speaker, const char *data, int64_t most, struct error *err)
{
    struct rows rows = { 0 };
    int64_t cases = 0, right[2] = { 0 };
    bool ok = rows_open(&rows, data, err), shown = !in->quiet && isatty(STDERR_FILENO);

    for (size_t i = 0; ok && i < rows.count && (most <= 0 || cases < most); i++, cases++) {
        json_t *row = rows_read(&rows, i, err), *job = row ? question_of(row, err) : NULL;
        json_t *result = job ? speaker_job(speaker, job, NULL, NULL, err) : NULL;

        ok = result != NULL;
        for (int by_byte = 0; ok && by_byte < 2; by_byte++)
            right[by_byte] +=
                likeliest(json_object_get(result, "choices"), by_byte) == json_integer_value(json_object_get(row, "answer"));
        if (row && !ok)
            error_at(err, "%s:%u", rows.name, rows.rows[i].line);
        if (shown)
            fprintf(stderr, "\r\033[K%lld of %lld right", (long long)right[0], (long long)cases + 1);
        json_decref(row);
        json_decref(result);
    }
    rows_free(&rows);
    if (ok && cases == 0)
        ok = error_set(err, ERROR_MISSING, NULL, "%s holds no row", data);
    return ok ? json_pack("{s:s, s:I, s:I, s:f, s:I, s:f}", "data", data, "cases", (json_int_t)cases, "right",
                          (json_int_t)right[0], "accuracy", (double)right[0] / (double)cases, "right_by_byte",
                          (json_int_t)right[1], "accuracy_by_byte", (double)right[1] / (double)cases)
              : NULL;
}
