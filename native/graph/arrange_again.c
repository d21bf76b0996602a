/* arrange_again.c - see arrange.h. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/arrange.h"

enum {
    GAP = 200,       /* nodes between two readings that are far from each other */
    DEEP = 16,       /* of a chain that is computed again, at most */
    LARGE = 1 << 14, /* values of a node that is worth it */
};

struct again {
    const struct graph *g;
    struct graph *to;
    struct error *err;
    uint32_t *map;     /* old node: new one */
    uint32_t *twin;    /* old node: the one computed again, GRAPH_NONE until it is needed */
    uint32_t *later;   /* old node: readings from this node on take the twin; 0: there is none */
    uint32_t *last;    /* last reading */
    uint8_t *depth;    /* of twins that a twin is made from */
    unsigned down;     /* of the search */
    uint32_t products; /* that may still be computed again */
    uint8_t *output;
    uint32_t *from;
    uint32_t from_room;
};

static bool is_view(unsigned op)
{
    return op == OPERATOR_RENAME || op == OPERATOR_SPLIT || op == OPERATOR_MERGE || op == OPERATOR_EXPAND ||
           op == OPERATOR_TRANSPOSE || op == OPERATOR_DETACH;
}

static bool is_product(const struct graph_node *n)
{
    return n->type == TENSOR_F32 &&
           (n->op == OPERATOR_DOT || n->op == OPERATOR_DOT_ONTO || n->op == OPERATOR_LOW_RANK || n->op == OPERATOR_ROPE);
}

static bool may_again(const struct again *a, const struct graph_node *n)
{
    return n->values >= LARGE && (operator_table[n->op].flags & OPERATOR_ELEMENTWISE || n->op == OPERATOR_RMSNORM ||
                                  n->op == OPERATOR_LAYERNORM || is_view(n->op) || (a->products && is_product(n)));
}

static bool is_bound(const struct graph_node *n)
{
    return operator_table[n->op].flags & OPERATOR_SOURCE && n->op != OPERATOR_UNIFORM && n->op != OPERATOR_NORMAL;
}

static bool operands_there(struct again *a, uint32_t i, uint32_t late);

/* Whether node x is there when `late` reads it, or can be computed again for it, which is then noted. */
static bool is_there(struct again *a, uint32_t x, uint32_t late)
{
    const struct graph_node *n = &a->g->nodes[x];
    if (is_bound(n) || n->values < LARGE || a->last[x] + GAP >= late || a->later[x])
        return true; /* a small one can stay */
    /* only products hold what is read nowhere else: the product that an adapter's is added to */
    if (!a->products || a->output[x] || !may_again(a, n) || a->depth[x] == DEEP)
        return false;
    a->depth[x] = DEEP; /* not twice on one way down */
    if (!operands_there(a, x, late))
        return false;
    a->later[x] = late;
    return true;
}

static bool operands_there(struct again *a, uint32_t i, uint32_t late)
{
    const struct graph_node *n = &a->g->nodes[i];
    unsigned depth = 0;
    if (++a->down > DEEP) {
        a->down--;
        return false;
    }
    bool all = true;
    for (uint32_t k = 0; all && k < n->input_count; k++) {
        const uint32_t x = graph_inputs(a->g, n)[k];
        all = is_there(a, x, late);
        if (all && a->later[x])
            depth = a->depth[x] > depth ? a->depth[x] : depth;
    }
    a->down--;
    if (!all || depth + 1 >= DEEP)
        return false;
    a->depth[i] = (uint8_t)(depth + 1);
    if (is_product(n) && a->products > 0)
        a->products--;
    return true;
}

static void twins_chosen(struct again *a, const struct consumers *readers)
{
    for (uint32_t i = 0; i < a->g->node_count; i++) {
        const uint32_t first = readers->first[i], end = readers->first[i + 1];
        a->last[i] = end > first ? readers->at[end - 1] : i;
    }
    for (uint32_t i = 0; i < a->g->node_count; i++) {
        uint32_t before = i, gap = 0, late = 0;
        if (!may_again(a, &a->g->nodes[i]) || a->output[i])
            continue;
        for (uint32_t k = readers->first[i]; k < readers->first[i + 1]; k++) {
            if (readers->at[k] - before > gap) {
                gap = readers->at[k] - before;
                late = readers->at[k];
            }
            before = readers->at[k];
        }
        if (gap >= GAP && operands_there(a, i, late))
            a->later[i] = late;
    }
}

/* A twin is made where it is first read, from the twins of its operands where they have one. */
static void operands_earlier(struct again *a, const struct consumers *readers)
{
    for (uint32_t i = a->g->node_count; i-- > 0;)
        for (uint32_t k = 0; a->later[i] && k < a->g->nodes[i].input_count; k++) {
            const uint32_t x = graph_inputs(a->g, &a->g->nodes[i])[k];
            bool between = a->later[x] > a->later[i];
            for (uint32_t r = readers->first[x]; between && r < readers->first[x + 1]; r++)
                between = readers->at[r] < a->later[i] || readers->at[r] >= a->later[x];
            if (between)
                a->later[x] = a->later[i];
        }
}

static bool copied(struct again *a, uint32_t i, uint32_t reader, uint32_t *node);

/* What stands for node x where `reader` (of the old graph) reads it. */
static bool value_at(struct again *a, uint32_t x, uint32_t reader, uint32_t *node)
{
    if (!a->later[x] || (reader < a->later[x] && a->map[x] != GRAPH_NONE)) {
        *node = a->map[x];
        return true;
    }
    if (a->twin[x] == GRAPH_NONE && !copied(a, x, reader, &a->twin[x]))
        return false;
    *node = a->twin[x];
    return true;
}

/* Node i once more, its operands as `reader` sees them. */
static bool copied(struct again *a, uint32_t i, uint32_t reader, uint32_t *node)
{
    const struct graph_node *n = &a->g->nodes[i];
    uint32_t few[8], *inputs = n->input_count > 8 ? malloc(n->input_count * sizeof *inputs) : few;
    bool ok = true;
    if (!inputs)
        abort();
    for (uint32_t k = 0; ok && k < n->input_count; k++)
        ok = value_at(a, graph_inputs(a->g, n)[k], reader, &inputs[k]);
    ok = ok && graph_copy_node(a->to, a->g, i, inputs, node, a->err);
    if (inputs != few)
        free(inputs);
    if (!ok)
        return false;
    if (*node >= a->from_room) {
        a->from_room = 2 * *node + 64;
        a->from = realloc(a->from, a->from_room * sizeof *a->from);
        if (!a->from)
            abort();
    }
    a->from[*node] = reader == i ? i : GRAPH_NONE;
    return true;
}

static bool all_copied(struct again *a, const struct consumers *readers)
{
    const struct graph *g = a->g;
    bool ok = true;
    for (uint32_t i = 0; ok && i < g->node_count; i++)
        if (!a->later[i] || readers->at[readers->first[i]] < a->later[i])
            ok = copied(a, i, i, &a->map[i]);
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        ok = graph_output(a->to, g->names[g->outputs[i].name], a->map[g->outputs[i].node], a->err);
    return ok;
}

struct graph *arrange_again(const struct graph *g, uint32_t products, uint32_t **from, struct error *err)
{
    const size_t count = g->node_count + 1;
    struct graph_limits limits = g->limits;
    limits.nodes = limits.nodes < UINT32_MAX / 2 ? 2 * limits.nodes : limits.nodes;
    struct consumers readers = consumers_of(g);
    struct again a = { .g = g,
                       .to = graph_new(&limits),
                       .err = err,
                       .products = products,
                       .map = malloc(count * sizeof *a.map),
                       .twin = malloc(count * sizeof *a.twin),
                       .later = calloc(count, sizeof *a.later),
                       .last = calloc(count, sizeof *a.last),
                       .depth = calloc(count, 1),
                       .output = calloc(count, 1) };
    if (!a.map || !a.twin || !a.later || !a.last || !a.depth || !a.output)
        abort();
    memset(a.map, 0xff, count * sizeof *a.map);
    memset(a.twin, 0xff, count * sizeof *a.twin);
    for (uint32_t i = 0; i < g->output_count; i++)
        a.output[g->outputs[i].node] = 1;
    twins_chosen(&a, &readers);
    operands_earlier(&a, &readers);
    const bool ok = all_copied(&a, &readers);
    consumers_free(&readers);
    free(a.map);
    free(a.twin);
    free(a.later);
    free(a.last);
    free(a.depth);
    free(a.output);
    *from = a.from;
    if (ok)
        return a.to;
    graph_free(a.to);
    return NULL;
}
