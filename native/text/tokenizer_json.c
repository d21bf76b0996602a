#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/tokenizer_build.h"

static bool refuse(struct error *err, const char *place, const char *what)
{
    error_set(err, ERROR_UNSUPPORTED, "use a tokenizer that does without", "%s", what);
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

static bool id_of(const json_t *value, uint64_t *id)
{
    json_int_t number = json_integer_value(value);

    *id = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && number < TOKENIZER_MAX_TOKENS;
}

static bool greatest_id(const json_t *vocabulary, const json_t *added, const json_t *config, size_t *ids, struct error *err)
{
    const char *key;
    json_t *value;
    uint64_t id;
    size_t i;

    *ids = json_array_size(vocabulary);
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
    return config_greatest_id(config, ids, err);
}

static bool add_vocabulary(struct tokenizer_builder *b, const json_t *vocabulary, struct error *err)
{
    const char *key;
    size_t length;
    json_t *value;

    json_array_foreach(vocabulary, length, value)
    {
        if (!json_is_string(json_array_get(value, 0)) || !json_is_number(json_array_get(value, 1)))
            return error_set(err, ERROR_TYPE, NULL, "no text and score") || error_at(err, "model.vocab[%zu]", length);
        if (!builder_add(b, length, slice_of(json_array_get(value, 0)), TOKEN_OF_MODEL, err))
            return error_at(err, "model.vocab");
    }
    json_object_keylen_foreach((json_t *)vocabulary, key, length, value)
    {
        struct text_slice text = { key, length };

        if (!builder_add(b, (uint64_t)json_integer_value(value), text, TOKEN_OF_MODEL, err))
            return error_at(err, "model.vocab");
    }
    return true;
}

uint8_t added_token_flags(const json_t *token)
{
    static const struct {
        const char *name;
        uint8_t flag;
    } flags[] = { { "special", TOKEN_SPECIAL },
                  { "single_word", TOKEN_SINGLE_WORD },
                  { "lstrip", TOKEN_LSTRIP },
                  { "rstrip", TOKEN_RSTRIP },
                  { "normalized", TOKEN_NORMALIZED } };
    uint8_t kind = TOKEN_ADDED;

    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
        if (json_is_true(json_object_get(token, flags[f].name)))
            kind |= flags[f].flag;
    return kind;
}

static bool add_added(struct tokenizer_builder *b, const json_t *added, struct error *err)
{
    size_t i;
    json_t *token;

    json_array_foreach(added, i, token)
    {
        const json_t *content = json_object_get(token, "content");

        if (!json_is_string(content))
            return error_set(err, ERROR_MISSING, NULL, "no content") || error_at(err, "added_tokens[%zu]", i);
        if (!builder_add(b, (uint64_t)json_integer_value(json_object_get(token, "id")), slice_of(content),
                         added_token_flags(token), err))
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

static bool add_merges(struct tokenizer_builder *b, struct tokenizer *t, const json_t *merges, struct error *err)
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

static bool bpe_fits(const json_t *model, struct error *err)
{
    if (!json_is_object(json_object_get(model, "vocab")))
        return error_set(err, ERROR_MISSING, NULL, "no object") || error_at(err, "model.vocab");
    if (!json_is_array(json_object_get(model, "merges")))
        return error_set(err, ERROR_MISSING, NULL, "no array") || error_at(err, "model.merges");
    if (is_set(json_object_get(model, "dropout")))
        return refuse(err, "model", "dropout");
    return true;
}

/* What marks tokens within a word, and at its end. */
static bool read_affix(const json_t *model, const char *name, struct text_slice *affix, struct error *err)
{
    const json_t *value = json_object_get(model, name);
    bool plain = true;

    if (!is_set(value))
        return true;
    *affix = slice_of(value);
    for (size_t i = 0; i < affix->size; i++)
        plain = plain && affix->bytes[i] > ' ' && affix->bytes[i] < 0x7f;
    if (!affix->size || !plain)
        return refuse(err, "model", name);
    return !json_is_true(json_object_get(model, "byte_fallback")) || refuse(err, "model", "byte_fallback with affixes");
}

/* What stands before the vocabulary is read, in the order of a text's way. */
static bool read_steps(struct tokenizer *t, const json_t *root, struct error *err)
{
    if (!steps_read_normalizer(&t->normalizer, json_object_get(root, "normalizer"), err))
        return error_at(err, "normalizer");
    if (!steps_read_pretokenizer(&t->pretokenizer, json_object_get(root, "pre_tokenizer"), err))
        return error_at(err, "pre_tokenizer");
    if (!steps_read_decoder(&t->decoder, json_object_get(root, "decoder"), err))
        return error_at(err, "decoder");
    if (t->pretokenizer.byte_level && !t->decoder.bytes)
        return refuse(err, "decoder", "a decoder other than ByteLevel after a ByteLevel pre-tokenizer");
    return true;
}

static bool unknown_of(const json_t *model, const struct tokenizer_builder *b, uint32_t *id, struct error *err)
{
    const json_t *unknown = json_object_get(model, "unk_token");

    *id = json_is_string(unknown) ? builder_find(b, slice_of(unknown)) : BPE_NONE;
    return !is_set(unknown) || *id != BPE_NONE ||
           (error_set(err, ERROR_UNKNOWN, NULL, "not in the vocabulary"), error_at(err, "model.unk_token"));
}

static bool fill_bpe(struct tokenizer *t, struct tokenizer_builder *b, const json_t *model, struct error *err)
{
    t->bpe.fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    t->bpe.byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    t->whole_pieces = json_is_true(json_object_get(model, "ignore_merges"));
    if (!unknown_of(model, b, &t->bpe.unknown, err))
        return false;
    builder_set_cut(b, t);
    return true;
}

/* Unigram's vocabulary is a list of [text, score]. */
static bool fill_unigram(struct tokenizer *t, struct tokenizer_builder *b, const json_t *model, struct error *err)
{
    const json_t *vocabulary = json_object_get(model, "vocab"), *unknown = json_object_get(model, "unk_id");
    json_int_t id = json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    double *scores = calloc(b->count, sizeof *scores);

    if (!scores)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u scores", b->count);
    for (size_t i = 0; i < json_array_size(vocabulary); i++)
        scores[i] = json_number_value(json_array_get(json_array_get(vocabulary, i), 1));
    builder_set_unigram(b, t, scores, id < 0 ? BPE_NONE : (uint32_t)id, json_is_true(json_object_get(model, "byte_fallback")));
    return id < (json_int_t)json_array_size(vocabulary) ||
           (error_set(err, ERROR_RANGE, NULL, "not in the vocabulary"), error_at(err, "model.unk_id"));
}

static bool fill_wordpiece(struct tokenizer *t, struct tokenizer_builder *b, const json_t *model, struct error *err)
{
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    const char *prefix =
        json_object_get(model, "continuing_subword_prefix") ? member_text(model, "continuing_subword_prefix") : "##";
    size_t length = strlen(prefix);

    t->model = MODEL_WORDPIECE;
    t->wordpiece.longest = json_integer_value(most) > 0 ? (size_t)json_integer_value(most) : 100;
    for (uint32_t id = 0; id < b->count; id++) {
        struct text_slice text = b->texts[id];

        if (!text.bytes || !(b->flags[id] & TOKEN_OF_MODEL))
            continue;
        added_tokens_add(&t->wordpiece.first, text.bytes, text.size, id);
        if (text.size > length && !memcmp(text.bytes, prefix, length))
            added_tokens_add(&t->wordpiece.rest, text.bytes + length, text.size - length, id);
    }
    if (!unknown_of(model, b, &t->wordpiece.unknown, err))
        return false;
    return t->wordpiece.unknown != BPE_NONE ||
           (error_set(err, ERROR_MISSING, NULL, "no unknown token"), error_at(err, "model.unk_token"));
}

static const char *model_type(const json_t *model)
{
    const char *type = member_text(model, "type");

    return *type                                            ? type
           : json_object_get(model, "merges")               ? "BPE"
           : json_is_array(json_object_get(model, "vocab")) ? "Unigram"
                                                            : "WordPiece";
}

/* The whole piece, or the unknown token. */
static void fill_wordlevel(struct tokenizer *t, const struct tokenizer_builder *b, const json_t *model)
{
    const json_t *unknown = json_object_get(model, "unk_token");

    t->model = MODEL_WORDLEVEL;
    t->whole_pieces = true;
    t->bpe.unknown = json_is_string(unknown) ? builder_find(b, slice_of(unknown)) : BPE_NONE;
}

static bool fill_model(struct tokenizer *t, struct tokenizer_builder *b, const json_t *model, const char *type, struct error *err)
{
    if (!strcmp(type, "WordLevel")) {
        fill_wordlevel(t, b, model);
        return true;
    }
    return !strcmp(type, "BPE")       ? fill_bpe(t, b, model, err)
           : !strcmp(type, "Unigram") ? fill_unigram(t, b, model, err)
                                      : fill_wordpiece(t, b, model, err);
}

static bool fill(struct tokenizer *t, struct tokenizer_builder *b, const json_t *root, const json_t *config, struct error *err)
{
    const json_t *model = json_object_get(root, "model"), *vocabulary = json_object_get(model, "vocab"),
                 *added = json_object_get(root, "added_tokens");
    const char *type = model_type(model);
    bool bpe = !strcmp(type, "BPE");
    size_t ids;

    if (!json_is_object(root))
        return error_set(err, ERROR_TYPE, NULL, "not an object");
    if (!bpe && strcmp(type, "Unigram") && strcmp(type, "WordPiece") && strcmp(type, "WordLevel"))
        return error_set(err, ERROR_UNSUPPORTED, "BPE, Unigram, WordPiece and WordLevel are offered", "type \"%.40s\"", type) ||
               error_at(err, "model.type");
    if (!(strcmp(type, "Unigram") ? json_is_object(vocabulary) : json_is_array(vocabulary)))
        return error_set(err, ERROR_MISSING, NULL, "none of the model's kind") || error_at(err, "model.vocab");
    if ((bpe && !bpe_fits(model, err)) || !read_steps(t, root, err))
        return false;
    if (!bpe && t->pretokenizer.byte_level)
        return refuse(err, "pre_tokenizer", "ByteLevel before a model other than BPE");
    if (!greatest_id(vocabulary, added, config, &ids, err) || !builder_start(b, ids, err) ||
        !add_vocabulary(b, vocabulary, err) ||
        (bpe && (!read_affix(model, "continuing_subword_prefix", &b->prefix, err) ||
                 !read_affix(model, "end_of_word_suffix", &b->suffix, err) ||
                 !add_merges(b, t, json_object_get(model, "merges"), err))) ||
        !add_added(b, added, err) || !config_add_tokens(b, config, err) || !builder_finish(b, t, err) ||
        !fill_model(t, b, model, type, err))
        return false;
    if (!steps_read_post_processor(t, json_object_get(root, "post_processor"), err))
        return error_at(err, "post_processor");
    config_surround(b, t, config);
    return true;
}

static struct tokenizer *read_with(const char *json, size_t size, const json_t *config, struct error *err)
{
    json_t *root = json_read(json, size, TOKENIZER_MAX_FILE, err);

    if (!root)
        return NULL;

    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    bool ok = t ? fill(t, &b, root, config, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    builder_free(&b);
    json_decref(root);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}

struct tokenizer *tokenizer_read(const char *json, size_t size, struct error *err)
{
    return read_with(json, size, NULL, err);
}

struct tokenizer *tokenizer_read_folder(const char *folder, struct error *err)
{
    char path[4096], config_path[4096];
    struct buffer text = { 0 };
    struct tokenizer *t = NULL;
    json_t *config = NULL;

    if (snprintf(path, sizeof path, "%s/tokenizer.json", folder) >= (int)sizeof path ||
        snprintf(config_path, sizeof config_path, "%s/tokenizer_config.json", folder) >= (int)sizeof config_path) {
        error_set(err, ERROR_LIMIT, NULL, "a path of more than %zu bytes", sizeof path - 1);
        return NULL;
    }

    bool ok = access(config_path, F_OK) != 0 || (config = json_read_file(config_path, TOKENIZER_MAX_FILE, err));

    ok = ok && file_read(path, TOKENIZER_MAX_FILE, &text, err);
    if (ok && !(t = read_with((const char *)text.bytes, text.size, config, err)))
        error_at(err, "%s", path);
    json_decref(config);
    buffer_free(&text);
    return t;
}

struct tokenizer *tokenizer_read_file(const char *path, struct error *err)
{
    struct buffer text = { 0 };
    struct tokenizer *t = NULL;

    if (file_read(path, TOKENIZER_MAX_FILE, &text, err)) {
        size_t at = 0;

        while (at < text.size && memchr(" \t\r\n", text.bytes[at], 4))
            at++;
        if (at < text.size && text.bytes[at] == '{')
            t = tokenizer_read((const char *)text.bytes, text.size, err);
        else if (text.size && text.bytes[0] == 0x0a) /* the first field of a model is its first piece */
            t = tokenizer_read_sentencepiece(text.bytes, text.size, err);
        else
            t = tokenizer_read_ranks((const char *)text.bytes, text.size, err);
        if (!t)
            error_at(err, "%s", path);
    }
    buffer_free(&text);
    return t;
}
