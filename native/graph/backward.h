/* backward.h - gradients as further nodes of the same graph (reverse mode).
 *
 * gradients[i] is the gradient of the sum of `loss` (any shape; f32) by wanted[i], with the type and the memory order of wanted[i].
 * A wanted node that the loss does not depend on gets zeros.
 *
 * Where a node has several consumers their contributions are added in the order of ascending consumer id, and for one consumer in
 * the order of its operands: c0 + c1, then + c2, and so on. Weights of reductions, masks, comparisons, integer operands and what
 * lies behind `detach` carry no gradient. Only nodes on a path from a wanted node to the loss are differentiated; an operator on
 * such a path without a backward is refused by name (unsupported).
 */
#ifndef RONDO_GRAPH_BACKWARD_H
#define RONDO_GRAPH_BACKWARD_H

#include "native/graph/graph.h"

bool graph_backward(struct graph *g, uint32_t loss, const uint32_t *wanted, size_t count, uint32_t *gradients, struct error *err);

/* The same from a given gradient of `loss` (axes as `loss`) instead of ones. */
bool graph_backward_from(struct graph *g, uint32_t loss, uint32_t seed, const uint32_t *wanted, size_t count, uint32_t *gradients,
                         struct error *err);

#endif
