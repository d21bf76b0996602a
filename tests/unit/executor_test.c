#include "native/graph/rewrite.h"
#include "tests/unit/graph_fixture.h"

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
    struct reference r = { g, d.exact, calloc(g->node_count + 1, sizeof(double *)), &no_seed };
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
    static const double scaled[3][5] = { { 10000, 4, 0, 0, 0 }, { 10000, 8, 1, 4, 64 }, { 10000, 4, 0, 1, 1.25 } };
    for (int64_t i = 0; i < 3; i++)
        output(i == 0   ? "rope linear"
               : i == 1 ? "rope llama3"
                        : "rope yarn",
               FULL(OPERATOR_ROPE, "dim", ((struct extra){ scaled[i], 5, INTEGERS(0, 0, ROPE_LINEAR + i, 0) }), q, position));
    static const double factor[2] = { 1.5, 4 };
    output("rope by factors",
           FULL(OPERATOR_ROPE, "dim", ((struct extra){ NUMBERS(10000, 1, 1, 1, 1.25), INTEGERS(0, 1, ROPE_FACTORS, 0) }), q,
                position, factors_of_pairs(factor, 2)));
    output("rmsnorm", rmsnorm(q, w, "dim"));
    const uint32_t b = input("b", "dim=4"), in[3] = { k, w, b };
    for (int64_t i = 0; i < 3; i++) {
        static const char *const names[3] = { "layernorm", "its mean", "its scale" };
        const uint32_t y =
            full(OPERATOR_LAYERNORM, in, 3, (struct graph_word[]){ { "dim", 0 } }, 1, (struct extra){ NUMBERS(1e-5) });
        output(names[i], i ? full(OPERATOR_RESULT, &y, 1, NULL, 0, (struct extra){ INTEGERS(i) }) : y);
    }
    output("layernorm of two axes", full(OPERATOR_LAYERNORM, (uint32_t[]){ v, input("u", "kv=2 dim=4") }, 2,
                                         (struct graph_word[]){ { "dim", 0 }, { "kv", 0 } }, 2, (struct extra){ NUMBERS(0) }));
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
        cmocka_unit_test_setup_teardown(test_what_has_no_gradient_is_refused_by_name, fresh, done),
        cmocka_unit_test_setup_teardown(test_random_tensors_follow_seed_step_and_label, fresh, done),
        cmocka_unit_test_setup_teardown(test_faults_of_a_run_are_told, fresh, done),
        cmocka_unit_test_setup_teardown(test_memory_is_reused_and_limited, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
