#include "native/graph/inside.h"

#include <stdlib.h>

#include "native/graph/arrange.h"
#include "native/graph/plan.h"

bool inside_joined(const struct graph_axis *axes, unsigned count, const struct graph_node *x, const struct place *px,
                   const struct graph_node *y, const struct place *py, struct inside_axes *out)
{
    *out = (struct inside_axes){ .size = 1 };
    for (unsigned i = 0; i < count; i++) {
        const ptrdiff_t a = x ? px->stride[graph_axis_find(x, axes[i].name)] : 0,
                        b = y ? py->stride[graph_axis_find(y, axes[i].name)] : 0, size = (ptrdiff_t)axes[i].size;
        if (size == 1)
            continue;
        if (out->size > 1 && (out->a != a * size || out->b != b * size))
            return false;
        *out = (struct inside_axes){ out->size * axes[i].size, a, b };
    }
    return true;
}

/* Whether all that reads node i is a product that can do without it. */
static bool gather_fits(const struct graph *g, const struct place *places, const uint8_t *stored, const uint8_t *inside,
                        const struct consumers *readers, uint32_t i)
{
    for (uint32_t k = readers->first[i]; k < readers->first[i + 1]; k++) {
        const uint32_t reader = readers->at[k];
        const struct graph_node *n = &g->nodes[reader];
        const unsigned first = n->op == OPERATOR_DOT ? 0 : 1;
        if (!plan_is_product(n) || inside[reader] || inside_operand(g, inside, n) >= 0)
            return false;
        const uint32_t *in = graph_inputs(g, n);
        if ((in[first] == i) == (in[first + 1] == i) || (first && in[0] == i) ||
            !inside_product_fits(g, places, stored, reader, in[first] == i ? first : first + 1))
            return false;
    }
    return readers->first[i] < readers->first[i + 1];
}

uint8_t *inside_found(const struct graph *g, const struct place *places, const uint8_t *stored)
{
    uint8_t *inside = calloc(g->node_count + 1, 1), *output = calloc(g->node_count + 1, 1);
    struct consumers readers = consumers_of(g);
    if (!inside || !output)
        abort();
    for (uint32_t i = 0; i < g->output_count; i++)
        output[g->outputs[i].node] = 1;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];
        const uint32_t d = n->op == OPERATOR_SCATTER ? graph_inputs(g, n)[0] : GRAPH_NONE;
        if (d != GRAPH_NONE && !output[d] && readers.first[d + 1] - readers.first[d] == 1)
            inside[d] = inside_scatter_fits(g, places, stored, i);
    }
    for (uint32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op == OPERATOR_GATHER && g->nodes[i].type == TENSOR_F32 && !output[i])
            inside[i] = gather_fits(g, places, stored, inside, &readers, i);
    consumers_free(&readers);
    free(output);
    return inside;
}

int inside_operand(const struct graph *g, const uint8_t *inside, const struct graph_node *n)
{
    for (uint32_t k = 0; k < n->input_count; k++)
        if (inside[graph_inputs(g, n)[k]])
            return (int)k;
    return -1;
}

void inside_reads(const struct graph *g, const struct place *places, const uint8_t *inside, uint32_t id,
                  void (*see)(void *context, uint32_t base), void *context)
{
    const struct graph_node *n = &g->nodes[id];
    for (uint32_t k = 0; k < n->input_count; k++) {
        const uint32_t x = graph_inputs(g, n)[k];
        if (inside[x])
            inside_reads(g, places, inside, x, see, context);
        else
            see(context, places[x].base);
    }
}

bool step_inside(struct work *w)
{
    if (w->n->op == OPERATOR_SCATTER)
        return inside_scatter(w);
    return inside_product(w, (unsigned)inside_operand(w->g, w->inside, w->n));
}
