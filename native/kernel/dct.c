#include "native/kernel/dct.h"

#include <assert.h>
#include <string.h>

#include "native/kernel/gemm.h"

/* cos and sin of 0 <= x <= pi/4 by their series to the 18th power. */
static double near_cos(double x)
{
    double z = x * x, sum = 1.0;

    for (int i = 18; i > 0; i -= 2)
        sum = 1.0 - z / (double)((i - 1) * i) * sum;
    return sum;
}

static double near_sin(double x)
{
    double z = x * x, sum = 1.0;

    for (int i = 18; i > 0; i -= 2)
        sum = 1.0 - z / (double)(i * (i + 1)) * sum;
    return x * sum;
}

/* cos(pi a / (2n)) for any whole a. */
static double turned_cos(size_t a, size_t n)
{
    const double step = 3.14159265358979323846 / (double)(2 * n);
    double sign = 1.0;

    a %= 4 * n;
    a = a > 2 * n ? 4 * n - a : a; /* the other half of the turn */
    if (a > n) {
        sign = -1.0;
        a = 2 * n - a;
    }
    return sign * (2 * a <= n ? near_cos((double)a * step) : near_sin((double)(n - a) * step));
}

void dct_table(size_t n, float *table)
{
    assert(n > 0 && n <= DCT_MAX);
    for (size_t k = 0; k < n; k++) {
        const double scale = __builtin_sqrt((k == 0 ? 1.0 : 2.0) / (double)n);

        for (size_t i = 0; i < n; i++)
            table[k * n + i] = (float)(scale * turned_cos((2 * i + 1) * k, n));
    }
}

size_t dct_side(size_t size, size_t most)
{
    size_t side = size < most ? size : most;

    while (size % side != 0)
        side--;
    return side;
}

/* Every row of every tile: [all, wide] times C^T, inverse times C. */
static void along_rows(struct pool *pool, const struct dct *dct, const float *x, float *out)
{
    float table[DCT_MAX * DCT_MAX];

    dct_table(dct->wide, table);
    struct gemm gemm = gemm_dense(dct->rows * dct->columns / dct->wide, dct->wide, dct->wide, x, 0, table, !dct->inverse, out);

    gemm_run(pool, &gemm);
}

/* Every column: for each band of `high` rows C, inverse C^T, times [high, columns]. */
static void along_columns(struct pool *pool, const struct dct *dct, const float *x, float *out)
{
    float table[DCT_MAX * DCT_MAX];

    dct_table(dct->high, table);
    struct gemm gemm = gemm_dense(dct->high, dct->columns, dct->high, table, dct->inverse, x, 0, out);

    gemm.batch[0] = dct->rows / dct->high;
    gemm.b_batch[0] = gemm.c_batch[0] = (ptrdiff_t)(dct->high * dct->columns);
    gemm_run(pool, &gemm);
}

void dct_run(struct pool *pool, const struct dct *dct, const float *x, float *between, float *out)
{
    if (dct->rows == 0 || dct->columns == 0)
        return;
    assert(dct->rows % dct->high == 0 && dct->columns % dct->wide == 0);
    if (dct->high == 1 && dct->wide == 1) {
        memcpy(out, x, dct->rows * dct->columns * sizeof *out);
    } else if (dct->high == 1) {
        along_rows(pool, dct, x, out);
    } else if (dct->wide == 1) {
        along_columns(pool, dct, x, out);
    } else if (dct->inverse) {
        along_columns(pool, dct, x, between);
        along_rows(pool, dct, between, out);
    } else {
        along_rows(pool, dct, x, between);
        along_columns(pool, dct, between, out);
    }
}
