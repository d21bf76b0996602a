/* Every operator of the table: the gradient that the graph builds for it, evaluated in binary64, against central differences of the
 * operator's meaning in binary64; then the executor's binary32 against binary64. An operator without a row in gradient_sites.h fails. */
#include "tests/unit/gradient_sites.h"

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
        char name[16];
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
            fail_msg("operator %s has no row in gradient_sites.h", operator_table[i].name);
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
