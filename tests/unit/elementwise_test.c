#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "native/kernel/class.h"
#include "native/kernel/elementwise.h"
#include "native/numerics/activation.h"
#include "native/numerics/trig.h"
#include "tests/unit/kernel_random.h"

static float apply(enum elementwise_op op, float x, float y, float z)
{
    (void)y;
    (void)z;
    switch (op) {
#define ELEMENTWISE_OP(name, text, arity, formula)                                                                               \
    case ELEMENTWISE_##name:                                                                                                     \
        return formula;
#include "native/kernel/elementwise_ops.h"
#undef ELEMENTWISE_OP
    case ELEMENTWISE_OPS:
        break;
    }
    return 0;
}

/* A NaN has no defined bits: any equals any. */
static bool same(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (a != a && b != b);
}

static void for_each_isa(void (*check)(struct pool *pool))
{
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (unsigned threads = 1; threads <= 3; threads++) {
            struct pool *pool = pool_new(threads);

            check(pool);
            pool_free(pool);
        }
    }
}

static void check_values(struct pool *pool)
{
    enum { N = 3000 };
    static const float special[] = { 0.0f,       -0.0f,           1.0f,  -1.0f,   INFINITY, -INFINITY, 0x1p-149f,
                                     -0x1p-127f, 0x1.fffffep127f, 88.7f, -103.5f, 0.5f };
    struct space space = { 1, { N } };
    float *x[3], *out = malloc(N * sizeof *out);
    struct view in[3];

    for (int i = 0; i < 3; i++) {
        x[i] = test_floats(N, test_odd);
        for (size_t j = 0; j < 600; j++)
            x[i][j] = special[test_below(12)];
        in[i] = (struct view){ x[i], { 1 } };
    }
    for (int op = 0; op < ELEMENTWISE_OPS; op++) {
        elementwise_run(pool, (enum elementwise_op)op, KERNEL_F32, &space, in, out);
        for (size_t j = 0; j < N; j++)
            if (!same(out[j], apply((enum elementwise_op)op, x[0][j], x[1][j], x[2][j])))
                fail_msg("%s(%a, %a, %a) gave %a", elementwise_name((enum elementwise_op)op), (double)x[0][j], (double)x[1][j],
                         (double)x[2][j], (double)out[j]);
    }
    for (int i = 0; i < 3; i++)
        free(x[i]);
    free(out);
}

static void every_operation_has_the_bits_of_its_formula(void **state)
{
    (void)state;
    for_each_isa(check_values);
}

/* Random spaces of up to five axes, random strides (broadcast, permuted, padded). */
static void check_strides(struct pool *pool)
{
    for (int round = 0; round < 60; round++) {
        struct space space = { .rank = (unsigned)test_below(6) };
        struct view in[3];
        float *data[3];
        size_t room = 1;
        enum elementwise_op op = (enum elementwise_op[]){ ELEMENTWISE_COPY, ELEMENTWISE_SUB, ELEMENTWISE_WHERE }[test_below(3)];

        for (unsigned d = 0; d < space.rank; d++)
            space.size[d] = test_below(12) == 0 ? 0
                                                : 1 + test_below(round % 10 == 0 && d == space.rank - 1 ? 3000
                                                                 : round % 3 == 0 && d + 3 > space.rank ? 90
                                                                                                        : 7);
        for (unsigned d = 0; d < space.rank; d++)
            room *= space.size[d] + 1;
        for (int i = 0; i < 3; i++) {
            ptrdiff_t step = 1;
            unsigned order[KERNEL_RANK];

            for (unsigned d = 0; d < space.rank; d++)
                order[d] = d;
            for (unsigned d = space.rank; d > 1; d--) { /* shuffle */
                unsigned other = (unsigned)test_below(d), kept = order[d - 1];
                order[d - 1] = order[other];
                order[other] = kept;
            }
            for (unsigned d = space.rank; d-- > 0;) {
                unsigned axis = order[d];

                in[i].stride[axis] = test_below(4) == 0 ? 0 : step;
                step *= (ptrdiff_t)(space.size[axis] + test_below(2));
            }
            data[i] = test_floats(room, test_odd);
            in[i].data = data[i];
        }
        size_t count = space_count(&space);
        float *out = malloc((count + 1) * sizeof *out);

        elementwise_run(pool, op, KERNEL_F32, &space, in, out);
        for (size_t p = 0; p < count; p++) {
            float x[3] = { 0 };

            for (unsigned i = 0; i < elementwise_arity(op); i++) {
                ptrdiff_t at = 0;
                size_t rest = p;

                for (unsigned d = space.rank; d-- > 0; rest /= space.size[d])
                    at += (ptrdiff_t)(rest % space.size[d]) * in[i].stride[d];
                x[i] = data[i][at];
            }
            assert_true(same(out[p], apply(op, x[0], x[1], x[2])));
        }
        free(out);
        for (int i = 0; i < 3; i++)
            free(data[i]);
    }
}

static void any_strides_read_the_right_elements(void **state)
{
    (void)state;
    for_each_isa(check_strides);
}

static void other_types_and_conversions_are_exact(void **state)
{
    double a[4] = { 1.5, -2, 1e300, 0 }, b[4] = { 2, -2, 1, -0.0 }, out[4];
    int32_t i[4] = { 1, INT32_MAX, -5, 0 }, j[4] = { 2, 1, -5, 7 }, iout[4];
    float mask[4], wide[6] = { 1.7f, -1.7f, 3e9f, -3e9f, NAN, -0.0f }, clamped[6];
    int32_t cut[6];
    const int32_t cut_want[6] = { 1, -1, INT32_MAX, INT32_MIN, 0, 0 };
    const float clamp_want[4] = { 1, -1, 1, -1 };
    struct space space = { 1, { 4 } };
    struct view in[3] = { { a, { 1 } }, { b, { 1 } } };

    (void)state;
    elementwise_run(NULL, ELEMENTWISE_ADD, KERNEL_F64, &space, in, out);
    assert_true(out[0] == 3.5 && out[2] == 1e300 + 1);
    elementwise_run(NULL, ELEMENTWISE_EQ, KERNEL_F64, &space, in, mask);
    assert_true(mask[0] == 0 && mask[1] == 1 && mask[3] == 1);
    in[0].data = i;
    in[1].data = j;
    elementwise_run(NULL, ELEMENTWISE_ADD, KERNEL_I32, &space, in, iout);
    assert_true(iout[0] == 3 && iout[1] == INT32_MIN && iout[2] == -10);
    in[2] = in[1];
    in[1] = in[0];
    in[0] = (struct view){ mask, { 1 } };
    elementwise_run(NULL, ELEMENTWISE_WHERE, KERNEL_I32, &space, in, iout);
    assert_true(iout[0] == 2 && iout[1] == INT32_MAX);
    elementwise_cast(NULL, KERNEL_F32, KERNEL_I32, 6, wide, cut);
    assert_memory_equal(cut, cut_want, sizeof cut);
    elementwise_clamp(NULL, 6, wide, -1, 1, clamped);
    assert_true(same_bits(clamped, clamp_want, 4) && f32_bits(clamped[5]) == 0x80000000u);
    assert_false(elementwise_finite(NULL, 6, wide));
    assert_true(elementwise_finite(NULL, 4, wide));
    assert_false(elementwise_offered(ELEMENTWISE_EXP, KERNEL_F64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_the_bits_of_its_formula),
        cmocka_unit_test(any_strides_read_the_right_elements),
        cmocka_unit_test(other_types_and_conversions_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
