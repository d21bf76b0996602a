/* arrange.h - the executor's own form of a graph: the same values with less memory. Internal to native/graph.
 *
 *     logits = dot(h, E) [+ an adapter's product, a bias, a cap]  what has rows x vocabulary values becomes the body of a head (body.h):
 *     logprob = token_logprob(logits, ids)                      for each tile of rows: logits, logprob, gradient, dh, a part of dE
 *     d = token_logprob_grad(logits, ids, lse, g) [...]         rows that nothing reads are not computed
 *     dh = dot(d, E)   dE = dot(d, h)
 *
 *     g depends on the log-probabilities (DPO, GRPO)            a body for those, and a second one, logits computed again, for dh and dE
 *     dE goes on from the gradient of the lookup of a tied      dE without it, for the columns of d that the lookup names too; of those
 *     table, which comes last                                   few words dE is computed in the end (operator `tied`). Where rows are
 *                                                               many beside the vocabulary: a body of its own, logits computed again
 *
 *     forward   y = silu(gate) * up ... used                    y is not kept for the backward pass but computed again there,
 *     backward  ... y used again                                from gate and up, which are needed there anyway
 *
 * Both give a new graph with the bound nodes and outputs of the old one in the same order; from[i] is the old node whose value node i
 * has, GRAPH_NONE for one that is computed a second time or only steers. No value changes a bit. NULL with `err` never happens but
 * for limits of the graph.
 */
#ifndef RONDO_GRAPH_ARRANGE_H
#define RONDO_GRAPH_ARRANGE_H

#include "native/graph/graph.h"

struct body;

/* Heads as above, where what has rows x vocabulary values is elementwise, a product or a log-probability and no output. `*from` and the
 * bodies are owned by the caller. Weighted sums tell which log-probabilities matter: an element of weight 0 is not read
 * (docs/numerics.md). */
struct graph *arrange_heads(const struct graph *g, uint32_t **from, struct body **bodies, uint32_t *body_count,
                            struct error *err);

/* Values that are cheap to compute again (elementwise operators, norms) and are read at two far ends of the graph; and, to stay under a
 * limit of memory, up to `products` products and rotations whose operands are there, the earliest first. */
struct graph *arrange_again(const struct graph *g, uint32_t products, uint32_t **from, struct error *err);

/* Consumers of each node: those of node i are at[first[i]] ... at[first[i + 1] - 1], ascending. Free both. */
struct consumers {
    uint32_t *first, *at;
};
struct consumers consumers_of(const struct graph *g);
void consumers_free(struct consumers *c);

#endif
