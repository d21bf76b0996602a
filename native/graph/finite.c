#include "native/graph/finite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct graph *g;
    uint32_t nan, infinity; /* the first of each */
};

static void values_searched(struct search *s, uint32_t node, const void *values)
{
    const struct graph_node *n = &s->g->nodes[node];
    for (uint64_t i = 0; n->type != TENSOR_I32 && i < n->values && s->nan == GRAPH_NONE; i++) {
        const double x = n->type == TENSOR_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
        if (isnan(x))
            s->nan = node;
        else if (isinf(x) && s->infinity == GRAPH_NONE)
            s->infinity = node;
    }
}

static void node_seen(void *context, uint32_t node, const void *bytes, size_t size)
{
    (void)size;
    values_searched(context, node, bytes);
}

static void run_searched(struct search *s, struct pool *pool, const uint8_t *stored, const void *const *inputs,
                         const struct executor_random *random)
{
    const struct graph *g = s->g;
    struct error ignored = { 0 };
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    struct executor *ex = executor_new(
        g, &(struct executor_options){ .pool = pool, .stored = stored, .trace = node_seen, .trace_context = s }, &ignored);
    bool ok = ex && outputs;
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        ok = (outputs[i] = malloc(g->nodes[g->outputs[i].node].values * 8 + 8)) != NULL;
    if (ok)
        executor_run(ex, inputs, outputs, random, &ignored);
    for (uint32_t i = 0; outputs && i < g->output_count; i++)
        free(outputs[i]);
    free(outputs);
    executor_free(ex);
}

uint32_t finite_first_fault(const struct graph *g, struct pool *pool, const uint8_t *stored, const void *const *inputs,
                            const struct executor_random *random)
{
    struct search s = { g, GRAPH_NONE, GRAPH_NONE };
    for (uint32_t i = 0; i < g->bound_count; i++)
        if (inputs[i] && (!stored || stored[i] == g->nodes[g->bound[i]].type))
            values_searched(&s, g->bound[i], inputs[i]);
    if (s.nan == GRAPH_NONE)
        run_searched(&s, pool, stored, inputs, random);
    return s.nan != GRAPH_NONE ? s.nan : s.infinity;
}

uint32_t finite_nearest_parameter(const struct graph *g, uint32_t node)
{
    uint32_t *queue = malloc((g->node_count + 1) * sizeof *queue), count = 0, found = GRAPH_NONE;
    uint8_t *seen = calloc(g->node_count + 1, 1);
    if (!queue || !seen)
        abort();
    queue[count++] = node;
    seen[node] = 1;
    for (uint32_t at = 0; at < count && found == GRAPH_NONE; at++) {
        const struct graph_node *n = &g->nodes[queue[at]];
        if (n->op == OPERATOR_PARAMETER)
            found = queue[at];
        for (uint32_t k = 0; k < n->input_count; k++) {
            const uint32_t x = graph_inputs(g, n)[k];
            if (!seen[x]) {
                seen[x] = 1;
                queue[count++] = x;
            }
        }
    }
    free(queue);
    free(seen);
    return found;
}
