#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "native/numerics/activation.h"
#include "native/numerics/power.h"
#include "native/numerics/random.h"
#include "native/numerics/trig.h"

/* Errors in units in the last place of the result (of the least normal number below that), against 80-bit evaluation by the C library.
 * Every STRIDE-th float of the range is tried: STRIDE is prime, so the low bits vary. bench/functions.c tries all, against MPFR. */
enum { STRIDE = 6007 };

static double ulps(float got, long double want)
{
    int exponent;

    if (isinf(got) || isinf((float)want))
        return (long double)got == want || (float)want == got ? 0 : INFINITY;
    frexpl(want, &exponent);
    exponent = exponent < -125 ? -125 : exponent;
    return (double)(fabsl((long double)got - want) * powl(2, 24 - exponent));
}

static double worst(float (*f)(float), long double (*exact)(long double), float from, float to)
{
    double worst_error = 0;
    float where = 0;

    for (int negative = 0; negative < 2; negative++)
        for (uint64_t bits = 0; bits < 0x7f800000u; bits += STRIDE) {
            float x = f32_from_bits((uint32_t)bits | (negative ? 0x80000000u : 0));

            if (x < from || x > to)
                continue;
            double error = ulps(f(x), exact(x));
            if (error > worst_error) {
                worst_error = error;
                where = x;
            }
        }
    print_message("%.3f ulp at %a\n", worst_error, (double)where);
    return worst_error;
}

#define WRAP(name)                                                                                                               \
    static float call_##name(float x)                                                                                            \
    {                                                                                                                            \
        return f32_##name(x);                                                                                                    \
    }
WRAP(exp)
WRAP(exp2)
WRAP(expm1)
WRAP(log)
WRAP(log1p)
WRAP(tanh)
WRAP(sigmoid)
WRAP(silu)
WRAP(softplus)
WRAP(erf)
WRAP(sin)
WRAP(cos)
WRAP(rsqrt)

static long double exact_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}

static long double exact_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double exact_silu(long double x)
{
    return x / (1 + expl(-x));
}

static long double exact_softplus(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static void elementary_functions_stay_within_their_bounds(void **state)
{
    (void)state;
    assert_true(worst(call_exp, expl, -104, 89) <= 0.8);
    assert_true(worst(call_exp2, exp2l, -151, 129) <= 0.84);
    assert_true(worst(call_expm1, expm1l, -104, 89) <= 1.5);
    assert_true(worst(call_log, logl, 0, INFINITY) <= 0.86);
    assert_true(worst(call_log1p, log1pl, -0.99999994f, INFINITY) <= 1.5);
    assert_true(worst(call_tanh, tanhl, -INFINITY, INFINITY) <= 0.85);
    assert_true(worst(call_sigmoid, exact_sigmoid, -INFINITY, INFINITY) <= 0.8);
    assert_true(worst(call_silu, exact_silu, -87, INFINITY) <= 1.7);
    assert_true(worst(call_softplus, exact_softplus, -87, INFINITY) <= 1.8);
    assert_true(worst(call_erf, erfl, -INFINITY, INFINITY) <= 1.05);
    assert_true(worst(call_sin, sinl, -0x1p20f, 0x1p20f) <= 0.501);
    assert_true(worst(call_cos, cosl, -0x1p20f, 0x1p20f) <= 0.501);
    assert_true(worst(call_rsqrt, exact_rsqrt, 0x1p-149f, INFINITY) <= 0.501);
}

static long double exact_gelu(long double x)
{
    return x * erfcl(-x * 0.70710678118654752440L) / 2;
}

static long double exact_gelu_tanh(long double x)
{
    return x * (1 + tanhl(0.79788456080286535588L * (x + 0.044715L * x * x * x))) / 2;
}

static long double exact_log1mexp(long double x)
{
    return x > -0.7L ? logl(-expm1l(x)) : log1pl(-expl(x));
}

static void activations_and_slopes_are_close(void **state)
{
    const float h = 1.0f / 1024;

    (void)state;
    for (float x = -8; x <= 8; x += 0.0078125f) {
        long double lx = (long double)x, low = (long double)(x - h), high = (long double)(x + h), step = 2 * (long double)h;

        assert_true(fabsl(f32_gelu(x) - exact_gelu(lx)) < 1e-6L);
        assert_true(fabsl(f32_gelu_tanh(x) - exact_gelu_tanh(lx)) < 1e-6L);
        assert_true(fabsl(f32_logsigmoid(x) + exact_softplus(-lx)) < 1e-6L);
        assert_true(fabsl(f32_gelu_slope(x) - (exact_gelu(high) - exact_gelu(low)) / step) < 3e-6L);
        assert_true(fabsl(f32_gelu_tanh_slope(x) - (exact_gelu_tanh(high) - exact_gelu_tanh(low)) / step) < 3e-6L);
        assert_true(fabsl(f32_silu_slope(x) - (exact_silu(high) - exact_silu(low)) / step) < 3e-6L);
        if (x < 0)
            assert_true(ulps(f32_log1mexp(x), exact_log1mexp(lx)) < 4 || fabsl(f32_log1mexp(x) - exact_log1mexp(lx)) < 1e-6L);
    }
}

static void angles_far_out_and_powers_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        float x = (float)i * 77.77f, base = 0.001f + (float)i * 0.37f, power = (float)(i % 200) * 0.05f - 5;

        assert_true(fabsl((long double)f32_sin(x) - sinl(x)) < 1.2e-7L);
        assert_true(fabsl((long double)f32_cos(x) - cosl(x)) < 1.2e-7L);
        assert_true(ulps(f32_pow(base, power), powl(base, power)) <= 0.51);
    }
    assert_true(isnan(f32_sin(2e6f)) && isnan(f32_cos(-INFINITY)));
}

static void special_values_are_as_stated(void **state)
{
    const float inf = INFINITY, nan = NAN;

    (void)state;
    assert_true(f32_exp(-inf) == 0 && f32_exp(inf) == inf && isnan(f32_exp(nan)) && f32_exp(0) == 1 && f32_exp(-0.0f) == 1);
    assert_true(f32_bits(f32_exp(-103.9f)) == 1 || f32_exp(-103.9f) == 0);
    assert_true(f32_exp(88.8f) == inf && f32_exp(88.7f) < inf && f32_bits(f32_exp(-104.0f)) == 0);
    assert_true(f32_exp2(-inf) == 0 && f32_exp2(inf) == inf && isnan(f32_exp2(nan)) && f32_exp2(-0.0f) == 1);
    for (int n = -149; n < 128; n++)
        assert_true(f32_exp2((float)n) == ldexpf(1, n));
    assert_true(f32_exp2(128) == inf && f32_bits(f32_exp2(-150)) == 0 && f32_bits(f32_exp2(-149.99f)) == 1);
    assert_true(f32_rsqrt(0) == inf && f32_rsqrt(-0.0f) == -inf && f32_rsqrt(inf) == 0 && isnan(f32_rsqrt(-1)) &&
                isnan(f32_rsqrt(nan)) && f32_rsqrt(4) == 0.5f && f32_rsqrt(0x1p-148f) == 0x1p74f);
    assert_true(f32_bits(f32_sin(-0.0f)) == 0x80000000u && f32_cos(0) == 1 && isnan(f32_sin(inf)) && isnan(f32_cos(nan)));
    assert_true(f32_bits(f32_expm1(-0.0f)) == 0x80000000u && f32_expm1(-inf) == -1 && f32_expm1(inf) == inf &&
                isnan(f32_expm1(nan)));
    assert_true(f32_log(0) == -inf && f32_log(-0.0f) == -inf && isnan(f32_log(-1)) && f32_log(inf) == inf && isnan(f32_log(nan)));
    assert_true(f32_bits(f32_log(1)) == 0 && isnan(f32_log(-inf)));
    assert_true(f32_bits(f32_log1p(-0.0f)) == 0x80000000u && f32_log1p(-1) == -inf && f32_log1p(inf) == inf &&
                isnan(f32_log1p(-2)) && isnan(f32_log1p(nan)));
    assert_true(f32_tanh(inf) == 1 && f32_tanh(-inf) == -1 && isnan(f32_tanh(nan)) && f32_bits(f32_tanh(-0.0f)) == 0x80000000u);
    assert_true(f32_sigmoid(0) == 0.5f && isnan(f32_sigmoid(nan)) && f32_sigmoid(200) == 1 && f32_sigmoid(-200) == 0);
    assert_true(f32_sigmoid(inf) == 1 && f32_sigmoid(-inf) == 0);
    assert_true(f32_erf(inf) == 1 && f32_erf(-inf) == -1 && isnan(f32_erf(nan)) && f32_erf(0) == 0);
    assert_true(f32_log1mexp(0) == -inf && f32_softplus(-inf) == 0 && f32_softplus(inf) == inf && f32_logsigmoid(inf) == 0);
    assert_true(f32_pow(-2, 3) == -8 && f32_pow(-2, 2) == 4 && isnan(f32_pow(-2, 0.5f)) && f32_pow(0, 0) == 1 &&
                f32_pow(0, 2) == 0);
    assert_true(f32_pow(0, -1) == inf && f32_pow(-0.0f, -1) == -inf && f32_pow(inf, -1) == 0 && f32_pow(1, nan) == 1);
    assert_true(f32_pow(2, 128) == inf && f32_pow(2, -149) == 0x1p-149f && f32_pow(2, 10) == 1024 && f32_pow(10, 2) == 100);
    assert_true(f32_round(2.5f) == 2 && f32_round(3.5f) == 4 && f32_round(-0.3f) == 0 &&
                f32_bits(f32_round(-0.3f)) == 0x80000000u);
    assert_true(f32_floor(-0.5f) == -1 && f32_floor(2.75f) == 2 && f32_floor(1e20f) == 1e20f && f32_floor(-3) == -3);
}

/* Half precision against a search for the nearest: every value between neighbours, and the midpoints. */
static void sixteen_bit_storage_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00u; h++) {
        float a = f32_from_f16((uint16_t)h), b = h == 0x7bffu ? 65536.0f : f32_from_f16((uint16_t)(h + 1)),
              middle = (a + b) * 0.5f;

        assert_int_equal(f16_from_f32(a), h);
        assert_int_equal(f16_from_f32(-a), h | 0x8000u);
        assert_int_equal(f16_from_f32(middle), h & 1 ? h + 1 : h);
        assert_int_equal(f16_from_f32(f32_from_bits(f32_bits(middle) - 1)), h);
        assert_int_equal(f16_from_f32(f32_from_bits(f32_bits(middle) + 1)), h + 1);
    }
    for (uint32_t h = 0; h < 0x7f80u; h++) {
        uint32_t bits = h << 16;

        assert_int_equal(bf16_from_f32(f32_from_bits(bits)), h);
        assert_int_equal(bf16_from_f32(f32_from_bits(bits | 0x8000u)), h & 1 ? h + 1 : h);
        assert_int_equal(bf16_from_f32(f32_from_bits(bits | 0x7fffu)), h);
        assert_int_equal(bf16_from_f32(f32_from_bits(bits | 0x8001u)), h + 1);
    }
    assert_true(isnan(f32_from_f16(f16_from_f32(NAN))) && isnan(f32_from_bf16(bf16_from_f32(NAN))));
    assert_true(isnan(f32_from_bf16(bf16_from_f32(f32_from_bits(0x7f800001u)))));
    assert_true(f32_from_f16(f16_from_f32(-INFINITY)) == -INFINITY && f32_from_bf16(bf16_from_f32(INFINITY)) == INFINITY);
}

/* Known answers: kat_vectors of Random123 (D. E. Shaw Research). */
static void philox_gives_the_known_answers(void **state)
{
    static const uint32_t input[3][6] = { { 0 },
                                          { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u },
                                          { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0 } };
    static const uint32_t answer[3][4] = { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                                           { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
                                           { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } };

    (void)state;
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];

        philox_block(input[i], input[i] + 4, out);
        assert_memory_equal(out, answer[i], sizeof out);
    }
}

static void uniforms_and_normals_have_their_distribution(void **state)
{
    enum { COUNT = 200000 };
    uint32_t key[2] = { 1, 2 };
    double sum = 0, square = 0, uniform = 0, beyond = 0;

    (void)state;
    for (uint32_t i = 0; i < COUNT / 4; i++) {
        uint32_t counter[4] = { i, 0, 0, 0 }, out[4];

        philox_block(counter, key, out);
        for (int j = 0; j < 4; j++) {
            double x = (double)random_normal(out[j]);

            sum += x;
            square += x * x;
            beyond += fabs(x) > 1.959964;
            uniform += (double)random_uniform(out[j]);
        }
    }
    assert_true(fabs(sum / COUNT) < 0.01 && fabs(square / COUNT - 1) < 0.01);
    assert_true(fabs(beyond / COUNT - 0.05) < 0.002 && fabs(uniform / COUNT - 0.5) < 0.003);
    assert_true(random_uniform(0) == 0 && random_uniform(~0u) == 1 - 0x1p-24f);
    assert_true(random_normal(0) == -random_normal(~0u) && isfinite(random_normal(0)));
    /* the quantile of 0.975 */
    assert_true(fabs((double)random_normal(4187593113u) - 1.959964) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementary_functions_stay_within_their_bounds), cmocka_unit_test(activations_and_slopes_are_close),
        cmocka_unit_test(angles_far_out_and_powers_are_right),           cmocka_unit_test(special_values_are_as_stated),
        cmocka_unit_test(sixteen_bit_storage_rounds_to_nearest_even),    cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(uniforms_and_normals_have_their_distribution),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
