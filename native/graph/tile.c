#include "native/graph/tile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_fixed(const struct graph_node *n)
{
    return n->op == OPERATOR_CONSTANT || n->op == OPERATOR_TABLE || n->op == OPERATOR_IOTA;
}

bool tile_computed(const struct graph *g, const struct place *places, uint32_t node)
{
    const struct graph_node *n = &g->nodes[node];
    return places[node].base == node && n->op != OPERATOR_INPUT && n->op != OPERATOR_PARAMETER && !is_fixed(n);
}

/* ---- which part of which operand ---- */

/* Whether a part of this axis of the result comes from the same part of the operands that have it. */
static bool separable(const struct graph *g, const struct graph_node *maker, uint32_t axis)
{
    if (!maker) /* a copy */
        return true;
    if (maker->op == OPERATOR_DROPOUT || maker->op == OPERATOR_FACTOR || (operator_table[maker->op].flags & OPERATOR_SOURCE))
        return false; /* draws are numbered over the whole value; a factor mixes everything */
    for (uint32_t i = 0; i < maker->axes_count; i++)
        if (graph_axes(g, maker)[i].name == axis)
            return false;
    return true;
}

static const struct graph_node *maker_of(const struct tile *t)
{
    return t->maker == GRAPH_NONE ? NULL : &t->g->nodes[t->maker];
}

/* The least box around the elements whose axes that are not separable are whole. */
static void box_around(struct tile *t)
{
    const struct graph_node *n = &t->g->nodes[t->node], *maker = maker_of(t);
    uint64_t first = t->first, last = t->first + t->count - 1, below = n->values;
    bool apart = false; /* the first and the last element differ in an axis before */
    for (unsigned i = 0; i < n->rank; i++) {
        below /= n->axis[i].size;
        const uint64_t from = first / below, to = last / below;
        const bool whole = apart || !separable(t->g, maker, n->axis[i].name);
        t->low[i] = whole ? 0 : from;
        t->size[i] = whole ? n->axis[i].size : to - from + 1;
        apart = apart || from != to;
        first %= below;
        last %= below;
    }
}

static void part_of(const struct tile *t, const struct place *places, uint32_t operand, struct tile_part *part)
{
    const struct graph_node *n = &t->g->nodes[t->node], *x = &t->g->nodes[operand];
    const struct place *at = &places[operand];
    ptrdiff_t step = 1;
    *part = (struct tile_part){ .node = operand, .base = at->base, .offset = at->offset, .walk.rank = x->rank, .values = 1 };
    for (unsigned i = x->rank; i-- > 0;) {
        const int k = separable(t->g, maker_of(t), x->axis[i].name) ? graph_axis_find(n, x->axis[i].name) : -1;
        part->walk.size[i] = k < 0 ? x->axis[i].size : t->size[k];
        part->walk.from[i] = at->stride[i];
        part->walk.to[i] = step;
        part->offset += k < 0 ? 0 : (ptrdiff_t)t->low[k] * at->stride[i];
        part->values *= part->walk.size[i];
        step *= (ptrdiff_t)part->walk.size[i];
    }
}

bool tile_new(const struct graph *g, const struct place *places, uint32_t node, uint64_t first, uint64_t count, struct tile *out,
              struct error *err)
{
    *out = (struct tile){ .g = g, .node = node, .maker = node, .first = first, .count = count };
    if (node >= g->node_count)
        return error_set(err, ERROR_RANGE, NULL, "node %u: there are %u", node, g->node_count);
    const struct graph_node *n = &g->nodes[node];
    if (count == 0 || first >= n->values || count > n->values - first)
        return error_set(err, ERROR_RANGE, NULL, "elements %llu to %llu of node %u, which has %llu", (unsigned long long)first,
                         (unsigned long long)(first + count), node, (unsigned long long)n->values);
    if (!tile_computed(g, places, node))
        out->maker = GRAPH_NONE;
    else if (n->op == OPERATOR_RESULT)
        out->maker = graph_inputs(g, n)[0];
    box_around(out);
    const struct graph_node *maker = maker_of(out);
    out->part_count = maker ? maker->input_count : 1;
    out->parts = calloc(out->part_count + 1, sizeof *out->parts);
    if (!out->parts)
        abort();
    for (uint32_t i = 0; i < out->part_count; i++)
        part_of(out, places, maker ? graph_inputs(g, maker)[i] : node, &out->parts[i]);
    return true;
}

void tile_free(struct tile *t)
{
    free(t->parts);
    *t = (struct tile){ 0 };
}

void tile_part_runs(const struct tile_part *part, tile_run see, void *context)
{
    const struct walk *w = &part->walk;
    unsigned rank = w->rank;
    uint64_t run = 1;
    while (rank > 0 && (w->size[rank - 1] == 1 || w->from[rank - 1] == (ptrdiff_t)run || w->from[rank - 1] == 0)) {
        run *= w->from[rank - 1] == 0 ? 1 : w->size[rank - 1];
        rank--;
    }
    uint64_t rows = 1;
    for (unsigned i = 0; i < rank; i++)
        rows *= w->from[i] == 0 ? 1 : w->size[i];
    for (uint64_t row = 0; row < rows; row++) {
        ptrdiff_t at = part->offset;
        uint64_t rest = row;
        for (unsigned i = rank; i-- > 0;) {
            if (w->from[i] == 0)
                continue;
            at += (ptrdiff_t)(rest % w->size[i]) * w->from[i];
            rest /= w->size[i];
        }
        see(context, (uint64_t)at, run);
    }
}

/* ---- computing it ---- */

/* A graph of the operator alone over inputs "0", "1", ... of the parts' shapes, with output "y". */
static struct graph *operator_alone(const struct tile *t, struct error *err)
{
    const struct graph *g = t->g;
    struct graph *alone = graph_new(NULL);
    uint32_t *inputs = calloc(t->part_count + 1, sizeof *inputs), y;
    bool ok = inputs != NULL;
    for (uint32_t i = 0; ok && i < t->part_count; i++) {
        const struct graph_node *x = &g->nodes[t->parts[i].node];
        struct graph_word axes[GRAPH_AXES];
        char name[16];
        for (unsigned k = 0; k < x->rank; k++)
            axes[k] = (struct graph_word){ graph_text(g, x->axis[k].name), t->parts[i].walk.size[k] };
        snprintf(name, sizeof name, "%u", i);
        ok = graph_add(
            alone,
            &(struct graph_request){
                .op = OPERATOR_INPUT, .axes = axes, .axes_count = x->rank, .name = name, .type = (enum tensor_type)x->type },
            &inputs[i], err);
    }
    ok = ok && graph_copy_node(alone, g, t->maker, inputs, &y, err);
    ok = ok && (t->maker == t->node || graph_copy_node(alone, g, t->node, (uint32_t[]){ y }, &y, err));
    ok = ok && graph_output(alone, "y", y, err);
    free(inputs);
    if (ok)
        return alone;
    graph_free(alone);
    return NULL;
}

/* Elements of the box that was computed, into their places among those asked for: runs along the last axis. */
static void box_taken(const struct tile *t, const char *box, char *out)
{
    const struct graph_node *n = &t->g->nodes[t->node];
    const size_t size = type_bytes(n->type);
    const unsigned last = n->rank ? n->rank - 1 : 0;
    const uint64_t row = n->rank ? n->axis[last].size : 1;
    for (uint64_t e = 0, run; e < t->count; e += run) {
        const uint64_t inside = (t->first + e) % row;
        uint64_t rest = (t->first + e) / row, at = n->rank ? inside - t->low[last] : 0, step = n->rank ? t->size[last] : 1;
        for (unsigned i = last; i-- > 0;) {
            at += (rest % n->axis[i].size - t->low[i]) * step;
            rest /= n->axis[i].size;
            step *= t->size[i];
        }
        run = row - inside < t->count - e ? row - inside : t->count - e;
        memcpy(out + e * size, box + at * size, run * size);
    }
}

static bool is_dense(const struct walk *walk)
{
    for (unsigned i = 0; i < walk->rank; i++)
        if (walk->size[i] != 1 && walk->from[i] != walk->to[i])
            return false;
    return true;
}

/* The part's elements, dense: where they lie, or a copy in *owned. */
static const void *part_gathered(const struct tile *t, const struct tile_part *part, const void *const *data, void **owned,
                                 struct error *err)
{
    const struct graph_node *base = &t->g->nodes[part->base];
    const enum tensor_type type = (enum tensor_type)base->type;
    const size_t size = type_bytes(base->type);
    const char *from = data[part->base];
    void *fixed = NULL;
    if (from && is_dense(&part->walk) && ((uintptr_t)from + (uintptr_t)part->offset * size) % size == 0)
        return from + part->offset * (ptrdiff_t)size;
    if (!from && is_fixed(base) && (fixed = malloc(base->values * size + 8))) {
        place_fill(t->g, part->base, fixed);
        from = fixed;
    }
    *owned = from ? malloc(part->values * size + 8) : NULL;
    if (*owned)
        walk_copy(NULL, part->walk, type, from + part->offset * (ptrdiff_t)size, type, *owned);
    else
        error_set(err, from ? ERROR_MEMORY : ERROR_MISSING, NULL, "node %u: no data of node %u", t->node, part->base);
    free(fixed);
    return *owned;
}

/* The box that holds the tile, by the operator alone; owned. NULL with `err`. */
static void *box_computed(const struct tile *t, struct pool *pool, const void *const *parts, const struct executor_random *random,
                          struct error *err)
{
    struct graph *alone = operator_alone(t, err);
    struct executor *ex = alone ? executor_new(alone, &(struct executor_options){ .pool = pool }, err) : NULL;
    void *box = NULL;
    if (ex) {
        const struct graph_node *y = &alone->nodes[alone->outputs[0].node];
        box = malloc(y->values * type_bytes(y->type) + 8);
        if (!box)
            error_set(err, ERROR_MEMORY, NULL, "no memory for a tile");
        else if (!executor_run(ex, parts, &box, random, err)) {
            free(box);
            box = NULL;
        }
    }
    executor_free(ex);
    graph_free(alone);
    return box;
}

bool tile_compute(const struct tile *t, struct pool *pool, const void *const *data, const struct executor_random *random,
                  void *out, struct error *err)
{
    const struct graph_node *maker = maker_of(t);
    const void **parts = calloc(t->part_count + 1, sizeof *parts);
    void **owned = calloc(t->part_count + 1, sizeof *owned), *box = NULL;
    bool ok = parts && owned;
    for (uint32_t i = 0; ok && i < t->part_count; i++)
        ok = (parts[i] = part_gathered(t, &t->parts[i], data, &owned[i], err)) != NULL;
    if (ok && maker)
        ok = (box = box_computed(t, pool, parts, random, err)) != NULL;
    if (ok)
        box_taken(t, maker ? box : parts[0], out);
    for (uint32_t i = 0; owned && i < t->part_count; i++)
        free(owned[i]);
    free(owned);
    free(parts);
    free(box);
    return ok || error_at(err, "%s", maker ? operator_table[maker->op].name : "copy");
}
