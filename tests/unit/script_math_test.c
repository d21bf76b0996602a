/* Script numbers: elementary functions of binary64, against the 64-bit significands of long double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "runtime/script/script_math.h"

static double ulps(double got, long double want)
{
    int e;
    frexp((double)want, &e);
    return fabs((double)((got - want) / ldexpl(1, e - 53)));
}

static void results_are_within_two_units_of_long_double(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 100000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(seed >> 11) * 0x1p-53, x = (u - 0.5) * 1400, p = exp(x * 0.9), t = (u - 0.5) * 200;
        assert_true(ulps(script_exp(x), expl(x)) < 2);
        assert_true(ulps(script_log(p), logl(p)) < 2);
        assert_true(ulps(script_log2(p), log2l(p)) < 2);
        assert_true(ulps(script_sin(t), sinl(t)) < 2);
        assert_true(ulps(script_cos(t), cosl(t)) < 2);
        double base = exp((u - 0.5) * 8), power = (double)(seed % 4001) / 100 - 20;
        assert_true(ulps(script_pow(base, power), powl(base, power)) < 2);
    }
}

static void exact_cases_are_exact(void **state)
{
    (void)state;
    assert_true(script_exp(0) == 1 && script_log(1) == 0 && script_log2(0x1p-1074) == -1074 && script_log2(1024) == 10);
    assert_true(script_pow(2, 10) == 1024 && script_pow(10, 3) == 1000 && script_pow(7, 0) == 1 && script_pow(-2, 3) == -8);
    assert_true(script_pow(1.7, 2) == 1.7 * 1.7 && script_pow(0.1, -1) == 10 && script_sin(0) == 0 && script_cos(0) == 1);
    assert_true(script_exp(800) == INFINITY && script_exp(-800) == 0 && script_log(0) == -INFINITY && isnan(script_log(-1)));
    assert_true(script_pow(0, -1) == INFINITY && script_pow(-0.0, -1) == -INFINITY && isnan(script_pow(-1, 0.5)));
    assert_true(script_pow(2, INFINITY) == INFINITY && script_pow(0.5, INFINITY) == 0 && script_pow(2, 5000) == INFINITY);
}

/* A sum over the bits of fixed arguments, first computed by gcc 12 without FMA instructions and equal under clang 14 with them. */
static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    uint64_t sum = 0, seed = 11;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(seed >> 11) * 0x1p-53;
        const double y[] = { script_exp((u - 0.5) * 100), script_log(u + 1e-9), script_log2(u + 1e-9),
                             script_sin(u * 50),          script_cos(u * 50),   script_pow(u + 0.1, u * 9) };
        for (size_t k = 0; k < sizeof y / sizeof *y; k++) {
            uint64_t bits;
            memcpy(&bits, &y[k], sizeof bits);
            sum = sum * 31 + bits;
        }
    }
    assert_true(sum == 0x871b20fd10d27f12u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_within_two_units_of_long_double),
        cmocka_unit_test(exact_cases_are_exact),
        cmocka_unit_test(bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
