#include "native/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

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
    pair_map_free(&t->trie);
    pair_map_free(&t->trie_ids);
    pair_map_free(&t->bpe.merges);
    pretokenizer_free(&t->pretokenizer);
    free(t);
}

void tokens_free(struct tokens *tokens)
{
    free(tokens->ids);
    free(tokens->ends);
    *tokens = (struct tokens){ 0 };
}

void tokens_add(struct tokens *tokens, uint32_t id, uint32_t end)
{
    if (tokens->count == tokens->capacity) {
        size_t capacity = tokens->capacity ? tokens->capacity * 2 : 64;

        tokens->ids = reallocarray(tokens->ids, capacity, sizeof *tokens->ids);
        tokens->ends = reallocarray(tokens->ends, capacity, sizeof *tokens->ends);
        if (!tokens->ids || !tokens->ends)
            abort();
        tokens->capacity = capacity;
    }
    tokens->ids[tokens->count] = id;
    tokens->ends[tokens->count++] = end;
}

struct encoding {
    const struct tokenizer *t;
    const char *text; /* of the whole call, for offsets */
    struct bpe_work work;
    struct tokens *out;
};

static void encode_piece(void *context, const char *piece, size_t size)
{
    struct encoding *e = context;
    uint32_t start = (uint32_t)(piece - e->text), id;

    if (e->t->whole_pieces && size <= TOKENIZER_MAX_TOKEN_SIZE && tokenizer_find(e->t, piece, size, &id) &&
        !(e->t->flags[id] & TOKEN_ADDED)) {
        tokens_add(e->out, id, start + (uint32_t)size);
        return;
    }
    bpe_encode(&e->t->bpe, (const uint8_t *)piece, size, start, &e->work, e->out);
}

/* The longest added token at `at`: its size, 0 if none. */
static size_t added_at(const struct tokenizer *t, const char *at, const char *end, bool special, uint32_t *id)
{
    uint64_t node = 0;
    size_t found = 0;

    for (size_t i = 0; at + i < end; i++) {
        node = pair_map_get(&t->trie, node << 8 | (uint8_t)at[i]);
        if (node == UINT64_MAX)
            break;

        uint64_t here = pair_map_get(&t->trie_ids, node);

        if (here != UINT64_MAX && (special || !(t->flags[here] & TOKEN_SPECIAL))) {
            *id = (uint32_t)here;
            found = i + 1;
        }
    }
    return found;
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool special, struct tokens *out,
                      struct error *err)
{
    struct encoding e = { .t = t, .text = text, .out = out };
    const char *end = text + size, *done = text;
    size_t fault;
    bool ok = true;

    if (size > TOKENIZER_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "encode it in parts", "%zu bytes of text, at most %d at once", size,
                         TOKENIZER_MAX_TEXT);
    if (!utf8_valid(text, size, &fault))
        return error_set(err, ERROR_SYNTAX, "save it as UTF-8", "text is not UTF-8 at byte %zu", fault);
    for (const char *at = text; ok && at < end;) {
        uint32_t id;
        size_t length = t->trie_first[(uint8_t)*at] ? added_at(t, at, end, special, &id) : 0;

        if (!length) {
            at++;
            continue;
        }
        ok = pretokenizer_split(&t->pretokenizer, done, (size_t)(at - done), encode_piece, &e, err);
        done = at += length;
        if (ok)
            tokens_add(out, id, (uint32_t)(done - text));
    }
    ok = ok && pretokenizer_split(&t->pretokenizer, done, (size_t)(end - done), encode_piece, &e, err);
    bpe_work_free(&e.work);
    return ok;
}

bool tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t count, bool special, struct buffer *out,
                      struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = ids[i];

        if (id >= t->count || !(t->flags[id] & TOKEN_PRESENT))
            return error_set(err, ERROR_RANGE, NULL, "id %u at place %zu is no token", id, i);
        if (special || !(t->flags[id] & TOKEN_SPECIAL))
            buffer_add(out, t->bytes.bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id]);
    }
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
