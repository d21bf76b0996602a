/* Every operator of the table: the gradient that the graph builds for it, evaluated in binary64, against central differences of the
 * operator's meaning in binary64; then the executor's binary32 against binary64. An operator without a row in `rows` fails. */
#include "tests/unit/gradient_sites.h"

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
    [OPERATOR_LAYERNORM] = { PASSES, layer },
    [OPERATOR_LAYERNORM_GRAD] = { AFTER, layer },
    [OPERATOR_LAYERNORM_WEIGHT_GRAD] = { AFTER, layer_weight },
};

/* ---- checks ---- */

static bool one_is_there(uint32_t from, enum operator_code op)
{
    for (uint32_t i = from; i < g->node_count; i++)
        if (g->nodes[i].op == op)
            return true;
    return false;
}

static void check_ways(enum operator_code op, const struct row *row)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        real = turn ? TENSOR_F64 : TENSOR_F32;
        if (turn && !(operator_table[op].flags & OPERATOR_F64))
            continue;
        struct site s;
        for (unsigned way = 0; row->build(op, way, &s); way++) {
            seed = 3 + way;
            char name[64];
            sprintf(name, "%s, way %u", operator_table[op].name, way);
            check_site(name, &s);
            done(NULL);
            fresh(NULL);
        }
        done(NULL); /* what the last try left */
        fresh(NULL);
    }
    real = TENSOR_F32;
}

static void check_none(enum operator_code op, const struct row *row)
{
    struct site s;
    uint32_t gradient[4];
    assert_true(row->build(op, 0, &s));
    if (!graph_backward_from(g, s.y, cotangent(s.y), s.by, wanted(&s), gradient, &err))
        fail_msg("%s: %s", operator_table[op].name, err.message);
    for (unsigned i = 0; i < wanted(&s); i++) {
        char name[8];
        sprintf(name, "d%u", i);
        output(name, gradient[i]);
    }
    struct data d = data_new();
    run(NULL, &d);
    for (unsigned i = 0; i < wanted(&s); i++)
        for (uint64_t k = 0; k < g->nodes[gradient[i]].values; k++)
            assert_true(value(&g->nodes[gradient[i]], d.outputs[i], k) == 0);
    data_free(&d);
}

/* The message starts with the operator's name. */
static void check_refused(enum operator_code op, const struct row *row, bool twice)
{
    struct site s;
    uint32_t gradient[4];
    char name[64];
    assert_true(row->build(op, 0, &s));
    const uint32_t from = g->node_count;
    if (twice) {
        if (!graph_backward(g, s.y, s.by, 1, gradient, &err))
            fail_msg("%s: %s", operator_table[op].name, err.message);
        if (!one_is_there(from, op))
            fail_msg("%s: the gradient is made without it", operator_table[op].name);
        s.y = gradient[0];
    }
    assert_false(graph_backward(g, s.y, s.by, 1, gradient, &err));
    sprintf(name, "%s: ", operator_table[op].name);
    if (err.code != ERROR_UNSUPPORTED || strncmp(err.message, name, strlen(name)) != 0)
        fail_msg("%s is refused by \"%s\"", operator_table[op].name, err.message);
}

static void test_every_operator_has_the_gradient_of_its_meaning_or_is_refused_by_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPERATOR_CODES; i++) {
        const enum operator_code op = (enum operator_code)i;
        const struct row *row = &rows[i];
        const unsigned flags = operator_table[i].flags;
        if (row->passing == UNTOLD)
            fail_msg("operator %s has no row in gradient_test.c", operator_table[i].name);
        assert_int_equal(row->passing == SOURCE, (flags & OPERATOR_SOURCE) != 0);
        assert_int_equal(row->passing == NONE, (flags & (OPERATOR_FLAT | OPERATOR_COMPARE)) != 0);
        assert_int_equal(row->passing == INTERNAL, i >= OPERATOR_INTERNAL);
        if (row->passing == PASSES)
            check_ways(op, row);
        else if (row->passing == NONE)
            check_none(op, row);
        else if (row->passing != SOURCE && row->passing != INTERNAL)
            check_refused(op, row, row->passing == AFTER);
        done(NULL);
        fresh(NULL);
    }
}

/* What chooses or weighs carries no gradient, and says so. */
static void test_weights_masks_and_decays_are_refused_by_name(void **state)
{
    (void)state;
    uint32_t gradient;
    const uint32_t x = input("x", "a=2 b=3"), w = input("w", "b=3");
    const struct {
        uint32_t y;
        const char *message;
    } cases[] = {
        { over(OPERATOR_SUM, x, w, GRAPH_NONE, "b"), "sum: a weight carries no gradient" },
        { over(OPERATOR_SOFTMAX, x, w, GRAPH_NONE, "b"), "softmax: a mask carries no gradient" },
        { FULL(OPERATOR_CUMSUM, "b", ((struct extra){ NUMBERS(0), INTEGERS(0) }), x, w), "cumsum: a decay carries no gradient" },
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(graph_backward(g, cases[i].y, &w, 1, &gradient, &err));
        assert_string_equal(err.message, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_operator_has_the_gradient_of_its_meaning_or_is_refused_by_name, fresh, done),
        cmocka_unit_test_setup_teardown(test_weights_masks_and_decays_are_refused_by_name, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
