#include "native/graph/backward.h"

#include <stdlib.h>
#include <string.h>

#include "native/graph/backward_rules.h"

/* Whether operand k of n may carry a gradient at all. */
static bool passes(const struct graph_node *n, uint32_t k)
{
    if (operator_table[n->op].flags & (OPERATOR_FLAT | OPERATOR_COMPARE))
        return false;
    if (n->op == OPERATOR_WHERE)
        return k > 0;
    return true;
}

/* live[i]: node i is wanted, or a wanted node lies behind it on a path that carries gradients. */
static uint8_t *live_nodes(const struct graph *g, uint32_t loss, const uint32_t *wanted, size_t count)
{
    uint8_t *live = calloc(loss + 1, 1);
    if (!live)
        abort();
    for (size_t i = 0; i < count; i++)
        if (wanted[i] <= loss)
            live[wanted[i]] = 1;
    for (uint32_t i = 0; i <= loss; i++) {
        const struct graph_node *n = &g->nodes[i];
        if (n->type == TENSOR_I32)
            live[i] = 0;
        for (uint32_t k = 0; k < n->input_count && n->type != TENSOR_I32; k++)
            if (passes(n, k) && live[graph_inputs(g, n)[k]])
                live[i] = 1;
    }
    return live;
}

/* The sum of the contributions to node i, in order; GRAPH_NONE when there is none. */
static uint32_t summed(struct backward *b, uint32_t i)
{
    uint32_t total = GRAPH_NONE;
    for (uint32_t at = b->first[i]; at && !b->failed; at = b->parts[at - 1].next) {
        const uint32_t part = b->parts[at - 1].node;
        if (total == GRAPH_NONE)
            total = part;
        else if (!graph_binary(b->g, OPERATOR_ADD, total, part, &total, b->err))
            b->failed = true;
    }
    return total;
}

static void sweep(struct backward *b, uint32_t loss, uint32_t seed, uint32_t *gradient)
{
    if (b->live[loss])
        backward_give(b, loss, seed);
    for (uint32_t i = loss + 1; i-- > 0 && !b->failed;) {
        gradient[i] = b->first[i] ? summed(b, i) : GRAPH_NONE;
        if (gradient[i] != GRAPH_NONE && !b->failed)
            backward_rule(b, i, gradient[i]);
    }
}

bool graph_backward_from(struct graph *g, uint32_t loss, uint32_t seed, const uint32_t *wanted, size_t count, uint32_t *gradients,
                         struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (wanted[i] >= g->node_count || g->nodes[wanted[i]].type == TENSOR_I32)
            return error_set(err, ERROR_TYPE, NULL, "node %u has no gradient", wanted[i]);
    if (loss >= g->node_count || seed >= g->node_count || g->nodes[loss].type == TENSOR_I32)
        return error_set(err, ERROR_TYPE, NULL, "node %u is no loss", loss);
    uint8_t *live = live_nodes(g, loss, wanted, count);
    uint32_t *gradient = malloc((loss + 1) * sizeof *gradient);
    struct backward b = { .g = g, .err = err, .live = live, .first = calloc(loss + 1, sizeof *b.first) };
    if (!b.first || !gradient)
        abort();
    memset(gradient, 0xff, (loss + 1) * sizeof *gradient);
    sweep(&b, loss, seed, gradient);
    for (size_t i = 0; i < count && !b.failed; i++) {
        gradients[i] = wanted[i] <= loss ? gradient[wanted[i]] : GRAPH_NONE;
        if (gradients[i] == GRAPH_NONE)
            gradients[i] = backward_spread(&b, backward_constant(&b, wanted[i], 0), wanted[i]);
    }
    free(live);
    free(gradient);
    free(b.first);
    free(b.parts);
    return !b.failed;
}

bool graph_backward(struct graph *g, uint32_t loss, const uint32_t *wanted, size_t count, uint32_t *gradients, struct error *err)
{
    struct backward b = { .g = g, .err = err };
    if (loss >= g->node_count)
        return error_set(err, ERROR_RANGE, NULL, "node %u, but there are %u", loss, g->node_count);
    const uint32_t seed = backward_spread(&b, backward_constant(&b, loss, 1), loss);
    return !b.failed && graph_backward_from(g, loss, seed, wanted, count, gradients, err);
}
