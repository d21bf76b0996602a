#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/model/source.h"
#include "native/text/tokenizer.h"
#include "native/text/utf8.h"
#include "runtime/cli/commands.h"

enum { TEXT_MOST = 1 << 30 };

static struct tokenizer *open_tokenizer(const char *path, struct error *err)
{
    char inside[4096];
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
        snprintf(inside, sizeof inside, "%s/tokenizer.json", path) < (int)sizeof inside)
        return model_tokenizer_file(inside, err);
    return model_tokenizer_file(path, err);
}

static int print_tokens(const struct invocation *in, const struct tokens *tokens)
{
    json_t *ids = json_array(), *ends = json_array();

    for (size_t i = 0; i < tokens->count; i++) {
        if (!in->json)
            printf("%s%u", i ? " " : "", tokens->ids[i]);
        json_array_append_new(ids, json_integer(tokens->ids[i]));
        json_array_append_new(ends, json_integer(tokens->ends[i]));
    }
    if (in->json)
        command_print_json(json_pack("{s:o, s:o}", "ids", ids, "ends", ends));
    else
        printf("\n");
    if (!in->json) {
        json_decref(ids);
        json_decref(ends);
    }
    return EXIT_OK;
}

/* Ids are a list, in JSON or bare, or an object with "ids". */
static bool read_ids(struct buffer *text, struct tokens *out, struct error *err)
{
    const char *at = buffer_text(text);
    json_t *root = strchr("{[", *at) && *at ? json_read(at, text->size, TEXT_MOST, err) : NULL;
    const json_t *ids = json_is_object(root) ? json_object_get(root, "ids") : root;
    bool ok = true;

    if (strchr("{[", *at) && *at && !json_is_array(ids))
        ok = root ? error_set(err, ERROR_TYPE, "give [1, 2] or {\"ids\": [1, 2]}", "no list of ids") : false;
    for (size_t i = 0; ok && i < json_array_size(ids); i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));

        if (!json_is_integer(json_array_get(ids, i)) || id < 0 || id > UINT32_MAX)
            ok = error_set(err, ERROR_RANGE, NULL, "no id") || error_at(err, "ids[%zu]", i);
        else
            tokens_add(out, (uint32_t)id, 0);
    }
    while (ok && !ids && *at) {
        char *end;
        unsigned long long id = strtoull(at, &end, 10);

        if (end == at && strspn(at, " \t\r\n,") == strlen(at))
            break;
        if (end == at || id > UINT32_MAX)
            ok = error_set(err, ERROR_SYNTAX, "give numbers with spaces between", "no id at byte %zu",
                           (size_t)(at - buffer_text(text)));
        else
            tokens_add(out, (uint32_t)id, 0);
        at = end + strspn(end, " \t\r\n,");
    }
    json_decref(root);
    return ok;
}

static bool decode(const struct invocation *in, const struct tokenizer *t, struct buffer *text, struct tokens *tokens,
                   struct error *err)
{
    struct buffer bytes = { 0 }, told = { 0 };
    bool ok = read_ids(text, tokens, err) &&
              tokenizer_decode(t, tokens->ids, tokens->count, !option_flag(in, "no-special"), &bytes, err);

    if (ok) {
        utf8_add_lossy(&told, (const char *)bytes.bytes, bytes.size);
        if (in->json)
            command_print_json(json_pack("{s:o}", "text", json_stringn(buffer_text(&told), told.size)));
        else
            fwrite(told.bytes, 1, told.size, stdout);
    }
    buffer_free(&bytes);
    buffer_free(&told);
    return ok;
}

static int tokenize_main(struct invocation *in)
{
    const char *path = option_text(in, "tokenizer", NULL), *file = option_text(in, "file", NULL);
    struct error err = { 0 };
    struct buffer text = { 0 };
    struct tokens tokens = { 0 };
    struct tokenizer *t = NULL;

    bool ok = (path && file) || error_set(&err, ERROR_USAGE, NULL, "--tokenizer and --file are needed");

    ok = ok && (t = open_tokenizer(path, &err)) && file_read(file, TEXT_MOST, &text, &err);
    if (ok && option_flag(in, "decode")) {
        ok = decode(in, t, &text, &tokens, &err);
    } else if (ok) {
        ok = tokenizer_encode(t, (const char *)text.bytes, text.size, option_flag(in, "parse-special"), &tokens, &err) ||
             error_at(&err, "%s", file);
        if (ok && !option_flag(in, "no-special"))
            tokenizer_surround(t, &tokens);
        if (ok)
            print_tokens(in, &tokens);
    }
    tokenizer_free(t);
    tokens_free(&tokens);
    buffer_free(&text);
    return ok ? EXIT_OK : command_fail(in, &err);
}

static const struct option options[] = {
    { "tokenizer", "PATH", "tokenizer.json or its folder, SentencePiece .model, .gguf, or tiktoken ranks" },
    { "file", "PATH", "the text, or with --decode the ids" },
    { "no-special", NULL, "add no tokens around the text; with --decode leave special tokens out" },
    { "parse-special", NULL, "special tokens in the text are these tokens, not plain text" },
    { "decode", NULL, "from ids to text" },
    { NULL, NULL, NULL },
};

const struct command command_tokenize = {
    "tokenize",
    "",
    "the token ids of a text, or the text of ids",
    "rondo tokenize --tokenizer models/pocket/tokenizer.json --file README.md --json\n"
    "rondo tokenize --tokenizer tokenizer.json --file ids.json --decode",
    "Prints the ids; with --json also \"ends\", the byte of the text where each ends. What a tokenizer file asks for and is not\n"
    "offered is refused by name, exit status 3.",
    options,
    tokenize_main,
};
