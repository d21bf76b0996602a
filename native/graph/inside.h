/* inside.h - values that are never made: the step that reads one computes with what it is made of. Internal to native/graph.
 *
 *     gather(W, expert)     [row time slot out in]     a matrix for each token and slot: products that read it take W's own, tokens that
 *                                                      chose the same one together
 *     dot(g, x)             [row time slot out in]     their outer products, each rounded: the scatter onto W's gradient adds them up as
 *                                                      it comes to them
 *
 *     rows of the product   0 1 2 3 4 5      copied beside each other    0 3 | 1 | 2 4 5      one product each
 *     matrix of each        a b c a c c      by matrix                    a    b     c
 *
 * Every bit is that of the graph as it stands: a row's sum is by the same chunks, an element of the gradient by the same ascending order. A
 * product summed over slots, too (the gradient of what all of them read), takes them one after the other where each is whole chunks, else
 * a row's matrices beside each other.
 */
#ifndef RONDO_GRAPH_INSIDE_H
#define RONDO_GRAPH_INSIDE_H

#include "native/graph/step.h"

/* Which nodes need not be made, one flag a node; owned. `stored`: enum tensor_type of each base node's data. */
uint8_t *inside_found(const struct graph *g, const struct place *places, const uint8_t *stored);

/* The operand of n that is not made, or -1. */
int inside_operand(const struct graph *g, const uint8_t *inside, const struct graph_node *n);

/* Calls `see` for the base of all that the operator of node `id` reads. */
void inside_reads(const struct graph *g, const struct place *places, const uint8_t *inside, uint32_t id,
                  void (*see)(void *context, uint32_t base), void *context);

/* Runs (or measures) the operator at work, an operand of which is not made. */
bool step_inside(struct work *w);

/* inside_product.c, inside_scatter.c: whether the operator can do without its operand `at`, and running it so. */
bool inside_product_fits(const struct graph *g, const struct place *places, const uint8_t *stored, uint32_t id, unsigned at);
bool inside_product(struct work *w, unsigned at);
bool inside_scatter_fits(const struct graph *g, const struct place *places, const uint8_t *stored, uint32_t id);
bool inside_scatter(struct work *w);

/* Axes that are stepped through as one, by two operands. `a` and `b`: their strides, 0 where there are no axes of more than one. */
struct inside_axes {
    uint64_t size;
    ptrdiff_t a, b;
};

/* Joins `count` axes by their strides in x and y (either may be NULL). False where they take more than one step. */
bool inside_joined(const struct graph_axis *axes, unsigned count, const struct graph_node *x, const struct place *px,
                   const struct graph_node *y, const struct place *py, struct inside_axes *out);

#endif
