#include "native/graph/place.h"

#include <stdlib.h>
#include <string.h>

static void own(const struct graph_node *n, uint32_t id, struct place *p)
{
    ptrdiff_t step = 1;
    *p = (struct place){ .base = id };
    for (unsigned i = n->rank; i-- > 0;) {
        p->stride[i] = step;
        step *= (ptrdiff_t)n->axis[i].size;
    }
}

bool place_contiguous(const struct graph_node *n, const struct place *p)
{
    ptrdiff_t step = 1;
    for (unsigned i = n->rank; i-- > 0;) {
        if (n->axis[i].size != 1 && p->stride[i] != step)
            return false;
        step *= (ptrdiff_t)n->axis[i].size;
    }
    return true;
}

/* The stride of each axis of n by name; axes that x has not repeat. */
static void by_name(const struct graph_node *n, const struct graph_node *x, const struct place *px, struct place *p)
{
    for (unsigned i = 0; i < n->rank; i++) {
        const int at = graph_axis_find(x, n->axis[i].name);
        p->stride[i] = at < 0 ? 0 : px->stride[at];
    }
}

static void view_split(const struct graph *g, const struct graph_node *n, const struct graph_node *x, const struct place *px,
                       struct place *p)
{
    const struct graph_axis *axes = graph_axes(g, n);
    ptrdiff_t step = px->stride[graph_axis_find(x, axes[0].name)];
    by_name(n, x, px, p);
    for (unsigned k = n->axes_count; k-- > 1;) {
        p->stride[graph_axis_find(n, axes[k].name)] = step;
        step *= (ptrdiff_t)axes[k].size;
    }
}

/* False when the merged axes do not lie behind each other. */
static bool view_merge(const struct graph *g, const struct graph_node *n, const struct graph_node *x, const struct place *px,
                       struct place *p)
{
    const struct graph_axis *axes = graph_axes(g, n);
    ptrdiff_t first = 0, step = 0;
    for (unsigned k = n->axes_count; k-- > 1;) {
        if (axes[k].size == 1)
            continue;
        const ptrdiff_t stride = px->stride[graph_axis_find(x, axes[k].name)];
        if (first == 0)
            first = stride;
        else if (stride != step)
            return false;
        if (stride == 0)
            return false;
        step = stride * (ptrdiff_t)axes[k].size;
    }
    by_name(n, x, px, p);
    p->stride[graph_axis_find(n, axes[0].name)] = first;
    return true;
}

/* The place of a view; false when the node needs memory of its own. */
static bool view(const struct graph *g, const struct graph_node *n, const struct place *all, struct place *p)
{
    if (n->input_count != 1)
        return false;
    const uint32_t from = graph_inputs(g, n)[0];
    const struct graph_node *x = &g->nodes[from];
    const struct place *px = &all[from];
    p->base = px->base;
    p->offset = px->offset;
    switch (n->op) {
    case OPERATOR_DETACH:
    case OPERATOR_RENAME:
        memcpy(p->stride, px->stride, sizeof p->stride);
        return true;
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
        by_name(n, x, px, p);
        return true;
    case OPERATOR_SPLIT:
        view_split(g, n, x, px, p);
        return true;
    case OPERATOR_MERGE:
        return view_merge(g, n, x, px, p);
    case OPERATOR_TRIM:
    case OPERATOR_AT:
        by_name(n, x, px, p);
        p->offset += (ptrdiff_t)graph_integers(g, n)[0] * px->stride[graph_axis_find(x, graph_axes(g, n)[0].name)];
        return true;
    default:
        return false;
    }
}

struct place *place_all(const struct graph *g)
{
    struct place *all = calloc(g->node_count + 1, sizeof *all);
    if (!all)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++)
        if (!view(g, &g->nodes[i], all, &all[i]))
            own(&g->nodes[i], i, &all[i]);
    return all;
}

void place_fill(const struct graph *g, uint32_t node, void *to)
{
    const struct graph_node *n = &g->nodes[node];
    for (uint64_t k = 0; k < n->values; k++) {
        const double v = n->op == OPERATOR_IOTA ? (double)k : graph_numbers(g, n)[k];
        if (n->type == TENSOR_F64)
            ((double *)to)[k] = v;
        else if (n->type == TENSOR_F32)
            ((float *)to)[k] = (float)v;
        else
            ((int32_t *)to)[k] = (int32_t)v;
    }
}

/* ---- copies ---- */

enum { COPY_SHARE = 16384 };

struct copy {
    struct walk walk;
    enum tensor_type from_type, to_type;
    const char *from;
    char *to;
    uint64_t rows, row; /* the last axis is a row */
    uint64_t rows_a_task;
};

/* Drops axes of size 1 and joins those that both sides step through as one. */
static void walk_joined(struct walk *w)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < w->rank; i++) {
        if (w->size[i] == 1)
            continue;
        const bool join = rank > 0 && w->from[rank - 1] == w->from[i] * (ptrdiff_t)w->size[i] &&
                          w->to[rank - 1] == w->to[i] * (ptrdiff_t)w->size[i];
        if (!join)
            rank++;
        w->size[rank - 1] = join ? w->size[rank - 1] * w->size[i] : w->size[i];
        w->from[rank - 1] = w->from[i];
        w->to[rank - 1] = w->to[i];
    }
    if (rank == 0) {
        w->size[0] = 1;
        w->from[0] = w->to[0] = 1;
        rank = 1;
    }
    w->rank = rank;
}

static void copy_row(const struct copy *c, ptrdiff_t from, ptrdiff_t to, uint64_t n)
{
    const ptrdiff_t a = c->walk.from[c->walk.rank - 1], b = c->walk.to[c->walk.rank - 1];
    if (c->from_type != c->to_type) {
        const float *x = (const float *)c->from + from;
        double *y = (double *)c->to + to;
        for (uint64_t i = 0; i < n; i++)
            y[(ptrdiff_t)i * b] = x[(ptrdiff_t)i * a];
    } else if (c->to_type == TENSOR_F64) {
        const uint64_t *x = (const uint64_t *)c->from + from;
        uint64_t *y = (uint64_t *)c->to + to;
        for (uint64_t i = 0; i < n; i++)
            y[(ptrdiff_t)i * b] = x[(ptrdiff_t)i * a];
    } else {
        const uint32_t *x = (const uint32_t *)c->from + from;
        uint32_t *y = (uint32_t *)c->to + to;
        if (a == 1 && b == 1)
            memcpy(y, x, n * 4);
        else
            for (uint64_t i = 0; i < n; i++)
                y[(ptrdiff_t)i * b] = x[(ptrdiff_t)i * a];
    }
}

static void copy_share(void *context, size_t task)
{
    const struct copy *c = context;
    const uint64_t end = (task + 1) * c->rows_a_task < c->rows ? (task + 1) * c->rows_a_task : c->rows;
    for (uint64_t row = task * c->rows_a_task; row < end; row++) {
        ptrdiff_t from = 0, to = 0;
        uint64_t rest = row;
        for (unsigned i = c->walk.rank - 1; i-- > 0;) {
            const ptrdiff_t at = (ptrdiff_t)(rest % c->walk.size[i]);
            rest /= c->walk.size[i];
            from += at * c->walk.from[i];
            to += at * c->walk.to[i];
        }
        copy_row(c, from, to, c->row);
    }
}

void walk_copy(struct pool *pool, struct walk walk, enum tensor_type from_type, const void *from, enum tensor_type to_type,
               void *to)
{
    walk_joined(&walk);
    struct copy c = { .walk = walk, .from_type = from_type, .to_type = to_type, .from = from, .to = to, .rows = 1 };
    for (unsigned i = 0; i + 1 < walk.rank; i++)
        c.rows *= walk.size[i];
    c.row = walk.size[walk.rank - 1];
    c.rows_a_task = c.row >= COPY_SHARE ? 1 : COPY_SHARE / c.row;
    pool_run(pool, (c.rows + c.rows_a_task - 1) / c.rows_a_task, copy_share, &c);
}
