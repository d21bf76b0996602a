#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/graph/wire.h"

static struct graph *g;
static struct error err;

static int fresh(void **state)
{
    (void)state;
    g = graph_new(NULL);
    memset(&err, 0, sizeof err);
    return 0;
}

static int done(void **state)
{
    (void)state;
    graph_free(g);
    return 0;
}

static uint32_t input(const char *name, enum tensor_type type, const char *axes)
{
    uint32_t node = GRAPH_NONE;
    if (!graph_input(g, name, type, axes, &node, &err))
        fail_msg("%s", err.message);
    return node;
}

static void assert_shape(uint32_t node, const char *shape)
{
    char text[GRAPH_SHOW];
    assert_string_equal(graph_show(g, node, text, sizeof text), shape);
}

static void assert_over(enum operator_code op, uint32_t x, uint32_t y, const char *axes, const char *shape)
{
    uint32_t node;
    if (!graph_over(g, op, x, y, GRAPH_NONE, axes, &node, &err))
        fail_msg("%s", err.message);
    assert_shape(node, shape);
}

static void assert_refused(enum operator_code op, uint32_t x, uint32_t y, const char *axes, const char *message)
{
    uint32_t node;
    memset(&err, 0, sizeof err);
    const uint32_t before = g->node_count;
    assert_false(graph_over(g, op, x, y, GRAPH_NONE, axes, &node, &err));
    assert_string_equal(err.message, message);
    assert_int_equal(g->node_count, before);
}

static void test_elementwise_operands_align_by_name(void **state)
{
    (void)state;
    const uint32_t a = input("a", TENSOR_F32, "batch=2 time=3"), b = input("b", TENSOR_F32, "time=3"),
                   c = input("c", TENSOR_F32, "vocab=5"), d = input("d", TENSOR_F32, "time=4"),
                   i = input("i", TENSOR_I32, "time=3"), e = input("e", TENSOR_F64, "time=3");
    assert_over(OPERATOR_MUL, a, b, "", "[batch=2 time=3]");
    assert_over(OPERATOR_SUB, b, a, "", "[batch=2 time=3]");
    assert_over(OPERATOR_ADD, b, e, "", "[time=3]");
    assert_int_equal(g->nodes[g->node_count - 1].type, TENSOR_F64);
    assert_over(OPERATOR_LT, i, i, "", "[time=3]");
    assert_int_equal(g->nodes[g->node_count - 1].type, TENSOR_F32);
    assert_refused(OPERATOR_ADD, a, c, "", "+: [batch=2 time=3] and [vocab=5]: neither holds all axes of the other");
    assert_refused(OPERATOR_ADD, a, d, "", "+: axis time is 3 and 4: [batch=2 time=3] and [time=4]");
    assert_refused(OPERATOR_ADD, b, i, "", "+: f32 meets i32");
    assert_refused(OPERATOR_EXP, e, GRAPH_NONE, "", "exp: it takes f32, got f64");
    assert_refused(OPERATOR_DIV, i, i, "", "/: it takes f32 or f64, got i32");
    assert_refused(OPERATOR_POW, b, e, "", "^: it takes f32, got f64");
}

static void test_reductions_drop_their_axes(void **state)
{
    (void)state;
    const uint32_t a = input("a", TENSOR_F32, "batch=2 time=3 dim=4"), w = input("w", TENSOR_F32, "batch=2 time=3"),
                   v = input("v", TENSOR_F32, "vocab=5");
    assert_over(OPERATOR_SUM, a, w, "time batch", "[dim=4]");
    assert_over(OPERATOR_LOGSUMEXP, a, GRAPH_NONE, "dim", "[batch=2 time=3]");
    assert_over(OPERATOR_SOFTMAX, a, GRAPH_NONE, "dim", "[batch=2 time=3 dim=4]");
    assert_over(OPERATOR_ARGMAX, a, GRAPH_NONE, "dim", "[batch=2 time=3]");
    assert_refused(OPERATOR_MEAN, a, GRAPH_NONE, "peer", "mean: no axis peer in [batch=2 time=3 dim=4]");
    assert_refused(OPERATOR_MEAN, a, v, "time", "mean: weight [vocab=5] must lie within [batch=2 time=3 dim=4]");
    assert_refused(OPERATOR_SUM, a, GRAPH_NONE, "time time", "sum: axis time is named twice");
}

static void test_products_gather_and_shape_operators_give_named_axes(void **state)
{
    (void)state;
    const uint32_t x = input("x", TENSOR_F32, "row=2 time=3 embed=4"), w = input("w", TENSOR_F32, "kv=2 group=1 dim=2 embed=4"),
                   e = input("e", TENSOR_F32, "vocab=7 embed=4"), ids = input("ids", TENSOR_I32, "row=2 time=3"),
                   u = input("u", TENSOR_F32, "peer=3 n=5");
    assert_over(OPERATOR_DOT, x, w, "embed", "[row=2 time=3 kv=2 group=1 dim=2]");
    assert_over(OPERATOR_GATHER, e, ids, "vocab", "[row=2 time=3 embed=4]");
    assert_over(OPERATOR_SCATTER, x, ids, "row time vocab=7", "[vocab=7 embed=4]");
    assert_over(OPERATOR_SCATTER, x, ids, "vocab=7", "[row=2 time=3 embed=4 vocab=7]");
    assert_over(OPERATOR_ONE_HOT, ids, GRAPH_NONE, "vocab=7", "[row=2 time=3 vocab=7]");
    assert_over(OPERATOR_SPLIT, x, GRAPH_NONE, "embed head=2 dim", "[row=2 time=3 head=2 dim=2]");
    assert_over(OPERATOR_MERGE, x, GRAPH_NONE, "token time row", "[token=6 embed=4]");
    assert_over(OPERATOR_RENAME, x, GRAPH_NONE, "time key", "[row=2 key=3 embed=4]");
    assert_over(OPERATOR_EXPAND, ids, GRAPH_NONE, "head=2", "[row=2 time=3 head=2]");
    assert_over(OPERATOR_TRANSPOSE, x, GRAPH_NONE, "embed row time", "[embed=4 row=2 time=3]");
    assert_over(OPERATOR_DIST2, u, GRAPH_NONE, "peer other", "[peer=3 other=3]");
    assert_over(OPERATOR_TOPK, u, GRAPH_NONE, "n k=2", "[peer=3 k=2]");
    assert_refused(OPERATOR_DOT, x, e, "time", "dot: axis time must be in both [row=2 time=3 embed=4] and [vocab=7 embed=4]");
    assert_refused(OPERATOR_SPLIT, x, GRAPH_NONE, "embed head=3 dim", "split: embed=4 does not split into parts of 3");
    assert_refused(OPERATOR_RENAME, x, GRAPH_NONE, "time row", "rename: the result has axis row twice");
    assert_refused(OPERATOR_TOPK, u, GRAPH_NONE, "n k=6", "topk: 6 of an axis of 5 in [peer=3 n=5]");
}

/* Working memory of the kernel is as wide as that. */
static void test_a_rotation_too_wide_is_refused(void **state)
{
    (void)state;
    uint32_t node;
    const uint32_t x[2] = { input("x", TENSOR_F32, "time=3 dim=1026"), input("position", TENSOR_I32, "time=3") };
    const struct graph_request r = { .op = OPERATOR_ROPE,
                                     .inputs = x,
                                     .input_count = 2,
                                     .axes = &(struct graph_word){ "dim", 0 },
                                     .axes_count = 1,
                                     .numbers = (double[]){ 10000, 0, 0, 0, 0 },
                                     .numbers_count = 5,
                                     .integers = (int64_t[]){ 0, 0, ROPE_NONE, 0 },
                                     .integers_count = 4 };
    assert_false(graph_add(g, &r, &node, &err));
    assert_string_equal(err.message, "rope: a width of 1026 in [time=3 dim=1026]");
}

static void test_errors_carry_the_line_and_the_lines_of_the_operands(void **state)
{
    (void)state;
    uint32_t a, node;
    const struct graph_word axes = { "time", 3 };
    assert_true(graph_add(g,
                          &(struct graph_request){
                              .op = OPERATOR_INPUT, .name = "a", .axes = &axes, .axes_count = 1, .note = "grpo.lua@1f2e3d4c:9" },
                          &a, &err));
    assert_false(graph_add(g,
                           &(struct graph_request){ .op = OPERATOR_MEAN,
                                                    .inputs = &a,
                                                    .input_count = 1,
                                                    .axes = &(struct graph_word){ "batch", 0 },
                                                    .axes_count = 1,
                                                    .note = "grpo.lua@1f2e3d4c:14" },
                           &node, &err));
    assert_string_equal(err.place, "grpo.lua@1f2e3d4c:14");
    assert_string_equal(err.message, "mean: no axis batch in [time=3]");
    assert_string_equal(err.hint, "operands made at grpo.lua@1f2e3d4c:9");
}

static void test_limits_hold_before_memory_is_taken(void **state)
{
    (void)state;
    uint32_t node;
    assert_false(graph_input(g, "x", TENSOR_F32, "a=4294967296 b=4294967296 c=4294967296", &node, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    memset(&err, 0, sizeof err);
    assert_false(graph_input(g, "x", TENSOR_F32, "a=1000000 b=1000000", &node, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    const double nan = strtod("nan", NULL);
    memset(&err, 0, sizeof err);
    assert_false(graph_constant(g, TENSOR_F32, nan, &node, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);
}

/* A graph with every kind of attribute. */
static void build_sample(void)
{
    const uint32_t x = input("x", TENSOR_F32, "row=2 time=3 embed=4"), ids = input("ids", TENSOR_I32, "row=2 time=3");
    uint32_t c, y, z, t;
    const double numbers[3] = { 0.5, -1, 1e300 };
    assert_true(graph_constant(g, TENSOR_F32, 0.1, &c, &err));
    assert_true(graph_binary(g, OPERATOR_MUL, x, c, &y, &err));
    assert_true(graph_over(g, OPERATOR_SPLIT, y, GRAPH_NONE, GRAPH_NONE, "embed head=2 dim", &z, &err));
    assert_true(graph_add(g,
                          &(struct graph_request){ .op = OPERATOR_TABLE,
                                                   .type = TENSOR_F64,
                                                   .axes = &(struct graph_word){ "k", 3 },
                                                   .axes_count = 1,
                                                   .numbers = numbers,
                                                   .numbers_count = 3,
                                                   .note = "a.lua:1" },
                          &t, &err));
    assert_true(graph_add(g,
                          &(struct graph_request){ .op = OPERATOR_SHIFT,
                                                   .inputs = &ids,
                                                   .input_count = 1,
                                                   .axes = &(struct graph_word){ "time", 0 },
                                                   .axes_count = 1,
                                                   .integers = (int64_t[]){ -1 },
                                                   .integers_count = 1,
                                                   .note = "a.lua:2" },
                          &t, &err));
    assert_true(graph_output(g, "z", z, &err));
    assert_true(graph_output(g, "t", t, &err));
}

static void test_wire_round_trip_keeps_bytes_notes_and_hash(void **state)
{
    (void)state;
    build_sample();
    for (int notes = 0; notes < 2; notes++) {
        struct buffer a = { 0 }, b = { 0 };
        graph_encode(g, notes, &a);
        struct graph *h = graph_decode(a.bytes, a.size, NULL, &err);
        if (!h)
            fail_msg("%s: %s", err.place, err.message);
        graph_encode(h, notes, &b);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.bytes, b.bytes, a.size);
        const struct graph_hash p = graph_hash(g), q = graph_hash(h);
        assert_memory_equal(p.bytes, q.bytes, sizeof p.bytes);
        assert_string_equal(graph_text(h, h->nodes[5].note), notes ? "a.lua:1" : "");
        graph_free(h);
        buffer_free(&a);
        buffer_free(&b);
    }
}

/* The number stands for itself: it was written down when the wire format was fixed, and a change of it is a change of format. */
static void test_the_hash_of_a_graph_is_golden(void **state)
{
    (void)state;
    char hex[65];
    build_sample();
    const struct graph_hash h = graph_hash(g);
    for (unsigned i = 0; i < 32; i++)
        sprintf(hex + 2 * i, "%02x", h.bytes[i]);
    assert_string_equal(hex, "61d86466858b08c2c37e372e4972b498f3a0f5572308c824f743eea4accaf277");
}

static void test_every_torn_or_changed_wire_is_refused_or_canonical(void **state)
{
    (void)state;
    build_sample();
    struct buffer a = { 0 };
    graph_encode(g, true, &a);
    for (size_t size = 0; size < a.size; size++) {
        memset(&err, 0, sizeof err);
        assert_null(graph_decode(a.bytes, size, NULL, &err));
        assert_int_not_equal(err.code, ERROR_NONE);
    }
    for (size_t i = 0; i < a.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            a.bytes[i] ^= (uint8_t)(1u << bit);
            struct graph *h = graph_decode(a.bytes, a.size, NULL, &err);
            if (h) {
                struct buffer b = { 0 };
                graph_encode(h, a.bytes[4] == 1, &b);
                assert_int_equal(a.size, b.size);
                assert_memory_equal(a.bytes, b.bytes, a.size);
                buffer_free(&b);
            }
            graph_free(h);
            a.bytes[i] ^= (uint8_t)(1u << bit);
        }
    buffer_free(&a);
}

static void test_splicing_binds_inputs_by_name(void **state)
{
    (void)state;
    build_sample();
    struct graph *h = graph_new(NULL);
    uint32_t x, y, map[16];
    char text[GRAPH_SHOW];
    assert_true(graph_input(h, "data", TENSOR_F32, "time=3 row=2 embed=4", &x, &err));
    assert_true(graph_unary(h, OPERATOR_NEG, x, &y, &err));
    const struct graph_binding b = { "x", y };
    assert_true(graph_splice(h, g, &b, 1, map, &err));
    assert_string_equal(graph_show(h, map[graph_output_find(g, "z")], text, sizeof text), "[row=2 time=3 head=2 dim=2]");
    assert_int_not_equal(graph_bound_find(h, "ids", NULL), GRAPH_NONE);
    const struct graph_binding wrong = { "ids", y };
    assert_false(graph_splice(h, g, &wrong, 1, map, &err));
    assert_string_equal(err.message,
                        "input \"ids\" is i32 [row=2 time=3], but what is bound to it is f32 [time=3 row=2 embed=4]");
    graph_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_elementwise_operands_align_by_name, fresh, done),
        cmocka_unit_test_setup_teardown(test_reductions_drop_their_axes, fresh, done),
        cmocka_unit_test_setup_teardown(test_products_gather_and_shape_operators_give_named_axes, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_rotation_too_wide_is_refused, fresh, done),
        cmocka_unit_test_setup_teardown(test_errors_carry_the_line_and_the_lines_of_the_operands, fresh, done),
        cmocka_unit_test_setup_teardown(test_limits_hold_before_memory_is_taken, fresh, done),
        cmocka_unit_test_setup_teardown(test_wire_round_trip_keeps_bytes_notes_and_hash, fresh, done),
        cmocka_unit_test_setup_teardown(test_the_hash_of_a_graph_is_golden, fresh, done),
        cmocka_unit_test_setup_teardown(test_every_torn_or_changed_wire_is_refused_or_canonical, fresh, done),
        cmocka_unit_test_setup_teardown(test_splicing_binds_inputs_by_name, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
