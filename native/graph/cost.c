#include "native/graph/cost.h"

#include <stdio.h>

#include "native/graph/body.h"

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
    case OPERATOR_DIST2:
        return 3 * n->values * (g->nodes[graph_inputs(g, n)[0]].values / graph_axes(g, n)[0].size);
    default:
        return operator_table[n->op].flags & OPERATOR_SOURCE ? 0 : n->values;
    }
}

/* What the body of a head does over all rows. */
static uint64_t body_operations(const struct plan *p, const struct graph_node *n)
{
    const struct body *body = n->op == OPERATOR_HEAD ? &p->bodies[graph_integers(p->g, n)[0]] : NULL;
    uint64_t total = 0;
    for (uint32_t t = 0; body && t < body->plan[0].step_count; t++)
        total += cost_of_step(&body->plan[0], &body->plan[0].steps[t]).operations;
    return body ? total * body->rows / body->tile[0] : 0;
}

static uint64_t bytes_of(const struct graph *g, uint32_t node)
{
    return g->nodes[node].values * type_bytes(g->nodes[node].type);
}

/* What an operand that is not made would have cost to make falls to its reader: what is read for it, and the arithmetic. */
static void operand_counted(const struct plan *p, uint32_t node, struct executor_pass *pass)
{
    const struct graph_node *n = &p->g->nodes[node];
    if (!p->inside[node]) {
        pass->bytes += bytes_of(p->g, node);
        return;
    }
    pass->operations += n->op == OPERATOR_GATHER ? 0 : operations_of(p->g, n);
    for (uint32_t k = 0; k < n->input_count; k++)
        pass->bytes += bytes_of(p->g, graph_inputs(p->g, n)[k]);
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

/* "chain 1024x1536 silu mul": the values of each node, and what is done in turn, as far as there is room. */
static void name_chain(const struct graph *g, const struct plan_step *s, struct executor_pass *pass)
{
    const struct graph_node *first = &g->nodes[s->nodes[0]];
    const uint64_t columns = first->rank ? first->axis[first->rank - 1].size : 1;
    size_t at = (size_t)snprintf(pass->name, sizeof pass->name, "chain %llux%llu",
                                 (unsigned long long)(columns ? first->values / columns : 0), (unsigned long long)columns);
    for (uint32_t i = 0; i < s->count && at < sizeof pass->name; i++)
        at += (size_t)snprintf(pass->name + at, sizeof pass->name - at, " %s", operator_table[g->nodes[s->nodes[i]].op].name);
}

struct executor_pass cost_of_step(const struct plan *p, const struct plan_step *s)
{
    const struct graph *g = p->g;
    const struct graph_node *n = &g->nodes[s->node];
    struct executor_pass pass = { 0 };
    if (s->chain) {
        name_chain(g, s, &pass);
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
    pass.operations = body_operations(p, n);
    for (uint32_t i = 0; i < s->count || i < 1; i++) {
        const struct graph_node *part = &g->nodes[s->count ? s->nodes[i] : s->node];
        pass.operations += operations_of(g, part);
        for (uint32_t k = i > 0 ? 1 : 0; k < part->input_count; k++)
            operand_counted(p, graph_inputs(g, part)[k], &pass);
    }
    for (unsigned k = 0; p->extra[s->node] && k < STEP_EXTRA; k++)
        if (p->extra[s->node][k] != GRAPH_NONE)
            pass.bytes += bytes_of(g, p->extra[s->node][k]);
    if (plan_is_product(n))
        name_products(g, s, &pass);
    else
        snprintf(pass.name, sizeof pass.name, "%s", operator_table[n->op].name);
    return pass;
}
