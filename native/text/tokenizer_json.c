#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/tokenizer_build.h"

static bool refuse(struct error *err, const char *place, const char *what)
{
    error_set(err, ERROR_UNSUPPORTED, "byte-level BPE without normaliser is offered", "%s", what);
    return error_at(err, "%s", place);
}

static const char *member_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static bool is_set(const json_t *value)
{
    return value && !json_is_null(value) && !json_is_false(value) && !(json_is_string(value) && json_string_length(value) == 0) &&
           !(json_is_number(value) && json_number_value(value) == 0);
}

static struct text_slice slice_of(const json_t *text)
{
    return (struct text_slice){ json_string_value(text), json_string_length(text) };
}

/* ---- pre-tokenizer ---- */

static bool add_pattern(struct tokenizer *t, const char *pattern, struct error *err)
{
    return pretokenizer_add(&t->pretokenizer, pattern, strlen(pattern), false, err);
}

static bool read_split(struct tokenizer *t, const json_t *split, struct error *err)
{
    const json_t *pattern = json_object_get(split, "pattern"), *regex = json_object_get(pattern, "Regex"),
                 *literal = json_object_get(pattern, "String");

    if (strcmp(member_text(split, "behavior"), "Isolated"))
        return error_set(err, ERROR_UNSUPPORTED, "only Isolated is offered", "behavior \"%.60s\"",
                         member_text(split, "behavior"));
    if (json_is_true(json_object_get(split, "invert")))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "invert is not offered");
    if (!json_is_string(regex) && !json_is_string(literal))
        return error_set(err, ERROR_MISSING, NULL, "pattern: no Regex and no String");

    struct text_slice text = slice_of(regex ? regex : literal);

    return pretokenizer_add(&t->pretokenizer, text.bytes, text.size, !regex, err);
}

static bool read_pretokenizer(struct tokenizer *t, const json_t *rule, bool *bytes, unsigned depth, struct error *err)
{
    const char *type = member_text(rule, "type");

    if (*bytes)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "a step after ByteLevel");
    if (!strcmp(type, "Sequence") && depth == 0) {
        const json_t *steps = json_object_get(rule, "pretokenizers");

        for (size_t i = 0; i < json_array_size(steps); i++)
            if (!read_pretokenizer(t, json_array_get(steps, i), bytes, 1, err))
                return error_at(err, "pretokenizers[%zu]", i);
        return true;
    }
    if (!strcmp(type, "Split"))
        return read_split(t, rule, err);
    if (!strcmp(type, "Digits"))
        return add_pattern(t, json_is_true(json_object_get(rule, "individual_digits")) ? "\\p{N}" : "\\p{N}+", err);
    if (strcmp(type, "ByteLevel"))
        return error_set(err, ERROR_UNSUPPORTED, "Sequence, Split, Digits and ByteLevel are offered", "type \"%.60s\"", type);
    if (!json_is_false(json_object_get(rule, "add_prefix_space")))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "add_prefix_space is not offered");
    *bytes = true;
    return json_is_false(json_object_get(rule, "use_regex")) || add_pattern(t, PRETOKENIZER_GPT2, err);
}

/* ---- vocabulary ---- */

static bool id_of(const json_t *value, uint64_t *id)
{
    json_int_t number = json_integer_value(value);

    *id = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && number < TOKENIZER_MAX_TOKENS;
}

static bool greatest_id(const json_t *vocabulary, const json_t *added, size_t *ids, struct error *err)
{
    const char *key;
    json_t *value;
    uint64_t id;
    size_t i;

    *ids = 0;
    json_object_foreach((json_t *)vocabulary, key, value)
    {
        if (!id_of(value, &id))
            return error_set(err, ERROR_RANGE, NULL, "no id below %d", TOKENIZER_MAX_TOKENS) ||
                   error_at(err, "model.vocab[\"%.60s\"]", key);
        *ids = id >= *ids ? id + 1 : *ids;
    }
    json_array_foreach(added, i, value)
    {
        if (!id_of(json_object_get(value, "id"), &id))
            return error_set(err, ERROR_RANGE, NULL, "no id below %d", TOKENIZER_MAX_TOKENS) ||
                   error_at(err, "added_tokens[%zu].id", i);
        *ids = id >= *ids ? id + 1 : *ids;
    }
    return true;
}

static bool add_vocabulary(struct tokenizer_builder *b, const json_t *vocabulary, struct error *err)
{
    const char *key;
    size_t length;
    json_t *value;

    json_object_keylen_foreach((json_t *)vocabulary, key, length, value)
    {
        struct text_slice text = { key, length };

        if (!builder_add(b, (uint64_t)json_integer_value(value), text, 0, err))
            return error_at(err, "model.vocab");
    }
    return true;
}

static bool add_added(struct tokenizer_builder *b, const json_t *added, struct error *err)
{
    static const char *const flags[] = { "single_word", "lstrip", "rstrip" };
    size_t i;
    json_t *token;

    json_array_foreach(added, i, token)
    {
        const json_t *content = json_object_get(token, "content");
        uint8_t kind = TOKEN_ADDED | (json_is_true(json_object_get(token, "special")) ? TOKEN_SPECIAL : 0);

        if (!json_is_string(content))
            return error_set(err, ERROR_MISSING, NULL, "no content") || error_at(err, "added_tokens[%zu]", i);
        for (size_t f = 0; f < 3; f++)
            if (json_is_true(json_object_get(token, flags[f])))
                return error_set(err, ERROR_UNSUPPORTED, NULL, "%s is not offered", flags[f]) ||
                       error_at(err, "added_tokens[%zu]", i);
        if (!builder_add(b, (uint64_t)json_integer_value(json_object_get(token, "id")), slice_of(content), kind, err))
            return error_at(err, "added_tokens[%zu]", i);
    }
    return true;
}

/* A merge is "left right" or ["left", "right"]. */
static bool sides_of(const json_t *merge, struct text_slice *left, struct text_slice *right)
{
    if (json_is_array(merge)) {
        *left = slice_of(json_array_get(merge, 0));
        *right = slice_of(json_array_get(merge, 1));
        return json_array_size(merge) == 2 && left->bytes && right->bytes;
    }

    struct text_slice m = slice_of(merge);
    const char *space = m.bytes ? memchr(m.bytes, ' ', m.size) : NULL;

    if (!space)
        return false;
    *left = (struct text_slice){ m.bytes, (size_t)(space - m.bytes) };
    *right = (struct text_slice){ space + 1, m.size - left->size - 1 };
    return !memchr(right->bytes, ' ', right->size);
}

static bool add_merges(const struct tokenizer_builder *b, struct tokenizer *t, const json_t *merges, struct error *err)
{
    size_t i, rank = 0;
    json_t *merge;

    if (json_array_size(merges) > TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, NULL, "%zu merges", json_array_size(merges)) || error_at(err, "model.merges");
    json_array_foreach(merges, i, merge)
    {
        struct text_slice left, right;

        if (json_is_string(merge) && !strncmp(json_string_value(merge), "#version", 8))
            continue;
        if (!sides_of(merge, &left, &right))
            return error_set(err, ERROR_SYNTAX, NULL, "no two sides") || error_at(err, "model.merges[%zu]", i);
        if (!builder_merge(b, t, left, right, (uint32_t)rank++, err))
            return error_at(err, "model.merges[%zu]", i);
    }
    return true;
}

static bool model_fits(const json_t *model, struct error *err)
{
    static const char *const absent[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback" };
    const char *type = member_text(model, "type");

    if (*type && strcmp(type, "BPE"))
        return refuse(err, "model.type", type);
    if (!json_is_object(json_object_get(model, "vocab")))
        return error_set(err, ERROR_MISSING, NULL, "no object") || error_at(err, "model.vocab");
    if (!json_is_array(json_object_get(model, "merges")))
        return error_set(err, ERROR_MISSING, NULL, "no array") || error_at(err, "model.merges");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (is_set(json_object_get(model, absent[i])))
            return refuse(err, "model", absent[i]);
    return true;
}

static bool normaliser_fits(const json_t *n, struct error *err)
{
    if (!is_set(n) || (!strcmp(member_text(n, "type"), "Sequence") && json_array_size(json_object_get(n, "normalizers")) == 0))
        return true;
    return refuse(err, "normalizer.type", member_text(n, "type"));
}

static bool fill(struct tokenizer *t, struct tokenizer_builder *b, const json_t *root, struct error *err)
{
    const json_t *model = json_object_get(root, "model"), *vocabulary = json_object_get(model, "vocab"),
                 *added = json_object_get(root, "added_tokens"), *unknown = json_object_get(model, "unk_token"),
                 *decoder = json_object_get(root, "decoder");
    bool bytes = false;
    size_t ids;

    if (!json_is_object(root))
        return error_set(err, ERROR_TYPE, NULL, "not an object");
    if (!model_fits(model, err) || !normaliser_fits(json_object_get(root, "normalizer"), err))
        return false;
    if (!read_pretokenizer(t, json_object_get(root, "pre_tokenizer"), &bytes, 0, err))
        return error_at(err, "pre_tokenizer");
    if (!bytes)
        return refuse(err, "pre_tokenizer", "no ByteLevel step");
    if (strcmp(member_text(decoder, "type"), "ByteLevel"))
        return refuse(err, "decoder.type", member_text(decoder, "type"));
    if (!greatest_id(vocabulary, added, &ids, err) || !builder_start(b, ids, err) || !add_vocabulary(b, vocabulary, err) ||
        !add_merges(b, t, json_object_get(model, "merges"), err) || !add_added(b, added, err) || !builder_finish(b, t, err))
        return false;
    t->bpe.unknown = BPE_NONE;
    t->bpe.fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    t->whole_pieces = json_is_true(json_object_get(model, "ignore_merges"));
    if (is_set(unknown)) {
        t->bpe.unknown = json_is_string(unknown) ? builder_find(b, slice_of(unknown)) : BPE_NONE;
        if (t->bpe.unknown == BPE_NONE)
            return error_set(err, ERROR_UNKNOWN, NULL, "not in the vocabulary") || error_at(err, "model.unk_token");
    }
    return true;
}

struct tokenizer *tokenizer_read(const char *json, size_t size, struct error *err)
{
    json_t *root = json_read(json, size, TOKENIZER_MAX_FILE, err);

    if (!root)
        return NULL;

    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    bool ok = t ? fill(t, &b, root, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    builder_free(&b);
    json_decref(root);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}

struct tokenizer *tokenizer_read_file(const char *path, struct error *err)
{
    struct buffer text = { 0 };
    struct tokenizer *t = NULL;

    if (file_read(path, TOKENIZER_MAX_FILE, &text, err)) {
        t = tokenizer_read((const char *)text.bytes, text.size, err);
        if (!t)
            error_at(err, "%s", path);
    }
    buffer_free(&text);
    return t;
}
