#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "native/kernel/class.h"
#include "native/kernel/reduce.h"
#include "tests/unit/kernel_random.h"

/* Rule 4 written out once more, over a strided sequence. `term` makes the next lane from the lane, x and w. */
static float rule_four(size_t n, size_t stride, const float *x, const float *w, float start, float (*term)(float, float, float),
                       float (*join)(float, float))
{
    float total = start;

    for (size_t from = 0; from < n; from += 4096) {
        float lane[32];

        for (int i = 0; i < 32; i++)
            lane[i] = start;
        for (size_t i = from; i < n && i < from + 4096; i++)
            lane[i % 32] = term(lane[i % 32], x[i * stride], w ? w[i * stride] : 1.0f);
        for (int half = 16; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                lane[i] = join(lane[i], lane[i + half]);
        total = join(total, lane[0]);
    }
    return total;
}

static float term_sum(float lane, float x, float w)
{
    return w == 0 ? f32_fma(0, 0, lane) : f32_fma(w, x, lane);
}

static float term_square(float lane, float x, float w)
{
    return w == 0 ? f32_fma(0, 0, lane) : f32_fma(w * x, x, lane);
}

static float term_max(float lane, float x, float w)
{
    return w != 0 && x > lane ? x : lane;
}

static float term_min(float lane, float x, float w)
{
    return w != 0 && x < lane ? x : lane;
}

static float join_sum(float a, float b)
{
    return a + b;
}

static float join_max(float a, float b)
{
    return b > a ? b : a;
}

static float join_min(float a, float b)
{
    return b < a ? b : a;
}

static float expected(enum reduce_op op, size_t n, size_t stride, const float *x, const float *w)
{
    float s, m;

    switch (op) {
    case REDUCE_SUM:
        return rule_four(n, stride, x, w, 0, term_sum, join_sum);
    case REDUCE_MEAN:
        s = w ? rule_four(n, stride, w, NULL, 0, term_sum, join_sum) : (float)n;
        return s == 0 ? 0 : expected(REDUCE_SUM, n, stride, x, w) / s;
    case REDUCE_MAX:
        return rule_four(n, stride, x, w, -INFINITY, term_max, join_max);
    case REDUCE_MIN:
        return rule_four(n, stride, x, w, INFINITY, term_min, join_min);
    case REDUCE_NORM:
        return f32_sqrt(rule_four(n, stride, x, w, 0, term_square, join_sum));
    case REDUCE_LOGSUMEXP:
        m = expected(REDUCE_MAX, n, stride, x, w);
        if (m == -INFINITY)
            return m;
        float *e = malloc((n + 1) * sizeof *e);
        for (size_t i = 0; i < n; i++)
            e[i] = w && w[i * stride] == 0 ? 0.0f : f32_exp(x[i * stride] - m);
        s = rule_four(n, 1, e, NULL, 0, term_sum, join_sum);
        free(e);
        return m + f32_log(s);
    case REDUCE_OPS:
        break;
    }
    return 0;
}

static void check(struct pool *pool, size_t n, size_t outer, size_t inner)
{
    size_t count = outer * n * inner;
    float *x = test_floats(count, test_odd), *w = test_floats(count, test_odd), *out = malloc((outer * inner + 1) * sizeof *out);

    for (size_t i = 0; i < count; i++) {
        w[i] = test_below(3) ? f32_abs(w[i]) : 0.0f;
        if (w[i] == 0.0f && test_below(2))
            x[i] = test_below(2) ? -INFINITY : 0x1p100f;
    }
    for (int op = 0; op < REDUCE_OPS; op++)
        for (int weighted = 0; weighted < 2; weighted++) {
            for (size_t i = 0; i < count && !weighted; i++)
                x[i] = x[i] == -INFINITY ? 1.0f : x[i];
            reduce_run(pool, (enum reduce_op)op, outer, n, inner, x, weighted ? w : NULL, out);
            for (size_t o = 0; o < outer; o++)
                for (size_t c = 0; c < inner; c++) {
                    size_t at = o * n * inner + c;
                    float want = expected((enum reduce_op)op, n, inner, x + at, weighted ? w + at : NULL),
                          got = out[o * inner + c];

                    if (f32_bits(want) != f32_bits(got) && (want == want || got == got))
                        fail_msg("op %d weighted %d n %zu inner %zu: %a, not %a", op, weighted, n, inner, (double)got,
                                 (double)want);
                }
        }
    free(x);
    free(w);
    free(out);
}

static void every_version_has_the_bits_of_the_definition(void **state)
{
    static const size_t lengths[] = { 0, 1, 2, 31, 32, 33, 63, 64, 100, 255, 256, 257, 1021, 4095, 4096, 4097, 9001 };

    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        struct pool *pool = pool_new(1 + (unsigned)isa);

        if (!kernel_isa_present((enum kernel_isa)isa) || !kernel_isa_use((enum kernel_isa)isa, NULL))
            continue;
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            check(pool, lengths[i], 3, 1);
            check(pool, lengths[i], lengths[i] > 1000 ? 1 : 2, lengths[i] > 1000 ? 3 : 67);
        }
        pool_free(pool);
    }
}

static void sums_are_independent_of_threads(void **state)
{
    enum { N = 100000 };
    float *x = test_floats(3 * N, test_ordinary), want[3], got[3], dots[3];

    (void)state;
    reduce_run(NULL, REDUCE_SUM, 3, N, 1, x, NULL, want);
    reduce_dot(NULL, 3, N, x, N, x, 0, dots);
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);
        float again[3];

        reduce_run(pool, REDUCE_SUM, 3, N, 1, x, NULL, got);
        reduce_dot(pool, 3, N, x, N, x, 0, again);
        assert_true(same_bits(want, got, 3) && same_bits(dots, again, 3));
        pool_free(pool);
    }
    free(x);
}

static void argmax_takes_the_lowest_of_equals(void **state)
{
    const float x[8] = { 1, 3, 3, -1, -0.0f, 0.0f, -1, -1 };
    int32_t out[4];

    (void)state;
    reduce_argmax(NULL, 2, 4, 1, x, out);
    assert_true(out[0] == 1 && out[1] == 0);
    reduce_argmax(NULL, 1, 2, 4, x, out);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0 && out[3] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_has_the_bits_of_the_definition),
        cmocka_unit_test(sums_are_independent_of_threads),
        cmocka_unit_test(argmax_takes_the_lowest_of_equals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
