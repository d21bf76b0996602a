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

/* ---- tiles ---- */

enum { LANES = BLAKE2B_LANES, WAITING = 2 * LANES, CLASSES = 8, FEW = 6 /* tiles that rather wait than leave lanes idle */ };

/* Tiles of one size that wait. */
struct waiting {
    uint64_t size;
    uint32_t count;
    uint64_t hash[WAITING]; /* where each one's goes */
};

struct traced_value {
    uint32_t node;
    uint64_t first, count;
};

struct trace_tiles {
    struct traced_value *values;
    uint32_t value_count;
    struct graph_hash *hashes;
    uint64_t hash_count;
    struct waiting waiting[CLASSES];
    uint8_t *copies; /* WAITING tiles for each of them */
};

uint64_t trace_tile_count(uint64_t size)
{
    return (size + TRACE_TILE - 1) / TRACE_TILE;
}

struct trace_tiles *trace_tiles_new(uint32_t values, uint64_t tiles)
{
    struct trace_tiles *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->values = malloc((values + 1) * sizeof *t->values);
    t->hashes = malloc((tiles + 1) * sizeof *t->hashes);
    t->copies = malloc((size_t)CLASSES * WAITING * TRACE_TILE);
    if (t->values && t->hashes && t->copies)
        return t;
    trace_tiles_free(t);
    return NULL;
}

void trace_tiles_free(struct trace_tiles *t)
{
    if (!t)
        return;
    free(t->values);
    free(t->hashes);
    free(t->copies);
    free(t);
}

static const uint8_t tile_personal[BLAKE2B_PERSONAL] = "rondo/trace";

/* Whole tiles that follow each other. */
struct hashing {
    const uint8_t *bytes;
    uint64_t count;
    struct graph_hash *tiles;
};

static void tiles_share(void *context, size_t task)
{
    const struct hashing *h = context;
    const uint64_t first = task * LANES, count = h->count - first < LANES ? h->count - first : LANES;
    blake2b_many(tile_personal, h->bytes + first * TRACE_TILE, TRACE_TILE, TRACE_TILE, count, h->tiles[first].bytes);
}

struct waiting_job {
    struct trace_tiles *t;
    size_t from; /* first of the sizes */
};

/* Half of one size's waiting tiles. */
static void waiting_share(void *context, size_t task)
{
    const struct waiting_job *job = context;
    struct trace_tiles *t = job->t;
    const size_t which = job->from + task / 2;
    const struct waiting *w = &t->waiting[which];
    const uint32_t half = (w->count + 1) / 2, first = task % 2 ? half : 0, count = task % 2 ? w->count - half : half;
    struct graph_hash out[LANES];
    if (count == 0)
        return;
    blake2b_many(tile_personal, t->copies + (which * WAITING + first) * TRACE_TILE, TRACE_TILE, w->size, count, out[0].bytes);
    for (uint32_t i = 0; i < count; i++)
        t->hashes[w->hash[first + i]] = out[i];
}

static void waiting_hashed(struct trace_tiles *t, struct pool *pool, size_t from, size_t count)
{
    struct waiting_job job = { t, from };
    pool_run(pool, 2 * count, waiting_share, &job);
    for (size_t i = from; i < from + count; i++)
        t->waiting[i].count = 0;
}

static struct waiting *waiting_of(struct trace_tiles *t, uint64_t size)
{
    struct waiting *spare = NULL;
    for (unsigned i = 0; i < CLASSES; i++) {
        if (t->waiting[i].count > 0 && t->waiting[i].size == size)
            return &t->waiting[i];
        if (t->waiting[i].count == 0)
            spare = &t->waiting[i];
    }
    return spare;
}

static void tile_waits(struct trace_tiles *t, struct pool *pool, const uint8_t *bytes, uint64_t size, uint64_t hash)
{
    struct waiting *w = waiting_of(t, size);
    if (!w) {
        waiting_hashed(t, pool, 0, CLASSES);
        w = &t->waiting[0];
    }
    const size_t which = (size_t)(w - t->waiting);
    w->size = size;
    memcpy(t->copies + (which * WAITING + w->count) * TRACE_TILE, bytes, size);
    w->hash[w->count++] = hash;
    if (w->count == WAITING)
        waiting_hashed(t, pool, which, 1);
}

void trace_tiles_add(struct trace_tiles *t, struct pool *pool, uint32_t node, const void *bytes, uint64_t size)
{
    const uint64_t count = trace_tile_count(size), whole = size / TRACE_TILE, rest = whole % WAITING;
    const struct hashing h = { bytes, rest <= FEW ? whole - rest : whole, t->hashes + t->hash_count };
    pool_run(pool, (h.count + LANES - 1) / LANES, tiles_share, (void *)(uintptr_t)&h);
    for (uint64_t i = h.count; i < count; i++)
        tile_waits(t, pool, h.bytes + i * TRACE_TILE, i < whole ? TRACE_TILE : size - whole * TRACE_TILE, t->hash_count + i);
    t->values[t->value_count++] = (struct traced_value){ node, t->hash_count, count };
    t->hash_count += count;
}

void trace_tiles_end(struct trace_tiles *t, struct pool *pool, graph_tiles see, void *context)
{
    waiting_hashed(t, pool, 0, CLASSES);
    for (uint32_t i = 0; see && i < t->value_count; i++)
        see(context, t->values[i].node, t->hashes + t->values[i].first, t->values[i].count);
    t->value_count = 0;
    t->hash_count = 0;
}

uint32_t trace_first_difference(const struct trace_hashes *a, const struct trace_hashes *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (memcmp(&a->hashes[i], &b->hashes[i], sizeof a->hashes[i]) != 0)
            return i;
    return GRAPH_NONE;
}
