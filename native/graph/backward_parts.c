#include "native/graph/backward_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- building nodes ---- */

uint32_t backward_add(struct backward *b, const struct graph_request *r)
{
    uint32_t node = GRAPH_NONE;
    for (size_t i = 0; i < r->input_count; i++)
        if (r->inputs[i] == GRAPH_NONE)
            return GRAPH_NONE;
    if (b->failed || !graph_add(b->g, r, &node, b->err)) {
        b->failed = true;
        return GRAPH_NONE;
    }
    return node;
}

uint32_t backward_unary(struct backward *b, enum operator_code op, uint32_t x)
{
    return backward_add(b, &(struct graph_request){ .op = op, .inputs = &x, .input_count = 1 });
}

uint32_t backward_binary(struct backward *b, enum operator_code op, uint32_t x, uint32_t y)
{
    return backward_add(b, &(struct graph_request){ .op = op, .inputs = (uint32_t[]){ x, y }, .input_count = 2 });
}

uint32_t backward_where(struct backward *b, uint32_t mask, uint32_t yes, uint32_t no)
{
    return backward_add(
        b, &(struct graph_request){ .op = OPERATOR_WHERE, .inputs = (uint32_t[]){ mask, yes, no }, .input_count = 3 });
}

uint32_t backward_constant(struct backward *b, uint32_t like, double value)
{
    if (b->failed || like == GRAPH_NONE)
        return GRAPH_NONE;
    return backward_add(b, &(struct graph_request){ .op = OPERATOR_CONSTANT,
                                                    .type = (enum tensor_type)b->g->nodes[like].type,
                                                    .numbers = &value,
                                                    .numbers_count = 1 });
}

uint32_t backward_scaled(struct backward *b, uint32_t x, double factor)
{
    return backward_binary(b, OPERATOR_MUL, x, backward_constant(b, x, factor));
}

/* The axes of node n as words; names stay where they are when the graph grows. */
size_t backward_words_of(const struct graph *g, const struct graph_node *n, struct graph_word *words)
{
    for (unsigned i = 0; i < n->rank; i++)
        words[i] = (struct graph_word){ g->names[n->axis[i].name], n->axis[i].size };
    return n->rank;
}

uint32_t backward_over(struct backward *b, enum operator_code op, uint32_t x, const struct graph_word *axes, size_t count)
{
    return backward_add(b,
                        &(struct graph_request){ .op = op, .inputs = &x, .input_count = 1, .axes = axes, .axes_count = count });
}

/* x in the memory order of `like`, whose axes it has. */
static uint32_t ordered(struct backward *b, uint32_t x, uint32_t like)
{
    struct graph_word words[GRAPH_AXES];
    bool same = true;
    if (x == GRAPH_NONE)
        return GRAPH_NONE;
    const struct graph_node *n = &b->g->nodes[like], *m = &b->g->nodes[x];
    for (unsigned i = 0; i < n->rank; i++)
        same = same && m->axis[i].name == n->axis[i].name;
    return same ? x : backward_over(b, OPERATOR_TRANSPOSE, x, words, backward_words_of(b->g, n, words));
}

uint32_t backward_spread(struct backward *b, uint32_t x, uint32_t like)
{
    struct graph_word words[GRAPH_AXES];
    if (x == GRAPH_NONE)
        return GRAPH_NONE;
    if (b->g->nodes[x].rank < b->g->nodes[like].rank)
        x = backward_over(b, OPERATOR_EXPAND, x, words, backward_words_of(b->g, &b->g->nodes[like], words));
    return ordered(b, x, like);
}

/* x summed over the axes that `like` has not. */
static uint32_t shrunk(struct backward *b, uint32_t x, uint32_t like)
{
    struct graph_word words[GRAPH_AXES];
    size_t count = 0;
    if (x == GRAPH_NONE)
        return GRAPH_NONE;
    const struct graph_node *n = &b->g->nodes[x];
    for (unsigned i = 0; i < n->rank; i++)
        if (graph_axis_find(&b->g->nodes[like], n->axis[i].name) < 0)
            words[count++] = (struct graph_word){ b->g->names[n->axis[i].name], 0 };
    return count ? backward_over(b, OPERATOR_SUM, x, words, count) : x;
}

void backward_give(struct backward *b, uint32_t operand, uint32_t part)
{
    if (b->failed || part == GRAPH_NONE)
        return;
    part = ordered(b, shrunk(b, part, operand), operand);
    if (part != GRAPH_NONE && b->g->nodes[part].type != b->g->nodes[operand].type)
        part = backward_add(
            b, &(struct graph_request){
                   .op = OPERATOR_CAST, .inputs = &part, .input_count = 1, .type = (enum tensor_type)b->g->nodes[operand].type });
    if (part == GRAPH_NONE)
        return;
    if (b->part_count == b->part_room) {
        b->part_room = b->part_room ? 2 * b->part_room : 256;
        b->parts = realloc(b->parts, b->part_room * sizeof *b->parts);
        if (!b->parts)
            abort();
    }
    b->parts[b->part_count++] = (struct backward_part){ part, b->first[operand] };
    b->first[operand] = (uint32_t)b->part_count;
}

/* ---- one operator at work ---- */

struct backward_site backward_rule_of(struct backward *b, uint32_t id, uint32_t gradient)
{
    struct backward_site r = { .n = b->g->nodes[id], .id = id, .g = gradient };
    for (unsigned k = 0; k < 4; k++) {
        r.in[k] = k < r.n.input_count ? graph_inputs(b->g, &r.n)[k] : GRAPH_NONE;
        r.need[k] = k < r.n.input_count && b->live[r.in[k]];
    }
    r.shape = r.in[0];
    for (unsigned k = 0; k < r.n.axes_count; k++)
        r.axes[k] = (struct graph_word){ b->g->names[graph_axes(b->g, &r.n)[k].name], graph_axes(b->g, &r.n)[k].size };
    for (unsigned k = 0; k < r.n.numbers_count && k < 8; k++)
        r.numbers[k] = graph_numbers(b->g, &r.n)[k];
    for (unsigned k = 0; k < r.n.integers_count && k < 8; k++)
        r.integers[k] = graph_integers(b->g, &r.n)[k];
    return r;
}

/* The node again with other operands (and attributes as they stand in the rule). */
uint32_t backward_again(struct backward *b, const struct backward_site *r, enum operator_code op, const uint32_t *inputs,
                        size_t count)
{
    return backward_add(b, &(struct graph_request){ .op = op,
                                                    .inputs = inputs,
                                                    .input_count = count,
                                                    .axes = r->axes,
                                                    .axes_count = r->n.axes_count,
                                                    .numbers = r->numbers,
                                                    .numbers_count = r->n.numbers_count,
                                                    .integers = r->integers,
                                                    .integers_count = r->n.integers_count,
                                                    .name = r->n.name == GRAPH_NONE ? NULL : b->g->names[r->n.name] });
}

void backward_refused(struct backward *b, const struct backward_site *r, const char *hint, const char *what)
{
    b->failed = true;
    error_set(b->err, ERROR_UNSUPPORTED, hint, "%s: %s", operator_table[r->n.op].name, what);
    if (r->n.note != GRAPH_NONE)
        error_at(b->err, "%s", b->g->names[r->n.note]);
}
