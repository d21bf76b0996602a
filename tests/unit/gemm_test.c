#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "native/kernel/class.h"
#include "native/kernel/gemm.h"
#include "native/numerics/f32.h"
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

/* Several products onto one C have the bits of one after the other; a last one reads B from half precision. */
static void halves(const void *stored, size_t first, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = f32_from_f16(((const uint16_t *)stored)[first + i]);
}

static void check_chain(struct pool *pool, int isa)
{
    enum { MOST = 5 };
    size_t m = sizes[1 + test_below(17)], n = sizes[1 + test_below(17)], count = 1 + test_below(MOST);
    struct gemm chain[MOST];
    float *a[MOST], *b[MOST], *start = test_floats(m * n, test_odd), *want = test_floats(m * n, test_odd),
                              *got = test_floats(m * n, test_odd);

    for (size_t i = 0; i < count; i++) {
        size_t k = depths[1 + test_below(9)];
        int at = (int)test_below(2), bt = (int)test_below(2);

        a[i] = test_floats(m * k, test_odd);
        b[i] = test_floats(n * k, test_odd);
        chain[i] = gemm_dense(m, n, k, a[i], at, b[i], bt, want);
        chain[i].form = i == 0 ? (enum gemm_form)test_below(3) : GEMM_ONTO + (enum gemm_form)test_below(2);
        if (chain[i].k > GEMM_CHUNK && chain[i].form == GEMM_LOW_RANK)
            chain[i].form = GEMM_ONTO;
        chain[i].scale = test_ordinary();
        chain[i].onto = i == 0 ? start : want;
        if (i + 1 == count) {
            uint16_t *half = (uint16_t *)b[i];

            for (size_t j = 0; j < n * k; j++)
                half[j] = f16_from_f32(b[i][j]);
            chain[i].b_read = halves;
            chain[i].b_stored = half;
        }
        gemm_reference(&chain[i]);
    }
    for (size_t i = 0; i < count; i++) {
        chain[i].c = got;
        chain[i].onto = i == 0 ? start : NULL;
    }
    assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
    gemm_run_chain(pool, chain, count);
    assert_true(same_bits(want, got, m * n));
    for (size_t i = 0; i < count; i++) {
        free(a[i]);
        free(b[i]);
    }
    free(start);
    free(want);
    free(got);
}

static void chains_have_the_bits_of_one_product_after_the_other(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);

        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (int i = 0; i < 100 && kernel_isa_present((enum kernel_isa)isa); i++)
                check_chain(pool, isa);
        pool_free(pool);
    }
}

/* Tall and narrow, A stored by columns: computed across. */
static void tall_products_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++)
        for (int i = 0; i < 12 && kernel_isa_present((enum kernel_isa)isa); i++) {
            size_t m = 64 + test_below(900), n = 1 + test_below(16), k = depths[test_below(11)], onto = test_below(2);
            float *a = test_floats(m * k, test_odd), *b = test_floats(n * k, test_odd), *want = test_floats(m * n, test_odd),
                  *got = test_floats(m * n, test_odd), *start = test_floats(m * n, test_odd);
            struct gemm gemm = gemm_dense(m, n, k, a, 1, b, (int)test_below(2), want);

            gemm.form = onto ? GEMM_ONTO : GEMM_PLAIN;
            gemm.onto = start;
            gemm_reference(&gemm);
            gemm.c = got;
            if (test_below(2) && onto) {
                memcpy(got, start, m * n * sizeof *got);
                gemm.onto = got;
            }
            assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
            gemm_run(NULL, &gemm);
            assert_true(same_bits(want, got, m * n));
            free(a);
            free(b);
            free(want);
            free(got);
            free(start);
        }
}

/* Long and thin, around the register tiles and the chunk, a shared operand, buffers off every alignment, infinities and NaN. */
static void adversarial_shapes_have_the_bits_of_the_definition(void **state)
{
    static const size_t shapes[][3] = { { 1, 1, 1 },       { 1, 1, 1021 },  { 1021, 1, 1 },  { 1, 1021, 1 },  { 2, 509, 3 },
                                        { 509, 2, 3 },     { 5, 7, 1021 },  { 61, 127, 31 }, { 255, 3, 256 }, { 256, 5, 257 },
                                        { 257, 17, 255 },  { 3, 255, 257 }, { 4, 256, 63 },  { 7, 257, 65 },  { 9, 479, 20 },
                                        { 9, 480, 20 },    { 9, 481, 20 },  { 6, 16, 512 },  { 8, 12, 513 },  { 16, 48, 300 },
                                        { 17, 49, 768 },   { 64, 64, 64 },  { 33, 0, 7 },    { 0, 33, 7 },    { 33, 7, 0 },
                                        { 1, 8, 256 },     { 8, 1, 256 },   { 15, 11, 253 }, { 100, 13, 16 }, { 13, 100, 16 },
                                        { 17, 100, 1024 }, { 29, 50, 2048 } }; /* the last two: rows 4 KiB apart */

    (void)state;
    for (int round = 0; round < 8; round++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], shift = 1 + test_below(15);
            float *a = test_floats(m * k + 16, test_odd), *b = test_floats(k * n + 16, test_odd),
                  *start = test_floats(2 * m * n, test_odd);
            float *want = test_floats(2 * m * n + 16, test_odd), *got = test_floats(2 * m * n + 16, test_odd);

            for (int i = 0; round == 7 && i < 3; i++) {
                a[test_below(m * k + 16)] = i == 0 ? f32_from_bits(0x7fc00123u) : i == 1 ? __builtin_inff() : -__builtin_inff();
                b[test_below(k * n + 16)] = i == 0 ? f32_from_bits(0xffc00001u) : 0.0f;
            }
            struct gemm gemm = gemm_dense(m, n, k, a + shift, round & 1, b + 16 - shift, round >> 1 & 1, want + shift);

            gemm.form = (enum gemm_form)((round + (int)s) % 3);
            gemm.scale = -0.75f;
            gemm.onto = start;
            gemm.batch[1] = 2; /* which share everything but C */
            gemm.c_batch[1] = (ptrdiff_t)(m * n);
            gemm_reference(&gemm);
            gemm.c = got + shift;
            for (int isa = 0; isa < KERNEL_ISAS; isa++) {
                if (!kernel_isa_present((enum kernel_isa)isa))
                    continue;
                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                gemm_run(NULL, &gemm);
                for (size_t i = 0; i < 2 * m * n; i++) {
                    float x = want[shift + i], y = got[shift + i];

                    if (f32_bits(x) != f32_bits(y) && (x == x || y == y))
                        fail_msg("%s: %zu x %zu x %zu, output %zu: %a, not %a", kernel_isa_name((enum kernel_isa)isa), m, n, k, i,
                                 (double)y, (double)x);
                }
            }
            free(a);
            free(b);
            free(start);
            free(want);
            free(got);
        }
}

static void large_products_do_not_depend_on_threads(void **state)
{
    enum { M = 130, N = 1000, K = 300 };
    float *a = test_floats(M * K, test_odd), *b = test_floats(N * K, test_odd);
    float *want = test_floats(M * N, test_odd), *got = test_floats(M * N, test_odd);

    (void)state;
    for (int isa = KERNEL_AVX2, first = 1; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (unsigned threads = 1; threads <= 3; threads++) {
            struct pool *pool = pool_new(threads);
            struct gemm gemm = gemm_dense(M, N, K, a, 0, b, 1, got);

            gemm_run(pool, &gemm);
            if (first)
                memcpy(want, got, M * N * sizeof *want);
            first = 0;
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
        cmocka_unit_test(chains_have_the_bits_of_one_product_after_the_other),
        cmocka_unit_test(tall_products_have_the_bits_of_the_definition),
        cmocka_unit_test(adversarial_shapes_have_the_bits_of_the_definition),
        cmocka_unit_test(large_products_do_not_depend_on_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
