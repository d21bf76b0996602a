/* arrange.h - the executor's own form of a graph: the same values with less memory. Internal to native/graph.
 *
 *     logits = dot(h, E)                                        head(h, E, ids, g):
 *     logprob = token_logprob(logits, ids)            ->            for each tile of rows: logits, logprob, gradient, dh
 *     dh = dot(token_logprob_grad(logits, ids, lse, g), E)          rows that nothing reads are not computed
 *     dE = dot(token_logprob_grad(logits, ids, lse, g), h)          likewise, for a trained E
 *
 *     no gradient (evaluation)                                  one head for log-probabilities and argmax
 *     g depends on the log-probabilities (DPO, GRPO)            a head for those, and a second one, logits computed again, for dh and dE
 *     dE starts from another gradient that comes last           (a tied embedding's) only under a limit of memory: a head of its own, logits
 *                                                               computed again; without one the logits are kept
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

/* Heads as above, where the logits and their gradient have no other reader; `tied`: also those whose dE comes last. `*from`: owned by
 * the caller. Weighted sums tell which log-probabilities matter: an element of weight 0 is not read (docs/numerics.md). */
struct graph *arrange_heads(const struct graph *g, bool tied, uint32_t **from, struct error *err);

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
