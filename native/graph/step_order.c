/* step_order.c - order along one axis, and the one loop in the graph. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/order.h"
#include "native/numerics/f32.h"

/* Operand 0 with its axis first (short axes in f32: sorted across columns) or last (rows). */
struct layout {
    struct graph_axis order[GRAPH_AXES], rest[GRAPH_AXES];
    unsigned rank;
    uint64_t n, width;
    bool columns;
    enum tensor_type type;
    const void *x;
};

static struct layout layout_of(struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const struct graph_axis *axis = graph_axes(w->g, w->n);
    struct layout l = { .rank = x->rank, .n = axis->size, .width = x->values / axis->size, .type = (enum tensor_type)x->type };
    const unsigned kept = axes_without(x, axis, 1, l.rest);
    l.columns = l.type == TENSOR_F32 && l.n <= ORDER_MAX;
    memcpy(l.order + (l.columns ? 1 : 0), l.rest, kept * sizeof *l.rest);
    l.order[l.columns ? 0 : kept] = *axis;
    l.x = step_operand(w, 0, l.order, l.rank, l.type);
    return l;
}

struct keyed {
    double value;
    int32_t at;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    const int order = order_doubles(x->value, y->value);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* One row of doubles or floats: its elements in ascending order of value, equal ones by position; `turned`: of minus the value. */
static void row_sorted(const struct layout *l, uint64_t row, bool turned, struct keyed *out)
{
    for (uint64_t i = 0; i < l->n; i++) {
        const double v =
            l->type == TENSOR_F64 ? ((const double *)l->x)[row * l->n + i] : (double)((const float *)l->x)[row * l->n + i];
        out[i] = (struct keyed){ turned ? -v : v, (int32_t)i };
    }
    qsort(out, l->n, sizeof *out, compare_keyed);
}

static void put_value(const struct layout *l, void *out, uint64_t at, double value)
{
    if (l->type == TENSOR_F64)
        ((double *)out)[at] = value;
    else
        ((float *)out)[at] = (float)value;
}

bool step_sort(struct work *w)
{
    const struct layout l = layout_of(w);
    const struct result r = step_result(w, w->id, l.order, l.rank);
    struct keyed *row = step_take(w, l.n * sizeof *row);
    if (w->measure)
        return true;
    if (l.columns)
        order_sort(w->pool, l.n, l.width, l.x, r.at);
    for (uint64_t k = 0; !l.columns && k < l.width; k++) {
        row_sorted(&l, k, false, row);
        for (uint64_t i = 0; i < l.n; i++)
            put_value(&l, r.at, k * l.n + i, row[i].value);
    }
    step_settle(w, &r);
    return true;
}

bool step_rank(struct work *w)
{
    const struct layout l = layout_of(w);
    const struct result r = step_result(w, w->id, l.order, l.rank);
    struct keyed *row = step_take(w, l.n * sizeof *row);
    if (w->measure)
        return true;
    if (l.columns)
        order_rank(w->pool, l.n, l.width, l.x, r.at);
    for (uint64_t k = 0; !l.columns && k < l.width; k++) {
        row_sorted(&l, k, false, row);
        for (uint64_t i = 0; i < l.n; i++)
            ((int32_t *)r.at)[k * l.n + (uint64_t)row[i].at] = (int32_t)i;
    }
    step_settle(w, &r);
    return true;
}

bool step_topk(struct work *w)
{
    struct layout l = layout_of(w);
    const uint64_t k = graph_axes(w->g, w->n)[1].size;
    struct graph_axis order[GRAPH_AXES];
    memcpy(order, l.order, sizeof order);
    order[l.columns ? 0 : l.rank - 1] = graph_axes(w->g, w->n)[1];
    const struct result value = step_result(w, w->id, order, l.rank), index = step_result(w, step_extra(w, 1), order, l.rank);
    struct keyed *row = step_take(w, l.n * sizeof *row);
    if (w->measure)
        return true;
    if (l.columns)
        order_topk(w->pool, l.n, l.width, k, l.x, value.at, index.at);
    for (uint64_t c = 0; !l.columns && c < l.width; c++) {
        row_sorted(&l, c, true, row);
        for (uint64_t i = 0; i < k; i++) {
            put_value(&l, value.at, c * k + i, -row[i].value);
            ((int32_t *)index.at)[c * k + i] = row[i].at;
        }
    }
    step_settle(w, &value);
    step_settle(w, &index);
    return true;
}

/* ---- cumsum: y[t] = fma(decay[t], y[t-1], x[t]), from y = 0; reverse: t descending ---- */

struct summing {
    enum tensor_type type;
    uint64_t n;
    const void *x, *decay; /* decay NULL: the number */
    double number;
    bool reverse;
    void *out;
};

static void sum_share(void *context, size_t row)
{
    const struct summing *s = context;
    double wide = 0;
    float narrow = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const uint64_t at = row * s->n + (s->reverse ? s->n - 1 - i : i);
        if (s->type == TENSOR_F64) {
            const double d = s->decay ? ((const double *)s->decay)[at] : s->number;
            wide = __builtin_fma(d, wide, ((const double *)s->x)[at]);
            ((double *)s->out)[at] = wide;
        } else {
            const float d = s->decay ? ((const float *)s->decay)[at] : (float)s->number;
            narrow = f32_fma(d, narrow, ((const float *)s->x)[at]);
            ((float *)s->out)[at] = narrow;
        }
    }
}

bool step_cumsum(struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const struct graph_axis *axis = graph_axes(w->g, w->n);
    struct graph_axis order[GRAPH_AXES];
    const unsigned kept = axes_without(x, axis, 1, order);
    order[kept] = *axis;
    struct summing s = { .type = (enum tensor_type)x->type,
                         .n = axis->size,
                         .number = graph_numbers(w->g, w->n)[0],
                         .reverse = graph_integers(w->g, w->n)[0] };
    s.x = step_operand(w, 0, order, x->rank, s.type);
    s.decay = w->n->input_count == 2 ? step_operand(w, 1, order, x->rank, s.type) : NULL;
    const struct result r = step_result(w, w->id, order, x->rank);
    if (w->measure)
        return true;
    s.out = r.at;
    pool_run(w->pool, x->values / s.n, sum_share, &s);
    step_settle(w, &r);
    return true;
}
