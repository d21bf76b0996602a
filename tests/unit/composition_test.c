/* What docs/numerics.md defines as a composition of operators: each against its plain meaning, and its gradient. */
#include "native/kernel/dct.h"
#include "tests/unit/gradient_check.h"

static uint32_t dot(uint32_t x, uint32_t y, const char *axes)
{
    return over(OPERATOR_DOT, x, y, GRAPH_NONE, axes);
}

static uint32_t on(enum operator_code op, uint32_t x, const char *axes)
{
    return over(op, x, GRAPH_NONE, GRAPH_NONE, axes);
}

/* Numbers that the graph carries. */
static uint32_t table(const char *axes, const double *numbers, size_t count)
{
    uint32_t node;
    char copy[64], *at = copy, *word;
    struct graph_word words[4];
    size_t used = 0;
    strcpy(copy, axes);
    while ((word = strsep(&at, " ")) != NULL) {
        char *size = strchr(word, '=');
        *size = 0;
        words[used++] = (struct graph_word){ word, strtoull(size + 1, NULL, 10) };
    }
    return checked(graph_add(g,
                             &(struct graph_request){ .op = OPERATOR_TABLE,
                                                      .type = TENSOR_F32,
                                                      .axes = words,
                                                      .axes_count = used,
                                                      .numbers = numbers,
                                                      .numbers_count = count },
                             &node, &err),
                   &node);
}

/* Runs what stands as outputs; returns them. */
static struct data values(void)
{
    struct data d = data_new();
    run(NULL, &d);
    return d;
}

/* ---- SwiGLU and GeGLU: act(x gate) * (x up), then down ---- */

static void test_gated_layers_have_the_gradient_of_their_meaning(void **state)
{
    (void)state;
    static const enum operator_code acts[] = { OPERATOR_SILU, OPERATOR_GELU, OPERATOR_GELU_TANH };
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t x = in("x", "row=3 embed=4"), gate = in("gate", "ffn=5 embed=4"), up = in("up", "ffn=5 embed=4"),
                       down = in("down", "out=2 ffn=5");
        const uint32_t inner = op2(OPERATOR_MUL, op1(acts[i], dot(x, gate, "embed")), dot(x, up, "embed"));
        check_site(operator_table[acts[i]].name, &(struct site){ dot(inner, down, "ffn"), { x, gate, up, GRAPH_NONE } });
        done(NULL);
        fresh(NULL);
    }
}

/* ---- a mixture of experts: each token's matrices, picked by an index ---- */

static uint32_t experts(uint32_t x, uint32_t table, uint32_t index, const char *axes)
{
    return dot(x, over(OPERATOR_GATHER, table, index, GRAPH_NONE, "expert"), axes);
}

static void test_a_mixture_of_experts_has_the_gradient_of_its_meaning(void **state)
{
    (void)state;
    const uint32_t x = in("x", "row=2 time=3 embed=4"), up = in("up", "expert=3 ffn=5 embed=4"),
                   down = in("down", "expert=3 embed=4 ffn=5"), weight = in("weight", "row=2 time=3 slot=2"),
                   index = whole("index", "row=2 time=3 slot=2");
    const uint32_t inner = op1(OPERATOR_SILU, experts(x, up, index, "embed"));
    const uint32_t y = on(OPERATOR_SUM, op2(OPERATOR_MUL, experts(inner, down, index, "ffn"), weight), "slot");
    check_site("experts", &(struct site){ y, { x, up, down, GRAPH_NONE } });
}

/* ---- convolution by patches: stride and size are the same ---- */

static uint32_t patches(uint32_t image, uint32_t kernel)
{
    const uint32_t cut = on(OPERATOR_SPLIT, on(OPERATOR_SPLIT, image, "height y=2 py"), "width x=3 px");
    return dot(on(OPERATOR_MERGE, cut, "patch y x"), kernel, "channel py px");
}

static void test_patches_are_a_convolution(void **state)
{
    (void)state;
    enum { ROW = 2, CHANNEL = 3, SIDE = 2, HEIGHT = 4, WIDTH = 6, EMBED = 5 };
    uint32_t image = in("image", "row=2 channel=3 height=4 width=6"), kernel = in("kernel", "embed=5 channel=3 py=2 px=2");
    output("y", patches(image, kernel));
    struct data d = values();
    const float *x = d.bound[0], *w = d.bound[1], *y = d.outputs[0]; /* y [row patch embed] */
    for (int r = 0; r < ROW; r++)
        for (int p = 0; p < 6; p++)
            for (int e = 0; e < EMBED; e++) {
                double sum = 0;
                for (int c = 0; c < CHANNEL; c++)
                    for (int i = 0; i < SIDE; i++)
                        for (int j = 0; j < SIDE; j++)
                            sum += (double)x[((r * CHANNEL + c) * HEIGHT + p / 3 * SIDE + i) * WIDTH + p % 3 * SIDE + j] *
                                   (double)w[((e * CHANNEL + c) * SIDE + i) * SIDE + j];
                assert_close(y[(r * 6 + p) * EMBED + e], sum, 1e-6, "patch", (uint64_t)p);
            }
    data_free(&d);
    done(NULL);
    fresh(NULL);
    image = in("image", "row=1 channel=2 height=4 width=6"), kernel = in("kernel", "embed=3 channel=2 py=2 px=2");
    check_site("patches", &(struct site){ patches(image, kernel), { image, kernel, GRAPH_NONE, GRAPH_NONE } });
}

/* ---- embedding and cross-entropy with a tied head ---- */

static void test_a_tied_embedding_with_cross_entropy_has_the_gradient_of_its_meaning(void **state)
{
    (void)state;
    const uint32_t words = in("words", "vocab=7 embed=3"), ids = whole("ids", "row=2 time=4"),
                   next = whole("next", "row=2 time=4"), mask = input("mask", "row=2 time=4");
    const uint32_t hidden = op1(OPERATOR_TANH, over(OPERATOR_GATHER, words, ids, GRAPH_NONE, "vocab"));
    const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, dot(hidden, words, "embed"), next, GRAPH_NONE, "vocab");
    const uint32_t loss = over(OPERATOR_MEAN, op1(OPERATOR_NEG, logprob), mask, GRAPH_NONE, "row time");
    check_site("cross-entropy", &(struct site){ loss, { words, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE } });
}

/* ---- entropy: -sum of exp(l) l, l = log_softmax ---- */

static void test_entropy_has_the_gradient_of_its_meaning(void **state)
{
    (void)state;
    const uint32_t x = in("x", "row=3 vocab=6"), l = on(OPERATOR_LOG_SOFTMAX, x, "vocab");
    const uint32_t y = op1(OPERATOR_NEG, on(OPERATOR_SUM, op2(OPERATOR_MUL, op1(OPERATOR_EXP, l), l), "vocab"));
    output("y", y);
    struct data d = values();
    for (int r = 0; r < 3; r++) {
        const float *row = (const float *)d.bound[0] + 6 * r;
        double all = 0, sum = 0;
        for (int i = 0; i < 6; i++)
            all += exp(row[i]);
        for (int i = 0; i < 6; i++)
            sum -= exp(row[i]) / all * log(exp(row[i]) / all);
        assert_close(((float *)d.outputs[0])[r], sum, 1e-6, "entropy", (uint64_t)r);
    }
    data_free(&d);
    check_site("entropy", &(struct site){ y, { x, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE } });
}

/* ---- quantile: between the two sorted neighbours of (n - 1) q ---- */

static uint32_t quantile(uint32_t x, const char *axis, uint64_t n, double q)
{
    const double at = (double)(n - 1) * q, low = floor(at), share = at - low;
    const uint32_t sorted = on(OPERATOR_SORT, x, axis), first = along(OPERATOR_AT, sorted, axis, (int64_t)low, 0, 1);
    if (share == 0)
        return first;
    const uint32_t second = along(OPERATOR_AT, sorted, axis, (int64_t)low + 1, 0, 1);
    return op2(OPERATOR_ADD, op2(OPERATOR_MUL, first, number(1 - share)), op2(OPERATOR_MUL, second, number(share)));
}

static void test_a_quantile_lies_between_two_sorted_neighbours(void **state)
{
    (void)state;
    /* numpy.quantile([0.5, -1, 2, 0.25, 3], q), its default method */
    static const double numbers[5] = { 0.5, -1, 2, 0.25, 3 }, q[6] = { 0, 0.1, 0.25, 0.5, 0.9, 1 },
                        want[6] = { -1, -0.5, 0.25, 0.5, 2.6, 3 };
    const uint32_t x = table("n=5", numbers, 5);
    char name[16];
    for (int i = 0; i < 6; i++) {
        sprintf(name, "q%d", i);
        output(name, quantile(x, "n", 5, q[i]));
    }
    struct data d = values();
    for (int i = 0; i < 6; i++)
        assert_close(*(float *)d.outputs[i], want[i], 1e-6, "quantile", (uint64_t)i);
    data_free(&d);
    done(NULL);
    fresh(NULL);
    const uint32_t y = in("y", "peer=6 n=4");
    check_site("quantile", &(struct site){ quantile(y, "peer", 6, 0.3), { y, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE } });
}

/* ---- Newton-Schulz: five steps of scripts/optimisers/muon.lua, rows the shorter axis ---- */

static uint32_t orthogonal(uint32_t x)
{
    x = op2(OPERATOR_DIV, x, op2(OPERATOR_ADD, on(OPERATOR_NORM, x, "row col"), number(1e-7)));
    for (unsigned i = 0; i < 5; i++) {
        const uint32_t gram = dot(x, on(OPERATOR_RENAME, x, "row other"), "col");
        const uint32_t square = dot(on(OPERATOR_RENAME, gram, "other mid"), on(OPERATOR_RENAME, gram, "row mid"), "mid");
        const uint32_t poly =
            op2(OPERATOR_ADD, op2(OPERATOR_MUL, number(-4.7750), gram), op2(OPERATOR_MUL, number(2.0315), square));
        x = op2(OPERATOR_ADD, op2(OPERATOR_MUL, number(3.4445), x), dot(poly, on(OPERATOR_RENAME, x, "row other"), "other"));
    }
    return x;
}

static void test_newton_schulz_meets_its_published_values(void **state)
{
    (void)state;
    /* after five steps in double precision, by the coefficients of K. Jordan's Muon */
    static const double square[4] = { 1, 2, 3, 4 }, square_want[4] = { -0.680661, 0.825540, 0.741295, 0.259440 };
    static const double wide[6] = { 1, 2, -1, .5, -1, 3 },
                        wide_want[6] = { .609008474, .813593417, .0987327044, .360674172, .0874987174, .748562674 };
    output("square", orthogonal(table("row=2 col=2", square, 4)));
    output("wide", orthogonal(table("row=2 col=3", wide, 6)));
    struct data d = values();
    for (int i = 0; i < 4; i++)
        assert_close(((float *)d.outputs[0])[i], square_want[i], 2e-6, "square", (uint64_t)i);
    for (int i = 0; i < 6; i++)
        assert_close(((float *)d.outputs[1])[i], wide_want[i], 2e-6, "wide", (uint64_t)i);
    data_free(&d);
    done(NULL);
    fresh(NULL);
    const uint32_t x = in("x", "row=2 col=3");
    check_site("Newton-Schulz", &(struct site){ orthogonal(x), { x, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE } });
}

/* ---- cosine transform in a graph: a product with the table ---- */

static void test_a_product_with_the_table_has_the_bits_of_the_transform(void **state)
{
    (void)state;
    enum { N = 16, ROWS = 6 };
    float c[N * N], want[ROWS * N];
    double numbers[N * N];
    dct_table(N, c);
    for (int i = 0; i < N * N; i++)
        numbers[i] = c[i];
    const uint32_t x = in("x", "row=2 n=48"), t = table("k=16 i=16", numbers, N * N);
    const uint32_t y = dot(on(OPERATOR_SPLIT, x, "n block=3 i=16"), t, "i");
    output("y", y);
    struct data d = values();
    dct_run(NULL, &(struct dct){ .rows = 2, .columns = 3 * N, .high = 1, .wide = N }, d.bound[0], NULL, want);
    assert_memory_equal(d.outputs[0], want, sizeof want);
    data_free(&d);
    check_site("cosine transform", &(struct site){ y, { x, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE } });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gated_layers_have_the_gradient_of_their_meaning, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_mixture_of_experts_has_the_gradient_of_its_meaning, fresh, done),
        cmocka_unit_test_setup_teardown(test_patches_are_a_convolution, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_tied_embedding_with_cross_entropy_has_the_gradient_of_its_meaning, fresh, done),
        cmocka_unit_test_setup_teardown(test_entropy_has_the_gradient_of_its_meaning, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_quantile_lies_between_two_sorted_neighbours, fresh, done),
        cmocka_unit_test_setup_teardown(test_newton_schulz_meets_its_published_values, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_product_with_the_table_has_the_bits_of_the_transform, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
