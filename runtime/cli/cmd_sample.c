#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/base/scratch.h"
#include "native/text/rows.h"
#include "runtime/cli/commands.h"
#include "runtime/role/bench.h"

enum { FILE_MOST = 1 << 20 };

/* What streams: how many bytes of the text are out. */
struct stream {
    const struct invocation *in;
    size_t told;
};

static void told(void *context, json_t *progress)
{
    struct stream *s = context;
    const json_t *text = json_object_get(progress, "text");

    if (!text || s->in->json)
        return;
    fwrite(json_string_value(text), 1, json_string_length(text), stdout);
    fflush(stdout);
    s->told += json_string_length(text);
}

/* The first row of a file of conversations; a file that is one array is the messages themselves. */
static json_t *read_messages(const char *path, struct error *err)
{
    struct buffer bytes = { 0 };
    struct rows rows = { 0 };
    json_t *conversation = NULL;
    size_t start = 0;

    if (!file_read(path, FILE_MOST, &bytes, err))
        return NULL;
    while (start < bytes.size && strchr(" \t\r\n", bytes.bytes[start]))
        start++;
    if (start < bytes.size && bytes.bytes[start] == '[') {
        json_t *list = json_read((const char *)bytes.bytes, bytes.size, FILE_MOST, err);

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

static bool read_number(const struct invocation *in, const char *name, double least, double most, double *out, struct error *err)
{
    const char *text = option_text(in, name, NULL);
    char *end;
    double value = text ? strtod(text, &end) : *out;

    if (text && (end == text || *end || !(value >= least && value <= most)))
        return error_set(err, ERROR_USAGE, NULL, "--%s %s: a number from %g to %g is needed", name, text, least, most);
    *out = value;
    return true;
}

/* The job but for where its values come from. */
static json_t *make_job(const struct invocation *in, struct error *err)
{
    const char *prompt = option_text(in, "prompt", NULL), *messages = option_text(in, "messages", NULL),
               *stop = option_text(in, "stop", NULL), *adapter = option_text(in, "adapter", NULL);
    json_t *conversation = NULL, *job;
    int64_t most = 128, seed = 0, top_k = 0;
    double temperature = 0, top_p = 1, min_p = 0, repetition = 1;

    if (!prompt == !messages) {
        error_set(err, ERROR_USAGE, NULL, "either --prompt TEXT or --messages FILE is needed");
        return NULL;
    }
    if (!read_number(in, "temperature", 0, 100, &temperature, err) || !read_number(in, "top-p", 1e-9, 1, &top_p, err) ||
        !read_number(in, "min-p", 0, 0.999999, &min_p, err) || !read_number(in, "repetition", 0.01, 100, &repetition, err) ||
        !option_integer(in, "top-k", 0, 1 << 24, &top_k, err))
        return NULL;
    if (stop && !*stop) {
        error_set(err, ERROR_USAGE, NULL, "--stop needs a text");
        return NULL;
    }
    if (option_flag(in, "greedy") && temperature > 0) {
        error_set(err, ERROR_USAGE, NULL, "--greedy and --temperature exclude each other");
        return NULL;
    }
    if (temperature == 0 && (top_k > 0 || top_p < 1 || min_p > 0)) {
        error_set(err, ERROR_USAGE, "give --temperature, too", "--top-k, --top-p and --min-p say what is drawn from");
        return NULL;
    }
    if (!option_integer(in, "max-tokens", 1, 1 << 20, &most, err) || !option_integer(in, "seed", 0, INT64_MAX, &seed, err) ||
        (messages && !(conversation = read_messages(messages, err))))
        return NULL;
    job = json_pack("{s:s, s:s*, s:o*, s:s*, s:I, s:f, s:I, s:f, s:f, s:f, s:o*, s:I}", "job", "sample", "prompt", prompt,
                    "conversation", conversation, "adapter", adapter, "max_tokens", (json_int_t)most, "temperature", temperature,
                    "top_k", (json_int_t)top_k, "top_p", top_p, "min_p", min_p, "repetition", repetition, "stop",
                    stop ? json_pack("[s]", stop) : NULL, "seed", (json_int_t)seed);
    if (!job)
        error_set(err, ERROR_SYNTAX, NULL, "the prompt is not UTF-8");
    return job;
}

static json_t *sample_run(struct invocation *in, struct archive *a, json_t *job, struct stream *s, struct error *err)
{
    const char *outer;
    struct hash id;

    if (!archive_open(a, in->home, option_text(in, "run", NULL), err))
        return NULL;
    outer = document_text(archive_record(a, (int64_t)json_array_size(a->finals) - 1), "outer");
    if (!outer) {
        error_set(err, ERROR_MISSING, "let it run first", "run %s has no decided round", a->course.run);
        return NULL;
    }
    json_object_set_new(job, "outer", json_string(outer));
    if (!cid_parse(outer, &id, err) || !archive_worker(a, in->threads, err) || !archive_gather(a, id, true, err))
        return NULL;
    return archive_job(a, json_incref(job), told, s, err);
}

/* A model by itself: the worker's folder is made for the call. */
static json_t *sample_model(struct invocation *in, struct archive *a, json_t *job, struct stream *s, struct error *err)
{
    const char *path = option_text(in, "template", NULL);
    char pocket[4200];
    struct scratch home;
    struct buffer template = { 0 };
    json_t *result = NULL;

    if (path && !file_read(path, FILE_MOST, &template, err))
        return NULL;
    buffer_add_u8(&template, 0);
    if (scratch_open(&home, "sample", err)) {
        if (archive_new(a, home.path, err) &&
            bench_open(a, option_text(in, "model", bench_pocket(pocket)), option_text(in, "adapter", NULL),
                       path ? (const char *)template.bytes : NULL, in->threads, err))
            result = archive_job(a, json_incref(job), told, s, err);
        scratch_close(&home);
    }
    buffer_free(&template);
    return result;
}

static int sample_main(struct invocation *in)
{
    bool run = option_flag(in, "run") || (option_flag(in, "home") && !option_flag(in, "model"));
    struct archive a = { 0 };
    struct error err = { 0 };
    struct stream s = { .in = in };
    json_t *job = NULL, *result = NULL;

    if (run && (option_flag(in, "model") || option_flag(in, "adapter")))
        error_set(&err, ERROR_USAGE, NULL, "a run has its model and adapter: leave --model and --adapter out");
    else
        job = make_job(in, &err);
    if (job) {
        result = run ? sample_run(in, &a, job, &s, &err) : sample_model(in, &a, job, &s, &err);
        if (a.finals)
            archive_close(&a);
    }
    json_decref(job);
    if (!result) {
        if (s.told)
            putchar('\n');
        return command_fail(in, &err);
    }
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    puts(json_string_value(json_object_get(result, "text")) + s.told);
    if (!in->quiet)
        fprintf(stderr, "%lld tokens after a prompt of %lld (%s)\n",
                (long long)json_integer_value(json_object_get(result, "tokens")),
                (long long)json_integer_value(json_object_get(result, "prompt_tokens")),
                json_string_value(json_object_get(result, "end")));
    json_decref(result);
    return EXIT_OK;
}

static const struct option options[] = {
    { "model", "PATH", "folder or .gguf file (default: the pocket model that ships)" },
    { "adapter", "DIR", "LoRA adapter in PEFT's layout, such as a run's" },
    { "run", "RUN", "last state of this run of the home, instead of a model" },
    { "prompt", "TEXT", "text to go on with, as it stands" },
    { "messages", "FILE", "conversation to answer: {messages, tools}, or a list of messages" },
    { "template", "FILE", "chat template (default: the model's)" },
    { "max-tokens", "N", "stop after so many tokens (default 128)" },
    { "greedy", NULL, "always the most likely token (the default)" },
    { "temperature", "T", "draw from softmax(logits / T)" },
    { "top-k", "N", "draw from the N most likely tokens only" },
    { "top-p", "P", "draw from the most likely tokens that have P of the probability together" },
    { "min-p", "P", "draw from tokens at least P times as likely as the likeliest" },
    { "repetition", "R", "logits of tokens that are there already are divided by R (below 0: times R)" },
    { "stop", "TEXT", "end where this text begins; it is not printed" },
    { "seed", "N", "of the draws (default 0)" },
    { NULL, NULL, NULL },
};

const struct command command_sample = {
    "sample",
    "",
    "let a model go on with a text or answer a conversation",
    "rondo sample --prompt \"The price index of\"\n"
    "rondo sample --home build/q --run RUN --messages question.json\n"
    "rondo sample --model model.gguf --adapter build/q/runs/RUN/adapter --messages question.json --temperature 0.8 --seed 7",
    "Text comes as it is made and ends at the end-of-turn token, at --max-tokens or at the model's longest sequence. The same "
    "seed gives "
    "the same text on every machine; --json tells each token's log-probability too.",
    options,
    sample_main,
};
