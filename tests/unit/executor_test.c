#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/graph/rewrite.h"
#include "native/kernel/pool.h"
#include "tests/unit/graph_reference.h"

static struct graph *g;
static struct error err;
static uint64_t seed;

static int fresh(void **state)
{
    (void)state;
    g = graph_new(NULL);
    memset(&err, 0, sizeof err);
    seed = 1;
    return 0;
}

static int done(void **state)
{
    (void)state;
    graph_free(g);
    return 0;
}

static double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 40) / (double)(1 << 24);
}

/* ---- building ---- */

static uint32_t checked(bool ok, const uint32_t *node)
{
    if (!ok)
        fail_msg("%s: %s", err.place, err.message);
    return *node;
}

static uint32_t input(const char *name, const char *axes)
{
    uint32_t node;
    return checked(graph_input(g, name, TENSOR_F32, axes, &node, &err), &node);
}

static uint32_t whole(const char *name, const char *axes)
{
    uint32_t node;
    return checked(graph_input(g, name, TENSOR_I32, axes, &node, &err), &node);
}

static uint32_t number(double v)
{
    uint32_t node;
    return checked(graph_constant(g, TENSOR_F32, v, &node, &err), &node);
}

static uint32_t op1(enum operator_code op, uint32_t x)
{
    uint32_t node;
    return checked(graph_unary(g, op, x, &node, &err), &node);
}

static uint32_t op2(enum operator_code op, uint32_t x, uint32_t y)
{
    uint32_t node;
    return checked(graph_binary(g, op, x, y, &node, &err), &node);
}

static uint32_t over(enum operator_code op, uint32_t x, uint32_t y, uint32_t z, const char *axes)
{
    uint32_t node;
    return checked(graph_over(g, op, x, y, z, axes, &node, &err), &node);
}

struct extra {
    const double *numbers;
    size_t numbers_count;
    const int64_t *integers;
    size_t integers_count;
};

static uint32_t full(enum operator_code op, const uint32_t *inputs, size_t count, const struct graph_word *axes,
                     size_t axes_count, struct extra e)
{
    uint32_t node;
    return checked(graph_add(g,
                             &(struct graph_request){ .op = op,
                                                      .inputs = inputs,
                                                      .input_count = count,
                                                      .axes = axes,
                                                      .axes_count = axes_count,
                                                      .numbers = e.numbers,
                                                      .numbers_count = e.numbers_count,
                                                      .integers = e.integers,
                                                      .integers_count = e.integers_count },
                             &node, &err),
                   &node);
}

#define NUMBERS(...) .numbers = (double[]){ __VA_ARGS__ }, .numbers_count = sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)
#define INTEGERS(...)                                                                                                            \
    .integers = (int64_t[]){ __VA_ARGS__ }, .integers_count = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)
#define FULL(op, axis, e, ...)                                                                                                   \
    full(op, (uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t),                                \
         (struct graph_word[]){ { axis, 0 } }, 1, e)

static void output(const char *name, uint32_t node)
{
    checked(graph_output(g, name, node, &err), &node);
}

static uint32_t along(enum operator_code op, uint32_t x, const char *axis, int64_t a, int64_t b, size_t count)
{
    const int64_t k[2] = { a, b };
    return FULL(op, axis, ((struct extra){ .integers = k, .integers_count = count }), x);
}

static uint32_t attention(uint32_t q, uint32_t k, uint32_t v, uint32_t segment, double softcap, int64_t causal, int64_t window)
{
    const uint32_t in[4] = { q, k, v, segment };
    const struct graph_word axes[2] = { { "time", 0 }, { "dim", 0 } };
    return full(OPERATOR_ATTENTION, in, segment == GRAPH_NONE ? 3 : 4, axes, 2,
                (struct extra){ NUMBERS(0.7, softcap), INTEGERS(causal, window) });
}

static uint32_t rope(uint32_t x, uint32_t position, int64_t width, int64_t interleaved)
{
    return FULL(OPERATOR_ROPE, "dim", ((struct extra){ NUMBERS(10000, 0, 0, 0, 0), INTEGERS(width, interleaved, 0, 0) }), x,
                position);
}

static uint32_t rmsnorm(uint32_t x, uint32_t w, const char *axis)
{
    return FULL(OPERATOR_RMSNORM, axis, ((struct extra){ NUMBERS(1e-5, 0) }), x, w);
}

/* ---- running ---- */

/* Inputs drawn once: f32 between -1 and 1, i32 between 0 and 3; doubles of the same values for the reference. */
struct data {
    void **bound;
    double **exact;
    void **outputs;
};

static size_t bytes_of(const struct graph_node *n)
{
    return n->values * (n->type == TENSOR_F64 ? 8 : 4);
}

static struct data data_new(void)
{
    struct data d = { calloc(g->bound_count + 1, sizeof(void *)), calloc(g->node_count + 1, sizeof(double *)),
                      calloc(g->output_count + 1, sizeof(void *)) };
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        d.bound[i] = calloc(1, bytes_of(n) + 8);
        d.exact[g->bound[i]] = calloc(n->values + 1, sizeof(double));
        for (uint64_t k = 0; k < n->values; k++) {
            const double u = uniform();
            if (n->type == TENSOR_I32)
                ((int32_t *)d.bound[i])[k] = (int32_t)(u * 3);
            else if (n->type == TENSOR_F32)
                ((float *)d.bound[i])[k] = strncmp(graph_text(g, n->name), "mask", 4) == 0 ? (u > 0.4) : (float)(2 * u - 1);
            else
                ((double *)d.bound[i])[k] = 2 * u - 1;
            d.exact[g->bound[i]][k] = n->type == TENSOR_I32   ? ((int32_t *)d.bound[i])[k]
                                      : n->type == TENSOR_F32 ? (double)((float *)d.bound[i])[k]
                                                              : ((double *)d.bound[i])[k];
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        d.outputs[i] = calloc(1, bytes_of(&g->nodes[g->outputs[i].node]) + 8);
    return d;
}

static void data_free(struct data *d)
{
    for (uint32_t i = 0; i < g->bound_count; i++) {
        free(d->bound[i]);
        free(d->exact[g->bound[i]]);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        free(d->outputs[i]);
    free(d->bound);
    free(d->exact);
    free(d->outputs);
}

static const struct executor_random no_seed = { .seed = { 7 }, .round = 1, .step = 2 };

static void run(const struct executor_options *o, struct data *d)
{
    struct executor *ex = executor_new(g, o, &err);
    if (!ex)
        fail_msg("%s: %s", err.place, err.message);
    for (int again = 0; again < 2; again++)
        if (!executor_run(ex, (const void *const *)d->bound, d->outputs, &no_seed, &err))
            fail_msg("%s: %s", err.place, err.message);
    executor_free(ex);
}

static double value(const struct graph_node *n, const void *data, uint64_t k)
{
    return n->type == TENSOR_I32   ? ((const int32_t *)data)[k]
           : n->type == TENSOR_F32 ? (double)((const float *)data)[k]
                                   : ((const double *)data)[k];
}

static void assert_close(double got, double want, double tolerance, const char *what, uint64_t k)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))) && !(isinf(want) && got == want))
        fail_msg("%s[%llu] is %.9g, not %.9g", what, (unsigned long long)k, got, want);
}

/* Every output against the reference; and the same bits with 1 and 3 threads, and without fusing. */
static void see_nothing(void *context, uint32_t node, const void *bytes, size_t size)
{
    (void)context;
    (void)node;
    (void)bytes;
    (void)size;
}

static void assert_all_like_the_reference(void)
{
    struct data d = data_new();
    struct reference r = { g, d.exact, calloc(g->node_count + 1, sizeof(double *)) };
    run(NULL, &d);
    for (uint32_t i = 0; i < g->output_count; i++) {
        const struct graph_node *n = &g->nodes[g->outputs[i].node];
        const double *want = reference_node(&r, g->outputs[i].node);
        for (uint64_t k = 0; k < n->values; k++)
            assert_close(value(n, d.outputs[i], k), want[k], 2e-5, graph_text(g, g->outputs[i].name), k);
    }
    reference_forget(&r);
    free(r.memo);
    void **before = d.outputs;
    for (unsigned way = 0; way < 3; way++) {
        struct pool *pool = way == 2 ? NULL : pool_new(way + 2);
        d.outputs = calloc(g->output_count + 1, sizeof(void *));
        for (uint32_t i = 0; i < g->output_count; i++)
            d.outputs[i] = calloc(1, bytes_of(&g->nodes[g->outputs[i].node]) + 8);
        run(&(struct executor_options){ .pool = pool, .trace = way == 2 ? see_nothing : NULL }, &d);
        for (uint32_t i = 0; i < g->output_count; i++) {
            if (memcmp(d.outputs[i], before[i], bytes_of(&g->nodes[g->outputs[i].node])) != 0)
                fail_msg("%s has other bits in way %u", graph_text(g, g->outputs[i].name), way);
            free(d.outputs[i]);
        }
        free(d.outputs);
        pool_free(pool);
    }
    d.outputs = before;
    data_free(&d);
}

/* ---- forward ---- */

static void test_elementwise_operators(void **state)
{
    (void)state;
    const uint32_t x = input("x", "a=3 b=700"), y = input("y", "b=700"), z = input("z", "a=3"), mask = input("mask", "a=3 b=700");
    const uint32_t positive = op2(OPERATOR_ADD, op1(OPERATOR_SQUARE, x), number(0.1));
    char name[32];
    for (unsigned op = OPERATOR_ADD; op <= OPERATOR_NE; op++) {
        sprintf(name, "%s 1", operator_table[op].name);
        output(name, op2((enum operator_code)op, op == OPERATOR_POW ? positive : x, y));
        sprintf(name, "%s 2", operator_table[op].name);
        output(name, op2((enum operator_code)op, op == OPERATOR_POW ? positive : z, x));
    }
    for (unsigned op = OPERATOR_NEG; op <= OPERATOR_GELU_TANH; op++)
        output(operator_table[op].name, op1((enum operator_code)op, op == OPERATOR_LOG1MEXP ? op1(OPERATOR_NEG, positive)
                                                                    : op >= OPERATOR_SQRT && op <= OPERATOR_LOG1P ? positive
                                                                                                                  : x));
    output("clamp", full(OPERATOR_CLAMP, &x, 1, NULL, 0, (struct extra){ NUMBERS(-0.25, INFINITY) }));
    output("where", over(OPERATOR_WHERE, mask, x, y, ""));
    output("where of numbers", over(OPERATOR_WHERE, mask, number(2), number(3), ""));
    output("transposed", op2(OPERATOR_ADD, over(OPERATOR_TRANSPOSE, x, GRAPH_NONE, GRAPH_NONE, "b a"), x));
    output("expanded", op2(OPERATOR_MUL, over(OPERATOR_EXPAND, y, GRAPH_NONE, GRAPH_NONE, "c=2"), y));
    assert_all_like_the_reference();
}

static void test_binary64_and_integers(void **state)
{
    (void)state;
    uint32_t d, node;
    checked(graph_input(g, "d", TENSOR_F64, "a=3 b=5", &d, &err), &d);
    const uint32_t x = input("x", "b=5"), i = whole("i", "a=3"), mask = input("mask", "a=3 b=5");
    output("mixed", op2(OPERATOR_MUL, d, x));
    output("less", op2(OPERATOR_LT, d, x));
    output("rsqrt", op1(OPERATOR_RSQRT, op1(OPERATOR_ABS, d)));
    output("relu", op1(OPERATOR_RELU, d));
    output("sum", over(OPERATOR_SUM, d, GRAPH_NONE, GRAPH_NONE, "a"));
    output("mean", over(OPERATOR_MEAN, d, mask, GRAPH_NONE, "a b"));
    output("max", over(OPERATOR_MAX, d, mask, GRAPH_NONE, "a"));
    output("norm", over(OPERATOR_NORM, d, GRAPH_NONE, GRAPH_NONE, "b"));
    output("median", over(OPERATOR_MEDIAN, d, mask, GRAPH_NONE, "b"));
    output("sort", over(OPERATOR_SORT, d, GRAPH_NONE, GRAPH_NONE, "b"));
    output("rank", over(OPERATOR_RANK, d, GRAPH_NONE, GRAPH_NONE, "a"));
    output("argmax", over(OPERATOR_ARGMAX, d, GRAPH_NONE, GRAPH_NONE, "a"));
    output("dot", over(OPERATOR_DOT, d, x, GRAPH_NONE, "b"));
    output("dist2", over(OPERATOR_DIST2, d, GRAPH_NONE, GRAPH_NONE, "a other"));
    output("integers", op2(OPERATOR_ADD, i, op2(OPERATOR_MUL, i, i)));
    checked(graph_add(g, &(struct graph_request){ .op = OPERATOR_CAST, .type = TENSOR_F32, .inputs = &i, .input_count = 1 },
                      &node, &err),
            &node);
    output("cast", op2(OPERATOR_MUL, node, number(0.5)));
    assert_all_like_the_reference();
}

static void test_reductions(void **state)
{
    (void)state;
    const uint32_t x = input("x", "a=3 b=5 c=40"), w = input("mask_w", "a=3 b=5"), v = input("v", "c=40"),
                   mask = input("mask", "b=5 c=40");
    static const char *const lists[] = { "c", "a", "b", "a c", "b c", "a b c", "a b" };
    char name[48];
    for (unsigned op = OPERATOR_SUM; op <= OPERATOR_LOGSUMEXP; op++)
        for (unsigned l = 0; l < 7; l++) {
            sprintf(name, "%s %s", operator_table[op].name, lists[l]);
            output(name, over((enum operator_code)op, x, GRAPH_NONE, GRAPH_NONE, lists[l]));
            sprintf(name, "%s %s weighted", operator_table[op].name, lists[l]);
            output(name, over((enum operator_code)op, x, l % 2 ? mask : w, GRAPH_NONE, lists[l]));
        }
    output("sum weighted by numbers", over(OPERATOR_SUM, x, v, GRAPH_NONE, "b c"));
    output("softmax", over(OPERATOR_SOFTMAX, x, mask, GRAPH_NONE, "c"));
    output("softmax in the middle", over(OPERATOR_SOFTMAX, x, GRAPH_NONE, GRAPH_NONE, "b"));
    output("log_softmax", over(OPERATOR_LOG_SOFTMAX, x, GRAPH_NONE, GRAPH_NONE, "a c"));
    output("sum of a view",
           over(OPERATOR_SUM, over(OPERATOR_TRANSPOSE, x, GRAPH_NONE, GRAPH_NONE, "c a b"), GRAPH_NONE, GRAPH_NONE, "a"));
    assert_all_like_the_reference();
}

static void test_order_along_an_axis(void **state)
{
    (void)state;
    const uint32_t x = input("x", "peer=7 n=30"), long_one = input("long", "b=2 n=70"), d = input("d", "n=30");
    output("sort", over(OPERATOR_SORT, x, GRAPH_NONE, GRAPH_NONE, "peer"));
    output("sort long", over(OPERATOR_SORT, long_one, GRAPH_NONE, GRAPH_NONE, "n"));
    output("rank", over(OPERATOR_RANK, x, GRAPH_NONE, GRAPH_NONE, "n"));
    output("rank long", over(OPERATOR_RANK, long_one, GRAPH_NONE, GRAPH_NONE, "n"));
    output("argmax", over(OPERATOR_ARGMAX, x, GRAPH_NONE, GRAPH_NONE, "peer"));
    const uint32_t top = over(OPERATOR_TOPK, x, GRAPH_NONE, GRAPH_NONE, "peer k=3");
    output("topk", top);
    output("topk index", full(OPERATOR_RESULT, &top, 1, NULL, 0, (struct extra){ INTEGERS(1) }));
    output("topk long", over(OPERATOR_TOPK, long_one, GRAPH_NONE, GRAPH_NONE, "n k=5"));
    output("cumsum", FULL(OPERATOR_CUMSUM, "n", ((struct extra){ NUMBERS(0.9), INTEGERS(0) }), x));
    output("cumsum back", FULL(OPERATOR_CUMSUM, "peer", ((struct extra){ NUMBERS(1), INTEGERS(1) }), x));
    output("cumsum by tensor", FULL(OPERATOR_CUMSUM, "n", ((struct extra){ NUMBERS(0), INTEGERS(1) }), x, d));
    output("trimmed",
           over(OPERATOR_MEAN, along(OPERATOR_TRIM, over(OPERATOR_SORT, x, GRAPH_NONE, GRAPH_NONE, "peer"), "peer", 2, 1, 2),
                GRAPH_NONE, GRAPH_NONE, "peer"));
    output("dist2", over(OPERATOR_DIST2, x, GRAPH_NONE, GRAPH_NONE, "peer other"));
    assert_all_like_the_reference();
}

static void test_moves_and_shapes(void **state)
{
    (void)state;
    const uint32_t x = input("x", "a=4 b=6 c=5"), y = input("y", "c=5 a=4 b=2"), i = whole("i", "a=4 t=3"),
                   j = whole("j", "a=4 b=6");
    output("shift", along(OPERATOR_SHIFT, x, "b", 2, 0, 1));
    output("shift back", along(OPERATOR_SHIFT, x, "a", -1, 0, 1));
    output("shift out", along(OPERATOR_SHIFT, x, "a", 9, 0, 1));
    output("trim", along(OPERATOR_TRIM, x, "b", 1, 2, 2));
    output("pad", along(OPERATOR_PAD, x, "c", 1, 2, 2));
    output("at", along(OPERATOR_AT, x, "b", 3, 0, 1));
    output("gather", over(OPERATOR_GATHER, x, i, GRAPH_NONE, "c"));
    output("gather pick", over(OPERATOR_GATHER, x, j, GRAPH_NONE, "c"));
    output("gather same axis", over(OPERATOR_GATHER, x, whole("s", "a=2"), GRAPH_NONE, "a"));
    output("one_hot", over(OPERATOR_ONE_HOT, i, GRAPH_NONE, GRAPH_NONE, "v=4"));
    output("scatter", over(OPERATOR_SCATTER, x, j, GRAPH_NONE, "a b v=3"));
    output("scatter shared", over(OPERATOR_SCATTER, x, j, GRAPH_NONE, "b v=3"));
    output("scatter none", over(OPERATOR_SCATTER, x, j, GRAPH_NONE, "v=3"));
    output("concat", over(OPERATOR_CONCAT, x, y, GRAPH_NONE, "b"));
    output("rename", over(OPERATOR_RENAME, x, GRAPH_NONE, GRAPH_NONE, "b z"));
    output("split", over(OPERATOR_SPLIT, x, GRAPH_NONE, GRAPH_NONE, "b p=2 q"));
    output("split of a transpose",
           over(OPERATOR_SPLIT, over(OPERATOR_TRANSPOSE, x, GRAPH_NONE, GRAPH_NONE, "b c a"), GRAPH_NONE, GRAPH_NONE, "b p=2 q"));
    output("merge", over(OPERATOR_MERGE, x, GRAPH_NONE, GRAPH_NONE, "m b c"));
    output("merge turned", over(OPERATOR_MERGE, x, GRAPH_NONE, GRAPH_NONE, "m c a"));
    output("merge none", over(OPERATOR_MERGE, x, GRAPH_NONE, GRAPH_NONE, "m"));
    output("expand", over(OPERATOR_EXPAND, y, GRAPH_NONE, GRAPH_NONE, "z=3"));
    output("detach", op1(OPERATOR_DETACH, x));
    output("same", x);
    output("zeros", over(OPERATOR_EXPAND, number(0), GRAPH_NONE, GRAPH_NONE, "a=4 b=6"));
    assert_all_like_the_reference();
}

static void test_products(void **state)
{
    (void)state;
    const uint32_t x = input("x", "row=2 time=3 embed=70"), w = input("w", "kv=2 dim=3 embed=70"),
                   q = input("q", "row=2 kv=2 time=3 dim=4"), k = input("k", "row=2 key=5 kv=2 dim=4"),
                   e = input("e", "embed=70"), t = input("t", "time=3");
    const uint32_t dot = over(OPERATOR_DOT, x, w, GRAPH_NONE, "embed");
    output("linear", dot);
    output("transposed weight", over(OPERATOR_DOT, dot, w, GRAPH_NONE, "kv dim"));
    output("weight gradient", over(OPERATOR_DOT, dot, x, GRAPH_NONE, "row time"));
    output("batched", over(OPERATOR_DOT, q, k, GRAPH_NONE, "dim"));
    output("two sums", over(OPERATOR_DOT, q, k, GRAPH_NONE, "kv dim"));
    output("two sums apart",
           over(OPERATOR_DOT, q, over(OPERATOR_TRANSPOSE, k, GRAPH_NONE, GRAPH_NONE, "dim key row kv"), GRAPH_NONE, "row dim"));
    output("vector", over(OPERATOR_DOT, x, e, GRAPH_NONE, "embed"));
    output("inner", over(OPERATOR_DOT, e, e, GRAPH_NONE, "embed"));
    output("outer", over(OPERATOR_DOT, e, t, GRAPH_NONE, ""));
    output("onto", over(OPERATOR_DOT_ONTO, x, dot, w, "kv dim"));
    output("low rank", full(OPERATOR_LOW_RANK, (uint32_t[]){ x, dot, w }, 3, (struct graph_word[]){ { "kv", 0 }, { "dim", 0 } },
                            2, (struct extra){ NUMBERS(0.5) }));
    assert_all_like_the_reference();
}

static void test_layers(void **state)
{
    (void)state;
    const uint32_t q = input("q", "row=2 time=9 kv=2 group=3 dim=4"), k = input("k", "row=2 time=9 kv=2 dim=4"),
                   v = input("v", "row=2 time=9 kv=2 dim=4"), w = input("w", "dim=4"), segment = whole("segment", "row=2 time=9"),
                   position = whole("position", "row=2 time=9"), logits = input("logits", "row=2 time=9 vocab=11"),
                   place = whole("place", "time=9");
    output("attention", attention(q, k, v, GRAPH_NONE, 0, 1, 0));
    output("packed", attention(q, k, v, segment, 0, 1, 0));
    output("window and softcap", attention(q, k, v, GRAPH_NONE, 2, 0, 3));
    output("other order",
           attention(over(OPERATOR_TRANSPOSE, q, GRAPH_NONE, GRAPH_NONE, "kv group row time dim"), k, v, segment, 0, 1, 0));
    output("rope", rope(q, position, 0, 0));
    output("rope in pairs", rope(k, place, 2, 1));
    output("rmsnorm", rmsnorm(q, w, "dim"));
    output("logprob", over(OPERATOR_TOKEN_LOGPROB, logits, position, GRAPH_NONE, "vocab"));
    assert_all_like_the_reference();
}

/* The product of three factors of rank 3 in a rank of 5 comes back whole from rank 3, and from rank 6 as well. */
static void test_factors_of_full_rank_give_the_product_back(void **state)
{
    (void)state;
    const uint32_t b = input("b", "out=7 r=3"), a = input("a", "r=3 inp=9"), mix = input("mix", "r=3 k=5"),
                   un = input("un", "k=5 r=3");
    const uint32_t wide_b = over(OPERATOR_DOT, b, mix, GRAPH_NONE, "r"), wide_a = over(OPERATOR_DOT, un, a, GRAPH_NONE, "r");
    const uint32_t want = over(OPERATOR_DOT, wide_b, wide_a, GRAPH_NONE, "k");
    output("want", want);
    static const char *const ranks[2] = { "k=3", "k=6" };
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t left = over(OPERATOR_FACTOR, wide_b, wide_a, GRAPH_NONE, ranks[i]),
                       right = full(OPERATOR_RESULT, &left, 1, NULL, 0, (struct extra){ INTEGERS(1) });
        output(ranks[i], over(OPERATOR_DOT, left, right, GRAPH_NONE, "k"));
    }
    struct data d = data_new();
    run(NULL, &d);
    for (unsigned i = 1; i < 3; i++)
        for (uint64_t k = 0; k < 63; k++)
            assert_close(((float *)d.outputs[i])[k], ((float *)d.outputs[0])[k], 1e-5, ranks[i - 1], k);
    data_free(&d);
}

/* ---- backward ---- */

/* d(sum of weight * y)/dx by central differences of the reference, against the graph's own gradient. `wanted` ends with GRAPH_NONE. */
static void assert_gradients(uint32_t y, const uint32_t *wanted)
{
    uint32_t gradient[8], count = 0;
    char name[16];
    const uint32_t loss = over(OPERATOR_SUM, op2(OPERATOR_MUL, y, op1(OPERATOR_SIGMOID, y)), GRAPH_NONE, GRAPH_NONE, "");
    while (wanted[count] != GRAPH_NONE)
        count++;
    if (!graph_backward(g, loss, wanted, count, gradient, &err))
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < count; i++) {
        sprintf(name, "d%u", i);
        output(name, gradient[i]);
    }
    struct data d = data_new();
    struct reference r = { g, d.exact, calloc(g->node_count + 1, sizeof(double *)) };
    run(NULL, &d);
    for (uint32_t i = 0; i < count; i++) {
        const struct graph_node *n = &g->nodes[wanted[i]];
        assert_int_equal(g->nodes[gradient[i]].values, n->values);
        for (uint64_t k = 0; k < n->values; k++) {
            double *at = &d.exact[wanted[i]][k], sum[2] = { 0, 0 }, keep = *at;
            for (int side = 0; side < 2; side++) {
                *at = keep + (side ? 1e-5 : -1e-5);
                reference_forget(&r);
                const double *all = reference_node(&r, loss);
                for (uint64_t j = 0; j < g->nodes[loss].values; j++)
                    sum[side] += all[j];
            }
            *at = keep;
            assert_close(value(&g->nodes[gradient[i]], d.outputs[i], k), (sum[1] - sum[0]) / 2e-5, 2e-4,
                         operator_table[g->nodes[y].op].name, k);
        }
    }
    reference_forget(&r);
    free(r.memo);
    data_free(&d);
    done(NULL);
    fresh(NULL);
}

static void test_gradients_of_elementwise_operators(void **state)
{
    (void)state;
    for (unsigned op = OPERATOR_ADD; op <= OPERATOR_MAXIMUM; op++)
        for (unsigned turn = 0; turn < 2; turn++) {
            const uint32_t x = input("x", "a=2 b=3"), y = input("y", "b=3");
            const uint32_t p = op2(OPERATOR_ADD, op1(OPERATOR_SQUARE, x), number(0.3));
            assert_gradients(turn && op != OPERATOR_POW ? op2((enum operator_code)op, y, p) : op2((enum operator_code)op, p, y),
                             (uint32_t[]){ x, y, GRAPH_NONE });
        }
    for (unsigned op = OPERATOR_NEG; op <= OPERATOR_GELU_TANH; op++) {
        if (op == OPERATOR_SIGN)
            continue;
        const uint32_t x = input("x", "a=2 b=3"), p = op2(OPERATOR_ADD, op1(OPERATOR_SQUARE, x), number(0.3));
        assert_gradients(op1((enum operator_code)op, op == OPERATOR_LOG1MEXP                       ? op1(OPERATOR_NEG, p)
                                                     : op >= OPERATOR_SQRT && op <= OPERATOR_LOG1P ? p
                                                                                                   : x),
                         (uint32_t[]){ x, GRAPH_NONE });
    }
    uint32_t x = input("x", "a=2 b=3"), y = input("y", "b=3"), mask = input("mask", "a=2 b=3");
    assert_gradients(full(OPERATOR_CLAMP, &x, 1, NULL, 0, (struct extra){ NUMBERS(-0.25, 0.5) }), (uint32_t[]){ x, GRAPH_NONE });
    x = input("x", "a=2 b=3"), y = input("y", "b=3"), mask = input("mask", "a=2 b=3");
    assert_gradients(over(OPERATOR_WHERE, mask, x, y, ""), (uint32_t[]){ x, y, GRAPH_NONE });
    x = input("x", "a=2 b=3"), y = input("y", "b=3");
    assert_gradients(op2(OPERATOR_MUL, op1(OPERATOR_DETACH, y), x), (uint32_t[]){ x, GRAPH_NONE });
}

static void test_gradients_of_reductions(void **state)
{
    (void)state;
    for (unsigned op = OPERATOR_SUM; op <= OPERATOR_LOG_SOFTMAX; op++)
        for (unsigned weighted = 0; weighted < 2; weighted++) {
            if (op == OPERATOR_MEDIAN)
                continue;
            const uint32_t x = input("x", "a=2 b=3 c=4");
            const uint32_t w = input("mask", op >= OPERATOR_SOFTMAX ? "b=3 c=4" : "a=2 c=4");
            seed = 11;
            assert_gradients(
                over((enum operator_code)op, x, weighted ? w : GRAPH_NONE, GRAPH_NONE, op % 2 && !weighted ? "b" : "b c"),
                (uint32_t[]){ x, GRAPH_NONE });
        }
}

static void test_gradients_of_moves_and_shapes(void **state)
{
    (void)state;
    static const struct {
        enum operator_code op;
        const char *axes;
        unsigned index; /* 1: i [t], 2: j [a b] */
    } cases[] = {
        { OPERATOR_SORT, "b", 0 },          { OPERATOR_TOPK, "b k=2", 0 },      { OPERATOR_GATHER, "c", 1 },
        { OPERATOR_GATHER, "c", 2 },        { OPERATOR_SCATTER, "a b v=3", 2 }, { OPERATOR_SCATTER, "b v=3", 2 },
        { OPERATOR_RENAME, "b z", 0 },      { OPERATOR_SPLIT, "c p=2 q", 0 },   { OPERATOR_MERGE, "m c a", 0 },
        { OPERATOR_MERGE, "m b c", 0 },     { OPERATOR_MERGE, "m", 0 },         { OPERATOR_EXPAND, "z=2", 0 },
        { OPERATOR_TRANSPOSE, "c a b", 0 },
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t x = input("x", "a=2 b=3 c=4"), index = cases[i].index == 1   ? whole("i", "t=5")
                                                              : cases[i].index == 2 ? whole("i", "a=2 b=3")
                                                                                    : GRAPH_NONE;
        assert_gradients(over(cases[i].op, x, index, GRAPH_NONE, cases[i].axes), (uint32_t[]){ x, GRAPH_NONE });
    }
    static const struct {
        enum operator_code op;
        int64_t a, b;
        size_t count;
    } along_cases[] = {
        { OPERATOR_SHIFT, 1, 0, 1 }, { OPERATOR_TRIM, 1, 1, 2 }, { OPERATOR_PAD, 1, 2, 2 }, { OPERATOR_AT, 2, 0, 1 }
    };
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t x = input("x", "a=2 b=3 c=4");
        assert_gradients(along(along_cases[i].op, x, "b", along_cases[i].a, along_cases[i].b, along_cases[i].count),
                         (uint32_t[]){ x, GRAPH_NONE });
    }
    for (int64_t reverse = 0; reverse < 2; reverse++) {
        uint32_t x = input("x", "a=2 b=3 c=4"), d = input("d", "b=3");
        assert_gradients(FULL(OPERATOR_CUMSUM, "b", ((struct extra){ NUMBERS(0.8), INTEGERS(reverse) }), x),
                         (uint32_t[]){ x, GRAPH_NONE });
        x = input("x", "a=2 b=3 c=4"), d = input("d", "b=3");
        assert_gradients(FULL(OPERATOR_CUMSUM, "b", ((struct extra){ NUMBERS(0), INTEGERS(reverse) }), x, d),
                         (uint32_t[]){ x, GRAPH_NONE });
    }
    const uint32_t x = input("x", "a=2 b=3"), y = input("y", "b=2 a=2");
    assert_gradients(over(OPERATOR_CONCAT, x, y, x, "b"), (uint32_t[]){ x, y, GRAPH_NONE });
}

static void test_gradients_of_products_and_layers(void **state)
{
    (void)state;
    uint32_t x = input("x", "row=2 time=3 embed=4"), w = input("w", "kv=2 dim=3 embed=4"),
             b = input("b", "row=2 time=3 kv=2 dim=3");
    assert_gradients(over(OPERATOR_DOT, x, w, GRAPH_NONE, "embed"), (uint32_t[]){ x, w, GRAPH_NONE });
    x = input("x", "row=2 time=3 embed=4"), w = input("w", "row=2 embed=4");
    assert_gradients(over(OPERATOR_DOT, x, w, GRAPH_NONE, "embed"), (uint32_t[]){ x, w, GRAPH_NONE });
    x = input("x", "row=2 time=3 embed=4"), w = input("w", "embed=4 row=2 time=3");
    assert_gradients(over(OPERATOR_DOT, x, w, GRAPH_NONE, "row time embed"), (uint32_t[]){ x, w, GRAPH_NONE });
    x = input("x", "row=2"), w = input("w", "embed=4");
    assert_gradients(over(OPERATOR_DOT, x, w, GRAPH_NONE, ""), (uint32_t[]){ x, w, GRAPH_NONE });
    x = input("x", "row=2 time=3 embed=4"), w = input("w", "kv=2 dim=3 embed=4"), b = input("b", "row=2 time=3 kv=2 dim=3");
    assert_gradients(over(OPERATOR_DOT_ONTO, b, x, w, "embed"), (uint32_t[]){ b, x, w, GRAPH_NONE });
    x = input("x", "row=2 time=3 embed=4"), w = input("w", "kv=2 dim=3 embed=4"), b = input("b", "row=2 time=3 kv=2 dim=3");
    assert_gradients(FULL(OPERATOR_LOW_RANK, "embed", ((struct extra){ NUMBERS(0.5) }), b, x, w),
                     (uint32_t[]){ b, x, w, GRAPH_NONE });
    for (unsigned way = 0; way < 3; way++) {
        const uint32_t q = input("q", "row=2 time=5 kv=2 group=2 dim=4"), k = input("k", "row=2 time=5 kv=2 dim=4"),
                       v = input("v", "row=2 time=5 kv=2 dim=4"), segment = whole("segment", "row=2 time=5");
        assert_gradients(attention(q, k, v, way == 1 ? segment : GRAPH_NONE, way == 2 ? 1.5 : 0, 1, way == 2 ? 3 : 0),
                         (uint32_t[]){ q, k, v, GRAPH_NONE });
    }
    x = input("x", "row=2 time=3 dim=4"), w = input("w", "dim=4");
    uint32_t position = whole("position", "row=2 time=3");
    assert_gradients(rope(x, position, 0, 0), (uint32_t[]){ x, GRAPH_NONE });
    x = input("x", "row=2 time=3 dim=4"), w = input("w", "dim=4");
    assert_gradients(rmsnorm(x, w, "dim"), (uint32_t[]){ x, w, GRAPH_NONE });
    x = input("x", "row=2 time=3 vocab=7"), position = whole("position", "row=2 time=3");
    assert_gradients(over(OPERATOR_TOKEN_LOGPROB, x, position, GRAPH_NONE, "vocab"), (uint32_t[]){ x, GRAPH_NONE });
}

static void test_what_has_no_gradient_is_refused_by_name(void **state)
{
    (void)state;
    uint32_t gradient;
    const uint32_t x = input("x", "a=2 b=3"),
                   y = over(OPERATOR_SUM, over(OPERATOR_MEDIAN, x, GRAPH_NONE, GRAPH_NONE, "a"), GRAPH_NONE, GRAPH_NONE, "b"),
                   w = over(OPERATOR_MEAN, input("z", "a=2 b=3"), x, GRAPH_NONE, "a b");
    assert_false(graph_backward(g, y, &x, 1, &gradient, &err));
    assert_string_equal(err.message, "median: has no gradient");
    assert_false(graph_backward(g, w, &x, 1, &gradient, &err));
    assert_string_equal(err.message, "mean: a weight carries no gradient");
    assert_string_equal(err.hint, "detach it");
}

/* ---- random tensors, faults ---- */

static uint32_t drawn_node(enum operator_code op, const char *label, const uint32_t *x, double rate)
{
    uint32_t node;
    const struct graph_word axes[2] = { { "a", 40 }, { "b", 500 } };
    const int64_t k[2] = { 3, 0 };
    return checked(graph_add(g,
                             &(struct graph_request){ .op = op,
                                                      .inputs = x,
                                                      .input_count = x ? 1 : 0,
                                                      .axes = axes,
                                                      .axes_count = x ? 0 : 2,
                                                      .numbers = &rate,
                                                      .numbers_count = x ? 1 : 0,
                                                      .integers = k,
                                                      .integers_count = x ? 2 : 1,
                                                      .name = label },
                             &node, &err),
                   &node);
}

static void test_random_tensors_follow_seed_step_and_label(void **state)
{
    (void)state;
    const uint32_t u = drawn_node(OPERATOR_UNIFORM, "u", NULL, 0), n = drawn_node(OPERATOR_NORMAL, "n", NULL, 0),
                   one = over(OPERATOR_EXPAND, number(1), GRAPH_NONE, GRAPH_NONE, "a=40 b=500"),
                   kept = drawn_node(OPERATOR_DROPOUT, "d", &one, 0.25);
    output("u", u);
    output("n", n);
    output("d", kept);
    float *data[3][2];
    struct executor *ex = executor_new(g, NULL, &err);
    assert_non_null(ex);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned t = 0; t < 2; t++)
            data[i][t] = calloc(20000, sizeof(float));
    assert_false(executor_run(ex, NULL, (void *[]){ data[0][0], data[1][0], data[2][0] }, NULL, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    for (unsigned t = 0; t < 2; t++) {
        const struct executor_random random = { .seed = { 9 }, .round = 4, .step = t };
        assert_true(executor_run(ex, NULL, (void *[]){ data[0][t], data[1][t], data[2][t] }, &random, &err));
    }
    double sum = 0, squares = 0, mean = 0, rest = 0;
    for (unsigned i = 0; i < 20000; i++) {
        assert_true(data[0][0][i] >= 0 && data[0][0][i] < 1);
        assert_true(data[2][0][i] == 0 || data[2][0][i] == (float)(1 / 0.75));
        sum += data[0][0][i] / 20000;
        mean += data[1][0][i] / 20000;
        squares += data[1][0][i] * data[1][0][i] / 20000;
        rest += data[2][0][i] / 20000;
    }
    assert_true(fabs(sum - 0.5) < 0.01 && fabs(mean) < 0.03 && fabs(squares - 1) < 0.05 && fabs(rest - 1) < 0.03);
    for (unsigned i = 0; i < 3; i++) {
        assert_memory_not_equal(data[i][0], data[i][1], 20000 * sizeof(float));
        free(data[i][0]);
        free(data[i][1]);
    }
    executor_free(ex);
}

static void test_faults_of_a_run_are_told(void **state)
{
    (void)state;
    const uint32_t x = input("x", "a=4 b=3"), i = whole("i", "t=2");
    output("y", over(OPERATOR_GATHER, x, i, GRAPH_NONE, "a"));
    struct executor *ex = executor_new(g, NULL, &err);
    const float values[12] = { 0 };
    const int32_t wrong[2] = { 1, 4 };
    float y[6];
    assert_false(executor_run(ex, (const void *[]){ values, NULL }, (void *[]){ y }, NULL, &err));
    assert_string_equal(err.message, "input \"i\" has no data");
    assert_false(executor_run(ex, (const void *[]){ values, wrong }, (void *[]){ y }, NULL, &err));
    assert_string_equal(err.message, "gather: index 4 is outside a=4");
    assert_false(executor_run(ex, (const void *[]){ values, wrong }, (void *[]){ NULL }, NULL, &err));
    assert_string_equal(err.message, "output \"y\" has no memory");
    executor_free(ex);
    assert_null(
        executor_new(g, &(struct executor_options){ .aliases = &(struct executor_alias){ 1, 0 }, .alias_count = 1 }, &err));
    assert_int_equal(err.code, ERROR_RANGE);
}

static void test_memory_is_reused_and_limited(void **state)
{
    (void)state;
    uint32_t x = input("x", "n=100000");
    for (unsigned i = 0; i < 20; i++) { /* sums stand between the products, so that nothing is fused */
        const uint32_t s = over(OPERATOR_SUM, x, GRAPH_NONE, GRAPH_NONE, "n");
        x = op2(OPERATOR_MUL, x, op1(OPERATOR_TANH, s));
    }
    output("y", x);
    struct executor *ex = executor_new(g, NULL, &err);
    assert_true(executor_bytes(ex) < 3 * 400128);
    executor_free(ex);
    assert_null(executor_new(g, &(struct executor_options){ .memory = 100000 }, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_elementwise_operators, fresh, done),
        cmocka_unit_test_setup_teardown(test_binary64_and_integers, fresh, done),
        cmocka_unit_test_setup_teardown(test_reductions, fresh, done),
        cmocka_unit_test_setup_teardown(test_order_along_an_axis, fresh, done),
        cmocka_unit_test_setup_teardown(test_moves_and_shapes, fresh, done),
        cmocka_unit_test_setup_teardown(test_products, fresh, done),
        cmocka_unit_test_setup_teardown(test_layers, fresh, done),
        cmocka_unit_test_setup_teardown(test_factors_of_full_rank_give_the_product_back, fresh, done),
        cmocka_unit_test_setup_teardown(test_gradients_of_elementwise_operators, fresh, done),
        cmocka_unit_test_setup_teardown(test_gradients_of_reductions, fresh, done),
        cmocka_unit_test_setup_teardown(test_gradients_of_moves_and_shapes, fresh, done),
        cmocka_unit_test_setup_teardown(test_gradients_of_products_and_layers, fresh, done),
        cmocka_unit_test_setup_teardown(test_what_has_no_gradient_is_refused_by_name, fresh, done),
        cmocka_unit_test_setup_teardown(test_random_tensors_follow_seed_step_and_label, fresh, done),
        cmocka_unit_test_setup_teardown(test_faults_of_a_run_are_told, fresh, done),
        cmocka_unit_test_setup_teardown(test_memory_is_reused_and_limited, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
