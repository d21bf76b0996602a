/* graph_reference.h - the meaning of every operator, one element at a time, in doubles: slow, short, obviously the definition.
 *
 * reference_at(r, node, index) is the element of `node` at index[name] (positions by axis name). Broadcasting needs no word: an
 * operand looks up only the axes it has.
 */
#ifndef RONDO_TESTS_GRAPH_REFERENCE_H
#define RONDO_TESTS_GRAPH_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/execute.h"

enum { REFERENCE_NAMES = 512 };

struct reference {
    const struct graph *g;
    double **bound;                       /* data by node id, for inputs and parameters */
    double **memo;                        /* whole nodes, once computed */
    const struct executor_random *random; /* NULL when the graph draws nothing */
};

static inline double reference_at(struct reference *r, uint32_t node, const uint64_t *index);

/* Row-major offset of a node's element. */
static inline uint64_t reference_offset(const struct graph_node *n, const uint64_t *index)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < n->rank; i++)
        at = at * n->axis[i].size + index[n->axis[i].name];
    return at;
}

/* Positions of element number `at`. */
static inline void reference_index(const struct graph_axis *axes, unsigned rank, uint64_t at, uint64_t *index)
{
    for (unsigned i = rank; i-- > 0;) {
        index[axes[i].name] = at % axes[i].size;
        at /= axes[i].size;
    }
}

static inline uint64_t reference_product(const struct graph_axis *axes, unsigned rank)
{
    uint64_t p = 1;
    for (unsigned i = 0; i < rank; i++)
        p *= axes[i].size;
    return p;
}

#define REF_COPY(copy, index)                                                                                                    \
    uint64_t copy[REFERENCE_NAMES];                                                                                              \
    memcpy(copy, index, sizeof copy)

static inline double ref_softplus(double v)
{
    return fmax(v, 0) + log1p(exp(-fabs(v)));
}
static inline double ref_sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}
static inline double ref_gelu_tanh(double v)
{
    return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

static inline double ref_silu_slope(double v)
{
    const double s = ref_sigmoid(v);
    return s * (1 + v * (1 - s));
}
static inline double ref_gelu_slope(double v)
{
    return 0.5 * (1 + erf(v / sqrt(2))) + v * exp(-0.5 * v * v) / sqrt(2 * M_PI);
}
static inline double ref_gelu_tanh_slope(double v)
{
    const double t = tanh(0.7978845608028654 * (v + 0.044715 * v * v * v));
    return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * v * v);
}

static inline double ref_elementwise(const struct graph *g, const struct graph_node *n, double x, double y, double z)
{
    const double *k = graph_numbers(g, n);
    switch (n->op) {
    case OPERATOR_ADD:
        return x + y;
    case OPERATOR_SUB:
        return x - y;
    case OPERATOR_MUL:
        return x * y;
    case OPERATOR_DIV:
        return x / y;
    case OPERATOR_POW:
        return pow(x, y);
    case OPERATOR_MINIMUM:
        return x < y ? x : y;
    case OPERATOR_MAXIMUM:
        return x > y ? x : y;
    case OPERATOR_LT:
        return x < y;
    case OPERATOR_LE:
        return x <= y;
    case OPERATOR_GT:
        return x > y;
    case OPERATOR_GE:
        return x >= y;
    case OPERATOR_EQ:
        return x == y;
    case OPERATOR_NE:
        return x != y;
    case OPERATOR_NEG:
        return -x;
    case OPERATOR_ABS:
        return fabs(x);
    case OPERATOR_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OPERATOR_SQUARE:
        return x * x;
    case OPERATOR_SQRT:
        return sqrt(x);
    case OPERATOR_RSQRT:
        return 1 / sqrt(x);
    case OPERATOR_EXP:
        return exp(x);
    case OPERATOR_LOG:
        return log(x);
    case OPERATOR_LOG1P:
        return log1p(x);
    case OPERATOR_LOG1MEXP:
        return log(1 - exp(x));
    case OPERATOR_TANH:
        return tanh(x);
    case OPERATOR_SIGMOID:
        return ref_sigmoid(x);
    case OPERATOR_LOGSIGMOID:
        return -ref_softplus(-x);
    case OPERATOR_SOFTPLUS:
        return ref_softplus(x);
    case OPERATOR_RELU:
        return fmax(x, 0);
    case OPERATOR_SILU:
        return x * ref_sigmoid(x);
    case OPERATOR_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case OPERATOR_GELU_TANH:
        return ref_gelu_tanh(x);
    case OPERATOR_SILU_SLOPE:
        return ref_silu_slope(x);
    case OPERATOR_GELU_SLOPE:
        return ref_gelu_slope(x);
    case OPERATOR_GELU_TANH_SLOPE:
        return ref_gelu_tanh_slope(x);
    case OPERATOR_CLAMP:
        return x < k[0] ? k[0] : x > k[1] ? k[1] : x;
    case OPERATOR_WHERE:
        return x != 0 ? y : z;
    default:
        return n->type == TENSOR_I32 ? trunc(x) : x; /* cast */
    }
}

static int ref_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The values of operand 0 along the attribute axes at `index`, those of weight not 0 first; weights beside them. */
static inline uint64_t ref_line(struct reference *r, const struct graph_node *n, const uint64_t *index, double *x, double *w)
{
    const struct graph *g = r->g;
    const uint32_t *in = graph_inputs(g, n);
    REF_COPY(at, index);
    uint64_t count = 0;
    for (uint64_t i = 0; i < reference_product(graph_axes(g, n), n->axes_count); i++) {
        reference_index(graph_axes(g, n), n->axes_count, i, at);
        w[count] = n->input_count == 2 ? reference_at(r, in[1], at) : 1;
        if (w[count] == 0)
            continue;
        x[count++] = reference_at(r, in[0], at);
    }
    return count;
}

static inline double ref_logsumexp(const double *x, uint64_t count)
{
    double m = -INFINITY, s = 0;
    for (uint64_t i = 0; i < count; i++)
        m = fmax(m, x[i]);
    if (m == -INFINITY)
        return m;
    for (uint64_t i = 0; i < count; i++)
        s += exp(x[i] - m);
    return m + log(s);
}

static inline double ref_reduce(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    double x[4096], w[4096], sum = 0, weights = 0, squares = 0, low = INFINITY, high = -INFINITY;
    const uint64_t count = ref_line(r, n, index, x, w);
    for (uint64_t i = 0; i < count; i++) {
        sum += x[i] * w[i];
        weights += w[i];
        squares += w[i] * x[i] * x[i];
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    switch (n->op) {
    case OPERATOR_SUM:
        return sum;
    case OPERATOR_MEAN:
        return weights == 0 ? 0 : sum / weights;
    case OPERATOR_MAX:
        return high;
    case OPERATOR_MIN:
        return low;
    case OPERATOR_NORM:
        return sqrt(squares);
    case OPERATOR_LOGSUMEXP:
        return ref_logsumexp(x, count);
    default: /* median */
        qsort(x, count, sizeof *x, ref_ascending);
        return count == 0 ? 0 : (x[(count - 1) / 2] + x[count / 2]) / 2;
    }
}

static inline double ref_softmax(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    double x[4096], w[4096];
    const uint32_t *in = graph_inputs(r->g, n);
    const double z = ref_logsumexp(x, ref_line(r, n, index, x, w));
    if (n->input_count == 2 && reference_at(r, in[1], index) == 0)
        return 0;
    const double l = reference_at(r, in[0], index) - z;
    return n->op == OPERATOR_SOFTMAX ? exp(l) : l;
}

/* Position of the element that stands at place `place` in ascending order (turned: descending) along axis; and its value. */
static inline uint64_t ref_order(struct reference *r, uint32_t x, const struct graph_axis *axis, uint64_t place, bool turned,
                                 const uint64_t *index, double *value)
{
    REF_COPY(at, index);
    for (uint64_t i = 0; i < axis->size; i++) {
        at[axis->name] = i;
        const double v = reference_at(r, x, at);
        uint64_t before = 0;
        for (uint64_t k = 0; k < axis->size; k++) {
            at[axis->name] = k;
            const double o = reference_at(r, x, at);
            before += (turned ? o > v : o < v) || (o == v && k < i);
        }
        if (before == place) {
            *value = v;
            return i;
        }
    }
    return 0;
}

static inline double ref_product(struct reference *r, const struct graph_node *n, uint32_t x, uint32_t y, const uint64_t *index)
{
    REF_COPY(at, index);
    double sum = 0;
    for (uint64_t i = 0; i < reference_product(graph_axes(r->g, n), n->axes_count); i++) {
        reference_index(graph_axes(r->g, n), n->axes_count, i, at);
        sum += reference_at(r, x, at) * reference_at(r, y, at);
    }
    return sum;
}

static inline double ref_scatter(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    const uint32_t *in = graph_inputs(r->g, n);
    const unsigned summed = n->axes_count - 1;
    REF_COPY(at, index);
    double sum = 0;
    for (uint64_t i = 0; i < reference_product(axes, summed); i++) {
        reference_index(axes, summed, i, at);
        if (reference_at(r, in[1], at) == (double)index[axes[summed].name])
            sum += reference_at(r, in[0], at);
    }
    return sum;
}

static inline double ref_dist2(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    const uint32_t x = graph_inputs(r->g, n)[0];
    const struct graph_node *m = &r->g->nodes[x];
    REF_COPY(at, index);
    double sum = 0;
    for (uint64_t i = 0; i < m->values; i++) {
        reference_index(m->axis, m->rank, i, at);
        if (at[axes[0].name] != 0)
            continue;
        at[axes[0].name] = index[axes[0].name];
        const double p = reference_at(r, x, at);
        at[axes[0].name] = index[axes[1].name];
        const double q = reference_at(r, x, at);
        sum += (p - q) * (p - q);
    }
    return sum;
}

static inline double ref_shape(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    const int64_t *k = graph_integers(r->g, n);
    const uint32_t x = graph_inputs(r->g, n)[0];
    REF_COPY(at, index);
    uint64_t whole = 0;
    int64_t t;
    switch (n->op) {
    case OPERATOR_RENAME:
        at[axes[0].name] = index[axes[1].name];
        break;
    case OPERATOR_SPLIT:
        for (unsigned i = 1; i < n->axes_count; i++)
            whole = whole * axes[i].size + index[axes[i].name];
        at[axes[0].name] = whole;
        break;
    case OPERATOR_MERGE:
        reference_index(axes + 1, n->axes_count - 1, index[axes[0].name], at);
        break;
    case OPERATOR_TRIM:
        at[axes[0].name] += (uint64_t)k[0];
        break;
    case OPERATOR_AT:
        at[axes[0].name] = (uint64_t)k[0];
        break;
    case OPERATOR_SHIFT:
    case OPERATOR_PAD:
        t = (int64_t)index[axes[0].name] - k[0];
        if (t < 0 || t >= (int64_t)axes[0].size)
            return 0;
        at[axes[0].name] = (uint64_t)t;
        break;
    default: /* expand, transpose, detach */
        break;
    }
    return reference_at(r, x, at);
}

#include "tests/unit/graph_reference_layer.h"

static inline double ref_cumsum(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis *axis = graph_axes(r->g, n);
    const uint32_t *in = graph_inputs(r->g, n);
    const bool reverse = graph_integers(r->g, n)[0];
    REF_COPY(at, index);
    double y = 0;
    for (uint64_t i = 0; i < axis->size; i++) {
        at[axis->name] = reverse ? axis->size - 1 - i : i;
        y = reference_at(r, in[0], at) + (n->input_count == 2 ? reference_at(r, in[1], at) : graph_numbers(r->g, n)[0]) * y;
        if (at[axis->name] == index[axis->name])
            break;
    }
    return y;
}

static inline double ref_concat(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis *axis = graph_axes(r->g, n);
    REF_COPY(at, index);
    for (unsigned k = 0;; k++) {
        const uint32_t x = graph_inputs(r->g, n)[k];
        const struct graph_node *m = &r->g->nodes[x];
        const uint64_t size = m->axis[graph_axis_find(m, axis->name)].size;
        if (at[axis->name] < size)
            return reference_at(r, x, at);
        at[axis->name] -= size;
    }
}

static inline double ref_element(struct reference *r, uint32_t node, const uint64_t *index)
{
    const struct graph *g = r->g;
    const struct graph_node *n = &g->nodes[node];
    const struct graph_axis *axes = graph_axes(g, n);
    const uint32_t *in = graph_inputs(g, n);
    double value;
    if (operator_table[n->op].flags & OPERATOR_ELEMENTWISE)
        return ref_elementwise(g, n, reference_at(r, in[0], index), n->input_count > 1 ? reference_at(r, in[1], index) : 0,
                               n->input_count > 2 ? reference_at(r, in[2], index) : 0);
    if (operator_table[n->op].flags & OPERATOR_REDUCTION)
        return ref_reduce(r, n, index);
    REF_COPY(at, index);
    switch (n->op) {
    case OPERATOR_CONSTANT:
        return graph_numbers(g, n)[0];
    case OPERATOR_TABLE:
        return graph_numbers(g, n)[reference_offset(n, index)];
    case OPERATOR_IOTA:
        return (double)index[n->axis[0].name];
    case OPERATOR_SOFTMAX:
    case OPERATOR_LOG_SOFTMAX:
        return ref_softmax(r, n, index);
    case OPERATOR_ARGMAX:
        return (double)ref_order(r, in[0], axes, 0, true, index, &value);
    case OPERATOR_SORT:
        ref_order(r, in[0], axes, index[axes->name], false, index, &value);
        return value;
    case OPERATOR_TOPK:
        ref_order(r, in[0], axes, index[axes[1].name], true, index, &value);
        return value;
    case OPERATOR_RANK:
        for (uint64_t i = 0;; i++)
            if (ref_order(r, in[0], axes, i, false, index, &value) == index[axes->name])
                return (double)i;
    case OPERATOR_CUMSUM:
        return ref_cumsum(r, n, index);
    case OPERATOR_GATHER:
        at[axes->name] = (uint64_t)reference_at(r, in[1], index);
        return reference_at(r, in[0], at);
    case OPERATOR_SCATTER:
        return ref_scatter(r, n, index);
    case OPERATOR_ONE_HOT:
        return reference_at(r, in[0], index) == (double)index[axes->name];
    case OPERATOR_CONCAT:
        return ref_concat(r, n, index);
    case OPERATOR_DOT:
        return ref_product(r, n, in[0], in[1], index);
    case OPERATOR_DOT_ONTO:
        return reference_at(r, in[0], index) + ref_product(r, n, in[1], in[2], index);
    case OPERATOR_LOW_RANK:
        return reference_at(r, in[0], index) + graph_numbers(g, n)[0] * ref_product(r, n, in[1], in[2], index);
    case OPERATOR_DIST2:
        return ref_dist2(r, n, index);
    case OPERATOR_RESULT:
        if (g->nodes[in[0]].op == OPERATOR_TOPK)
            return (double)ref_order(r, graph_inputs(g, &g->nodes[in[0]])[0], graph_axes(g, &g->nodes[in[0]]),
                                     index[graph_axes(g, &g->nodes[in[0]])[1].name], true, index, &value);
        return ref_layer(r, in[0], (unsigned)graph_integers(g, n)[0], index);
    case OPERATOR_ROPE:
    case OPERATOR_ATTENTION:
    case OPERATOR_ATTENTION_GRAD:
    case OPERATOR_RMSNORM:
    case OPERATOR_RMSNORM_GRAD:
    case OPERATOR_RMSNORM_WEIGHT_GRAD:
    case OPERATOR_TOKEN_LOGPROB:
    case OPERATOR_TOKEN_LOGPROB_GRAD:
    case OPERATOR_LAYERNORM:
    case OPERATOR_LAYERNORM_GRAD:
    case OPERATOR_LAYERNORM_WEIGHT_GRAD:
    case OPERATOR_DROPOUT:
        return ref_layer(r, node, 0, index);
    default:
        return ref_shape(r, n, index);
    }
}

/* The whole of a node, in its order; computed once. */
static inline const double *reference_node(struct reference *r, uint32_t node)
{
    const struct graph_node *n = &r->g->nodes[node];
    if (n->op == OPERATOR_INPUT || n->op == OPERATOR_PARAMETER)
        return r->bound[node];
    if (!r->memo[node]) {
        uint64_t index[REFERENCE_NAMES] = { 0 };
        double *all = calloc(n->values, sizeof *all);
        for (uint64_t i = 0; i < n->values; i++) {
            reference_index(n->axis, n->rank, i, index);
            all[i] = ref_element(r, node, index);
        }
        r->memo[node] = all;
    }
    return r->memo[node];
}

static inline double reference_at(struct reference *r, uint32_t node, const uint64_t *index)
{
    return reference_node(r, node)[reference_offset(&r->g->nodes[node], index)];
}

static inline void reference_forget(struct reference *r)
{
    for (uint32_t i = 0; i < r->g->node_count; i++) {
        free(r->memo[i]);
        r->memo[i] = NULL;
    }
}

#endif
