#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "native/kernel/class.h"
#include "native/kernel/elementwise.h"
#include "native/numerics/activation.h"
#include "native/numerics/power.h"
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

/* A NaN that was computed has no defined bits: any equals any (docs/numerics.md, rule 8). */
static bool same(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (a != a && b != b);
}

/* What only moves numbers keeps a NaN's bits. */
static bool moves(int op)
{
    return op == ELEMENTWISE_COPY || op == ELEMENTWISE_NEG || op == ELEMENTWISE_ABS || op == ELEMENTWISE_WHERE ||
           op == ELEMENTWISE_MIN || op == ELEMENTWISE_MAX;
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
    const float special[] = { 0.0f,
                              -0.0f,
                              1.0f,
                              -1.0f,
                              INFINITY,
                              -INFINITY,
                              0x1p-149f,
                              -0x1p-127f,
                              0x1.fffffep127f,
                              88.7f,
                              -103.5f,
                              0.5f,
                              f32_from_bits(0x7fc12345u),
                              f32_from_bits(0xffd00001u) };
    struct space space = { 1, { N } };
    float *x[3], *out = malloc(N * sizeof *out);
    struct view in[3];

    for (int i = 0; i < 3; i++) {
        x[i] = test_floats(N, test_odd);
        for (size_t j = 0; j < 600; j++)
            x[i][j] = special[test_below(14)];
        in[i] = (struct view){ x[i], { 1 } };
    }
    for (int op = 0; op < ELEMENTWISE_OPS; op++) {
        elementwise_run(pool, (enum elementwise_op)op, KERNEL_F32, &space, in, out);
        for (size_t j = 0; j < N; j++)
            if (!same(out[j], apply((enum elementwise_op)op, x[0][j], x[1][j], x[2][j])) ||
                (moves(op) && f32_bits(out[j]) != f32_bits(apply((enum elementwise_op)op, x[0][j], x[1][j], x[2][j]))))
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

/* The nearest of the 65536 values, ties to the even pattern, by trying the neighbours of the truncated one. */
static uint16_t nearest_half(float x, float (*read)(uint16_t), uint16_t infinity, uint16_t guess)
{
    double best = INFINITY;
    uint16_t found = infinity, from = guess > 2 ? guess - 2 : 0;

    for (uint16_t h = from; h <= from + 4 && h <= infinity; h++) {
        /* infinity stands where the next finite number would */
        double value = h == infinity ? 2.0 * (double)read((uint16_t)(h - 1)) - (double)read((uint16_t)(h - 2)) : (double)read(h);
        double distance = fabs(fabs((double)x) - value);

        if (distance < best || (distance == best && h % 2 == 0)) {
            best = distance;
            found = h;
        }
    }
    return (uint16_t)(found | (signbit(x) ? 0x8000u : 0));
}

static float read_bf16(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

static float read_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;

    return exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
}

/* Quicker than an assertion, for a million of them. */
static void equal(uint32_t got, uint32_t want)
{
    if (got != want)
        fail_msg("%x, not %x", got, want);
}

static void check_storage(struct pool *pool)
{
    enum { N = 4001 };
    float *x = test_floats(N, test_odd), *wide = malloc(65536 * sizeof *wide);
    uint16_t *bf16 = malloc(65536 * sizeof *bf16), *f16 = malloc(65536 * sizeof *f16);

    for (size_t i = 0; i < N; i++)
        x[i] = i % 3 == 0 ? f32_from_bits(test_word()) : i % 3 == 1 ? ldexpf(x[i], (int)test_below(40) - 25) : x[i];
    elementwise_to_bf16(pool, N, x, bf16);
    elementwise_to_f16(pool, N, x, f16);
    for (size_t i = 0; i < N; i++) {
        uint32_t bits = f32_bits(x[i]);
        uint16_t sign = bits >> 31 ? 0x8000u : 0;

        if (x[i] != x[i]) { /* bf16 keeps the upper half of a NaN, made quiet; f16 only its sign */
            equal(bf16[i], bits >> 16 | 0x40);
            equal(f16[i], 0x7e00 | sign);
        } else if (isinf(x[i])) {
            equal(bf16[i], 0x7f80 | sign);
            equal(f16[i], 0x7c00 | sign);
        } else {
            float a = f32_abs(x[i]), scaled = a >= 65536.0f ? 65536.0f : a;
            int power = 0;
            float mantissa = frexpf(scaled, &power);
            uint16_t guess = scaled < 0x1p-14f ? (uint16_t)(scaled * 0x1p24f)
                                               : (uint16_t)((power + 14) << 10 | ((int)(mantissa * 2048.0f) & 1023));

            equal(bf16[i], nearest_half(x[i], read_bf16, 0x7f80, (uint16_t)(f32_bits(a) >> 16)));
            equal(f16[i], nearest_half(x[i], read_f16, 0x7c00, guess < 0x7c00 ? guess : 0x7bff));
        }
    }
    for (size_t i = 0; i < 65536; i++)
        bf16[i] = f16[i] = (uint16_t)i;
    elementwise_from_bf16(pool, 65536, bf16, wide);
    for (size_t i = 0; i < 65536; i++)
        equal(f32_bits(wide[i]), i << 16);
    elementwise_from_f16(pool, 65536, f16, wide);
    for (size_t i = 0; i < 65536; i++)
        if ((i & 0x7c00) != 0x7c00)
            equal(f32_bits(wide[i]), f32_bits(read_f16(i & 0x7fff)) | (i & 0x8000) << 16);
        else
            equal(f32_bits(wide[i]), (i & 0x8000) << 16 | 0x7f800000u | (i & 1023) << 13);
    free(x);
    free(wide);
    free(bf16);
    free(f16);
}

static void storage_rounds_to_the_nearest_and_keeps_nan(void **state)
{
    (void)state;
    for_each_isa(check_storage);
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
        cmocka_unit_test(storage_rounds_to_the_nearest_and_keeps_nan),
        cmocka_unit_test(other_types_and_conversions_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
