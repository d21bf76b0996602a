/* step_reduce.c - reductions and softmax. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/order.h"
#include "native/kernel/reduce.h"
#include "native/kernel/softmax.h"

/* Operand 0 as [outer, n, inner] with the reduced axes in the middle, in the order of its axes. Where they do not lie together it is
 * taken as [kept, reduced]. */
struct lines {
    struct graph_axis order[GRAPH_AXES];
    uint64_t outer, n, inner;
};

static struct lines lines_of(const struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const struct graph_axis *given = graph_axes(w->g, w->n);
    const unsigned count = w->n->axes_count;
    struct lines l = { .outer = 1, .n = axes_product(given, count), .inner = 1 };
    struct graph_axis some[GRAPH_AXES];
    unsigned first = x->rank, last = 0;
    for (unsigned i = 0; i < x->rank; i++)
        for (unsigned k = 0; k < count; k++)
            if (given[k].name == x->axis[i].name) {
                first = i < first ? i : first;
                last = i + 1;
            }
    if (count == 0 || last - first == count) {
        memcpy(l.order, x->axis, sizeof l.order);
        if (count == 0)
            first = last = x->rank;
        l.outer = axes_product(x->axis, first);
        l.inner = axes_product(x->axis + last, x->rank - last);
        return l;
    }
    const unsigned kept = axes_without(x, given, count, l.order);
    const unsigned reduced = axes_with(x, given, count, some);
    memcpy(l.order + kept, some, reduced * sizeof *some);
    l.outer = axes_product(l.order, kept);
    return l;
}

static const void *weight_of(struct work *w, const struct lines *l, enum tensor_type type)
{
    return w->n->input_count == 2 ? step_operand(w, 1, l->order, step_input(w, 0)->rank, type) : NULL;
}

/* ---- binary64: rule 4 with products rounded ---- */

static double lanes_f64(enum operator_code op, uint64_t n, uint64_t step, const double *x, const double *w, double *weight_sum)
{
    double total = 0, weights = 0;
    for (uint64_t start = 0; start < n; start += REDUCE_BLOCK) {
        const uint64_t end = n - start < REDUCE_BLOCK ? n : start + REDUCE_BLOCK;
        double lane[REDUCE_LANES] = { 0 }, seen[REDUCE_LANES] = { 0 };
        for (uint64_t i = start; i < end; i++) {
            const double v = w ? w[i * step] : 1, a = v == 0 ? 0 : x[i * step];
            const double term = op == OPERATOR_NORM ? (w ? v * a * a : a * a) : (w ? v * a : a);
            lane[(i - start) % REDUCE_LANES] += term;
            seen[(i - start) % REDUCE_LANES] += v;
        }
        for (unsigned k = REDUCE_LANES / 2; k > 0; k /= 2)
            for (unsigned j = 0; j < k; j++) {
                lane[j] += lane[j + k];
                seen[j] += seen[j + k];
            }
        total += lane[0];
        weights += seen[0];
    }
    *weight_sum = weights;
    return total;
}

static double extreme_f64(bool greatest, uint64_t n, uint64_t step, const double *x, const double *w)
{
    double best = greatest ? -INFINITY : INFINITY;
    for (uint64_t i = 0; i < n; i++)
        if ((!w || w[i * step] != 0) && (greatest ? x[i * step] > best : x[i * step] < best))
            best = x[i * step];
    return best;
}

bool step_reduce_f64(struct work *w)
{
    const struct lines l = lines_of(w);
    const enum operator_code op = (enum operator_code)w->n->op;
    const double *x = step_operand(w, 0, l.order, step_input(w, 0)->rank, TENSOR_F64), *v = weight_of(w, &l, TENSOR_F64);
    if (w->measure)
        return true;
    double *out = w->data[w->id], weights;
    for (uint64_t o = 0; o < l.outer; o++)
        for (uint64_t i = 0; i < l.inner; i++) {
            const uint64_t at = o * l.n * l.inner + i;
            const double *line = x + at, *weight = v ? v + at : NULL;
            double *y = &out[o * l.inner + i];
            if (op == OPERATOR_MAX || op == OPERATOR_MIN) {
                *y = extreme_f64(op == OPERATOR_MAX, l.n, l.inner, line, weight);
                continue;
            }
            *y = lanes_f64(op, l.n, l.inner, line, weight, &weights);
            if (op == OPERATOR_MEAN)
                *y = weights == 0 ? 0 : *y / weights;
            if (op == OPERATOR_NORM)
                *y = __builtin_sqrt(*y);
        }
    return true;
}

/* ---- f32 ---- */

bool step_reduce(struct work *w)
{
    static const uint8_t ops[OPERATOR_CODES] = {
        [OPERATOR_SUM] = REDUCE_SUM, [OPERATOR_MEAN] = REDUCE_MEAN, [OPERATOR_MAX] = REDUCE_MAX,
        [OPERATOR_MIN] = REDUCE_MIN, [OPERATOR_NORM] = REDUCE_NORM, [OPERATOR_LOGSUMEXP] = REDUCE_LOGSUMEXP,
    };
    if (w->n->type == TENSOR_F64)
        return step_reduce_f64(w);
    const struct lines l = lines_of(w);
    const float *x = step_operand(w, 0, l.order, step_input(w, 0)->rank, TENSOR_F32), *v = weight_of(w, &l, TENSOR_F32);
    if (w->measure)
        return true;
    reduce_run(w->pool, (enum reduce_op)ops[w->n->op], l.outer, l.n, l.inner, x, v, w->data[w->id]);
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    return order_doubles(*(const double *)a, *(const double *)b);
}

/* The median of n values that are copied to `sorted`. */
static double median_of(uint64_t n, uint64_t step, const void *x, const void *w, bool wide, double *sorted)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double v = !w ? 1 : wide ? ((const double *)w)[i * step] : (double)((const float *)w)[i * step];
        if (v != 0)
            sorted[count++] = wide ? ((const double *)x)[i * step] : (double)((const float *)x)[i * step];
    }
    if (count == 0)
        return 0;
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    const double low = sorted[(count - 1) / 2], high = sorted[count / 2];
    if (wide)
        return count % 2 ? low : (low + high) * 0.5;
    return count % 2 ? low : (double)(((float)low + (float)high) * 0.5f);
}

bool step_median(struct work *w)
{
    const struct lines l = lines_of(w);
    const enum tensor_type type = (enum tensor_type)w->n->type;
    const size_t bytes = type_bytes(type);
    const char *x = step_operand(w, 0, l.order, step_input(w, 0)->rank, type), *v = weight_of(w, &l, type);
    double *sorted = step_take(w, l.n * sizeof *sorted);
    if (w->measure)
        return true;
    for (uint64_t o = 0; o < l.outer; o++) {
        const size_t at = o * l.n * l.inner * bytes;
        if (type == TENSOR_F32 && l.n <= ORDER_MAX) {
            order_median(w->pool, l.n, l.inner, (const float *)(x + at), v ? (const float *)(v + at) : NULL,
                         (float *)w->data[w->id] + o * l.inner);
            continue;
        }
        for (uint64_t i = 0; i < l.inner; i++) {
            const double m =
                median_of(l.n, l.inner, x + at + i * bytes, v ? v + at + i * bytes : NULL, type == TENSOR_F64, sorted);
            if (type == TENSOR_F64)
                ((double *)w->data[w->id])[o * l.inner + i] = m;
            else
                ((float *)w->data[w->id])[o * l.inner + i] = (float)m;
        }
    }
    return true;
}

bool step_argmax(struct work *w)
{
    const struct lines l = lines_of(w);
    const enum tensor_type type = (enum tensor_type)step_input(w, 0)->type;
    const void *x = step_operand(w, 0, l.order, step_input(w, 0)->rank, type);
    if (w->measure)
        return true;
    int32_t *out = w->data[w->id];
    if (type == TENSOR_F32) {
        reduce_argmax(w->pool, l.outer, l.n, l.inner, x, out);
        return true;
    }
    for (uint64_t o = 0; o < l.outer * l.inner; o++) {
        const double *line = (const double *)x + o / l.inner * l.n * l.inner + o % l.inner;
        out[o] = 0;
        for (uint64_t i = 1; i < l.n; i++)
            if (line[i * l.inner] > line[(uint64_t)out[o] * l.inner])
                out[o] = (int32_t)i;
    }
    return true;
}

bool step_softmax(struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const struct graph_axis *given = graph_axes(w->g, w->n);
    struct graph_axis order[GRAPH_AXES];
    const unsigned kept = axes_without(x, given, w->n->axes_count, order);
    memcpy(order + kept, given, w->n->axes_count * sizeof *given);
    const uint64_t rows = axes_product(order, kept), n = axes_product(given, w->n->axes_count);
    const float *values = step_operand(w, 0, order, x->rank, TENSOR_F32);
    const float *mask = w->n->input_count == 2 ? step_operand(w, 1, order, x->rank, TENSOR_F32) : NULL;
    const struct result r = step_result(w, w->id, order, x->rank);
    if (w->measure)
        return true;
    if (w->n->op == OPERATOR_SOFTMAX)
        softmax_run(w->pool, rows, n, values, mask, (ptrdiff_t)n, r.at);
    else
        softmax_log_run(w->pool, rows, n, values, mask, (ptrdiff_t)n, r.at);
    step_settle(w, &r);
    return true;
}
