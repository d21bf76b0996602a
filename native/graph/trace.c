#include "native/graph/trace.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/blake2b.h"
#include "native/kernel/pool.h"

void trace_hashes_init(struct trace_hashes *t, const struct graph *g)
{
    t->count = g->node_count;
    t->hashes = calloc(g->node_count + 1, sizeof *t->hashes);
    if (!t->hashes)
        abort();
}

void trace_hashes_free(struct trace_hashes *t)
{
    free(t->hashes);
    *t = (struct trace_hashes){ 0 };
}

void trace_hashes_see(void *context, uint32_t node, const void *bytes, size_t size)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/trace";
    struct trace_hashes *t = context;
    if (node < t->count)
        crypto_generichash_blake2b_salt_personal(t->hashes[node].bytes, sizeof t->hashes[node].bytes, bytes, size, NULL, 0, NULL,
                                                 personal);
}

struct hashing {
    const uint8_t *bytes;
    uint64_t size, count;
    struct graph_hash *tiles;
};

enum { SHARE = BLAKE2B_LANES };

static void tiles_share(void *context, size_t task)
{
    static const uint8_t personal[BLAKE2B_PERSONAL] = "rondo/trace";
    const struct hashing *h = context;
    const uint64_t first = task * SHARE, end = first + SHARE < h->count ? first + SHARE : h->count;
    const uint64_t whole = end * TRACE_TILE <= h->size ? end : end - 1;

    blake2b_many(personal, h->bytes + first * TRACE_TILE, TRACE_TILE, TRACE_TILE, whole - first, h->tiles[first].bytes);
    if (whole < end)
        blake2b_many(personal, h->bytes + whole * TRACE_TILE, TRACE_TILE, h->size - whole * TRACE_TILE, 1, h->tiles[whole].bytes);
}

uint64_t trace_tile_count(uint64_t size)
{
    return (size + TRACE_TILE - 1) / TRACE_TILE;
}

void trace_tiles_hash(struct pool *pool, const void *bytes, uint64_t size, struct graph_hash *tiles)
{
    struct hashing h = { bytes, size, trace_tile_count(size), tiles };
    pool_run(pool, (h.count + SHARE - 1) / SHARE, tiles_share, &h);
}

uint32_t trace_first_difference(const struct trace_hashes *a, const struct trace_hashes *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (memcmp(&a->hashes[i], &b->hashes[i], sizeof a->hashes[i]) != 0)
            return i;
    return GRAPH_NONE;
}
