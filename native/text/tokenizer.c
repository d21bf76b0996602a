#include "native/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/byte_alphabet.h"
#include "native/text/piece_cache.h"
#include "native/text/tokenizer_build.h"
#include "native/text/utf8.h"

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    buffer_free(&t->bytes);
    free(t->offsets);
    free(t->flags);
    pair_map_free(&t->by_bytes);
    added_tokens_free(&t->added);
    added_tokens_free(&t->added_normalized);
    pair_map_free(&t->bpe.merges);
    pair_map_free(&t->bpe.by_character);
    pair_map_free(&t->bpe.by_place);
    unigram_free(&t->unigram);
    wordpiece_free(&t->wordpiece);
    normalizer_free(&t->normalizer);
    pretokenizer_free(&t->pretokenizer);
    free(t);
}

struct encoding {
    const struct tokenizer *t;
    struct added_where where; /* special tokens count */
    struct normalizer_work normalizer;
    struct pretokenizer_work *pretokenizer;
    struct bpe_work bpe;
    struct unigram_work unigram;
    struct piece_cache cache;
    bool unknown; /* a character that the model cannot give at all */
    struct tokens *out;
    struct error *err;
};

/* The tokens of a word, which no token crosses; their ends in the word. */
static void encode_word(struct encoding *e, const char *word, size_t size, uint32_t start)
{
    struct tokens *out = e->out;
    size_t before = out->count;

    if (piece_cache_get(&e->cache, word, size, start, out))
        return;
    if (e->t->model == MODEL_BPE)
        bpe_encode(&e->t->bpe, (const uint8_t *)word, size, start, &e->bpe, out);
    else if (e->t->model == MODEL_WORDPIECE)
        wordpiece_encode(&e->t->wordpiece, word, size, start, out);
    else if (e->t->model == MODEL_WORDLEVEL && e->t->bpe.unknown != BPE_NONE)
        tokens_add(out, e->t->bpe.unknown, start + (uint32_t)size);
    else if (e->t->model == MODEL_WORDLEVEL || !unigram_encode(&e->t->unigram, word, size, start, &e->unigram, out))
        e->unknown = true;
    piece_cache_put(&e->cache, word, size, start, out, before);
}

static void encode_words(struct encoding *e, const char *piece, size_t size, uint32_t start)
{
    const char *cut = e->t->bpe.cut;
    size_t length = strlen(cut), done = 0;

    for (size_t at = length; length && at + length <= size; at++)
        if (piece[at] == *cut && !memcmp(piece + at, cut, length) && memcmp(piece + at - length, cut, length) &&
            !e->t->bpe.crossed[(uint8_t)piece[at - 1]]) {
            encode_word(e, piece + done, at - done, start + (uint32_t)done);
            done = at;
        }
    encode_word(e, piece + done, size - done, start + (uint32_t)done);
}

static void encode_piece(void *context, const char *piece, size_t size, struct origin origin)
{
    struct encoding *e = context;
    struct tokens *out = e->out;
    size_t before = out->count;
    uint32_t id;

    if (e->t->whole_pieces && size <= TOKENIZER_MAX_TOKEN_SIZE && tokenizer_find(e->t, piece, size, &id) &&
        e->t->flags[id] & TOKEN_OF_MODEL) {
        tokens_add(out, id, origin_at(origin, size));
        return;
    }
    encode_words(e, piece, size, origin.ends ? 0 : origin.start);
    for (size_t i = before; origin.ends && i < out->count; i++)
        out->ends[i] = origin_at(origin, out->ends[i]);
}

static bool encode_between(struct encoding *e, const char *text, size_t size, struct origin origin)
{
    return pretokenizer_split(&e->t->pretokenizer, e->pretokenizer, text, size, origin, encode_piece, e, e->err);
}

/* Text without the added tokens that are matched in it as it is. */
static bool encode_normalized(struct encoding *e, const char *text, size_t size, uint32_t start)
{
    const struct tokenizer *t = e->t;
    struct normalized n = { text, size, { NULL, start } };
    struct added_match match;
    struct added_where where = e->where;
    size_t done = 0, next = 0;

    if (!size)
        return true;
    if (!normalizer_apply(&t->normalizer, &e->normalizer, &n, e->err))
        return false;
    where.origin = n.origin;
    while (added_tokens_find(&t->added_normalized, t->flags, &where, n.text, n.size, next, done, &match, &next)) {
        if (done < match.start && !encode_between(e, n.text + done, match.start - done, origin_from(n.origin, done)))
            return false;
        tokens_add(e->out, match.id, origin_at(n.origin, match.end));
        done = match.end;
    }
    return encode_between(e, n.text + done, n.size - done, origin_from(n.origin, done));
}

static bool encode_text(struct encoding *e, const char *text, size_t size)
{
    const struct tokenizer *t = e->t;
    struct added_match match;
    size_t done = 0, next = 0;

    while (added_tokens_find(&t->added, t->flags, &e->where, text, size, next, done, &match, &next)) {
        if (done < match.start && !encode_normalized(e, text + done, match.start - done, (uint32_t)done))
            return false;
        tokens_add(e->out, match.id, (uint32_t)match.end);
        done = match.end;
    }
    return encode_normalized(e, text + done, size - done, (uint32_t)done);
}

static bool encode(const struct tokenizer *t, const char *text, size_t size, struct added_where where, struct tokens *out,
                   struct error *err)
{
    struct encoding e = { .t = t, .where = where, .out = out, .err = err };
    size_t fault;

    if (size > TOKENIZER_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "encode it in parts", "%zu bytes of text, at most %d at once", size,
                         TOKENIZER_MAX_TEXT);
    if (!utf8_valid(text, size, &fault))
        return error_set(err, ERROR_SYNTAX, "save it as UTF-8", "text is not UTF-8 at byte %zu", fault);
    text = size ? text : "";
    e.pretokenizer = pretokenizer_work_new(&t->pretokenizer);
    if (!e.pretokenizer)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for splitting");
    piece_cache_start(&e.cache, size);

    bool ok = encode_text(&e, text, size);

    if (ok && e.unknown)
        ok = error_set(err, ERROR_UNKNOWN, "take characters out that the vocabulary lacks",
                       "the text has a character without a token, and the tokenizer has no unknown token");
    piece_cache_free(&e.cache);
    bpe_work_free(&e.bpe);
    unigram_work_free(&e.unigram);
    normalizer_work_free(&e.normalizer);
    pretokenizer_work_free(e.pretokenizer);
    return ok;
}

void tokenizer_start(const struct tokenizer *t, struct tokens *tokens)
{
    for (size_t i = 0; i < t->before_count; i++)
        tokens_add(tokens, t->before[i], 0);
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool special, struct tokens *out,
                      struct error *err)
{
    return encode(t, text, size, (struct added_where){ .special = special }, out, err);
}

bool tokenizer_encode_but(const struct tokenizer *t, const char *text, size_t size, const struct text_range *plain, size_t count,
                          struct tokens *out, struct error *err)
{
    return encode(t, text, size, (struct added_where){ .special = true, .plain = plain, .plain_count = count }, out, err);
}

void tokenizer_surround(const struct tokenizer *t, struct tokens *tokens)
{
    uint32_t end = tokens->count ? tokens->ends[tokens->count - 1] : 0;
    size_t count = tokens->count;

    if (t->before_count + t->after_count == 0)
        return;
    for (size_t i = 0; i < t->before_count + t->after_count; i++)
        tokens_add(tokens, 0, end);
    memmove(tokens->ids + t->before_count, tokens->ids, count * sizeof *tokens->ids);
    memmove(tokens->ends + t->before_count, tokens->ends, count * sizeof *tokens->ends);
    for (size_t i = 0; i < t->before_count; i++) {
        tokens->ids[i] = t->before[i];
        tokens->ends[i] = 0;
    }
    for (size_t i = 0; i < t->after_count; i++) {
        tokens->ids[t->before_count + count + i] = t->after[i];
        tokens->ends[t->before_count + count + i] = end;
    }
}

bool tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t count, bool special, struct buffer *out,
                      struct error *err)
{
    struct token_texts texts = { 0 };

    for (size_t i = 0; i < count; i++)
        if (ids[i] >= t->count || !(t->flags[ids[i]] & TOKEN_PRESENT))
            return error_set(err, ERROR_RANGE, "was it another tokenizer's?", "id %u at place %zu is no token; the ids end at %u",
                             ids[i], i, t->count - 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t id = ids[i];
        const uint8_t *bytes = t->bytes.bytes + t->offsets[id];
        size_t size = t->offsets[id + 1] - t->offsets[id];

        if (!special && t->flags[id] & TOKEN_SPECIAL)
            continue;
        if (!t->decoder.bytes)
            token_texts_add(&texts, bytes, size);
        else if (!t->bpe.characters || !byte_alphabet_read((const char *)bytes, size, out))
            buffer_add(out, bytes, size);
    }
    if (!t->decoder.bytes)
        decoder_run(&t->decoder, &texts, out);
    token_texts_free(&texts);
    return true;
}

uint32_t tokenizer_size(const struct tokenizer *t)
{
    return t->count;
}

bool tokenizer_is_special(const struct tokenizer *t, uint32_t id)
{
    return id < t->count && (t->flags[id] & TOKEN_SPECIAL);
}
