#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "native/kernel/class.h"
#include "native/kernel/gemm.h"
#include "tests/unit/kernel_random.h"

static const size_t sizes[] = { 0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 47, 48, 49, 64, 97 };
static const size_t depths[] = { 0, 1, 2, 7, 16, 64, 255, 256, 257, 300, 513 };

/* Random shapes, strides and forms: every output of every instruction set and thread count has the reference's bits. */
static void check(struct pool *pool, int isa)
{
    size_t m = sizes[test_below(18)], n = sizes[test_below(18)], k = depths[test_below(11)], pad = test_below(3);
    size_t batch = 1 + test_below(2);
    int at = (int)test_below(2), bt = (int)test_below(2);
    struct gemm gemm = gemm_dense(m, n, k, NULL, at, NULL, bt, NULL);

    gemm.a_row = at ? 1 : (ptrdiff_t)(k + pad);
    gemm.a_col = at ? (ptrdiff_t)(m + pad) : 1;
    gemm.b_row = bt ? 1 : (ptrdiff_t)(n + pad);
    gemm.b_col = bt ? (ptrdiff_t)(k + pad) : 1;
    gemm.c_row = (ptrdiff_t)(n + pad);
    gemm.batch[0] = batch;
    gemm.batch[1] = 2;
    gemm.a_batch[0] = (ptrdiff_t)((m + pad) * (k + pad));
    gemm.b_batch[1] = (ptrdiff_t)((n + pad) * (k + pad));
    gemm.c_batch[0] = (ptrdiff_t)(2 * m * (n + pad));
    gemm.c_batch[1] = (ptrdiff_t)(m * (n + pad));
    gemm.form = (enum gemm_form)test_below(3);
    gemm.scale = test_ordinary();

    size_t outputs = batch * 2 * m * (n + pad);
    float *a = test_floats(batch * (m + pad) * (k + pad), test_odd), *b = test_floats(2 * (n + pad) * (k + pad), test_odd);
    float *start = test_floats(outputs, test_odd), *want = test_floats(outputs, test_odd),
          *got = malloc((outputs + 1) * sizeof *got);

    memcpy(got, want, outputs * sizeof *got);
    gemm.a = a;
    gemm.b = b;
    gemm.onto = start;
    gemm.c = want;
    gemm_reference(&gemm);
    if (gemm.form != GEMM_PLAIN && test_below(2)) { /* in place */
        memcpy(got, start, outputs * sizeof *got);
        for (size_t row = 0; row < batch * 2 * m; row++)
            memcpy(got + row * (n + pad) + n, want + row * (n + pad) + n, pad * sizeof *got);
        gemm.onto = got;
    }
    gemm.c = got;
    assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
    gemm_run(pool, &gemm);
    assert_true(same_bits(want, got, outputs));
    free(a);
    free(b);
    free(start);
    free(want);
    free(got);
}

static void every_version_has_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);

        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (int i = 0; i < 150 && kernel_isa_present((enum kernel_isa)isa); i++)
                check(pool, isa);
        pool_free(pool);
    }
}

static void large_products_do_not_depend_on_threads(void **state)
{
    enum { M = 130, N = 1000, K = 300 };
    float *a = test_floats(M * K, test_odd), *b = test_floats(N * K, test_odd);
    float *want = test_floats(M * N, test_odd), *got = test_floats(M * N, test_odd);

    (void)state;
    for (int isa = KERNEL_AVX2; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (unsigned threads = 1; threads <= 3; threads++) {
            struct pool *pool = pool_new(threads);
            struct gemm gemm = gemm_dense(M, N, K, a, 0, b, 1, got);

            gemm_run(pool, &gemm);
            if (isa == KERNEL_AVX2 && threads == 1)
                memcpy(want, got, M * N * sizeof *want);
            assert_true(same_bits(want, got, M * N));
            pool_free(pool);
        }
    }
    free(a);
    free(b);
    free(want);
    free(got);
}

/* 3 x 2 by hand, exact in binary32. */
static void a_small_product_is_right(void **state)
{
    float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 2, -1, 1, 3 }, c[4], onto[4] = { 100, 200, 300, 400 };
    struct gemm gemm = gemm_dense(2, 2, 3, a, 0, b, 0, c);
    const float plain[4] = { 8, 7, 20, 13 }, chained[4] = { 108, 207, 320, 413 }, low_rank[4] = { 104, 203.5f, 310, 406.5f };

    (void)state;
    gemm_run(NULL, &gemm);
    assert_true(same_bits(c, plain, 4));
    gemm.form = GEMM_ONTO;
    gemm.onto = onto;
    gemm_run(NULL, &gemm);
    assert_true(same_bits(c, chained, 4));
    gemm.form = GEMM_LOW_RANK;
    gemm.scale = 0.5f;
    gemm_run(NULL, &gemm);
    assert_true(same_bits(c, low_rank, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_product_is_right),
        cmocka_unit_test(every_version_has_the_bits_of_the_definition),
        cmocka_unit_test(large_products_do_not_depend_on_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
