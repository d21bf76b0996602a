/* arrange_demand.c - see heads.h. */
#include "native/graph/heads.h"

static uint32_t demand_of(struct heads *h, uint32_t x, unsigned depth);

static uint32_t demand_moved(struct heads *h, uint32_t reader, uint32_t demand)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[reader];
    const struct graph_axis *axes = graph_axes(g, n);
    uint32_t moved;
    struct graph_word words[2] = { { g->names[axes[0].name], 0 } };
    struct graph_request r = {
        .op = (enum operator_code)n->op, .inputs = &demand, .input_count = 1, .axes = words, .axes_count = 1
    };
    if (demand == GRAPH_NONE)
        return GRAPH_NONE;
    if (n->op == OPERATOR_RENAME) {
        words[0].name = g->names[axes[1].name];
        words[1].name = g->names[axes[0].name];
        r.axes_count = 2;
        return heads_made(h, &r, GRAPH_NONE, &moved) ? moved : GRAPH_NONE;
    }
    const int64_t back = -graph_integers(g, n)[0];
    r.integers = &back;
    r.integers_count = 1;
    return heads_made(h, &r, GRAPH_NONE, &moved) ? moved : GRAPH_NONE;
}

/* A weighted sum reads only where its weight is not 0. */
static uint32_t demand_summed(const struct heads *h, uint32_t reader, uint32_t x)
{
    const struct graph_node *n = &h->g->nodes[reader], *v = &h->g->nodes[x];
    if (n->input_count != 2 || heads_input(h, reader, 0) != x || heads_input(h, reader, 1) == x)
        return GRAPH_NONE;
    const struct graph_node *weight = &h->g->nodes[heads_input(h, reader, 1)];
    if (weight->rank != v->rank || h->map[heads_input(h, reader, 1)] == GRAPH_NONE)
        return GRAPH_NONE;
    for (unsigned i = 0; i < v->rank; i++)
        if (weight->axis[i].name != v->axis[i].name)
            return GRAPH_NONE;
    return h->map[heads_input(h, reader, 1)];
}

static uint32_t demand_by(struct heads *h, uint32_t reader, uint32_t x, unsigned depth)
{
    const struct graph_node *n = &h->g->nodes[reader];
    if (depth == 16)
        return GRAPH_NONE;
    switch (h->kind[reader] == NODE_PLAIN ? n->op : OPERATOR_HEAD) {
    case OPERATOR_NEG:
        return demand_of(h, reader, depth + 1);
    case OPERATOR_RENAME:
    case OPERATOR_SHIFT:
        return demand_moved(h, reader, demand_of(h, reader, depth + 1));
    case OPERATOR_SUM:
    case OPERATOR_MEAN:
        return demand_summed(h, reader, x);
    default:
        return GRAPH_NONE;
    }
}

static bool magnitude(struct heads *h, uint32_t x, uint32_t *node)
{
    return heads_made(h, &(struct graph_request){ .op = OPERATOR_ABS, .inputs = &x, .input_count = 1 }, GRAPH_NONE, node);
}

static uint32_t demand_of(struct heads *h, uint32_t x, unsigned depth)
{
    uint32_t total = GRAPH_NONE;
    if (heads_is_output(h, x))
        return GRAPH_NONE;
    for (uint32_t k = h->readers.first[x]; k < h->readers.first[x + 1]; k++) {
        const uint32_t reader = h->readers.at[k];
        if (depth == 0 && h->kind[reader] != NODE_PLAIN && h->of[reader] == h->of[x] && h->level[reader] == h->level[x])
            continue; /* within the body */
        const uint32_t part = demand_by(h, reader, x, depth);
        if (part == GRAPH_NONE)
            return GRAPH_NONE;
        if (total == GRAPH_NONE) {
            total = part;
            continue;
        }
        uint32_t size[2];
        if (!magnitude(h, total, &size[0]) || !magnitude(h, part, &size[1]) ||
            !heads_made(h, &(struct graph_request){ .op = OPERATOR_ADD, .inputs = size, .input_count = 2 }, GRAPH_NONE, &total))
            return GRAPH_NONE;
    }
    return total;
}

uint32_t heads_demand(struct heads *h, uint32_t x)
{
    const uint32_t demand = demand_of(h, x, 0);
    error_clear(h->err); /* one that would not fit is none */
    return demand;
}
