#include "native/text/tokenizer_build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/byte_alphabet.h"
#include "native/text/utf8.h"

/* Strings are found by a 63-bit hash and compared; entries whose hash is taken go on at the next number. */
static uint64_t hash_of(const char *bytes, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u ^ size; /* FNV-1a, then mixed; the map seeds its own order */

    for (size_t i = 0; i < size; i++)
        h = (h ^ (uint8_t)bytes[i]) * 0x100000001b3u;
    return (h ^ h >> 29) >> 1;
}

/* A file made so that hashes collide is refused, not searched. */
static bool hash_add(struct pair_map *map, const char *bytes, size_t size, uint64_t id, struct error *err)
{
    uint64_t h = hash_of(bytes, size);

    for (unsigned probes = 0; pair_map_get(map, h) != UINT64_MAX; h++)
        if (++probes > 64)
            return error_set(err, ERROR_LIMIT, NULL, "too many tokens with equal hashes");
    pair_map_set(map, h, id);
    return true;
}

static bool equal(struct text_slice a, struct text_slice b)
{
    return a.size == b.size && (a.size == 0 || !memcmp(a.bytes, b.bytes, a.size));
}

bool builder_start(struct tokenizer_builder *b, size_t ids, struct error *err)
{
    *b = (struct tokenizer_builder){ 0 };
    if (ids == 0 || ids > TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, NULL, "%zu token ids, 1 to %d are allowed", ids, TOKENIZER_MAX_TOKENS);
    b->count = (uint32_t)ids;
    b->texts = calloc(ids, sizeof *b->texts);
    b->flags = calloc(ids, 1);
    return (b->texts && b->flags) || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tokens", ids);
}

void builder_free(struct tokenizer_builder *b)
{
    free(b->texts);
    free(b->flags);
    pair_map_free(&b->by_text);
}

uint32_t builder_find(const struct tokenizer_builder *b, struct text_slice text)
{
    for (uint64_t h = hash_of(text.bytes, text.size);; h++) {
        uint64_t id = pair_map_get(&b->by_text, h);

        if (id == UINT64_MAX)
            return BPE_NONE;
        if (equal(b->texts[id], text))
            return (uint32_t)id;
    }
}

bool builder_add(struct tokenizer_builder *b, uint64_t id, struct text_slice text, uint8_t flags, struct error *err)
{
    if (id >= b->count)
        return error_set(err, ERROR_RANGE, NULL, "token id %llu is not below %u", (unsigned long long)id, b->count);
    if (text.size == 0 || text.size > TOKENIZER_MAX_TOKEN_SIZE)
        return error_set(err, ERROR_LIMIT, NULL, "token %llu has %zu bytes, 1 to %d are allowed", (unsigned long long)id,
                         text.size, TOKENIZER_MAX_TOKEN_SIZE);
    if (!utf8_valid(text.bytes, text.size, NULL))
        return error_set(err, ERROR_SYNTAX, NULL, "token %llu is not UTF-8", (unsigned long long)id);
    if (b->texts[id].bytes) {
        if (!(flags & TOKEN_ADDED) || !equal(b->texts[id], text))
            return error_set(err, ERROR_DUPLICATE, NULL, "token id %llu is given twice", (unsigned long long)id);
        b->flags[id] |= flags;
        return true;
    }
    if (builder_find(b, text) != BPE_NONE)
        return error_set(err, ERROR_DUPLICATE, NULL, "the text of token %llu is that of token %u, too", (unsigned long long)id,
                         builder_find(b, text));
    if (!hash_add(&b->by_text, text.bytes, text.size, id, err))
        return false;
    b->texts[id] = text;
    b->flags[id] = flags | TOKEN_PRESENT;
    return true;
}

static const char WORD_START[] = "\xe2\x96\x81"; /* "▁" */

static bool starts_word(struct text_slice text)
{
    return text.size >= 3 && !memcmp(text.bytes, WORD_START, 3);
}

static bool ends_in_word_start(struct text_slice text)
{
    return text.size >= 3 && !memcmp(text.bytes + text.size - 3, WORD_START, 3);
}

/* Where nothing is left out of the text, the start of a word is a border that only a few merges cross. */
void builder_set_cut(const struct tokenizer_builder *b, struct tokenizer *t)
{
    bool whole = (t->bpe.unknown != BPE_NONE || t->bpe.byte_fallback) && !t->bpe.placed;

    for (unsigned i = 0; i < 256; i++)
        whole = whole && (t->bpe.unknown != BPE_NONE || t->bpe.fallback_ids[i] != BPE_NONE);
    if (!t->bpe.characters || !whole || pair_map_get(&t->bpe.by_character, 0x2581) == UINT64_MAX)
        return;
    memcpy(t->bpe.cut, WORD_START, sizeof WORD_START);
    memcpy(t->bpe.crossed, b->crossed, sizeof b->crossed);
}

bool builder_merge(struct tokenizer_builder *b, struct tokenizer *t, struct text_slice left, struct text_slice right,
                   uint32_t rank, struct error *err)
{
    char both[2 * TOKENIZER_MAX_TOKEN_SIZE];
    uint32_t left_id = builder_find(b, left), right_id = builder_find(b, right);

    if (left_id == BPE_NONE || right_id == BPE_NONE)
        return error_set(err, ERROR_UNKNOWN, NULL, "the %s side is not in the vocabulary",
                         left_id == BPE_NONE ? "left" : "right");
    if (starts_word(right) && !ends_in_word_start(left))
        b->crossed[(uint8_t)left.bytes[left.size - 1]] = true;
    if (right.size < b->prefix.size)
        return error_set(err, ERROR_SYNTAX, NULL, "the right side is shorter than continuing_subword_prefix");
    memcpy(both, left.bytes, left.size);
    memcpy(both + left.size, right.bytes + b->prefix.size, right.size - b->prefix.size);

    uint32_t joined = builder_find(b, (struct text_slice){ both, left.size + right.size - b->prefix.size });

    if (joined == BPE_NONE)
        return error_set(err, ERROR_UNKNOWN, NULL, "the joined text is not in the vocabulary");
    bpe_set_merge(&t->bpe, left_id, right_id, rank, joined);
    return true;
}

/* "<0xNN>" */
static int fallback_byte(struct text_slice text)
{
    char end = 0;
    unsigned value;

    if (text.size != 6 ||
        sscanf((char[7]){ text.bytes[0], text.bytes[1], text.bytes[2], text.bytes[3], text.bytes[4], text.bytes[5] }, "<0x%2X%c",
               &value, &end) != 2 ||
        end != '>')
        return -1;
    return (int)value;
}

void builder_set_fallback(struct tokenizer *t, struct text_slice text, uint32_t id)
{
    int byte = fallback_byte(text);

    if (byte >= 0)
        t->bpe.fallback_ids[byte] = id;
}

/* A byte or character with the prefix or suffix of its place. */
static void set_places(const struct tokenizer_builder *b, struct bpe *bpe, struct text_slice text, uint32_t id)
{
    for (uint64_t place = 0; place < 4; place++) {
        size_t before = place & 1 ? b->prefix.size : 0, after = place & 2 ? b->suffix.size : 0, length = 1;
        const char *unit = text.bytes + before, *end = text.bytes + text.size - after;

        if (text.size <= before + after || (before && memcmp(text.bytes, b->prefix.bytes, before)) ||
            (after && memcmp(end, b->suffix.bytes, after)))
            continue;

        uint64_t value = bpe->characters ? utf8_at(unit, end, &length) : (uint8_t)*unit;

        if (length == (size_t)(end - unit))
            pair_map_set(&bpe->by_place, place << 32 | value, id);
    }
}

/* Ids of the symbols that BPE starts from. */
static void set_symbol(const struct tokenizer_builder *b, struct tokenizer *t, struct text_slice text, uint32_t id)
{
    struct bpe *bpe = &t->bpe;
    size_t length;

    if (bpe->placed)
        set_places(b, bpe, text, id);
    if (bpe->characters)
        builder_set_fallback(t, text, id);
    if (!bpe->characters && text.size == 1) {
        bpe->byte_ids[(uint8_t)*text.bytes] = id;
    } else if (bpe->characters) {
        uint32_t c = utf8_at(text.bytes, text.bytes + text.size, &length);

        if (length == text.size && c < 0x80)
            bpe->byte_ids[c] = id;
        else if (length == text.size && c != UINT32_MAX)
            pair_map_set(&bpe->by_character, c, id);
    }
}

static bool add_added(const struct tokenizer_builder *b, struct tokenizer *t, struct normalizer_work *work, uint32_t id,
                      struct error *err)
{
    struct text_slice text = b->texts[id];

    if (!(t->flags[id] & TOKEN_NORMALIZED)) {
        added_tokens_add(&t->added, text.bytes, text.size, id);
        return true;
    }

    struct normalized content = { text.bytes, text.size, { NULL, 0 } };

    if (!b->raw_added && !normalizer_apply(&t->normalizer, work, &content, err))
        return false;
    added_tokens_add(&t->added_normalized, content.text, content.size, id);
    return true;
}

/* The bytes of a token. An added one, and one of characters outside the alphabet, is decoded as it is, as the reference does, and
 * not found by the model unless it stands for the same bytes. */
static void add_bytes(const struct tokenizer_builder *b, struct tokenizer *t, struct text_slice text, uint32_t id)
{
    size_t start = t->bytes.size;
    bool plain = t->bpe.characters;

    if (!plain && byte_alphabet_read(text.bytes, text.size, &t->bytes)) {
        plain = !(t->flags[id] & TOKEN_ADDED) ||
                (t->bytes.size - start == text.size && !memcmp(t->bytes.bytes + start, text.bytes, text.size));
        t->bytes.size = plain ? t->bytes.size : start;
    }
    if (t->bytes.size == start)
        buffer_add(&t->bytes, text.bytes, text.size);
    if (!plain)
        t->flags[id] &= (uint8_t)~TOKEN_OF_MODEL;
    if (t->flags[id] & TOKEN_OF_MODEL)
        set_symbol(b, t, (struct text_slice){ (const char *)t->bytes.bytes + start, t->bytes.size - start }, id);
}

bool builder_finish(struct tokenizer_builder *b, struct tokenizer *t, struct error *err)
{
    struct normalizer_work work = { 0 };
    bool ok = true;

    t->count = b->count;
    t->offsets = calloc((size_t)b->count + 1, sizeof *t->offsets);
    t->flags = calloc(b->count, 1);
    if (!t->offsets || !t->flags)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u tokens", b->count);
    t->bpe.characters = !t->pretokenizer.byte_level;
    t->bpe.placed = b->prefix.size || b->suffix.size;
    memset(t->bpe.byte_ids, 0xff, sizeof t->bpe.byte_ids);
    memset(t->bpe.fallback_ids, 0xff, sizeof t->bpe.fallback_ids);
    for (uint32_t id = 0; ok && id < b->count; id++) {
        struct text_slice text = b->texts[id];
        size_t start = t->bytes.size;

        t->flags[id] = b->flags[id];
        if (text.bytes && b->flags[id] & TOKEN_ADDED)
            ok = add_added(b, t, &work, id, err);
        if (text.bytes)
            add_bytes(b, t, text, id);
        t->offsets[id + 1] = (uint32_t)t->bytes.size;
        if (ok && text.bytes)
            ok = hash_add(&t->by_bytes, (const char *)t->bytes.bytes + start, t->bytes.size - start, id, err);
    }
    normalizer_work_free(&work);
    return ok;
}

bool tokenizer_find(const struct tokenizer *t, const char *text, size_t size, uint32_t *id)
{
    uint64_t h = hash_of(text, size), found;

    for (; (found = pair_map_get(&t->by_bytes, h)) != UINT64_MAX; h++) {
        uint32_t start = t->offsets[found];

        if (t->offsets[found + 1] - start == size && !memcmp(t->bytes.bytes + start, text, size)) {
            *id = (uint32_t)found;
            return true;
        }
    }
    return false;
}

static int by_falling_score(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? 1 : -(x > y);
}

/* How many scores are better; equal scores have one rank, so that ties go to the leftmost pair. */
static uint32_t rank_of(const float *sorted, uint32_t count, float score)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (sorted[middle] > score)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool builder_merge_by_scores(struct tokenizer_builder *b, struct tokenizer *t, const float *scores, struct error *err)
{
    float *sorted = malloc(b->count * sizeof *sorted);

    if (!sorted)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u scores", b->count);
    for (uint32_t i = 0; i < b->count; i++)
        sorted[i] = scores[i] == scores[i] ? scores[i] : 0;
    qsort(sorted, b->count, sizeof *sorted, by_falling_score);
    for (uint32_t id = 0; id < b->count; id++) {
        struct text_slice text = b->texts[id];
        uint32_t rank = rank_of(sorted, b->count, scores[id]);

        if (!text.bytes || !(b->flags[id] & TOKEN_OF_MODEL))
            continue;
        for (size_t i = 1; i < text.size; i++) {
            struct text_slice left = { text.bytes, i }, right = { text.bytes + i, text.size - i };

            if (((uint8_t)text.bytes[i] & 0xc0) == 0x80)
                continue;

            uint32_t left_id = builder_find(b, left), right_id = builder_find(b, right);

            if (left_id == BPE_NONE || right_id == BPE_NONE || !(b->flags[left_id] & b->flags[right_id] & TOKEN_OF_MODEL))
                continue;
            if (starts_word(right) && !ends_in_word_start(left))
                b->crossed[(uint8_t)left.bytes[left.size - 1]] = true;
            bpe_set_merge(&t->bpe, left_id, right_id, rank, id);
        }
    }
    free(sorted);
    return true;
}

void builder_set_unigram(const struct tokenizer_builder *b, struct tokenizer *t, double *scores, uint32_t unknown,
                         bool byte_fallback)
{
    struct unigram *u = &t->unigram;

    t->model = MODEL_UNIGRAM;
    u->scores = scores;
    u->unknown = unknown;
    u->byte_fallback = byte_fallback;
    u->least = INFINITY;
    memcpy(u->fallback_ids, t->bpe.fallback_ids, sizeof u->fallback_ids);
    for (uint32_t id = 0; id < b->count; id++) {
        if (!b->texts[id].bytes || !(b->flags[id] & TOKEN_OF_MODEL))
            continue;
        u->least = scores[id] < u->least ? scores[id] : u->least;
        added_tokens_add(&u->trie, b->texts[id].bytes, b->texts[id].size, id);
    }
}
