#include "native/graph/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* One pass: src is copied to dst node by node; map[i] is where node i went. */
struct pass {
    const struct graph *src;
    struct graph *dst;
    uint32_t *map;
    uint32_t *uses; /* consumers of each node of src, outputs counted */
    struct error *err;
};

static uint32_t *uses_of(const struct graph *g)
{
    uint32_t *uses = calloc(g->node_count + 1, sizeof *uses);
    if (!uses)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
            uses[graph_inputs(g, &g->nodes[i])[k]]++;
    for (uint32_t i = 0; i < g->output_count; i++)
        uses[g->outputs[i].node]++;
    return uses;
}

static bool outputs_copied(struct pass *p)
{
    for (uint32_t i = 0; i < p->src->output_count; i++)
        if (!graph_output(p->dst, p->src->names[p->src->outputs[i].name], p->map[p->src->outputs[i].node], p->err))
            return false;
    return true;
}

static bool node_copied(struct pass *p, uint32_t i)
{
    const struct graph_node *n = &p->src->nodes[i];
    uint32_t few[8] = { 0 }, *inputs = few; /* gcc 12 at -O1 does not see that all that is read is set */
    if (n->input_count > 8 && !(inputs = malloc(n->input_count * sizeof *inputs)))
        abort();
    for (uint32_t k = 0; k < n->input_count; k++)
        inputs[k] = p->map[graph_inputs(p->src, n)[k]];
    const bool ok = graph_copy_node(p->dst, p->src, i, inputs, &p->map[i], p->err);
    if (inputs != few)
        free(inputs);
    return ok;
}

/* ---- dead and equal nodes ---- */

static uint8_t *needed_nodes(const struct graph *g)
{
    uint8_t *needed = calloc(g->node_count + 1, 1);
    if (!needed)
        abort();
    for (uint32_t i = 0; i < g->output_count; i++)
        needed[g->outputs[i].node] = 1;
    for (uint32_t i = g->node_count; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        if (n->op == OPERATOR_INPUT || n->op == OPERATOR_PARAMETER)
            needed[i] = 1;
        for (uint32_t k = 0; needed[i] && k < n->input_count; k++)
            needed[graph_inputs(g, n)[k]] = 1;
    }
    return needed;
}

static uint64_t mixed(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t node_hash(const struct pass *p, const struct graph_node *n)
{
    uint64_t h = mixed(n->op, n->name), bits;
    h = mixed(h, operator_table[n->op].flags & OPERATOR_TYPED ? n->type : 0);
    for (uint32_t k = 0; k < n->input_count; k++)
        h = mixed(h, p->map[graph_inputs(p->src, n)[k]]);
    for (uint32_t k = 0; k < n->axes_count; k++)
        h = mixed(mixed(h, graph_axes(p->src, n)[k].name), graph_axes(p->src, n)[k].size);
    for (uint32_t k = 0; k < n->numbers_count; k++) {
        memcpy(&bits, &graph_numbers(p->src, n)[k], sizeof bits);
        h = mixed(h, bits);
    }
    for (uint32_t k = 0; k < n->integers_count; k++)
        h = mixed(h, (uint64_t)graph_integers(p->src, n)[k]);
    return h;
}

static bool node_equal(const struct pass *p, const struct graph_node *a, const struct graph_node *b)
{
    const struct graph *g = p->src;
    if (a->op != b->op || a->type != b->type || a->name != b->name || a->input_count != b->input_count ||
        a->axes_count != b->axes_count || a->numbers_count != b->numbers_count || a->integers_count != b->integers_count)
        return false;
    for (uint32_t k = 0; k < a->input_count; k++)
        if (p->map[graph_inputs(g, a)[k]] != p->map[graph_inputs(g, b)[k]])
            return false;
    for (uint32_t k = 0; k < a->axes_count; k++)
        if (graph_axes(g, a)[k].name != graph_axes(g, b)[k].name || graph_axes(g, a)[k].size != graph_axes(g, b)[k].size)
            return false;
    return (a->numbers_count == 0 || memcmp(graph_numbers(g, a), graph_numbers(g, b), a->numbers_count * sizeof(double)) == 0) &&
           (a->integers_count == 0 ||
            memcmp(graph_integers(g, a), graph_integers(g, b), a->integers_count * sizeof(int64_t)) == 0);
}

/* The slot of node i in a table of source nodes (+1): empty, or that of an equal node. */
static uint32_t *equal_slot(const struct pass *p, uint32_t *slots, uint32_t mask, uint32_t i)
{
    const struct graph_node *n = &p->src->nodes[i];
    for (uint32_t at = (uint32_t)node_hash(p, n) & mask;; at = (at + 1) & mask)
        if (slots[at] == 0 || node_equal(p, n, &p->src->nodes[slots[at] - 1]))
            return &slots[at];
}

static bool compact_pass(struct pass *p)
{
    uint32_t room = 64;
    while (room < 2 * p->src->node_count)
        room *= 2;
    uint8_t *needed = needed_nodes(p->src);
    uint32_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        abort();
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->src->node_count; i++) {
        p->map[i] = GRAPH_NONE;
        if (!needed[i])
            continue;
        uint32_t *slot = equal_slot(p, slots, room - 1, i);
        if (*slot) {
            p->map[i] = p->map[*slot - 1];
        } else {
            ok = node_copied(p, i);
            *slot = i + 1;
        }
    }
    free(slots);
    free(needed);
    return ok && outputs_copied(p);
}

/* ---- the rules ---- */

static bool same_order(const struct graph *g, uint32_t x, uint32_t y)
{
    const struct graph_node *a = &g->nodes[x], *b = &g->nodes[y];
    if (a->rank != b->rank || a->type != b->type)
        return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->axis[i].name != b->axis[i].name)
            return false;
    return true;
}

/* Node i is of that operator, f32, and i's only consumer is the one that asks. */
static bool only(const struct pass *p, uint32_t i, enum operator_code op)
{
    return p->src->nodes[i].op == op && p->src->nodes[i].type == TENSOR_F32 && p->uses[i] == 1;
}

static const char *note_of(const struct graph *g, uint32_t i)
{
    return g->nodes[i].note == GRAPH_NONE ? NULL : g->names[g->nodes[i].note];
}

/* Adds a product of `like`'s axes over the three given nodes of dst. */
static bool fused(struct pass *p, enum operator_code op, const struct graph_node *like, const uint32_t inputs[3],
                  const double *scale, const char *note, uint32_t *node)
{
    struct graph_word words[GRAPH_AXES];
    for (uint32_t k = 0; k < like->axes_count; k++)
        words[k] = (struct graph_word){ p->src->names[graph_axes(p->src, like)[k].name], 0 };
    return graph_add(p->dst,
                     &(struct graph_request){ .op = op,
                                              .inputs = inputs,
                                              .input_count = 3,
                                              .axes = words,
                                              .axes_count = like->axes_count,
                                              .numbers = scale,
                                              .numbers_count = scale ? 1 : 0,
                                              .note = note },
                     node, p->err);
}

/* base + dot(z, b) * s, the product being operand `side`. *done tells whether it fitted. */
static bool rule_low_rank(struct pass *p, uint32_t i, unsigned side, bool *done)
{
    const struct graph *g = p->src;
    const uint32_t *add = graph_inputs(g, &g->nodes[i]), product = add[side];
    if (!only(p, product, OPERATOR_MUL) || !same_order(g, i, product) || g->nodes[add[1 - side]].type != TENSOR_F32 ||
        g->nodes[add[1 - side]].rank != g->nodes[i].rank)
        return true;
    const uint32_t *mul = graph_inputs(g, &g->nodes[product]);
    for (unsigned k = 0; k < 2; k++) {
        const struct graph_node *d = &g->nodes[mul[k]], *s = &g->nodes[mul[1 - k]];
        if (!only(p, mul[k], OPERATOR_DOT) || s->op != OPERATOR_CONSTANT || d->axes_count == 0)
            continue;
        const uint32_t inputs[3] = { p->map[add[1 - side]], p->map[graph_inputs(g, d)[0]], p->map[graph_inputs(g, d)[1]] };
        *done = true;
        return fused(p, OPERATOR_LOW_RANK, d, inputs, graph_numbers(g, s), note_of(g, i), &p->map[i]);
    }
    return true;
}

/* c + low_rank(dot(x, w), z, b; s) */
static bool rule_base_onto(struct pass *p, uint32_t i, unsigned side, bool *done)
{
    const struct graph *g = p->src;
    const uint32_t *add = graph_inputs(g, &g->nodes[i]), product = add[side], c = add[1 - side];
    if (!only(p, product, OPERATOR_LOW_RANK) || !same_order(g, i, product) || g->nodes[c].rank != g->nodes[i].rank ||
        g->nodes[c].type != TENSOR_F32)
        return true;
    const struct graph_node *l = &g->nodes[product];
    const uint32_t *in = graph_inputs(g, l);
    if (!only(p, in[0], OPERATOR_DOT) || !same_order(g, in[0], i))
        return true;
    const struct graph_node *d = &g->nodes[in[0]];
    uint32_t onto;
    const uint32_t first[3] = { p->map[c], p->map[graph_inputs(g, d)[0]], p->map[graph_inputs(g, d)[1]] };
    if (!fused(p, OPERATOR_DOT_ONTO, d, first, NULL, note_of(g, i), &onto))
        return false;
    const uint32_t second[3] = { onto, p->map[in[1]], p->map[in[2]] };
    *done = true;
    return fused(p, OPERATOR_LOW_RANK, l, second, graph_numbers(g, l), note_of(g, i), &p->map[i]);
}

/* c + dot(x, y) */
static bool rule_dot_onto(struct pass *p, uint32_t i, unsigned side, bool *done)
{
    const struct graph *g = p->src;
    const uint32_t *add = graph_inputs(g, &g->nodes[i]), product = add[side], c = add[1 - side];
    if (!only(p, product, OPERATOR_DOT) || !same_order(g, i, product) || g->nodes[c].rank != g->nodes[i].rank ||
        g->nodes[c].type != TENSOR_F32)
        return true;
    const struct graph_node *d = &g->nodes[product];
    const uint32_t inputs[3] = { p->map[c], p->map[graph_inputs(g, d)[0]], p->map[graph_inputs(g, d)[1]] };
    *done = true;
    return fused(p, OPERATOR_DOT_ONTO, d, inputs, NULL, note_of(g, i), &p->map[i]);
}

typedef bool rewrite_rule(struct pass *p, uint32_t i, unsigned side, bool *done);
static rewrite_rule *const rules[] = { rule_low_rank, rule_base_onto, rule_dot_onto };
enum { RULES = sizeof rules / sizeof *rules };

static bool rule_pass(struct pass *p, rewrite_rule *rule)
{
    for (uint32_t i = 0; i < p->src->node_count; i++) {
        bool done = false;
        if (p->src->nodes[i].op == OPERATOR_ADD && p->src->nodes[i].type == TENSOR_F32)
            for (unsigned side = 2; side-- > 0 && !done;)
                if (!rule(p, i, side, &done))
                    return false;
        if (!done && !node_copied(p, i))
            return false;
    }
    return outputs_copied(p);
}

/* Runs one pass (rule NULL: compacting) from src; the new graph, or NULL. `map` has room for src's nodes. */
static struct graph *passed(const struct graph *src, rewrite_rule *rule, uint32_t *map, struct error *err)
{
    struct pass p = { .src = src, .dst = graph_new(&src->limits), .map = map, .err = err };
    p.uses = uses_of(src);
    const bool ok = rule ? rule_pass(&p, rule) : compact_pass(&p);
    free(p.uses);
    if (!ok) {
        graph_free(p.dst);
        return NULL;
    }
    return p.dst;
}

struct graph *graph_compact(const struct graph *g, uint32_t *nodes, struct error *err)
{
    uint32_t *map = malloc((g->node_count + 1) * sizeof *map);
    if (!map)
        abort();
    struct graph *out = passed(g, NULL, map, err);
    if (out && nodes)
        memcpy(nodes, map, g->node_count * sizeof *map);
    free(map);
    return out;
}

struct graph *graph_rewrite(const struct graph *g, uint32_t *nodes, struct error *err)
{
    uint32_t *all = malloc((g->node_count + 1) * sizeof *all);
    if (!all)
        abort();
    struct graph *at = graph_compact(g, all, err);
    for (unsigned r = 0; at && r <= RULES; r++) {
        uint32_t *map = malloc((at->node_count + 1) * sizeof *map);
        if (!map)
            abort();
        struct graph *next = passed(at, r < RULES ? rules[r] : NULL, map, err);
        for (uint32_t i = 0; next && i < g->node_count; i++)
            all[i] = all[i] == GRAPH_NONE ? GRAPH_NONE : map[all[i]];
        free(map);
        graph_free(at);
        at = next;
    }
    if (at && nodes)
        memcpy(nodes, all, g->node_count * sizeof *all);
    free(all);
    return at;
}
