#include "runtime/worker/packs.h"

#include <stdlib.h>
#include <string.h>

#include "native/graph/operator.h"
#include "runtime/worker/bound.h"

/* Names of axes along the row: `time`, and what it was renamed, split or merged to. */
struct along {
    const char *names[32];
    size_t count;
};

static bool is_along(const struct along *a, const char *name)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->names[i], name) == 0)
            return true;
    return false;
}

static bool has_along(const struct along *a, const struct graph *g, const struct graph_axis *axes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_along(a, graph_text(g, axes[i].name)))
            return true;
    return false;
}

/* Another name for the row; false when there are too many to follow. */
static bool name_along(struct along *a, const struct graph *g, const struct graph_axis *axis)
{
    const char *name = graph_text(g, axis->name);

    if (is_along(a, name))
        return true;
    if (a->count == sizeof a->names / sizeof *a->names)
        return false;
    a->names[a->count++] = name;
    return true;
}

/* The new names that a view of the row has. */
static bool follow_view(struct along *a, const struct graph *g, const struct graph_node *n)
{
    const struct graph_axis *axes = graph_axes(g, n);
    size_t first = n->op == OPERATOR_MERGE ? 0 : 1, last = n->op == OPERATOR_MERGE ? 1 : n->axes_count;

    for (size_t i = first; i < last; i++)
        if (!name_along(a, g, &axes[i]))
            return false;
    return true;
}

/* Whether a token of the node's result depends on one place of the row alone, or on others by attention in segments. */
static bool model_node_packs(struct along *a, const struct graph *g, const struct graph_node *n)
{
    const struct graph_axis *axes = graph_axes(g, n);
    bool named = has_along(a, g, axes, n->axes_count);

    switch (n->op) {
    case OPERATOR_ATTENTION:
        return n->input_count >= 4;
    case OPERATOR_IOTA:
    case OPERATOR_TABLE:
    case OPERATOR_PARAMETER:
        return !named;
    case OPERATOR_RENAME:
    case OPERATOR_SPLIT:
    case OPERATOR_MERGE:
        return !named || follow_view(a, g, n);
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
        return true;
    default:
        return !named || (operator_table[n->op].flags & OPERATOR_SOURCE);
    }
}

/* One byte a node: 1 where logits or hidden values need it. What only the averages of blocks need (aux) may sum over all tokens. */
static uint8_t *needed(const struct graph *g)
{
    uint8_t *need = calloc((size_t)g->node_count + 1, 1);

    if (!need)
        abort();
    for (uint32_t i = 0; i < g->output_count; i++)
        if (strncmp(graph_text(g, g->outputs[i].name), "aux.", 4) != 0)
            need[g->outputs[i].node] = 1;
    for (uint32_t i = g->node_count; i-- > 0;)
        for (unsigned k = 0; need[i] && k < g->nodes[i].input_count; k++)
            need[graph_inputs(g, &g->nodes[i])[k]] = 1;
    return need;
}

static bool model_packs(const struct graph *g, const uint8_t *need, struct error *err)
{
    struct along along = { { "time" }, 1 };

    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];

        if (!need[i] || model_node_packs(&along, g, n))
            continue;
        if (n->op == OPERATOR_ATTENTION)
            return error_set(err, ERROR_UNSUPPORTED, "leave `packing` out, or give attention segment = b.segment",
                             "the model's attention reads no segments");
        if (operator_table[n->op].flags & OPERATOR_SOURCE)
            return error_set(err, ERROR_UNSUPPORTED, "leave `packing` out, or count places by b.position",
                             "the model counts places along a row (%s), and packed rows hold several examples",
                             operator_table[n->op].name);
        return error_set(err, ERROR_UNSUPPORTED, "leave `packing` out, or mix tokens by attention alone",
                         "the model mixes tokens along a row (%s), and packed rows hold several examples",
                         operator_table[n->op].name);
    }
    return true;
}

bool packs_model(const struct script_trace *model, struct error *err)
{
    const struct graph *g = bound_graph(model, json_object_get(model->meta, "graph"), err);
    uint8_t *need = g ? needed(g) : NULL;
    bool ok = g && model_packs(g, need, err);

    free(need);
    return ok;
}

/* ---- objectives ---- */

static bool has_time(const struct graph *g, uint32_t node)
{
    struct along time = { { "time" }, 1 };

    return has_along(&time, g, g->nodes[node].axis, g->nodes[node].rank);
}

/* Token by token, or the sum of all: what an example is makes no difference to either. */
static bool objective_node_packs(const struct graph *g, uint32_t node)
{
    const struct graph_node *n = &g->nodes[node];
    uint8_t flags = operator_table[n->op].flags;
    bool reads = false;

    for (unsigned i = 0; i < n->input_count; i++)
        reads |= has_time(g, graph_inputs(g, n)[i]);
    if (!reads || (n->op == OPERATOR_EXPAND && has_time(g, node)))
        return true;
    if (flags & OPERATOR_REDUCTION)
        return n->rank == 0 || has_time(g, node);
    return has_time(g, node) && (flags & OPERATOR_ELEMENTWISE);
}

bool packs_objective(const struct script_trace *objective, const char *field, struct error *err)
{
    json_t *loss = json_object_get(objective->meta, "loss");
    const struct graph *g = bound_graph(objective, json_object_get(loss, "graph"), err);

    for (uint32_t i = 0; g && i < g->node_count; i++)
        if (!objective_node_packs(g, i))
            return error_set(err, ERROR_UNSUPPORTED, "leave it out, or weigh token by token",
                             "the objective works along a row (%s), and with `%s` a row holds several",
                             operator_table[g->nodes[i].op].name, field);
    return g != NULL;
}
