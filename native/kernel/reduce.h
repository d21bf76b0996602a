/* reduce.h - reductions in the fixed order of the portable kernel class (docs/numerics.md, rule 4).
 *
 * x is [outer, n, inner], contiguous; the middle axis is reduced; out is [outer, inner]. inner = 1 reduces rows. To reduce several
 * axes, copy them together first (row-major order of the reduced axes is the order of the sequence).
 *
 *     block of 4096: 32 lanes from +0, element i of the sequence to lane i mod 32, ascending;
 *                    lane[i] + lane[i+w] for w = 16, 8, 4, 2, 1        total = ((+0 + block 0) + block 1) + ...
 *
 *     SUM        lane + x                         weighted: lane = fmaf(w, x, lane)
 *     NORM       sqrtf of fmaf(x, x, lane)        weighted: fmaf(w x, x, lane)
 *     MEAN       SUM / n                          weighted: SUM / sum of w; 0 where that is 0
 *     MAX, MIN   x > lane ? x : lane from -inf (MIN: <, +inf), same lanes and tree
 *     LOGSUMEXP  m + log(sum of exp(x - m)), m = MAX; -inf where n = 0 or m = -inf. Weighted: weights are a mask (0 or not).
 * An element of weight 0 is not read: its lane stays as it is (SUM: + fmaf(0, 0, lane)).
 */
#ifndef RONDO_KERNEL_REDUCE_H
#define RONDO_KERNEL_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define REDUCE_LANES 32
#define REDUCE_BLOCK 4096

enum reduce_op { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_NORM, REDUCE_LOGSUMEXP, REDUCE_OPS };

/* `weight` is NULL or as x. out must not overlap x. */
void reduce_run(struct pool *pool, enum reduce_op op, size_t outer, size_t n, size_t inner, const float *x, const float *weight,
                float *out);

/* Position of the greatest, the lowest position where several are equal; n at least 1. A NaN is never greatest, unless first. */
void reduce_argmax(struct pool *pool, size_t outer, size_t n, size_t inner, const float *x, int32_t *out);

/* out[row] = sum over n of x[row,i] y[row,i]: lane = fmaf(x, y, lane). Rows of x and y have strides (0 shares one). */
void reduce_dot(struct pool *pool, size_t rows, size_t n, const float *x, ptrdiff_t x_row, const float *y, ptrdiff_t y_row,
                float *out);

/* Rule 4 in binary64, contiguous rows: sum of x. */
void reduce_sum_f64(struct pool *pool, size_t rows, size_t n, const double *x, double *out);

#endif
