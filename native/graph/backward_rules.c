#include "native/graph/backward_rules.h"

#include <math.h>

#include "native/graph/backward_parts.h"

/* ---- elementwise ---- */

static void rule_power(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0], y = r->in[1];
    if (r->need[1])
        backward_give(
            b, y,
            backward_binary(b, OPERATOR_MUL, r->g, backward_binary(b, OPERATOR_MUL, r->id, backward_unary(b, OPERATOR_LOG, x))));
    if (r->need[0]) {
        const uint32_t less = backward_binary(b, OPERATOR_SUB, y, backward_constant(b, y, 1));
        backward_give(b, x,
                      backward_binary(b, OPERATOR_MUL, r->g,
                                      backward_binary(b, OPERATOR_MUL, backward_binary(b, OPERATOR_POW, x, less), y)));
    }
}

static void rule_binary(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0], y = r->in[1], g = r->g;
    switch (r->n.op) {
    case OPERATOR_ADD:
    case OPERATOR_SUB:
        if (r->need[1])
            backward_give(b, y, r->n.op == OPERATOR_ADD ? g : backward_unary(b, OPERATOR_NEG, g));
        if (r->need[0])
            backward_give(b, x, g);
        return;
    case OPERATOR_MUL:
        if (r->need[1])
            backward_give(b, y, backward_binary(b, OPERATOR_MUL, g, x));
        if (r->need[0])
            backward_give(b, x, backward_binary(b, OPERATOR_MUL, g, y));
        return;
    case OPERATOR_DIV: {
        const uint32_t share = backward_binary(b, OPERATOR_DIV, g, y);
        if (r->need[1])
            backward_give(b, y, backward_unary(b, OPERATOR_NEG, backward_binary(b, OPERATOR_MUL, share, r->id)));
        if (r->need[0])
            backward_give(b, x, share);
        return;
    }
    case OPERATOR_POW:
        rule_power(b, r);
        return;
    default: { /* minimum, maximum: the first operand where both are equal */
        const uint32_t first = backward_binary(b, r->n.op == OPERATOR_MINIMUM ? OPERATOR_LE : OPERATOR_GE, x, y);
        const uint32_t zero = backward_constant(b, g, 0);
        if (r->need[1])
            backward_give(b, y, backward_where(b, first, zero, g));
        if (r->need[0])
            backward_give(b, x, backward_where(b, first, g, zero));
    }
    }
}

/* dy/dx of the functions that are not a product of nodes with names of their own. */
static uint32_t slope(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0], y = r->id;
    switch (r->n.op) {
    case OPERATOR_ABS:
        return backward_unary(b, OPERATOR_SIGN, x);
    case OPERATOR_SILU:
        return backward_unary(b, OPERATOR_SILU_SLOPE, x);
    case OPERATOR_GELU:
        return backward_unary(b, OPERATOR_GELU_SLOPE, x);
    case OPERATOR_GELU_TANH:
        return backward_unary(b, OPERATOR_GELU_TANH_SLOPE, x);
    case OPERATOR_SQUARE:
        return backward_scaled(b, x, 2);
    case OPERATOR_RSQRT:
        return backward_scaled(b, backward_binary(b, OPERATOR_MUL, backward_unary(b, OPERATOR_SQUARE, y), y), -0.5);
    case OPERATOR_EXP:
        return y;
    case OPERATOR_LOG1MEXP:
        return backward_unary(b, OPERATOR_NEG, backward_unary(b, OPERATOR_EXP, backward_binary(b, OPERATOR_SUB, x, y)));
    case OPERATOR_TANH:
        return backward_binary(b, OPERATOR_SUB, backward_constant(b, x, 1), backward_unary(b, OPERATOR_SQUARE, y));
    case OPERATOR_SIGMOID:
        return backward_binary(b, OPERATOR_MUL, y, backward_binary(b, OPERATOR_SUB, backward_constant(b, x, 1), y));
    case OPERATOR_LOGSIGMOID:
        return backward_unary(b, OPERATOR_SIGMOID, backward_unary(b, OPERATOR_NEG, x));
    default: /* softplus */
        return backward_unary(b, OPERATOR_SIGMOID, x);
    }
}

static uint32_t clamp_mask(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0];
    uint32_t mask = GRAPH_NONE;
    if (isfinite(r->numbers[0]))
        mask = backward_binary(b, OPERATOR_GE, x, backward_constant(b, x, r->numbers[0]));
    if (isfinite(r->numbers[1])) {
        const uint32_t below = backward_binary(b, OPERATOR_LE, x, backward_constant(b, x, r->numbers[1]));
        mask = mask == GRAPH_NONE ? below : backward_binary(b, OPERATOR_MUL, mask, below);
    }
    return mask;
}

static uint32_t through(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0], g = r->g;
    switch (r->n.op) {
    case OPERATOR_NEG:
        return backward_unary(b, OPERATOR_NEG, g);
    case OPERATOR_CAST:
        return g;
    case OPERATOR_SQRT:
        return backward_binary(b, OPERATOR_DIV, g, backward_scaled(b, r->id, 2));
    case OPERATOR_LOG:
        return backward_binary(b, OPERATOR_DIV, g, x);
    case OPERATOR_LOG1P:
        return backward_binary(b, OPERATOR_DIV, g, backward_binary(b, OPERATOR_ADD, x, backward_constant(b, x, 1)));
    case OPERATOR_RELU:
        return backward_where(b, backward_binary(b, OPERATOR_GT, x, backward_constant(b, x, 0)), g, backward_constant(b, g, 0));
    case OPERATOR_CLAMP: {
        const uint32_t mask = clamp_mask(b, r);
        return mask == GRAPH_NONE ? g : backward_where(b, mask, g, backward_constant(b, g, 0));
    }
    default:
        return backward_binary(b, OPERATOR_MUL, g, slope(b, r));
    }
}

static void rule_elementwise(struct backward *b, const struct backward_site *r)
{
    if (r->n.op == OPERATOR_SILU_SLOPE || r->n.op == OPERATOR_GELU_SLOPE || r->n.op == OPERATOR_GELU_TANH_SLOPE) {
        backward_refused(b, r, NULL, "has no gradient of second order");
    } else if (r->n.op == OPERATOR_WHERE) {
        const uint32_t zero = backward_constant(b, r->g, 0);
        if (r->need[2])
            backward_give(b, r->in[2], backward_where(b, r->in[0], zero, r->g));
        if (r->need[1])
            backward_give(b, r->in[1], backward_where(b, r->in[0], r->g, zero));
    } else if (r->n.input_count == 2) {
        rule_binary(b, r);
    } else {
        backward_give(b, r->in[0], through(b, r));
    }
}

/* ---- reductions ---- */

/* 1 where the weight is not 0; GRAPH_NONE without a weight. */
static uint32_t read_mask(struct backward *b, const struct backward_site *r)
{
    return r->in[1] == GRAPH_NONE ? GRAPH_NONE : backward_binary(b, OPERATOR_NE, r->in[1], backward_constant(b, r->in[1], 0));
}

static uint32_t masked(struct backward *b, uint32_t mask, uint32_t x)
{
    return mask == GRAPH_NONE ? x : backward_where(b, mask, x, backward_constant(b, x, 0));
}

/* The sum of the weight over the axes of the reduction, the weight standing for every element of x. */
static uint32_t weight_sum(struct backward *b, const struct backward_site *r)
{
    const struct graph_node w = b->g->nodes[r->in[1]];
    struct graph_word words[GRAPH_AXES];
    size_t count = 0;
    double times = 1;
    for (unsigned i = 0; i < r->n.axes_count; i++) {
        if (graph_axis_find(&w, graph_name_find(b->g, r->axes[i].name)) >= 0)
            words[count++] = r->axes[i];
        else
            times *= (double)r->axes[i].size;
    }
    const uint32_t sum = backward_over(b, OPERATOR_SUM, r->in[1], words, count);
    return times == 1 ? sum : backward_scaled(b, sum, times);
}

/* g / d, 0 where d is 0. */
static uint32_t divided(struct backward *b, uint32_t g, uint32_t d)
{
    const uint32_t some = backward_binary(b, OPERATOR_NE, d, backward_constant(b, d, 0));
    return backward_where(b, some, backward_binary(b, OPERATOR_DIV, g, d), backward_constant(b, g, 0));
}

static void rule_mean(struct backward *b, const struct backward_site *r)
{
    if (r->in[1] == GRAPH_NONE) {
        double count = 1;
        for (unsigned i = 0; i < r->n.axes_count; i++)
            count *= (double)r->axes[i].size;
        const uint32_t share = backward_binary(b, OPERATOR_DIV, r->g, backward_constant(b, r->g, count));
        backward_give(b, r->in[0], backward_spread(b, share, r->shape));
        return;
    }
    const uint32_t share = divided(b, r->g, weight_sum(b, r));
    backward_give(b, r->in[0], backward_binary(b, OPERATOR_MUL, backward_spread(b, share, r->shape), r->in[1]));
}

static void rule_extreme(struct backward *b, const struct backward_site *r)
{
    const uint32_t hit =
        masked(b, read_mask(b, r), backward_binary(b, OPERATOR_EQ, r->in[0], backward_spread(b, r->id, r->shape)));
    const uint32_t count = backward_over(b, OPERATOR_SUM, hit, r->axes, r->n.axes_count);
    backward_give(b, r->in[0], backward_binary(b, OPERATOR_MUL, backward_spread(b, divided(b, r->g, count), r->shape), hit));
}

static void rule_reduction(struct backward *b, const struct backward_site *r)
{
    if (r->need[1]) {
        backward_refused(b, r, "detach it", "a weight carries no gradient");
        return;
    }
    const uint32_t x = r->in[0];
    switch (r->n.op) {
    case OPERATOR_SUM: {
        const uint32_t g = backward_spread(b, r->g, r->shape);
        backward_give(b, x, r->in[1] == GRAPH_NONE ? g : backward_binary(b, OPERATOR_MUL, g, r->in[1]));
        return;
    }
    case OPERATOR_MEAN:
        rule_mean(b, r);
        return;
    case OPERATOR_MAX:
    case OPERATOR_MIN:
        rule_extreme(b, r);
        return;
    case OPERATOR_NORM: {
        const uint32_t share = backward_spread(b, divided(b, r->g, r->id), r->shape);
        const uint32_t part = backward_binary(b, OPERATOR_MUL, share, x);
        backward_give(b, x, r->in[1] == GRAPH_NONE ? part : backward_binary(b, OPERATOR_MUL, part, r->in[1]));
        return;
    }
    case OPERATOR_LOGSUMEXP: {
        const uint32_t p =
            backward_unary(b, OPERATOR_EXP, backward_binary(b, OPERATOR_SUB, x, backward_spread(b, r->id, r->shape)));
        const uint32_t g = backward_spread(b, r->g, r->shape);
        backward_give(b, x, backward_binary(b, OPERATOR_MUL, g, masked(b, read_mask(b, r), p)));
        return;
    }
    default:
        backward_refused(b, r, "detach it, or use mean", "has no gradient");
    }
}

static void rule_softmax(struct backward *b, const struct backward_site *r)
{
    if (r->need[1]) {
        backward_refused(b, r, "detach it", "a mask carries no gradient");
        return;
    }
    if (r->n.op == OPERATOR_SOFTMAX) {
        const uint32_t sum =
            backward_over(b, OPERATOR_SUM, backward_binary(b, OPERATOR_MUL, r->g, r->id), r->axes, r->n.axes_count);
        const uint32_t d = backward_binary(b, OPERATOR_SUB, r->g, backward_spread(b, sum, r->shape));
        backward_give(b, r->in[0], backward_binary(b, OPERATOR_MUL, r->id, d));
        return;
    }
    const uint32_t mask = read_mask(b, r), g = masked(b, mask, r->g);
    const uint32_t sum = backward_over(b, OPERATOR_SUM, g, r->axes, r->n.axes_count);
    const uint32_t share =
        backward_binary(b, OPERATOR_MUL, backward_unary(b, OPERATOR_EXP, r->id), backward_spread(b, sum, r->shape));
    backward_give(b, r->in[0], masked(b, mask, backward_binary(b, OPERATOR_SUB, g, share)));
}

void backward_rule(struct backward *b, uint32_t id, uint32_t gradient)
{
    const struct backward_site r = backward_rule_of(b, id, gradient);
    const unsigned flags = operator_table[r.n.op].flags;
    if (flags & (OPERATOR_SOURCE | OPERATOR_FLAT | OPERATOR_COMPARE))
        return;
    if (flags & OPERATOR_ELEMENTWISE) {
        rule_elementwise(b, &r);
        return;
    }
    if (flags & OPERATOR_REDUCTION) {
        rule_reduction(b, &r);
        return;
    }
    switch (r.n.op) {
    case OPERATOR_SOFTMAX:
    case OPERATOR_LOG_SOFTMAX:
        rule_softmax(b, &r);
        return;
    case OPERATOR_CONCAT:
        backward_rule_concat(b, id, &r);
        return;
    case OPERATOR_SORT:
    case OPERATOR_TOPK:
    case OPERATOR_CUMSUM:
    case OPERATOR_SHIFT:
    case OPERATOR_TRIM:
    case OPERATOR_PAD:
    case OPERATOR_AT:
    case OPERATOR_GATHER:
    case OPERATOR_SCATTER:
        backward_rule_along(b, &r);
        return;
    case OPERATOR_DOT:
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        backward_rule_product(b, &r);
        return;
    case OPERATOR_RENAME:
    case OPERATOR_SPLIT:
    case OPERATOR_MERGE:
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
        backward_rule_shape(b, &r);
        return;
    case OPERATOR_RMSNORM:
    case OPERATOR_LAYERNORM:
    case OPERATOR_ROPE:
    case OPERATOR_ATTENTION:
    case OPERATOR_TOKEN_LOGPROB:
    case OPERATOR_DROPOUT:
        backward_rule_layer(b, &r);
        return;
    default:
        backward_refused(b, &r, "detach it", "has no gradient");
    }
}
