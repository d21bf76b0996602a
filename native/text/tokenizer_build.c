#include "native/text/tokenizer_build.h"

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

bool builder_merge(const struct tokenizer_builder *b, struct tokenizer *t, struct text_slice left, struct text_slice right,
                   uint32_t rank, struct error *err)
{
    char both[2 * TOKENIZER_MAX_TOKEN_SIZE];
    uint32_t left_id = builder_find(b, left), right_id = builder_find(b, right);

    if (left_id == BPE_NONE || right_id == BPE_NONE)
        return error_set(err, ERROR_UNKNOWN, NULL, "the %s side is not in the vocabulary",
                         left_id == BPE_NONE ? "left" : "right");
    memcpy(both, left.bytes, left.size);
    memcpy(both + left.size, right.bytes, right.size);

    uint32_t joined = builder_find(b, (struct text_slice){ both, left.size + right.size });

    if (joined == BPE_NONE)
        return error_set(err, ERROR_UNKNOWN, NULL, "the joined text is not in the vocabulary");
    bpe_set_merge(&t->bpe, left_id, right_id, rank, joined);
    return true;
}

static void trie_add(struct tokenizer *t, const char *bytes, size_t size, uint32_t id)
{
    uint64_t node = 0;

    t->trie_first[(uint8_t)bytes[0]] = true;
    for (size_t i = 0; i < size; i++) {
        uint64_t edge = node << 8 | (uint8_t)bytes[i], next = pair_map_get(&t->trie, edge);

        if (next == UINT64_MAX) {
            next = ++t->trie_nodes;
            pair_map_set(&t->trie, edge, next);
        }
        node = next;
    }
    pair_map_set(&t->trie_ids, node, id);
}

bool builder_finish(struct tokenizer_builder *b, struct tokenizer *t, struct error *err)
{
    t->count = b->count;
    t->offsets = calloc((size_t)b->count + 1, sizeof *t->offsets);
    t->flags = calloc(b->count, 1);
    if (!t->offsets || !t->flags)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u tokens", b->count);
    memset(t->bpe.byte_ids, 0xff, sizeof t->bpe.byte_ids);
    for (uint32_t id = 0; id < b->count; id++) {
        struct text_slice text = b->texts[id];
        size_t start = t->bytes.size;

        t->flags[id] = b->flags[id];
        if (text.bytes && (b->flags[id] & TOKEN_ADDED)) {
            buffer_add(&t->bytes, text.bytes, text.size);
            trie_add(t, text.bytes, text.size, id);
        } else if (text.bytes && !byte_alphabet_read(text.bytes, text.size, &t->bytes)) {
            buffer_add(&t->bytes, text.bytes, text.size); /* not of bytes: decoded as it is, as the reference does */
        } else if (text.bytes && t->bytes.size - start == 1) {
            t->bpe.byte_ids[t->bytes.bytes[start]] = id;
        }
        t->offsets[id + 1] = (uint32_t)t->bytes.size;

        if (text.bytes && !hash_add(&t->by_bytes, (const char *)t->bytes.bytes + start, t->bytes.size - start, id, err))
            return false;
    }
    return true;
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
