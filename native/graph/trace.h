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

/* The hashes of all tiles of `size` bytes into `tiles`, trace_tile_count(size) of them. */
struct pool;
uint64_t trace_tile_count(uint64_t size);
void trace_tiles_hash(struct pool *pool, const void *bytes, uint64_t size, struct graph_hash *tiles);

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
