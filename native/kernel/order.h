/* order.h - order along a small leading axis, vectorised across the long one: peers' updates, [n, width] contiguous, n <= ORDER_MAX.
 *
 * Order: ascending by value, equal values (-0 and +0 are equal) by lower position. Inputs are finite.
 */
#ifndef RONDO_KERNEL_ORDER_H
#define RONDO_KERNEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define ORDER_MAX 64

/* out [n, width]: each column sorted. May be x. */
void order_sort(struct pool *pool, size_t n, size_t width, const float *x, float *out);

/* out[i,c] = position of x[i,c] in its sorted column: 0 is least. */
void order_rank(struct pool *pool, size_t n, size_t width, const float *x, int32_t *out);

/* Median of each column: the middle one, or (a + b) * 0.5 of the middle two. With `weight` [n, width] only entries of weight != 0
 * count; none: 0. */
void order_median(struct pool *pool, size_t n, size_t width, const float *x, const float *weight, float *out);

/* The k greatest of each column, greatest first, equal ones by lower position: value [k, width], index [k, width] (either may be
 * NULL). */
void order_topk(struct pool *pool, size_t n, size_t width, size_t k, const float *x, float *value, int32_t *index);

/* Sort along the last axis instead, any n: x [rows, n], ascending as above; value or index may be NULL. For sort, rank, topk of long
 * axes. False without memory. */
bool order_rows(struct pool *pool, size_t rows, size_t n, const float *x, float *value, int32_t *index);

/* out[i,j] = sum over c of (x[i,c] - y[j,c])^2 in binary64: d = (double)x - (double)y; rule 4 with d*d rounded, then added. */
void order_dist2(struct pool *pool, size_t n, size_t m, size_t width, const float *x, const float *y, double *out);

#endif
