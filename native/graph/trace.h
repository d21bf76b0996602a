/* trace.h - sees every value of a run, so that two runs can be laid beside each other to find the first operator that differs. */
#ifndef RONDO_GRAPH_TRACE_H
#define RONDO_GRAPH_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "native/graph/wire.h"

/* Called after each computed node, in ascending order of ids, with its bytes (canonical row-major layout). */
typedef void (*graph_trace)(void *context, uint32_t node, const void *bytes, size_t size);

/* Called after each pass for what it left in memory, with the hash of each tile of TRACE_TILE bytes (the last one shorter; "rondo/trace").
 * Passes are fused as in any run, so what only existed inside of one has no hash: two runs are laid beside each other by tiles first, and
 * where a tile differs the nodes of that pass alone by a graph_trace. Nodes, their order and their tiles depend on the graph only. */
enum { TRACE_TILE = 1 << 16 };
typedef void (*graph_tiles)(void *context, uint32_t node, const struct graph_hash *tiles, uint64_t count);

/* The hashes of one run. Vectors hash eight tiles of one size at once: those that a value has too few of are copied and wait for others of
 * their size.
 *
 *     36 tiles   32 at once, 4 wait      1.5 tiles   both wait, by size      16 of a size: hashed
 */
struct pool;
struct trace_tiles;
uint64_t trace_tile_count(uint64_t size);
/* Room for so many values with so many tiles in all. NULL: no memory. */
struct trace_tiles *trace_tiles_new(uint32_t values, uint64_t tiles);
void trace_tiles_free(struct trace_tiles *t);
void trace_tiles_add(struct trace_tiles *t, struct pool *pool, uint32_t node, const void *bytes, uint64_t size);
/* Calls `see` (NULL: nothing) for each value in the order it was added, and forgets them. */
void trace_tiles_end(struct trace_tiles *t, struct pool *pool, graph_tiles see, void *context);

/* A trace that keeps one BLAKE2b-256 hash ("rondo/trace") for each node. */
struct trace_hashes {
    struct graph_hash *hashes; /* owned; count of them, zero for nodes that were not computed */
    uint32_t count;
};
void trace_hashes_init(struct trace_hashes *t, const struct graph *g);
void trace_hashes_free(struct trace_hashes *t);
void trace_hashes_see(void *context, uint32_t node, const void *bytes, size_t size); /* a graph_trace */

/* The first node whose hashes differ, or GRAPH_NONE. */
uint32_t trace_first_difference(const struct trace_hashes *a, const struct trace_hashes *b);

#endif
