#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer_build.h"

enum { MAX_DEPTH = 4 }; /* of sequences in sequences */

static const char *member_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static bool member_true(const json_t *object, const char *name, bool otherwise)
{
    const json_t *value = json_object_get(object, name);

    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static bool refuse_type(struct error *err, const char *type, const char *offered)
{
    return error_set(err, ERROR_UNSUPPORTED, offered, "type \"%.60s\"", type);
}

static bool copy_text(const json_t *object, const char *name, char *out, size_t capacity, struct error *err)
{
    const json_t *value = json_object_get(object, name);
    size_t size = json_string_length(value);

    if (!json_is_string(value))
        return error_set(err, ERROR_MISSING, NULL, "%s: no text", name);
    if (size >= capacity)
        return error_set(err, ERROR_LIMIT, NULL, "%s: %zu bytes, %zu are allowed", name, size, capacity - 1);
    memcpy(out, json_string_value(value), size);
    out[size] = 0;
    return true;
}

/* A pattern is { "Regex": ... } or { "String": ... }. */
static const json_t *pattern_of(const json_t *step, bool *literal, struct error *err)
{
    const json_t *pattern = json_object_get(step, "pattern"), *regex = json_object_get(pattern, "Regex"),
                 *text = json_object_get(pattern, "String");

    *literal = !json_is_string(regex);
    if (!json_is_string(regex) && !json_is_string(text)) {
        error_set(err, ERROR_MISSING, NULL, "pattern: no Regex and no String");
        return NULL;
    }
    return json_is_string(regex) ? regex : text;
}

/* ---- normaliser ---- */

static bool read_replace(struct normalizer_step *step, const json_t *value, struct error *err)
{
    bool literal;
    const json_t *pattern = pattern_of(value, &literal, err);

    if (!pattern || !copy_text(value, "content", step->content, sizeof step->content, err))
        return false;
    step->kind = NORMALIZER_REPLACE;
    step->content_size = json_string_length(json_object_get(value, "content"));
    if (literal && json_string_length(pattern) == 1) {
        step->byte = *json_string_value(pattern);
        return true;
    }
    step->pattern = pattern_new(json_string_value(pattern), json_string_length(pattern), literal, err);
    return step->pattern;
}

static bool read_charsmap(struct normalizer_step *step, const json_t *value, struct error *err)
{
    const json_t *text = json_object_get(value, "precompiled_charsmap");
    size_t size = json_string_length(text), written = 0;
    uint8_t *bytes = malloc(size + 1);
    bool ok = bytes || error_set(err, ERROR_MEMORY, NULL, "no memory for a map of characters");

    step->kind = NORMALIZER_CHARSMAP;
    ok = ok && ((json_is_string(text) && sodium_base642bin(bytes, size + 1, json_string_value(text), size, NULL, &written, NULL,
                                                           sodium_base64_VARIANT_ORIGINAL) == 0) ||
                error_set(err, ERROR_SYNTAX, NULL, "precompiled_charsmap: no base64"));
    ok = ok && charsmap_read(&step->charsmap, bytes, written, err);
    free(bytes);
    return ok;
}

/* BertNormalizer: controls and ideographs, accents, lower case, each only if asked. */
static bool read_bert(struct normalizer *n, struct normalizer_step *step, const json_t *value, struct error *err)
{
    bool lower = member_true(value, "lowercase", true);

    step->kind = NORMALIZER_BERT;
    step->clean = member_true(value, "clean_text", true);
    step->chinese = member_true(value, "handle_chinese_chars", true);
    if (member_true(value, "strip_accents", lower)) {
        struct normalizer_step *parts = normalizer_add(n, err), *accents = parts ? normalizer_add(n, err) : NULL;

        if (!accents)
            return false;
        parts->kind = NORMALIZER_NFD;
        accents->kind = NORMALIZER_STRIP_ACCENTS;
        accents->bert = true;
    }
    step = lower ? normalizer_add(n, err) : step;
    if (step && lower)
        step->kind = NORMALIZER_LOWERCASE;
    return step;
}

static bool read_normalizer(struct normalizer *n, const json_t *value, unsigned depth, struct error *err)
{
    static const struct {
        const char *type;
        int kind;
    } plain[] = { { "NFC", NORMALIZER_NFC },
                  { "NFD", NORMALIZER_NFD },
                  { "NFKC", NORMALIZER_NFKC },
                  { "NFKD", NORMALIZER_NFKD },
                  { "Lowercase", NORMALIZER_LOWERCASE },
                  { "StripAccents", NORMALIZER_STRIP_ACCENTS } };
    const char *type = member_text(value, "type");

    if (!strcmp(type, "Sequence") && depth < MAX_DEPTH) {
        const json_t *steps = json_object_get(value, "normalizers");

        for (size_t i = 0; i < json_array_size(steps); i++)
            if (!read_normalizer(n, json_array_get(steps, i), depth + 1, err))
                return error_at(err, "normalizers[%zu]", i);
        return true;
    }

    struct normalizer_step *step = normalizer_add(n, err);

    if (!step)
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(type, plain[i].type)) {
            step->kind = plain[i].kind;
            return true;
        }
    if (!strcmp(type, "Replace"))
        return read_replace(step, value, err);
    if (!strcmp(type, "Prepend")) {
        step->kind = NORMALIZER_PREPEND;
        step->content_size = json_string_length(json_object_get(value, "prepend"));
        return copy_text(value, "prepend", step->content, sizeof step->content, err);
    }
    if (!strcmp(type, "Precompiled"))
        return read_charsmap(step, value, err);
    if (!strcmp(type, "BertNormalizer"))
        return read_bert(n, step, value, err);
    if (!strcmp(type, "Strip")) {
        step->kind = NORMALIZER_STRIP;
        step->left = member_true(value, "strip_left", true);
        step->right = member_true(value, "strip_right", true);
        return true;
    }
    return refuse_type(err, type,
                       "the normal forms, Replace, Prepend, Strip, StripAccents, Lowercase, Precompiled, BertNormalizer and "
                       "Sequence are offered");
}

bool steps_read_normalizer(struct normalizer *n, const json_t *value, struct error *err)
{
    return !value || json_is_null(value) || read_normalizer(n, value, 0, err);
}

/* ---- pre-tokenizer ---- */

static bool behavior_of(const json_t *step, const char *otherwise, enum split_behavior *behavior, struct error *err)
{
    static const char *const names[] = { "Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext" };
    const json_t *value = json_object_get(step, "behavior");
    const char *name = value ? member_text(step, "behavior") : otherwise;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *behavior = (enum split_behavior)i;
            return true;
        }
    return error_set(err, ERROR_UNSUPPORTED, NULL, "behavior \"%.60s\"", name);
}

static bool read_split(struct pretokenizer *p, const json_t *value, struct error *err)
{
    enum split_behavior behavior;
    bool literal;
    const json_t *pattern = pattern_of(value, &literal, err);

    return pattern && behavior_of(value, "", &behavior, err) &&
           pretokenizer_add_pattern(p, json_string_value(pattern), json_string_length(pattern), literal, behavior,
                                    member_true(value, "invert", false), err);
}

/* Older files say add_prefix_space where newer ones say prepend_scheme. */
static bool metaspace_of(const json_t *value, char *replacement, size_t capacity, enum prepend_scheme *scheme, struct error *err)
{
    const char *name = member_text(value, "prepend_scheme");

    *scheme = !strcmp(name, "first")                                                                ? PREPEND_FIRST
              : !strcmp(name, "never") || (!*name && !member_true(value, "add_prefix_space", true)) ? PREPEND_NEVER
                                                                                                    : PREPEND_ALWAYS;
    if (*name && *scheme == PREPEND_ALWAYS && strcmp(name, "always"))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "prepend_scheme \"%.60s\"", name);
    if (!json_object_get(value, "replacement")) {
        strcpy(replacement, "\xe2\x96\x81");
        return true;
    }
    return copy_text(value, "replacement", replacement, capacity, err);
}

static bool read_metaspace(struct pretokenizer *p, const json_t *value, struct error *err)
{
    enum prepend_scheme scheme;
    char replacement[8];

    return metaspace_of(value, replacement, sizeof replacement, &scheme, err) &&
           pretokenizer_add_metaspace(p, replacement, scheme, member_true(value, "split", true), err);
}

static bool read_pretokenizer(struct pretokenizer *p, const json_t *value, unsigned depth, struct error *err)
{
    const char *type = member_text(value, "type");
    enum split_behavior behavior;
    char delimiter[8];

    if (!strcmp(type, "Sequence") && depth < MAX_DEPTH) {
        const json_t *steps = json_object_get(value, "pretokenizers");

        for (size_t i = 0; i < json_array_size(steps); i++)
            if (!read_pretokenizer(p, json_array_get(steps, i), depth + 1, err))
                return error_at(err, "pretokenizers[%zu]", i);
        return true;
    }
    if (!strcmp(type, "Split"))
        return read_split(p, value, err);
    if (!strcmp(type, "ByteLevel"))
        return pretokenizer_add_byte_level(p, member_true(value, "add_prefix_space", true), member_true(value, "use_regex", true),
                                           err);
    if (!strcmp(type, "Metaspace"))
        return read_metaspace(p, value, err);
    if (!strcmp(type, "Digits"))
        return pretokenizer_add_set(p, SET_DIGITS,
                                    member_true(value, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, err);
    if (!strcmp(type, "Punctuation"))
        return behavior_of(value, "Isolated", &behavior, err) && pretokenizer_add_set(p, SET_PUNCTUATION, behavior, err);
    if (!strcmp(type, "Whitespace"))
        return pretokenizer_add_set(p, SET_WORDS, SPLIT_REMOVED, err);
    if (!strcmp(type, "WhitespaceSplit"))
        return pretokenizer_add_set(p, SET_SPACES, SPLIT_REMOVED, err);
    if (!strcmp(type, "BertPreTokenizer"))
        return pretokenizer_add_set(p, SET_SPACES, SPLIT_REMOVED, err) &&
               pretokenizer_add_set(p, SET_PUNCTUATION, SPLIT_ISOLATED, err);
    if (!strcmp(type, "FixedLength"))
        return pretokenizer_add_fixed(p, (size_t)json_integer_value(json_object_get(value, "length")), err);
    if (!strcmp(type, "CharDelimiterSplit"))
        return copy_text(value, "delimiter", delimiter, sizeof delimiter, err) &&
               pretokenizer_add_pattern(p, delimiter, strlen(delimiter), true, SPLIT_REMOVED, false, err);
    return refuse_type(err, type,
                       "Sequence, Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace and their like are offered");
}

bool steps_read_pretokenizer(struct pretokenizer *p, const json_t *value, struct error *err)
{
    return !value || json_is_null(value) || read_pretokenizer(p, value, 0, err);
}

/* ---- decoder ---- */

static size_t count_of(const json_t *value, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(value, name));

    return n > 0 ? (size_t)n : 0;
}

static bool read_decoder_step(struct decoder_step *step, const json_t *value, const char *type, struct error *err)
{
    enum prepend_scheme scheme;
    bool literal;

    if (!strcmp(type, "Fuse") || !strcmp(type, "ByteFallback")) {
        step->kind = *type == 'F' ? DECODER_FUSE : DECODER_BYTE_FALLBACK;
        return true;
    }
    if (!strcmp(type, "Replace")) {
        step->kind = DECODER_REPLACE;
        if (!pattern_of(value, &literal, err))
            return false;
        if (!literal)
            return error_set(err, ERROR_UNSUPPORTED, NULL, "Replace of a regular expression in a decoder");
        return copy_text(json_object_get(value, "pattern"), "String", step->text, sizeof step->text, err) &&
               copy_text(value, "content", step->content, sizeof step->content, err);
    }
    if (!strcmp(type, "Strip")) {
        step->kind = DECODER_STRIP;
        step->start = count_of(value, "start");
        step->stop = count_of(value, "stop");
        if (!copy_text(value, "content", step->text, sizeof step->text, err))
            return false;
        return *step->text || error_set(err, ERROR_RANGE, NULL, "content: no character");
    }
    if (!strcmp(type, "Metaspace")) {
        step->kind = DECODER_METASPACE;
        if (!metaspace_of(value, step->text, sizeof step->text, &scheme, err))
            return false;
        step->first = scheme != PREPEND_NEVER;
        return true;
    }
    if (!strcmp(type, "WordPiece")) {
        step->kind = DECODER_WORDPIECE;
        step->cleanup = member_true(value, "cleanup", true);
        return copy_text(value, "prefix", step->text, sizeof step->text, err);
    }
    if (!strcmp(type, "BPEDecoder")) {
        step->kind = DECODER_SUFFIX;
        return copy_text(value, "suffix", step->text, sizeof step->text, err);
    }
    return refuse_type(err, type, "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, WordPiece and Sequence are offered");
}

static bool read_decoder(struct decoder *d, const json_t *value, unsigned depth, struct error *err)
{
    const char *type = member_text(value, "type");

    if (!strcmp(type, "Sequence") && depth < MAX_DEPTH) {
        const json_t *steps = json_object_get(value, "decoders");

        for (size_t i = 0; i < json_array_size(steps); i++)
            if (!read_decoder(d, json_array_get(steps, i), depth + 1, err))
                return error_at(err, "decoders[%zu]", i);
        return true;
    }
    if (d->bytes || (!strcmp(type, "ByteLevel") && d->count))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "ByteLevel beside other steps");
    if (!strcmp(type, "ByteLevel")) {
        d->bytes = true;
        return true;
    }
    if (d->count == DECODER_MAX_STEPS)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d steps", DECODER_MAX_STEPS);
    return read_decoder_step(&d->steps[d->count++], value, type, err);
}

bool steps_read_decoder(struct decoder *d, const json_t *value, struct error *err)
{
    d->absent = !value || json_is_null(value);
    return d->absent || read_decoder(d, value, 0, err);
}

/* ---- post-processor ---- */

static bool add_around(struct tokenizer *t, const json_t *id, bool after, struct error *err)
{
    json_int_t n = json_integer_value(id);
    size_t *count = after ? &t->after_count : &t->before_count;

    if (!json_is_integer(id) || n < 0 || n >= t->count || !(t->flags[n] & TOKEN_PRESENT))
        return error_set(err, ERROR_RANGE, NULL, "an id that is no token");
    if (*count == TOKENIZER_MAX_AROUND)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d tokens at one end", TOKENIZER_MAX_AROUND);
    (after ? t->after : t->before)[(*count)++] = (uint32_t)n;
    return true;
}

static bool read_template(struct tokenizer *t, const json_t *value, struct error *err)
{
    const json_t *single = json_object_get(value, "single"), *specials = json_object_get(value, "special_tokens");
    bool after = false;

    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i), *special = json_object_get(piece, "SpecialToken"),
                     *sequence = json_object_get(piece, "Sequence"),
                     *ids = json_object_get(json_object_get(specials, member_text(special, "id")), "ids");

        if (sequence && (after || strcmp(member_text(sequence, "id"), "A")))
            return error_set(err, ERROR_UNSUPPORTED, NULL, "a template with the text more than once") ||
                   error_at(err, "single[%zu]", i);
        after = after || sequence;
        if (!sequence && !json_array_size(ids))
            return error_set(err, ERROR_MISSING, NULL, "a special token without ids") || error_at(err, "single[%zu]", i);
        for (size_t k = 0; !sequence && k < json_array_size(ids); k++)
            if (!add_around(t, json_array_get(ids, k), after, err))
                return error_at(err, "single[%zu]", i);
    }
    return after || error_set(err, ERROR_UNSUPPORTED, NULL, "a template without the text") || error_at(err, "single");
}

static bool read_post_processor(struct tokenizer *t, const json_t *value, unsigned depth, struct error *err)
{
    const char *type = member_text(value, "type");

    if (!strcmp(type, "Sequence") && depth < MAX_DEPTH) {
        const json_t *steps = json_object_get(value, "processors");

        for (size_t i = 0; i < json_array_size(steps); i++)
            if (!read_post_processor(t, json_array_get(steps, i), depth + 1, err))
                return error_at(err, "processors[%zu]", i);
        return true;
    }
    if (!strcmp(type, "ByteLevel")) /* moves offsets only */
        return true;
    if (t->before_count + t->after_count)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "two steps that add tokens");
    if (!strcmp(type, "TemplateProcessing"))
        return read_template(t, value, err);
    if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing"))
        return (add_around(t, json_array_get(json_object_get(value, "cls"), 1), false, err) &&
                add_around(t, json_array_get(json_object_get(value, "sep"), 1), true, err));
    return refuse_type(err, type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence are offered");
}

bool steps_read_post_processor(struct tokenizer *t, const json_t *value, struct error *err)
{
    return !value || json_is_null(value) || read_post_processor(t, value, 0, err);
}
