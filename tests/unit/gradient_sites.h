/* gradient_sites.h - every operator, at small shapes that show its ways: what tests of gradients and of bits go over. */
#ifndef RONDO_TESTS_GRADIENT_SITES_H
#define RONDO_TESTS_GRADIENT_SITES_H

#include "tests/unit/gradient_check.h"

/* Each builder gives its way number `way`; false: there are no more. */
typedef bool builder(enum operator_code op, unsigned way, struct site *s);

/* ---- elementwise ---- */

static bool two_operands(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const axes[4][2] = {
        { "a=2 b=3", "a=2 b=3" }, { "a=2 b=3", "b=3" }, { "a=2", "b=3 a=2" }, { "a=2 b=3", "" }
    };
    if (way == 4)
        return false;
    const uint32_t x = in("positive x", axes[way][0]), y = in(op == OPERATOR_DIV ? "positive y" : "y", axes[way][1]);
    *s = of(op2(op, x, y), x, y, GRAPH_NONE);
    return true;
}

static bool one_of(const char *name, enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in(name, "a=4 b=5");
    *s = of(op1(op, x), x, GRAPH_NONE, GRAPH_NONE);
    return way == 0;
}
static bool anywhere(enum operator_code op, unsigned way, struct site *s)
{
    return one_of("x", op, way, s);
}
static bool positive(enum operator_code op, unsigned way, struct site *s)
{
    return one_of("positive x", op, way, s);
}
static bool negative(enum operator_code op, unsigned way, struct site *s)
{
    return one_of("negative x", op, way, s);
}

static bool clamp(enum operator_code op, unsigned way, struct site *s)
{
    static const double bounds[3][2] = { { -0.25, 0.5 }, { -INFINITY, 0.1 }, { -INFINITY, INFINITY } };
    if (way == 3)
        return false;
    const uint32_t x = in("x", "a=4 b=5");
    *s = of(full(op, &x, 1, NULL, 0, (struct extra){ bounds[way], 2, NULL, 0 }), x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool where(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t mask = input("mask", "a=2 b=3"), x = in("x", "a=2 b=3"), y = in("y", "b=3");
    *s = of(over(op, mask, x, y, ""), x, y, GRAPH_NONE);
    return way == 0;
}

static bool cast(enum operator_code op, unsigned way, struct site *s)
{
    uint32_t node;
    const uint32_t x = in("x", "a=2 b=3");
    const struct graph_request r = { .op = op, .type = way ? TENSOR_F64 : TENSOR_F32, .inputs = &x, .input_count = 1 };
    *s = of(checked(graph_add(g, &r, &node, &err), &node), x, GRAPH_NONE, GRAPH_NONE);
    return way < 2;
}

/* ---- reductions, softmax ---- */

static bool reduction(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const axes[] = { "b", "b c", "a b c", "a c" };
    if (way == 12)
        return false;
    const uint32_t x = in("x", "a=2 b=3 c=4");
    const uint32_t w =
        way % 3 == 0 ? GRAPH_NONE
        : way % 3 == 1
            ? in("mask", "b=3 c=4")
            : in(op < OPERATOR_LOGSUMEXP && op != OPERATOR_MAX && op != OPERATOR_MIN ? "positive w" : "mask", "a=2 c=4");
    *s = of(over(op, x, w, GRAPH_NONE, axes[way / 3]), x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

/* ---- along an axis, moves, shapes ---- */

static bool one_axis(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const axes[3] = { "b", "a", "c" };
    if (way == 3)
        return false;
    const uint32_t x = in("x", "a=3 b=7 c=2");
    *s = of(over(op, x, GRAPH_NONE, GRAPH_NONE, axes[way]), x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool topk(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const axes[2] = { "b k=3", "a k=1" };
    const uint32_t x = in("x", "a=3 b=7 c=2");
    if (way == 2)
        return false;
    *s = of(over(op, x, GRAPH_NONE, GRAPH_NONE, axes[way]), x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool cumsum(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=5"), decay = way / 2 == 0 ? GRAPH_NONE : in("decay", way / 2 == 1 ? "b=5" : "a=2");
    const uint32_t inputs[2] = { x, decay };
    if (way == 6)
        return false;
    *s = of(full(op, inputs, decay == GRAPH_NONE ? 1 : 2, (struct graph_word[]){ { "b", 0 } }, 1,
                 (struct extra){ NUMBERS(0.8), INTEGERS(way % 2) }),
            x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool moved(enum operator_code op, unsigned way, struct site *s)
{
    static const int64_t by[3][2] = { { 1, 2 }, { 3, 0 }, { 0, 1 } };
    const uint32_t x = in("x", "a=2 b=5 c=3");
    if (way == 3)
        return false;
    *s = of(along(op, x, "b", op == OPERATOR_SHIFT && way == 2 ? -2 : by[way][0], by[way][1],
                  op == OPERATOR_SHIFT || op == OPERATOR_AT ? 1 : 2),
            x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool indexed(enum operator_code op, const char *index, const char *axes, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=3 c=4");
    *s = of(over(op, x, whole("i", index), GRAPH_NONE, axes), x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool gathered(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const cases[][2] = { { "t=5", "c" }, { "a=2 b=3", "c" }, { "a=2", "b" }, { "a=2 t=4", "b" } };
    return way < sizeof cases / sizeof *cases && indexed(op, cases[way][0], cases[way][1], s);
}

static bool scattered(enum operator_code op, unsigned way, struct site *s)
{
    static const char *const cases[][2] = {
        { "a=2 b=3", "a b v=3" }, { "a=2", "a v=4" }, { "a=2 b=3", "b v=3" }, { "b=3", "v=3" }
    };
    return way < sizeof cases / sizeof *cases && indexed(op, cases[way][0], cases[way][1], s);
}

static bool concat(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=3"), y = in("y", "b=2 a=2");
    *s = of(over(op, x, y, x, "b"), x, y, GRAPH_NONE);
    return way == 0;
}

static bool shaped(enum operator_code op, unsigned way, struct site *s)
{
    static const struct {
        enum operator_code op;
        const char *axes;
    } cases[] = { { OPERATOR_RENAME, "b z" },      { OPERATOR_SPLIT, "c p=2 q" },  { OPERATOR_MERGE, "m c a" },
                  { OPERATOR_MERGE, "m b c" },     { OPERATOR_MERGE, "m" },        { OPERATOR_EXPAND, "z=2" },
                  { OPERATOR_TRANSPOSE, "c a b" }, { OPERATOR_TRANSPOSE, "b c a" } };
    const uint32_t x = in("x", "a=2 b=3 c=4");
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].op == op && way-- == 0) {
            *s = of(over(op, x, GRAPH_NONE, GRAPH_NONE, cases[i].axes), x, GRAPH_NONE, GRAPH_NONE);
            return true;
        }
    return false;
}

/* ---- products ---- */

static bool product(enum operator_code op, unsigned way, struct site *s)
{
    static const struct {
        const char *x, *y, *base, *over;
    } cases[] = {
        { "row=2 time=3 embed=4", "kv=2 dim=3 embed=4", "row=2 time=3 kv=2 dim=3", "embed" },
        { "row=2 time=3 embed=4", "row=2 embed=4 k=2", "row=2 time=3 k=2", "embed" },
        { "row=2 time=3 embed=4", "embed=4 row=2 time=3", "", "row time embed" },
        { "row=2", "embed=4", "row=2 embed=4", "" },
        { "m=3 k=300", "k=300 n=2", "m=3 n=2", "k" }, /* two chunks */
    };
    if (way == sizeof cases / sizeof *cases || (op == OPERATOR_LOW_RANK && way == 3))
        return false;
    const uint32_t x = in("x", cases[way].x), y = in("y", cases[way].y);
    if (op == OPERATOR_DOT) {
        *s = of(over(op, x, y, GRAPH_NONE, cases[way].over), x, y, GRAPH_NONE);
        return true;
    }
    const uint32_t base = in("base", cases[way].base);
    struct graph_word words[3];
    char names[3][8];
    size_t count = 0;
    for (const char *p = cases[way].over; *p; p += strspn(p, " ")) {
        const size_t size = strcspn(p, " ");
        memcpy(names[count], p, size);
        names[count][size] = 0;
        words[count] = (struct graph_word){ names[count], 0 };
        count++;
        p += size;
    }
    const double scale = 0.5;
    *s = of(full(op, (uint32_t[]){ base, x, y }, 3, words, count, (struct extra){ &scale, op == OPERATOR_LOW_RANK, NULL, 0 }),
            base, x, y);
    return true;
}

/* ---- layers ---- */

static bool rms(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "row=2 dim=4 time=3"), w = in("w", way == 2 ? "time=3 dim=4" : "dim=4"), inputs[2] = { x, w };
    (void)op;
    if (way == 3)
        return false;
    *s = of(full(OPERATOR_RMSNORM, inputs, 2, (struct graph_word[]){ { "dim", 0 }, { "time", 0 } }, way == 2 ? 2 : 1,
                 (struct extra){ NUMBERS(1e-5, way == 1 ? 1 : 0) }),
            x, w, GRAPH_NONE);
    return true;
}

static bool layer(enum operator_code op, unsigned way, struct site *s)
{
    const char *axes = way == 2 ? "time=3 dim=4" : "dim=4";
    const uint32_t x = in("x", "row=2 dim=4 time=3"), w = in("w", axes), b = in("b", axes), inputs[3] = { x, w, b };
    (void)op;
    *s = of(full(OPERATOR_LAYERNORM, inputs, way == 1 ? 2 : 3, (struct graph_word[]){ { "dim", 0 }, { "time", 0 } },
                 way == 2 ? 2 : 1, (struct extra){ NUMBERS(1e-5) }),
            x, w, way == 1 ? GRAPH_NONE : b);
    return way < 3;
}

static bool turned(enum operator_code op, unsigned way, struct site *s)
{
    static const struct {
        double numbers[5];
        int64_t integers[4];
    } cases[] = {
        { { 10000, 0, 0, 0, 0 }, { 0, 0, ROPE_NONE, 0 } },    { { 10000, 0, 0, 0, 0 }, { 4, 1, ROPE_NONE, 1 } },
        { { 10000, 4, 0, 0, 0 }, { 0, 0, ROPE_LINEAR, 0 } },  { { 10000, 8, 1, 4, 64 }, { 0, 0, ROPE_LLAMA3, 1 } },
        { { 10000, 4, 1, 3, 1.25 }, { 0, 1, ROPE_YARN, 0 } }, { { 10000, 1, 1, 1, 1.25 }, { 0, 0, ROPE_FACTORS, 0 } },
    };
    static const double factors[4] = { 1, 1.5, 3, 7 };
    if (way == sizeof cases / sizeof *cases)
        return false;
    const uint32_t x = in("x", "row=2 time=3 dim=8 head=2"), position = whole("position", "row=2 time=3");
    const bool scaled = cases[way].integers[2] == ROPE_FACTORS;
    const uint32_t inputs[3] = { x, position, scaled ? factors_of_pairs(factors, 4) : GRAPH_NONE };
    *s = of(full(op, inputs, scaled ? 3 : 2, (struct graph_word[]){ { "dim", 0 } }, 1,
                 (struct extra){ cases[way].numbers, 5, cases[way].integers, 4 }),
            x, GRAPH_NONE, GRAPH_NONE);
    return true;
}

static bool attended(enum operator_code op, unsigned way, struct site *s)
{
    (void)op;
    if (way == 6)
        return false;
    const uint32_t q = in("q", "row=2 time=5 kv=2 group=2 dim=4"), k = in("k", "row=2 time=5 kv=2 dim=4"),
                   v = in("v", "row=2 time=5 kv=2 dim=4"), segment = whole("segment", "row=2 time=5");
    *s = of(attention(q, k, v, way == 1 || way == 5 ? segment : GRAPH_NONE, way == 2 || way == 5 ? 1.5 : 0, way != 3 && way != 4,
                      way == 2 || way == 4 || way == 5 ? 3 : 0),
            q, k, v);
    return true;
}

static bool logprob(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", way ? "vocab=7 row=2 time=3" : "row=2 time=3 vocab=7"), ids = whole("ids", "row=2 time=3");
    (void)op;
    *s = of(over(OPERATOR_TOKEN_LOGPROB, x, ids, GRAPH_NONE, "vocab"), x, GRAPH_NONE, GRAPH_NONE);
    return way < 2;
}

static bool dropped(enum operator_code op, unsigned way, struct site *s)
{
    uint32_t node;
    const uint32_t x = in("x", "a=5 b=7");
    *s = of(checked(graph_add(g,
                              &(struct graph_request){ .op = op,
                                                       .inputs = &x,
                                                       .input_count = 1,
                                                       .numbers = (double[]){ 0.375 },
                                                       .numbers_count = 1,
                                                       .integers = (int64_t[]){ 2, 0 },
                                                       .integers_count = 2,
                                                       .name = "label" },
                              &node, &err),
                    &node),
            x, GRAPH_NONE, GRAPH_NONE);
    return way == 0;
}

/* ---- what carries none ---- */

static bool compared(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=3"), y = in("y", "b=3");
    *s = of(op2(op, x, y), x, y, GRAPH_NONE);
    return way == 0;
}

static bool placed(enum operator_code op, unsigned way, struct site *s)
{
    uint32_t node, x = in("x", "a=2 b=3"), from = x;
    struct graph_request r = { .op = OPERATOR_CAST, .type = TENSOR_I32, .inputs = &from, .input_count = 1 };
    if (op == OPERATOR_ONE_HOT) {
        from = checked(graph_add(g, &r, &node, &err), &node);
        *s = of(over(op, from, GRAPH_NONE, GRAPH_NONE, "v=3"), x, GRAPH_NONE, GRAPH_NONE);
        return way == 0;
    }
    from = over(op, x, GRAPH_NONE, GRAPH_NONE, "b");
    r.type = TENSOR_F32;
    *s = of(checked(graph_add(g, &r, &node, &err), &node), x, GRAPH_NONE, GRAPH_NONE);
    return way == 0;
}

static bool median(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=3");
    *s = of(over(op, x, GRAPH_NONE, GRAPH_NONE, "b"), x, GRAPH_NONE, GRAPH_NONE);
    return way == 0;
}

static bool distance(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t x = in("x", "a=2 b=3");
    *s = of(over(op, x, GRAPH_NONE, GRAPH_NONE, "a other"), x, GRAPH_NONE, GRAPH_NONE);
    return way == 0;
}

static bool factored(enum operator_code op, unsigned way, struct site *s)
{
    const uint32_t b = in("b", "m=4 r=3"), a = in("a", "r=3 n=5");
    *s = of(over(op, b, a, GRAPH_NONE, "r=2"), b, a, GRAPH_NONE);
    return way == 0;
}

static bool further(enum operator_code op, unsigned way, struct site *s)
{
    if (!rms(op, way, s))
        return false;
    s->y = full(OPERATOR_RESULT, &s->y, 1, NULL, 0, (struct extra){ INTEGERS(1) });
    return way == 0;
}

static bool rms_weight(enum operator_code op, unsigned way, struct site *s)
{
    if (!rms(op, way, s))
        return false;
    s->by[0] = s->by[1];
    s->by[1] = GRAPH_NONE;
    return way == 0;
}

static bool layer_weight(enum operator_code op, unsigned way, struct site *s)
{
    if (!layer(op, way, s))
        return false;
    s->by[0] = s->by[1];
    s->by[1] = GRAPH_NONE;
    return way == 0;
}

static bool slope_of(enum operator_code op, unsigned way, struct site *s)
{
    return anywhere(op == OPERATOR_SILU_SLOPE   ? OPERATOR_SILU
                    : op == OPERATOR_GELU_SLOPE ? OPERATOR_GELU
                                                : OPERATOR_GELU_TANH,
                    way, s);
}

/* ---- the table ---- */

enum passing {
    UNTOLD,   /* nobody wrote a row */
    PASSES,   /* its gradient is checked */
    SOURCE,   /* it has no operand that could carry one */
    NONE,     /* it is zero: flat, or positions */
    REFUSED,  /* graph_backward refuses it by name */
    INTERNAL, /* the executor makes it of others, once gradients are there: arrange_test.c holds it to their bits */
    AFTER,    /* only a backward pass makes it: the gradient of the builder's operator; of second order it is refused by name */
};

static const struct row {
    enum passing passing;
    builder *build;
} rows[OPERATOR_CODES] = {
    [OPERATOR_INPUT] = { SOURCE, NULL },
    [OPERATOR_PARAMETER] = { SOURCE, NULL },
    [OPERATOR_CONSTANT] = { SOURCE, NULL },
    [OPERATOR_TABLE] = { SOURCE, NULL },
    [OPERATOR_IOTA] = { SOURCE, NULL },
    [OPERATOR_UNIFORM] = { SOURCE, NULL },
    [OPERATOR_NORMAL] = { SOURCE, NULL },
    [OPERATOR_ADD] = { PASSES, two_operands },
    [OPERATOR_SUB] = { PASSES, two_operands },
    [OPERATOR_MUL] = { PASSES, two_operands },
    [OPERATOR_DIV] = { PASSES, two_operands },
    [OPERATOR_POW] = { PASSES, two_operands },
    [OPERATOR_MINIMUM] = { PASSES, two_operands },
    [OPERATOR_MAXIMUM] = { PASSES, two_operands },
    [OPERATOR_LT] = { NONE, compared },
    [OPERATOR_LE] = { NONE, compared },
    [OPERATOR_GT] = { NONE, compared },
    [OPERATOR_GE] = { NONE, compared },
    [OPERATOR_EQ] = { NONE, compared },
    [OPERATOR_NE] = { NONE, compared },
    [OPERATOR_NEG] = { PASSES, anywhere },
    [OPERATOR_ABS] = { PASSES, anywhere },
    [OPERATOR_SIGN] = { NONE, anywhere },
    [OPERATOR_SQUARE] = { PASSES, anywhere },
    [OPERATOR_SQRT] = { PASSES, positive },
    [OPERATOR_RSQRT] = { PASSES, positive },
    [OPERATOR_EXP] = { PASSES, anywhere },
    [OPERATOR_LOG] = { PASSES, positive },
    [OPERATOR_LOG1P] = { PASSES, positive },
    [OPERATOR_LOG1MEXP] = { PASSES, negative },
    [OPERATOR_TANH] = { PASSES, anywhere },
    [OPERATOR_SIGMOID] = { PASSES, anywhere },
    [OPERATOR_LOGSIGMOID] = { PASSES, anywhere },
    [OPERATOR_SOFTPLUS] = { PASSES, anywhere },
    [OPERATOR_RELU] = { PASSES, anywhere },
    [OPERATOR_SILU] = { PASSES, anywhere },
    [OPERATOR_GELU] = { PASSES, anywhere },
    [OPERATOR_GELU_TANH] = { PASSES, anywhere },
    [OPERATOR_CLAMP] = { PASSES, clamp },
    [OPERATOR_WHERE] = { PASSES, where },
    [OPERATOR_CAST] = { PASSES, cast },
    [OPERATOR_SUM] = { PASSES, reduction },
    [OPERATOR_MEAN] = { PASSES, reduction },
    [OPERATOR_MAX] = { PASSES, reduction },
    [OPERATOR_MIN] = { PASSES, reduction },
    [OPERATOR_NORM] = { PASSES, reduction },
    [OPERATOR_MEDIAN] = { REFUSED, median },
    [OPERATOR_LOGSUMEXP] = { PASSES, reduction },
    [OPERATOR_SOFTMAX] = { PASSES, reduction },
    [OPERATOR_LOG_SOFTMAX] = { PASSES, reduction },
    [OPERATOR_ARGMAX] = { NONE, placed },
    [OPERATOR_SORT] = { PASSES, one_axis },
    [OPERATOR_RANK] = { NONE, placed },
    [OPERATOR_TOPK] = { PASSES, topk },
    [OPERATOR_CUMSUM] = { PASSES, cumsum },
    [OPERATOR_SHIFT] = { PASSES, moved },
    [OPERATOR_TRIM] = { PASSES, moved },
    [OPERATOR_PAD] = { PASSES, moved },
    [OPERATOR_AT] = { PASSES, moved },
    [OPERATOR_GATHER] = { PASSES, gathered },
    [OPERATOR_SCATTER] = { PASSES, scattered },
    [OPERATOR_ONE_HOT] = { NONE, placed },
    [OPERATOR_CONCAT] = { PASSES, concat },
    [OPERATOR_DOT] = { PASSES, product },
    [OPERATOR_DOT_ONTO] = { PASSES, product },
    [OPERATOR_LOW_RANK] = { PASSES, product },
    [OPERATOR_DIST2] = { REFUSED, distance },
    [OPERATOR_FACTOR] = { REFUSED, factored },
    [OPERATOR_RENAME] = { PASSES, shaped },
    [OPERATOR_SPLIT] = { PASSES, shaped },
    [OPERATOR_MERGE] = { PASSES, shaped },
    [OPERATOR_EXPAND] = { PASSES, shaped },
    [OPERATOR_TRANSPOSE] = { PASSES, shaped },
    [OPERATOR_DETACH] = { NONE, anywhere },
    [OPERATOR_RMSNORM] = { PASSES, rms },
    [OPERATOR_ROPE] = { PASSES, turned },
    [OPERATOR_ATTENTION] = { PASSES, attended },
    [OPERATOR_TOKEN_LOGPROB] = { PASSES, logprob },
    [OPERATOR_DROPOUT] = { PASSES, dropped },
    [OPERATOR_RESULT] = { REFUSED, further },
    [OPERATOR_SILU_SLOPE] = { AFTER, slope_of },
    [OPERATOR_GELU_SLOPE] = { AFTER, slope_of },
    [OPERATOR_GELU_TANH_SLOPE] = { AFTER, slope_of },
    [OPERATOR_RMSNORM_GRAD] = { AFTER, rms },
    [OPERATOR_RMSNORM_WEIGHT_GRAD] = { AFTER, rms_weight },
    [OPERATOR_ATTENTION_GRAD] = { AFTER, attended },
    [OPERATOR_TOKEN_LOGPROB_GRAD] = { AFTER, logprob },
    [OPERATOR_HEAD] = { INTERNAL, NULL },
    [OPERATOR_PART] = { INTERNAL, NULL },
    [OPERATOR_TIED] = { INTERNAL, NULL },
    [OPERATOR_LAYERNORM] = { PASSES, layer },
    [OPERATOR_LAYERNORM_GRAD] = { AFTER, layer },
    [OPERATOR_LAYERNORM_WEIGHT_GRAD] = { AFTER, layer_weight },
};

#endif
