/* rewrite.h - the fixed rewrites that make a decoded graph canonical (docs/numerics.md, rule 3).
 *
 * In this order, over nodes in ascending order; a product must have no other consumer and not be an output:
 *
 *   1  base + dot(z, b) * s, s a constant        ->  low_rank(base, z, b; s)
 *   2  c + low_rank(dot(x, w), z, b; s)          ->  low_rank(dot_onto(c, x, w), z, b; s)
 *   3  c + dot(x, y)                             ->  dot_onto(c, x, y)
 *
 * where the sum has the axes and the memory order of the product (either operand of + may be the product; of two products the second
 * is) and all is f32.
 * Nodes that nothing needs are dropped, equal nodes are merged. Applying it twice changes nothing more.
 */
#ifndef RONDO_GRAPH_REWRITE_H
#define RONDO_GRAPH_REWRITE_H

#include "native/graph/graph.h"

enum { REWRITE_VERSION = 1 };

/* A new graph with the same outputs and the same bound nodes. `nodes` (may be NULL; g->node_count of them) gets for each node of g
 * the new id, or GRAPH_NONE when it is gone. NULL with `err`. */
struct graph *graph_rewrite(const struct graph *g, uint32_t *nodes, struct error *err);

/* The same graph without nodes that nothing needs and with equal nodes merged. Bound nodes are all kept, in their order. */
struct graph *graph_compact(const struct graph *g, uint32_t *nodes, struct error *err);

#endif
