#include "native/graph/backward_rules.h"

#include <math.h>
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

static uint32_t unary(struct backward *b, enum operator_code op, uint32_t x)
{
    return backward_add(b, &(struct graph_request){ .op = op, .inputs = &x, .input_count = 1 });
}

static uint32_t binary(struct backward *b, enum operator_code op, uint32_t x, uint32_t y)
{
    return backward_add(b, &(struct graph_request){ .op = op, .inputs = (uint32_t[]){ x, y }, .input_count = 2 });
}

static uint32_t where(struct backward *b, uint32_t mask, uint32_t yes, uint32_t no)
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

static uint32_t scaled(struct backward *b, uint32_t x, double factor)
{
    return binary(b, OPERATOR_MUL, x, backward_constant(b, x, factor));
}

/* The axes of node n as words; names stay where they are when the graph grows. */
static size_t words_of(const struct graph *g, const struct graph_node *n, struct graph_word *words)
{
    for (unsigned i = 0; i < n->rank; i++)
        words[i] = (struct graph_word){ g->names[n->axis[i].name], n->axis[i].size };
    return n->rank;
}

static uint32_t over(struct backward *b, enum operator_code op, uint32_t x, const struct graph_word *axes, size_t count)
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
    return same ? x : over(b, OPERATOR_TRANSPOSE, x, words, words_of(b->g, n, words));
}

uint32_t backward_spread(struct backward *b, uint32_t x, uint32_t like)
{
    struct graph_word words[GRAPH_AXES];
    if (x == GRAPH_NONE)
        return GRAPH_NONE;
    if (b->g->nodes[x].rank < b->g->nodes[like].rank)
        x = over(b, OPERATOR_EXPAND, x, words, words_of(b->g, &b->g->nodes[like], words));
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
    return count ? over(b, OPERATOR_SUM, x, words, count) : x;
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

/* A copy, since nodes move while the graph grows. */
struct rule {
    struct graph_node n;
    uint32_t id, g; /* the node and the gradient of its result */
    uint32_t in[4]; /* its first operands, GRAPH_NONE where absent */
    uint32_t shape; /* operand 0: the axes that a reduction drops are there */
    bool need[4];   /* whether the operand wants a gradient */
    struct graph_word axes[GRAPH_ATTRIBUTE_AXES];
    double numbers[8];
    int64_t integers[8];
};

static struct rule rule_of(struct backward *b, uint32_t id, uint32_t gradient)
{
    struct rule r = { .n = b->g->nodes[id], .id = id, .g = gradient };
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
static uint32_t again(struct backward *b, const struct rule *r, enum operator_code op, const uint32_t *inputs, size_t count)
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

static void refused(struct backward *b, const struct rule *r, const char *hint, const char *what)
{
    b->failed = true;
    error_set(b->err, ERROR_UNSUPPORTED, hint, "%s: %s", operator_table[r->n.op].name, what);
    if (r->n.note != GRAPH_NONE)
        error_at(b->err, "%s", b->g->names[r->n.note]);
}

/* ---- elementwise ---- */

static void rule_power(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0], y = r->in[1];
    if (r->need[1])
        backward_give(b, y, binary(b, OPERATOR_MUL, r->g, binary(b, OPERATOR_MUL, r->id, unary(b, OPERATOR_LOG, x))));
    if (r->need[0]) {
        const uint32_t less = binary(b, OPERATOR_SUB, y, backward_constant(b, y, 1));
        backward_give(b, x, binary(b, OPERATOR_MUL, r->g, binary(b, OPERATOR_MUL, binary(b, OPERATOR_POW, x, less), y)));
    }
}

static void rule_binary(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0], y = r->in[1], g = r->g;
    switch (r->n.op) {
    case OPERATOR_ADD:
    case OPERATOR_SUB:
        if (r->need[1])
            backward_give(b, y, r->n.op == OPERATOR_ADD ? g : unary(b, OPERATOR_NEG, g));
        if (r->need[0])
            backward_give(b, x, g);
        return;
    case OPERATOR_MUL:
        if (r->need[1])
            backward_give(b, y, binary(b, OPERATOR_MUL, g, x));
        if (r->need[0])
            backward_give(b, x, binary(b, OPERATOR_MUL, g, y));
        return;
    case OPERATOR_DIV: {
        const uint32_t share = binary(b, OPERATOR_DIV, g, y);
        if (r->need[1])
            backward_give(b, y, unary(b, OPERATOR_NEG, binary(b, OPERATOR_MUL, share, r->id)));
        if (r->need[0])
            backward_give(b, x, share);
        return;
    }
    case OPERATOR_POW:
        rule_power(b, r);
        return;
    default: { /* minimum, maximum: the first operand where both are equal */
        const uint32_t first = binary(b, r->n.op == OPERATOR_MINIMUM ? OPERATOR_LE : OPERATOR_GE, x, y);
        const uint32_t zero = backward_constant(b, g, 0);
        if (r->need[1])
            backward_give(b, y, where(b, first, zero, g));
        if (r->need[0])
            backward_give(b, x, where(b, first, g, zero));
    }
    }
}

/* dy/dx of the functions that are not a product of nodes with names of their own. */
static uint32_t slope(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0], y = r->id;
    switch (r->n.op) {
    case OPERATOR_ABS:
        return unary(b, OPERATOR_SIGN, x);
    case OPERATOR_SILU:
        return unary(b, OPERATOR_SILU_SLOPE, x);
    case OPERATOR_GELU:
        return unary(b, OPERATOR_GELU_SLOPE, x);
    case OPERATOR_GELU_TANH:
        return unary(b, OPERATOR_GELU_TANH_SLOPE, x);
    case OPERATOR_SQUARE:
        return scaled(b, x, 2);
    case OPERATOR_RSQRT:
        return scaled(b, binary(b, OPERATOR_MUL, unary(b, OPERATOR_SQUARE, y), y), -0.5);
    case OPERATOR_EXP:
        return y;
    case OPERATOR_LOG1MEXP:
        return unary(b, OPERATOR_NEG, unary(b, OPERATOR_EXP, binary(b, OPERATOR_SUB, x, y)));
    case OPERATOR_TANH:
        return binary(b, OPERATOR_SUB, backward_constant(b, x, 1), unary(b, OPERATOR_SQUARE, y));
    case OPERATOR_SIGMOID:
        return binary(b, OPERATOR_MUL, y, binary(b, OPERATOR_SUB, backward_constant(b, x, 1), y));
    case OPERATOR_LOGSIGMOID:
        return unary(b, OPERATOR_SIGMOID, unary(b, OPERATOR_NEG, x));
    default: /* softplus */
        return unary(b, OPERATOR_SIGMOID, x);
    }
}

static uint32_t clamp_mask(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0];
    uint32_t mask = GRAPH_NONE;
    if (isfinite(r->numbers[0]))
        mask = binary(b, OPERATOR_GE, x, backward_constant(b, x, r->numbers[0]));
    if (isfinite(r->numbers[1])) {
        const uint32_t below = binary(b, OPERATOR_LE, x, backward_constant(b, x, r->numbers[1]));
        mask = mask == GRAPH_NONE ? below : binary(b, OPERATOR_MUL, mask, below);
    }
    return mask;
}

static uint32_t through(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0], g = r->g;
    switch (r->n.op) {
    case OPERATOR_NEG:
        return unary(b, OPERATOR_NEG, g);
    case OPERATOR_CAST:
        return g;
    case OPERATOR_SQRT:
        return binary(b, OPERATOR_DIV, g, scaled(b, r->id, 2));
    case OPERATOR_LOG:
        return binary(b, OPERATOR_DIV, g, x);
    case OPERATOR_LOG1P:
        return binary(b, OPERATOR_DIV, g, binary(b, OPERATOR_ADD, x, backward_constant(b, x, 1)));
    case OPERATOR_RELU:
        return where(b, binary(b, OPERATOR_GT, x, backward_constant(b, x, 0)), g, backward_constant(b, g, 0));
    case OPERATOR_CLAMP: {
        const uint32_t mask = clamp_mask(b, r);
        return mask == GRAPH_NONE ? g : where(b, mask, g, backward_constant(b, g, 0));
    }
    default:
        return binary(b, OPERATOR_MUL, g, slope(b, r));
    }
}

static void rule_elementwise(struct backward *b, const struct rule *r)
{
    if (r->n.op == OPERATOR_SILU_SLOPE || r->n.op == OPERATOR_GELU_SLOPE || r->n.op == OPERATOR_GELU_TANH_SLOPE) {
        refused(b, r, NULL, "has no gradient of second order");
    } else if (r->n.op == OPERATOR_WHERE) {
        const uint32_t zero = backward_constant(b, r->g, 0);
        if (r->need[2])
            backward_give(b, r->in[2], where(b, r->in[0], zero, r->g));
        if (r->need[1])
            backward_give(b, r->in[1], where(b, r->in[0], r->g, zero));
    } else if (r->n.input_count == 2) {
        rule_binary(b, r);
    } else {
        backward_give(b, r->in[0], through(b, r));
    }
}

/* ---- reductions ---- */

/* 1 where the weight is not 0; GRAPH_NONE without a weight. */
static uint32_t read_mask(struct backward *b, const struct rule *r)
{
    return r->in[1] == GRAPH_NONE ? GRAPH_NONE : binary(b, OPERATOR_NE, r->in[1], backward_constant(b, r->in[1], 0));
}

static uint32_t masked(struct backward *b, uint32_t mask, uint32_t x)
{
    return mask == GRAPH_NONE ? x : where(b, mask, x, backward_constant(b, x, 0));
}

/* The sum of the weight over the axes of the reduction, the weight standing for every element of x. */
static uint32_t weight_sum(struct backward *b, const struct rule *r)
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
    const uint32_t sum = over(b, OPERATOR_SUM, r->in[1], words, count);
    return times == 1 ? sum : scaled(b, sum, times);
}

/* g / d, 0 where d is 0. */
static uint32_t divided(struct backward *b, uint32_t g, uint32_t d)
{
    const uint32_t some = binary(b, OPERATOR_NE, d, backward_constant(b, d, 0));
    return where(b, some, binary(b, OPERATOR_DIV, g, d), backward_constant(b, g, 0));
}

static void rule_mean(struct backward *b, const struct rule *r)
{
    if (r->in[1] == GRAPH_NONE) {
        double count = 1;
        for (unsigned i = 0; i < r->n.axes_count; i++)
            count *= (double)r->axes[i].size;
        const uint32_t share = binary(b, OPERATOR_DIV, r->g, backward_constant(b, r->g, count));
        backward_give(b, r->in[0], backward_spread(b, share, r->shape));
        return;
    }
    const uint32_t share = divided(b, r->g, weight_sum(b, r));
    backward_give(b, r->in[0], binary(b, OPERATOR_MUL, backward_spread(b, share, r->shape), r->in[1]));
}

static void rule_extreme(struct backward *b, const struct rule *r)
{
    const uint32_t hit = masked(b, read_mask(b, r), binary(b, OPERATOR_EQ, r->in[0], backward_spread(b, r->id, r->shape)));
    const uint32_t count = over(b, OPERATOR_SUM, hit, r->axes, r->n.axes_count);
    backward_give(b, r->in[0], binary(b, OPERATOR_MUL, backward_spread(b, divided(b, r->g, count), r->shape), hit));
}

static void rule_reduction(struct backward *b, const struct rule *r)
{
    if (r->need[1]) {
        refused(b, r, "detach it", "a weight carries no gradient");
        return;
    }
    const uint32_t x = r->in[0];
    switch (r->n.op) {
    case OPERATOR_SUM: {
        const uint32_t g = backward_spread(b, r->g, r->shape);
        backward_give(b, x, r->in[1] == GRAPH_NONE ? g : binary(b, OPERATOR_MUL, g, r->in[1]));
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
        const uint32_t part = binary(b, OPERATOR_MUL, share, x);
        backward_give(b, x, r->in[1] == GRAPH_NONE ? part : binary(b, OPERATOR_MUL, part, r->in[1]));
        return;
    }
    case OPERATOR_LOGSUMEXP: {
        const uint32_t p = unary(b, OPERATOR_EXP, binary(b, OPERATOR_SUB, x, backward_spread(b, r->id, r->shape)));
        const uint32_t g = backward_spread(b, r->g, r->shape);
        backward_give(b, x, binary(b, OPERATOR_MUL, g, masked(b, read_mask(b, r), p)));
        return;
    }
    default:
        refused(b, r, "detach it, or use mean", "has no gradient");
    }
}

static void rule_softmax(struct backward *b, const struct rule *r)
{
    if (r->need[1]) {
        refused(b, r, "detach it", "a mask carries no gradient");
        return;
    }
    if (r->n.op == OPERATOR_SOFTMAX) {
        const uint32_t sum = over(b, OPERATOR_SUM, binary(b, OPERATOR_MUL, r->g, r->id), r->axes, r->n.axes_count);
        const uint32_t d = binary(b, OPERATOR_SUB, r->g, backward_spread(b, sum, r->shape));
        backward_give(b, r->in[0], binary(b, OPERATOR_MUL, r->id, d));
        return;
    }
    const uint32_t mask = read_mask(b, r), g = masked(b, mask, r->g);
    const uint32_t sum = over(b, OPERATOR_SUM, g, r->axes, r->n.axes_count);
    const uint32_t share = binary(b, OPERATOR_MUL, unary(b, OPERATOR_EXP, r->id), backward_spread(b, sum, r->shape));
    backward_give(b, r->in[0], masked(b, mask, binary(b, OPERATOR_SUB, g, share)));
}

/* ---- along one axis ---- */

/* The node of one operand, one axis and integers. */
static uint32_t along(struct backward *b, enum operator_code op, uint32_t x, struct graph_word axis, int64_t first,
                      int64_t second, size_t count)
{
    return backward_add(b, &(struct graph_request){ .op = op,
                                                    .inputs = &x,
                                                    .input_count = 1,
                                                    .axes = &(struct graph_word){ axis.name, 0 },
                                                    .axes_count = 1,
                                                    .integers = (int64_t[]){ first, second },
                                                    .integers_count = count });
}

static uint32_t indexed(struct backward *b, enum operator_code op, uint32_t x, uint32_t index, const struct graph_word *axes,
                        size_t count)
{
    return backward_add(b,
                        &(struct graph_request){
                            .op = op, .inputs = (uint32_t[]){ x, index }, .input_count = 2, .axes = axes, .axes_count = count });
}

static void rule_cumsum(struct backward *b, const struct rule *r)
{
    struct rule turned = *r;
    if (r->need[1]) {
        refused(b, r, "detach the decay", "a decay carries no gradient");
        return;
    }
    turned.integers[0] = !r->integers[0];
    uint32_t inputs[2] = { r->g, r->in[1] };
    if (r->n.input_count == 2 && graph_axis_of(b->g, r->in[1], r->axes[0].name) >= 0)
        inputs[1] = along(b, OPERATOR_SHIFT, r->in[1], r->axes[0], r->integers[0] ? 1 : -1, 0, 1);
    backward_give(b, r->in[0], again(b, &turned, OPERATOR_CUMSUM, inputs, r->n.input_count));
}

static void rule_at(struct backward *b, const struct rule *r)
{
    const struct graph_word one = { r->axes[0].name, 1 };
    const uint32_t g = over(b, OPERATOR_EXPAND, r->g, &one, 1);
    backward_give(b, r->in[0], along(b, OPERATOR_PAD, g, one, r->integers[0], (int64_t)r->axes[0].size - 1 - r->integers[0], 2));
}

static void rule_gather(struct backward *b, const struct rule *r)
{
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    size_t count = 0;
    const struct graph_node x = b->g->nodes[r->in[0]], index = b->g->nodes[r->in[1]];
    for (unsigned i = 0; i < index.rank; i++) {
        const char *name = b->g->names[index.axis[i].name];
        if (strcmp(name, r->axes[0].name) == 0 || graph_axis_find(&x, index.axis[i].name) < 0)
            words[count++] = (struct graph_word){ name, 0 };
    }
    words[count++] = r->axes[0];
    backward_give(b, r->in[0], indexed(b, OPERATOR_SCATTER, r->g, r->in[1], words, count));
}

static void rule_concat(struct backward *b, uint32_t id, const struct rule *r)
{
    const uint32_t count = r->n.input_count;
    int64_t after = 0;
    const int64_t whole = (int64_t)b->g->nodes[id].axis[graph_axis_of(b->g, id, r->axes[0].name)].size;
    for (uint32_t k = count; k-- > 0 && !b->failed;) {
        const uint32_t x = graph_inputs(b->g, &r->n)[k];
        const int64_t size = (int64_t)b->g->nodes[x].axis[graph_axis_of(b->g, x, r->axes[0].name)].size;
        if (b->live[x])
            backward_give(b, x, along(b, OPERATOR_TRIM, r->g, r->axes[0], whole - after - size, after, 2));
        after += size;
    }
}

static void rule_along(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0];
    switch (r->n.op) {
    case OPERATOR_SORT:
        backward_give(b, x, indexed(b, OPERATOR_GATHER, r->g, over(b, OPERATOR_RANK, x, r->axes, 1), r->axes, 1));
        return;
    case OPERATOR_TOPK: {
        const uint32_t index = backward_add(
            b,
            &(struct graph_request){
                .op = OPERATOR_RESULT, .inputs = &r->id, .input_count = 1, .integers = (int64_t[]){ 1 }, .integers_count = 1 });
        const struct graph_word words[2] = { { r->axes[1].name, 0 }, r->axes[0] };
        backward_give(b, x, indexed(b, OPERATOR_SCATTER, r->g, index, words, 2));
        return;
    }
    case OPERATOR_CUMSUM:
        rule_cumsum(b, r);
        return;
    case OPERATOR_SHIFT:
        backward_give(b, x, along(b, OPERATOR_SHIFT, r->g, r->axes[0], -r->integers[0], 0, 1));
        return;
    case OPERATOR_TRIM:
    case OPERATOR_PAD:
        backward_give(b, x,
                      along(b, r->n.op == OPERATOR_TRIM ? OPERATOR_PAD : OPERATOR_TRIM, r->g, r->axes[0], r->integers[0],
                            r->integers[1], 2));
        return;
    case OPERATOR_AT:
        rule_at(b, r);
        return;
    case OPERATOR_GATHER:
        rule_gather(b, r);
        return;
    default: /* scatter */
        backward_give(b, x, backward_spread(b, indexed(b, OPERATOR_GATHER, r->g, r->in[1], &r->axes[r->n.axes_count - 1], 1), x));
    }
}

/* ---- products ---- */

/* The gradient of one operand of a product: g times the other operand, summed over the axes that only the other one has. */
static uint32_t product_part(struct backward *b, uint32_t g, uint32_t other, uint32_t operand)
{
    struct graph_word words[GRAPH_AXES];
    size_t count = 0;
    if (g == GRAPH_NONE)
        return GRAPH_NONE;
    const struct graph_node n = b->g->nodes[other], m = b->g->nodes[operand], d = b->g->nodes[g];
    bool inside = true; /* g lies within the other operand: then the product is elementwise */
    for (unsigned i = 0; i < n.rank; i++)
        if (graph_axis_find(&m, n.axis[i].name) < 0)
            words[count++] = (struct graph_word){ b->g->names[n.axis[i].name], 0 };
    for (unsigned i = 0; i < d.rank; i++)
        inside = inside && graph_axis_find(&n, d.axis[i].name) >= 0;
    if (count == 0 && inside)
        return binary(b, OPERATOR_MUL, g, other);
    return backward_add(
        b, &(struct graph_request){
               .op = OPERATOR_DOT, .inputs = (uint32_t[]){ g, other }, .input_count = 2, .axes = words, .axes_count = count });
}

static void rule_product(struct backward *b, const struct rule *r)
{
    const unsigned at = r->n.op == OPERATOR_DOT ? 0 : 1;
    const uint32_t x = r->in[at], y = r->in[at + 1];
    const bool scale = r->n.op == OPERATOR_LOW_RANK;
    if (r->need[at + 1]) {
        const uint32_t part = product_part(b, r->g, x, y);
        backward_give(b, y, scale ? scaled(b, part, r->numbers[0]) : part);
    }
    if (r->need[at]) {
        const uint32_t part = product_part(b, r->g, y, x);
        backward_give(b, x, scale ? scaled(b, part, r->numbers[0]) : part);
    }
    if (at == 1 && r->need[0])
        backward_give(b, r->in[0], r->g);
}

/* ---- shape ---- */

static void rule_shape(struct backward *b, const struct rule *r)
{
    const uint32_t x = r->in[0];
    const size_t parts = r->n.axes_count - 1;
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    switch (r->n.op) {
    case OPERATOR_RENAME:
        words[0] = r->axes[1];
        words[1] = r->axes[0];
        backward_give(b, x, over(b, OPERATOR_RENAME, r->g, words, 2));
        return;
    case OPERATOR_SPLIT:
        backward_give(b, x, over(b, OPERATOR_MERGE, r->g, r->axes, r->n.axes_count));
        return;
    case OPERATOR_MERGE:
        if (parts == 0)
            backward_give(b, x, along(b, OPERATOR_AT, r->g, r->axes[0], 0, 0, 1));
        else
            backward_give(b, x, over(b, OPERATOR_SPLIT, r->g, r->axes, r->n.axes_count));
        return;
    default: /* expand, transpose: summing and ordering are done for every contribution */
        backward_give(b, x, r->g);
    }
}

/* ---- layers ---- */

static uint32_t result_of(struct backward *b, uint32_t x, int64_t which)
{
    return backward_add(b, &(struct graph_request){
                               .op = OPERATOR_RESULT, .inputs = &x, .input_count = 1, .integers = &which, .integers_count = 1 });
}

static void rule_attention(struct backward *b, const struct rule *r)
{
    uint32_t inputs[7];
    size_t count = 0;
    const uint32_t lse = result_of(b, r->id, 1);
    for (; count < r->n.input_count; count++)
        inputs[count] = r->in[count];
    inputs[count++] = r->id;
    inputs[count++] = lse;
    inputs[count++] = r->g;
    const uint32_t all = again(b, r, OPERATOR_ATTENTION_GRAD, inputs, count);
    for (unsigned k = 3; k-- > 0;)
        if (r->need[k])
            backward_give(b, r->in[k], k == 0 ? all : result_of(b, all, k));
}

static void rule_layer(struct backward *b, const struct rule *r)
{
    struct rule turned = *r;
    const uint32_t x = r->in[0];
    uint32_t rstd;
    switch (r->n.op) {
    case OPERATOR_RMSNORM:
        rstd = result_of(b, r->id, 1);
        if (r->need[1])
            backward_give(b, r->in[1], again(b, r, OPERATOR_RMSNORM_WEIGHT_GRAD, (uint32_t[]){ x, rstd, r->g }, 3));
        if (r->need[0])
            backward_give(b, x, again(b, r, OPERATOR_RMSNORM_GRAD, (uint32_t[]){ x, r->in[1], rstd, r->g }, 4));
        return;
    case OPERATOR_ROPE:
        turned.integers[3] = !r->integers[3];
        backward_give(b, x, again(b, &turned, OPERATOR_ROPE, (uint32_t[]){ r->g, r->in[1] }, 2));
        return;
    case OPERATOR_ATTENTION:
        rule_attention(b, r);
        return;
    case OPERATOR_TOKEN_LOGPROB:
        backward_give(b, x,
                      again(b, r, OPERATOR_TOKEN_LOGPROB_GRAD, (uint32_t[]){ x, r->in[1], result_of(b, r->id, 1), r->g }, 4));
        return;
    default: /* dropout */
        turned.integers[1] = 1;
        backward_give(b, x, again(b, &turned, OPERATOR_DROPOUT, &r->g, 1));
    }
}

void backward_rule(struct backward *b, uint32_t id, uint32_t gradient)
{
    const struct rule r = rule_of(b, id, gradient);
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
        rule_concat(b, id, &r);
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
        rule_along(b, &r);
        return;
    case OPERATOR_DOT:
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        rule_product(b, &r);
        return;
    case OPERATOR_RENAME:
    case OPERATOR_SPLIT:
    case OPERATOR_MERGE:
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
        rule_shape(b, &r);
        return;
    case OPERATOR_RMSNORM:
    case OPERATOR_ROPE:
    case OPERATOR_ATTENTION:
    case OPERATOR_TOKEN_LOGPROB:
    case OPERATOR_DROPOUT:
        rule_layer(b, &r);
        return;
    default:
        refused(b, &r, "detach it", "has no gradient");
    }
}
