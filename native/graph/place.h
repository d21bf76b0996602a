/* place.h - where a node's values lie, and strided copies. Internal to native/graph.
 *
 *     node 7  dot      [time dim]   base 7, strides 4 1          has memory of its own
 *     node 8  rename   [key dim]    base 7, strides 4 1          rename, split, trim, at, expand, transpose and, where the strides
 *     node 9  at       [dim]        base 7, offset 8, stride 1   allow it, merge are views: no memory, no work
 */
#ifndef RONDO_GRAPH_PLACE_H
#define RONDO_GRAPH_PLACE_H

#include "native/graph/graph.h"
#include "native/kernel/pool.h"

struct place {
    uint32_t base;                /* the node whose memory it is; itself when it has its own */
    ptrdiff_t offset;             /* elements */
    ptrdiff_t stride[GRAPH_AXES]; /* elements, one an axis of the node */
};

/* Places of all nodes of g. Returns an owned array. */
struct place *place_all(const struct graph *g);

/* Whether the node's values are contiguous in its own order. */
bool place_contiguous(const struct graph_node *n, const struct place *p);

/* The values of a constant, a table or an iota, dense. */
void place_fill(const struct graph *g, uint32_t node, void *to);

/* A walk over `rank` axes with strides of a source and a target. */
struct walk {
    unsigned rank;
    uint64_t size[GRAPH_AXES];
    ptrdiff_t from[GRAPH_AXES], to[GRAPH_AXES]; /* elements */
};

/* Copies elements (4 or 8 bytes; f32 to f64 when the types say so) along the walk. */
void walk_copy(struct pool *pool, struct walk walk, enum tensor_type from_type, const void *from, enum tensor_type to_type,
               void *to);

static inline size_t type_bytes(unsigned type)
{
    return type == TENSOR_F64 ? 8 : 4;
}

#endif
