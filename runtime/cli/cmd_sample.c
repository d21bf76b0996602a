#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/rows.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/speaker.h"

/* The first row of a file of conversations; a file that is one array is the messages themselves. */
static json_t *read_messages(const char *path, struct error *err)
{
    struct buffer bytes = { 0 };
    struct rows rows = { 0 };
    json_t *conversation = NULL;
    size_t start = 0;

    if (!file_read(path, SPEAKER_FILE_MOST, &bytes, err))
        return NULL;
    while (start < bytes.size && strchr(" \t\r\n", bytes.bytes[start]))
        start++;
    if (start < bytes.size && bytes.bytes[start] == '[') {
        json_t *list = json_read((const char *)bytes.bytes, bytes.size, SPEAKER_FILE_MOST, err);

        conversation = list ? json_pack("{s:o}", "messages", list) : NULL;
        if (!conversation)
            error_at(err, "%s", path);
    } else if (rows_of(&rows, path, (const char *)bytes.bytes, bytes.size, err)) {
        if (rows.count == 0)
            error_set(err, ERROR_MISSING, NULL, "%s holds no conversation", path);
        else
            conversation = rows_read(&rows, 0, err);
    }
    rows_free(&rows);
    buffer_free(&bytes);
    return conversation;
}

static json_t *make_job(const struct invocation *in, struct error *err)
{
    const char *prompt = option_text(in, "prompt", NULL), *messages = option_text(in, "messages", NULL);
    json_t *conversation = NULL, *job;

    if (!prompt == !messages) {
        error_set(err, ERROR_USAGE, NULL, "either --prompt TEXT or --messages FILE is needed");
        return NULL;
    }
    job = speaker_rule(in, err);
    if (!job)
        return NULL;
    if (prompt && json_object_set_new(job, "prompt", json_string(prompt)) != 0)
        error_set(err, ERROR_SYNTAX, NULL, "the prompt is not UTF-8");
    else if (prompt || (conversation = read_messages(messages, err))) {
        if (conversation)
            json_object_set_new(job, "conversation", conversation);
        return job;
    }
    json_decref(job);
    return NULL;
}

static int sample_main(struct invocation *in)
{
    struct speaker speaker = { 0 };
    struct error err = { 0 };
    struct speaker_stream stream = { .silent = in->json };
    json_t *job = make_job(in, &err), *result = NULL;

    if (job && speaker_open(&speaker, in, &err))
        result = speaker_job(&speaker, json_incref(job), speaker_print, &stream, &err);
    speaker_close(&speaker);
    json_decref(job);
    if (!result) {
        if (stream.told)
            putchar('\n');
        return command_fail(in, &err);
    }
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    puts(json_string_value(json_object_get(result, "text")) + stream.told);
    if (!in->quiet)
        fprintf(stderr, "%lld tokens after a prompt of %lld (%s)\n",
                (long long)json_integer_value(json_object_get(result, "tokens")),
                (long long)json_integer_value(json_object_get(result, "prompt_tokens")),
                json_string_value(json_object_get(result, "end")));
    json_decref(result);
    return EXIT_OK;
}

static const struct option options[] = {
    SPEAKER_SOURCE,
    { "prompt", "TEXT", "text to go on with, as it stands" },
    { "messages", "FILE", "conversation to answer: {messages, tools}, or a list of messages" },
    SPEAKER_RULE,
    { NULL, NULL, NULL },
};

const struct command command_sample = {
    "sample",
    "",
    "let a model go on with a text or answer a conversation",
    "rondo sample --prompt \"The price index of\"\n"
    "rondo sample --home build/q --run RUN --messages question.json\n"
    "rondo sample --model model.gguf --adapter build/q/runs/RUN/adapter --messages question.json --temperature 0.8 --seed 7",
    "Text comes as it is made and ends at the end-of-turn token, before a --stop text, at --max-tokens or at the model's longest "
    "sequence.\n"
    "The same seed gives the same text on every machine. --json also prints each token's log-probability.",
    options,
    sample_main,
};
