/* dct.h: against a published vector, against the definition bit for bit, and back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "native/kernel/class.h"
#include "native/kernel/dct.h"
#include "tests/unit/kernel_random.h"

/* Eight values and their orthonormal DCT-II as scipy gives them in double precision (scipy.fft.dct, type 2, norm "ortho"). */
static void a_published_vector_is_met(void **state)
{
    const float x[8] = { 1, 2, 3, 4, -1, .5f, 0, -2 };
    const double want[8] = {
        2.65165043, 3.48483613, -2.13477164, -1.56279309, -1.23743687, 2.175107, -0.0724572153, -1.67556094
    };
    float y[8];

    (void)state;
    dct_run(NULL, &(struct dct){ 1, 8, 1, 8, false }, x, NULL, y);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(y[i] - want[i]) < 1e-6);
}

static void the_table_is_that_of_binary64_rounded_once(void **state)
{
    float *table = malloc(DCT_MAX * DCT_MAX * sizeof *table);

    (void)state;
    for (size_t n = 1; n <= DCT_MAX; n += n < 70 ? 1 : 31) {
        size_t apart = 0;

        dct_table(n, table);
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < n; i++) {
                double want =
                    sqrt((k ? 2.0 : 1.0) / (double)n) * cos(M_PI * (double)((2 * i + 1) * k % (4 * n)) / (double)(2 * n));

                assert_true(fabs(table[k * n + i] - want) < 6e-8 * fabs(want) + 1e-15);
                apart += fabs(want) > 1e-9 && table[k * n + i] != (float)want;
            }
        assert_true(apart <= n * n / 1000); /* a double next to a tie may round the other way */
    }
    free(table);
}

/* The definition: Y = C (X C^T), inverse X = (C^T Y) C, one chain for each output. */
static void define(const struct dct *d, size_t row, size_t column, const float *x, float *out)
{
    float *c[2] = { malloc(d->high * d->high * sizeof(float)), malloc(d->wide * d->wide * sizeof(float)) };
    float *between = malloc(d->high * d->wide * sizeof *between);
    const size_t h = d->high, w = d->wide;

    dct_table(h, c[0]);
    dct_table(w, c[1]);
    for (int pass = 0; pass < 2; pass++) {
        const int rows = pass == d->inverse; /* along rows first when forward */

        for (size_t k = 0; k < h; k++)
            for (size_t l = 0; l < w; l++) {
                const float *from = pass ? between : x + row * d->columns + column;
                const size_t step = pass ? w : d->columns;
                float sum = 0, *to = pass ? &out[(row + k) * d->columns + column + l] : &between[k * w + l];

                for (size_t i = 0; i < (rows ? w : h); i++)
                    sum = rows ? fmaf(from[k * step + i], d->inverse ? c[1][i * w + l] : c[1][l * w + i], sum)
                               : fmaf(d->inverse ? c[0][i * h + k] : c[0][k * h + i], from[i * step + l], sum);
                *to = (rows ? w : h) == 1 ? from[k * step + l] : 0.0f + sum;
            }
    }
    free(c[0]);
    free(c[1]);
    free(between);
}

static void every_version_has_the_bits_of_the_definition(void **state)
{
    static const struct dct shapes[] = {
        { 1, 64, 1, 64, false },   { 1, 512, 1, 64, true }, { 64, 64, 64, 64, false }, { 128, 192, 64, 64, true },
        { 12, 35, 4, 7, false },   { 12, 35, 4, 7, true },  { 17, 34, 17, 2, false },  { 256, 3, 256, 1, true },
        { 2, 512, 1, 256, false }, { 5, 7, 1, 1, false },   { 0, 8, 1, 8, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct dct *d = &shapes[i];
        const size_t size = d->rows * d->columns;
        float *x = test_floats(size, test_odd), *want = malloc((size + 1) * sizeof *want),
              *between = malloc((size + 1) * sizeof *between), *got = malloc((size + 1) * sizeof *got);

        for (size_t r = 0; r < d->rows; r += d->high)
            for (size_t c = 0; c < d->columns; c += d->wide)
                define(d, r, c, x, want);
        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (unsigned threads = 1; threads <= 3 && kernel_isa_present((enum kernel_isa)isa); threads++) {
                struct pool *pool = pool_new(threads);

                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                dct_run(pool, d, x, between, got);
                if (!same_bits(want, got, size))
                    fail_msg("shape %zu differs, %s, %u threads", i, kernel_isa_name((enum kernel_isa)isa), threads);
                pool_free(pool);
            }
        free(x);
        free(want);
        free(between);
        free(got);
    }
}

static void the_inverse_gives_the_tiles_back(void **state)
{
    enum { ROWS = 128, COLUMNS = 96 };
    struct dct d = { ROWS, COLUMNS, dct_side(ROWS, 64), dct_side(COLUMNS, 64), false };
    float *x = test_floats(ROWS * COLUMNS, test_ordinary), *y = malloc(ROWS * COLUMNS * sizeof *y),
          *z = malloc(ROWS * COLUMNS * sizeof *z), *between = malloc(ROWS * COLUMNS * sizeof *between);

    (void)state;
    assert_int_equal(d.wide, 48);
    dct_run(NULL, &d, x, between, y);
    d.inverse = true;
    dct_run(NULL, &d, y, between, z);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(fabsf(x[i] - z[i]) < 1e-5f);
    free(x);
    free(y);
    free(z);
    free(between);
}

static void a_side_is_the_largest_divisor(void **state)
{
    (void)state;
    assert_int_equal(dct_side(576, 64), 64);
    assert_int_equal(dct_side(1536, 64), 64);
    assert_int_equal(dct_side(100, 64), 50);
    assert_int_equal(dct_side(61, 64), 61);
    assert_int_equal(dct_side(67, 64), 1);
    assert_int_equal(dct_side(1, 64), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_published_vector_is_met),
        cmocka_unit_test(the_table_is_that_of_binary64_rounded_once),
        cmocka_unit_test(every_version_has_the_bits_of_the_definition),
        cmocka_unit_test(the_inverse_gives_the_tiles_back),
        cmocka_unit_test(a_side_is_the_largest_divisor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
