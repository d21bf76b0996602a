/* Weights read as they are stored give the bits of weights that were converted before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/kernel/class.h"
#include "native/kernel/pool.h"
#include "native/kernel/stored.h"
#include "native/model/convert.h"
#include "native/numerics/f32.h"
#include "tests/unit/kernel_random.h"

static const struct {
    enum stored_type reader;
    enum tensor_type type;
} types[] = { { STORED_F16, TENSOR_F16 },      { STORED_BF16, TENSOR_BF16 }, { STORED_Q8_0, TENSOR_Q8_0 },
              { STORED_Q4_0, TENSOR_Q4_0 },    { STORED_Q4_1, TENSOR_Q4_1 }, { STORED_NF4, TENSOR_NF4 },
              { STORED_NF4_DQ, TENSOR_NF4_DQ } };
enum { TYPES = sizeof types / sizeof *types };

static struct error err;

static void ok(bool good)
{
    if (!good)
        fail_msg("%s: %s", err.place, err.message);
}

static uint8_t *weights_nf4(enum tensor_type type, size_t values)
{
    uint64_t count = values;
    size_t bytes;

    ok(tensor_measure(type, 1, &count, SIZE_MAX, &count, &bytes, &err));
    uint8_t *stored = malloc(bytes);
    float *x = malloc(values * sizeof *x);

    for (size_t i = 0; i < values; i++)
        x[i] = test_ordinary();
    assert_true(convert_from_f32(type, x, values, stored));
    free(x);
    return stored;
}

/* Random bytes whose scales are ordinary numbers. */
static uint8_t *weights(enum tensor_type type, size_t values)
{
    if (type == TENSOR_NF4 || type == TENSOR_NF4_DQ)
        return weights_nf4(type, values);

    const size_t block = tensor_block_bytes(type), each = tensor_block_values(type);
    uint8_t *bytes = malloc(values / each * block + 1);

    for (size_t i = 0; i < values / each * block; i++)
        bytes[i] = (uint8_t)test_below(256);
    for (size_t i = 0; i < values / each; i++) {
        const uint16_t scale = type == TENSOR_BF16 ? bf16_from_f32(test_ordinary()) : f16_from_f32(test_ordinary() * 0.1f);

        memcpy(bytes + i * block, &scale, sizeof scale);
        if (type == TENSOR_Q4_1)
            memcpy(bytes + i * block + 2, &scale, sizeof scale);
    }
    return bytes;
}

static void readers_give_the_bits_of_the_conversion(void **state)
{
    enum { VALUES = 16384 + 32 * 40 }; /* more than one group of nf4_dq */
    float *whole = malloc(VALUES * sizeof *whole), *part = malloc(VALUES * sizeof *part);

    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        uint8_t *bytes = weights(types[t].type, VALUES);

        convert_to_f32(types[t].type, bytes, VALUES, whole);
        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (int i = 0; i < 300 && kernel_isa_present((enum kernel_isa)isa); i++) {
                const size_t first = test_below(VALUES), left = VALUES - first,
                             count = test_below(1 + (i % 8 ? left % 700 : left));

                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                stored_reader(types[t].reader)(bytes, first, count, part);
                assert_true(same_bits(whole + first, part, count));
            }
        free(bytes);
    }
    free(whole);
    free(part);
}

/* Looks rows up, multiplies by the table both ways, and trains nothing of it: what a frozen base goes through. */
static struct graph *built(void)
{
    struct graph *g = graph_new(NULL);
    uint32_t table, weight, ids, x, y, z, back, loss, gradient;

    ok(graph_input(g, "table", TENSOR_F32, "vocab=96 embed=64", &table, &err) &&
       graph_input(g, "weight", TENSOR_F32, "out=50 embed=64", &weight, &err) &&
       graph_input(g, "ids", TENSOR_I32, "time=300", &ids, &err) &&
       graph_over(g, OPERATOR_GATHER, table, ids, GRAPH_NONE, "vocab", &x, &err) &&
       graph_over(g, OPERATOR_DOT, x, weight, GRAPH_NONE, "embed", &y, &err) &&
       graph_over(g, OPERATOR_DOT, weight, y, GRAPH_NONE, "out", &z, &err) && /* the weight first */
       graph_over(g, OPERATOR_DOT, z, table, GRAPH_NONE, "embed", &back, &err) &&
       graph_over(g, OPERATOR_TOKEN_LOGPROB, back, ids, GRAPH_NONE, "vocab", &back, &err) &&
       graph_over(g, OPERATOR_SUM, back, GRAPH_NONE, GRAPH_NONE, "time", &loss, &err) &&
       graph_backward(g, loss, &y, 1, &gradient, &err) && graph_output(g, "y", y, &err) && graph_output(g, "loss", loss, &err) &&
       graph_output(g, "dy", gradient, &err));
    return g;
}

static void run(const struct graph *g, const uint8_t *stored, const void *const *inputs, float *y, float *loss, float *dy)
{
    struct pool *pool = pool_new(2);
    struct executor *ex = executor_new(g, &(struct executor_options){ .pool = pool, .stored = stored }, &err);

    ok(ex != NULL);
    ok(executor_run(ex, inputs, (void *[]){ y, loss, dy }, NULL, &err));
    executor_free(ex);
    pool_free(pool);
}

static void a_graph_over_stored_weights_gives_the_bits_of_converted_ones(void **state)
{
    int32_t ids[300];
    float *table = malloc(96 * 64 * sizeof *table), *weight = malloc(50 * 64 * sizeof *weight);
    float want[2][300 * 50], got[2][300 * 50], loss[2];
    struct graph *g = built();

    (void)state;
    for (size_t i = 0; i < 300; i++)
        ids[i] = (int32_t)test_below(96);
    for (size_t t = 0; t < TYPES; t++) {
        uint8_t *bytes[2] = { weights(types[t].type, 96 * 64), weights(types[t].type, 50 * 64) };
        const uint8_t stored[3] = { (uint8_t)types[t].type, (uint8_t)types[t].type, TENSOR_I32 };

        convert_to_f32(types[t].type, bytes[0], 96 * 64, table);
        convert_to_f32(types[t].type, bytes[1], 50 * 64, weight);
        for (int isa = 0; isa < KERNEL_ISAS; isa++) {
            if (!kernel_isa_present((enum kernel_isa)isa))
                continue;
            assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
            run(g, NULL, (const void *[]){ table, weight, ids }, want[0], &loss[0], want[1]);
            run(g, stored, (const void *[]){ bytes[0], bytes[1], ids }, got[0], &loss[1], got[1]);
            assert_true(same_bits(want[0], got[0], 300 * 50));
            assert_true(same_bits(want[1], got[1], 300 * 50));
            assert_true(same_bits(&loss[0], &loss[1], 1));
        }
        free(bytes[0]);
        free(bytes[1]);
    }
    free(table);
    free(weight);
    graph_free(g);
}

/* A few rows: what decoding takes. */
static void a_sequence_over_stored_weights_gives_the_bits_of_converted_ones(void **state)
{
    enum { OUT = 50, EMBED = 352 };                              /* a chunk, two blocks and one */
    static const uint16_t scales[] = { 0x8201, 0x0000, 0x8000 }; /* a subnormal one, zeros */
    float *weight = malloc(OUT * EMBED * sizeof *weight), *x = test_floats(8 * EMBED, test_ordinary), want[8 * OUT], got[8 * OUT];

    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        uint8_t *bytes = weights(types[t].type, OUT * EMBED);
        const uint8_t stored[2] = { (uint8_t)types[t].type, TENSOR_F32 };
        const size_t row = EMBED / tensor_block_values(types[t].type) * tensor_block_bytes(types[t].type);

        for (size_t i = 0; i < 3 && types[t].type != TENSOR_NF4 && types[t].type != TENSOR_NF4_DQ; i++)
            memcpy(bytes + i * (3 * row + tensor_block_bytes(types[t].type)), &scales[i], sizeof scales[i]);

        convert_to_f32(types[t].type, bytes, OUT * EMBED, weight);
        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (unsigned rows = 1; rows <= 8 && kernel_isa_present((enum kernel_isa)isa); rows++) {
                struct graph *g = graph_new(NULL);
                char axes[32];
                uint32_t w, in, y;

                snprintf(axes, sizeof axes, "row=%u embed=352", rows);
                ok(graph_input(g, "weight", TENSOR_F32, "out=50 embed=352", &w, &err) &&
                   graph_input(g, "x", TENSOR_F32, axes, &in, &err) &&
                   graph_over(g, OPERATOR_DOT, in, w, GRAPH_NONE, "embed", &y, &err) && graph_output(g, "y", y, &err));
                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                for (int k = 0; k < 2; k++) {
                    struct executor *ex = executor_new(g, &(struct executor_options){ .stored = k ? stored : NULL }, &err);

                    ok(ex && executor_run(ex, (const void *[]){ k ? (void *)bytes : weight, x }, (void *[]){ k ? got : want },
                                          NULL, &err));
                    executor_free(ex);
                }
                assert_true(same_bits(want, got, rows * OUT));
                graph_free(g);
            }
        free(bytes);
    }
    free(weight);
    free(x);
}

static void an_operator_that_needs_floats_refuses_stored_weights(void **state)
{
    struct graph *g = graph_new(NULL);
    uint32_t x, y;
    const uint8_t stored[1] = { TENSOR_Q4_0 };

    (void)state;
    ok(graph_input(g, "x", TENSOR_F32, "n=64", &x, &err) && graph_unary(g, OPERATOR_NEG, x, &y, &err) &&
       graph_output(g, "y", y, &err));
    assert_false(executor_may_store(g, 0, TENSOR_Q4_0));
    assert_true(executor_may_store(g, 0, TENSOR_F32));
    assert_null(executor_new(g, &(struct executor_options){ .stored = stored }, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_give_the_bits_of_the_conversion),
        cmocka_unit_test(a_sequence_over_stored_weights_gives_the_bits_of_converted_ones),
        cmocka_unit_test(a_graph_over_stored_weights_gives_the_bits_of_converted_ones),
        cmocka_unit_test(an_operator_that_needs_floats_refuses_stored_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
