/* tile.h - a few elements of one value of a graph, computed again from the parts of its operands that they need.
 *
 *     node 12  dot(8, 3; embed)   f32 [batch=4 time=64 ffn=512]     elements 65536 .. 131071: batch 2 and 3, so of node 8
 *                  |    `-- 3  parameter [ffn=512 embed=128]        [batch=4 time=64 embed=128] only batch 2 and 3, of node 3 all
 *                  `------- 8  view of 7
 *
 * What a dispute comes down to: whoever claims that a tile is wrong shows those parts, whoever judges computes that tile alone. The bits
 * are those of a run (execute.h), since an operator works the same on a part of any axis that its attributes do not name.
 *
 * Only nodes with memory of their own are computed. A view's elements, and those of an input, are copied from where they lie.
 */
#ifndef RONDO_GRAPH_TILE_H
#define RONDO_GRAPH_TILE_H

#include "native/graph/execute.h"
#include "native/graph/place.h"

/* A rectangular part of an operand: `walk.size` elements along each of its axes. */
struct tile_part {
    uint32_t node;    /* the operand */
    uint32_t base;    /* whose memory it lies in */
    ptrdiff_t offset; /* elements in that memory, of the part's first */
    struct walk walk; /* from: strides in that memory; to: dense */
    uint64_t values;
};

struct tile {
    const struct graph *g;                      /* borrowed */
    uint32_t node, maker;                       /* `maker`: another node for further results, GRAPH_NONE for a copy */
    uint64_t first, count;                      /* elements of the node, in its row-major order */
    uint64_t low[GRAPH_AXES], size[GRAPH_AXES]; /* of the node: the part that is computed, which holds these elements */
    struct tile_part *parts;                    /* one an operand, the node itself for a copy; owned */
    uint32_t part_count;
};

/* Whether the node has bytes of its own, and those come from an operator that is computed (no input, parameter or fixed value). */
bool tile_computed(const struct graph *g, const struct place *places, uint32_t node);

/* What elements first .. first + count - 1 of a node need. Errors: range. */
bool tile_new(const struct graph *g, const struct place *places, uint32_t node, uint64_t first, uint64_t count, struct tile *out,
              struct error *err);
void tile_free(struct tile *t);

/* Calls `see` for each run of elements of the base's memory that a part reads, in the order of the walk; runs may repeat and touch. */
typedef void (*tile_run)(void *context, uint64_t first, uint64_t count);
void tile_part_runs(const struct tile_part *part, tile_run see, void *context);

/* Computes or copies the elements into `out` (count of them). data[base] of each part: the base's memory, of which only what tile_part_runs tells is
 * read; fixed values (constants, tables, iota) need none. `random` as for executor_run. Errors: those of executor_run, and of making one. */
bool tile_compute(const struct tile *t, struct pool *pool, const void *const *data, const struct executor_random *random,
                  void *out, struct error *err);

#endif
