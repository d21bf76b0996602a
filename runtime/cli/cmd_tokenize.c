#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/model/source.h"
#include "native/text/tokenizer.h"
#include "native/text/utf8.h"
#include "runtime/cli/commands.h"

enum { TEXT_MOST = 1 << 30 };

/* One text or list of ids, with room that is kept from one to the next. */
struct job {
    const struct invocation *in;
    struct tokenizer *tokenizer;
    bool lines, special;
    struct tokens tokens;
    struct buffer bytes, told;
};

static json_t *numbers(const uint32_t *list, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(list[i]));
    return array;
}

static void print_tokens(const struct job *job)
{
    const struct tokens *tokens = &job->tokens;

    if (job->in->json) {
        json_t *out = json_pack("{s:o}", "ids", numbers(tokens->ids, tokens->count));

        if (option_flag(job->in, "ends"))
            json_object_set_new(out, "ends", numbers(tokens->ends, tokens->count));
        command_print_json(out);
        return;
    }
    for (size_t i = 0; i < tokens->count; i++)
        printf("%s%u", i ? " " : "", tokens->ids[i]);
    printf("\n");
}

static void print_text(struct job *job)
{
    json_t *text = job->in->json || job->lines ? json_stringn(buffer_text(&job->told), job->told.size) : NULL;

    if (job->in->json) {
        command_print_json(json_pack("{s:o}", "text", text));
    } else if (job->lines) {
        json_dumpf(text, stdout, JSON_ENCODE_ANY);
        printf("\n");
        json_decref(text);
    } else {
        fwrite(job->told.bytes, 1, job->told.size, stdout);
    }
}

/* Ids in JSON: a list, or an object with "ids". */
static bool ids_of_json(const json_t *root, struct tokens *out, struct error *err)
{
    const json_t *ids = json_is_object(root) ? json_object_get(root, "ids") : root;

    if (!json_is_array(ids))
        return error_set(err, ERROR_TYPE, "give [1, 2] or {\"ids\": [1, 2]}", "no list of ids");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));

        if (!json_is_integer(json_array_get(ids, i)) || id < 0 || id > UINT32_MAX)
            return error_set(err, ERROR_RANGE, NULL, "no id") || error_at(err, "ids[%zu]", i);
        tokens_add(out, (uint32_t)id, 0);
    }
    return true;
}

static bool ids_of_text(const char *text, struct tokens *out, struct error *err)
{
    const char *at = text + strspn(text, " \t\r\n,");

    while (*at) {
        char *end;
        unsigned long long id = strtoull(at, &end, 10);

        if (*at < '0' || *at > '9' || id > UINT32_MAX)
            return error_set(err, ERROR_SYNTAX, "give numbers with spaces between, or a list in JSON", "no id at byte %zu",
                             (size_t)(at - text));
        tokens_add(out, (uint32_t)id, 0);
        at = end + strspn(end, " \t\r\n,");
    }
    return true;
}

static bool read_ids(const char *text, size_t size, struct tokens *out, struct error *err)
{
    const char *at = text + strspn(text, " \t\r\n");

    if (*at != '{' && *at != '[')
        return ids_of_text(text, out, err);

    json_t *root = json_read(text, size, TEXT_MOST, err);
    bool ok = root && ids_of_json(root, out, err);

    json_decref(root);
    return ok;
}

static bool decode(struct job *job, const char *text, size_t size, struct error *err)
{
    job->tokens.count = 0;
    buffer_clear(&job->bytes);
    buffer_clear(&job->told);
    if (!read_ids(text, size, &job->tokens, err) ||
        !tokenizer_decode(job->tokenizer, job->tokens.ids, job->tokens.count, job->special, &job->bytes, err))
        return false;
    utf8_add_lossy(&job->told, (const char *)job->bytes.bytes, job->bytes.size);
    print_text(job);
    return true;
}

static bool encode(struct job *job, const char *text, size_t size, struct error *err)
{
    job->tokens.count = 0;
    if (!tokenizer_encode(job->tokenizer, text, size, option_flag(job->in, "parse-special"), &job->tokens, err))
        return false;
    if (job->special)
        tokenizer_surround(job->tokenizer, &job->tokens);
    print_tokens(job);
    return true;
}

/* A line is a text in JSON, or with --decode ids. */
static bool do_line(struct job *job, const char *line, size_t size, struct error *err)
{
    if (option_flag(job->in, "decode"))
        return decode(job, line, size, err);

    json_t *text = json_read(line, size, TEXT_MOST, err);
    bool ok = text && (json_is_string(text) || error_set(err, ERROR_TYPE, "a line is \"a text\"", "no text in JSON")) &&
              encode(job, json_string_value(text), json_string_length(text), err);

    json_decref(text);
    return ok;
}

/* The lines of a zero-terminated text, each by itself. */
static bool do_lines(struct job *job, char *text, size_t size, struct error *err)
{
    size_t number = 1;

    for (char *at = text, *end = text + size; at < end; number++) {
        char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop ? stop : end;
        *stop = 0;
        if (!do_line(job, at, (size_t)(stop - at), err))
            return error_at(err, "line %zu", number);
        at = stop + 1;
    }
    return true;
}

static int tokenize_main(struct invocation *in)
{
    const char *path = option_text(in, "tokenizer", NULL), *file = option_text(in, "file", NULL);
    struct error err = { 0 };
    struct buffer text = { 0 };
    struct job job = { .in = in, .lines = option_flag(in, "lines"), .special = !option_flag(in, "no-special") };
    bool ok = (path && file) || error_set(&err, ERROR_USAGE, NULL, "--tokenizer and --file are needed");

    ok = ok && (job.tokenizer = model_tokenizer_file(path, &err)) && file_read(file, TEXT_MOST, &text, &err);
    if (ok) {
        buffer_text(&text);
        ok = (job.lines                   ? do_lines(&job, (char *)text.bytes, text.size, &err)
              : option_flag(in, "decode") ? decode(&job, (const char *)text.bytes, text.size, &err)
                                          : encode(&job, (const char *)text.bytes, text.size, &err)) ||
             error_at(&err, "%s", file);
    }
    tokenizer_free(job.tokenizer);
    tokens_free(&job.tokens);
    buffer_free(&job.bytes);
    buffer_free(&job.told);
    buffer_free(&text);
    return ok ? EXIT_OK : command_fail(in, &err);
}

static const struct option options[] = {
    { "tokenizer", "PATH", "tokenizer.json or a model's folder, SentencePiece .model, .gguf, or tiktoken ranks" },
    { "file", "PATH", "the text, or with --decode the ids" },
    { "no-special", NULL, "add no tokens around the text; with --decode leave special tokens out" },
    { "parse-special", NULL, "special tokens in the text are these tokens, not plain text" },
    { "decode", NULL, "from ids to text" },
    { "lines", NULL, "each line of the file by itself: a text as a JSON string, or with --decode ids; an answer a line" },
    { "ends", NULL, "with --json also \"ends\": the byte of the text where each token ends" },
    { NULL, NULL, NULL },
};

const struct command command_tokenize = {
    "tokenize",
    "",
    "the token ids of a text, or the text of ids",
    "rondo tokenize --tokenizer models/pocket/tokenizer.json --file README.md --json\n"
    "rondo tokenize --tokenizer tokenizer.json --file ids.json --decode",
    "Prints the ids, or with --json {\"ids\": [...]}. What a file puts around a text (BOS, EOS) is there unless --no-special; of "
    "a "
    "folder\nwhat its tokenizer_config.json says. Special tokens that stand in the text are plain text unless --parse-special. "
    "What a "
    "tokenizer\nfile asks for and is not offered is refused by name, exit status 3.",
    options,
    tokenize_main,
};
