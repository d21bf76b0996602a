#include "native/graph/cost.h"

#include <stdio.h>

static uint64_t summed(const struct graph *g, const struct graph_node *n)
{
    uint64_t k = 1;
    for (uint32_t i = 0; i < n->axes_count; i++)
        k *= graph_axes(g, n)[i].size;
    return k;
}

static uint64_t operations_of(const struct graph *g, const struct graph_node *n)
{
    switch (n->op) {
    case OPERATOR_DOT:
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        return 2 * summed(g, n) * n->values;
    case OPERATOR_ATTENTION:
        return 4 * n->values * graph_axes(g, n)[0].size;
    case OPERATOR_ATTENTION_GRAD:
        return 10 * n->values * graph_axes(g, n)[0].size;
    case OPERATOR_HEAD:
        return 2 * n->values * g->nodes[graph_inputs(g, n)[1]].values; /* and as much for each gradient: head_gradients */
    case OPERATOR_DIST2:
        return 3 * n->values * (g->nodes[graph_inputs(g, n)[0]].values / graph_axes(g, n)[0].size);
    default:
        return operator_table[n->op].flags & OPERATOR_SOURCE ? 0 : n->values;
    }
}

/* A head's products for the gradients that are wanted. */
static uint64_t head_gradients(const struct plan *p, uint32_t node)
{
    const struct graph_node *n = &p->g->nodes[node];
    uint64_t total = 0;
    for (unsigned k = 0; n->op == OPERATOR_HEAD && n->input_count > 3 && p->extra[node] && k < 2; k++)
        total += p->extra[node][k] != GRAPH_NONE ? operations_of(p->g, n) : 0;
    return total;
}

static uint64_t bytes_of(const struct graph *g, uint32_t node)
{
    return g->nodes[node].values * type_bytes(g->nodes[node].type);
}

/* "dot 1024x576x1536+16": rows, columns, and what is summed over in each product of the step. */
static void name_products(const struct graph *g, const struct plan_step *s, struct executor_pass *pass)
{
    size_t at = 0;
    for (uint32_t i = 0; i < s->count || i < 1; i++) {
        const struct graph_node *n = &g->nodes[s->count ? s->nodes[i] : s->node];
        const struct graph_node *x = &g->nodes[graph_inputs(g, n)[n->op == OPERATOR_DOT ? 0 : 1]];
        const uint64_t k = summed(g, n), rows = k ? x->values / k : 0;
        if (at < sizeof pass->name && i > 0)
            at += (size_t)snprintf(pass->name + at, sizeof pass->name - at, "+%llu", (unsigned long long)k);
        if (i == 0)
            at = (size_t)snprintf(pass->name, sizeof pass->name, "%s %llux%llux%llu", operator_table[n->op].name,
                                  (unsigned long long)rows, (unsigned long long)(rows ? n->values / rows : 0),
                                  (unsigned long long)k);
    }
}

struct executor_pass cost_of_step(const struct plan *p, const struct plan_step *s)
{
    const struct graph *g = p->g;
    const struct graph_node *n = &g->nodes[s->node];
    struct executor_pass pass = { .name = "chain" };
    if (s->chain) {
        for (uint32_t i = 0; i < s->count; i++) {
            pass.operations += operations_of(g, &g->nodes[s->nodes[i]]);
            pass.bytes += s->kept[i] ? bytes_of(g, s->nodes[i]) : 0;
        }
        for (uint32_t i = 0; i < chain_slots(s->chain); i++)
            if (chain_read(s->chain, i) != GRAPH_NONE)
                pass.bytes += bytes_of(g, chain_read(s->chain, i));
        return pass;
    }
    pass.bytes = bytes_of(g, s->node);
    pass.operations = head_gradients(p, s->node);
    for (uint32_t i = 0; i < s->count || i < 1; i++) {
        const struct graph_node *part = &g->nodes[s->count ? s->nodes[i] : s->node];
        pass.operations += operations_of(g, part);
        for (uint32_t k = i > 0 ? 1 : 0; k < part->input_count; k++)
            pass.bytes += bytes_of(g, graph_inputs(g, part)[k]);
    }
    for (unsigned k = 0; p->extra[s->node] && k < 2; k++)
        if (p->extra[s->node][k] != GRAPH_NONE)
            pass.bytes += bytes_of(g, p->extra[s->node][k]);
    if (plan_is_product(n))
        name_products(g, s, &pass);
    else
        snprintf(pass.name, sizeof pass.name, "%s", operator_table[n->op].name);
    return pass;
}
