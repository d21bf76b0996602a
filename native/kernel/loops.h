/* loops.h - the inner loops of the kernels, one table an instruction set. Internal to native/kernel.
 *
 * loops_scalar.c holds the definitions, plain and slow; loops_avx2.c, loops_avx512.c and loops_neon.c compile the fast text. All give the
 * same bits. Functions work on one row or one tile of columns and know nothing of threads.
 */
#ifndef RONDO_KERNEL_LOOPS_H
#define RONDO_KERNEL_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "native/kernel/attention.h"
#include "native/kernel/elementwise.h"
#include "native/kernel/gemm.h"
#include "native/kernel/reduce.h"

struct loops {
    /* elementwise, contiguous */
    void (*elementwise)(enum elementwise_op op, size_t n, const float *x, const float *y, const float *z, float *out);
    /* to[c * to_row + r] = from[r * from_row + c] */
    void (*transpose)(size_t rows, size_t columns, const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row);
    /* reductions: one row; `width` neighbouring columns of [n, inner] */
    float (*reduce_row)(enum reduce_op op, size_t n, const float *x, const float *weight);
    void (*reduce_columns)(enum reduce_op op, size_t n, size_t inner, size_t width, const float *x, const float *weight,
                           float *out);
    float (*dot_row)(size_t n, const float *x, const float *y);
    /* softmax.h, one row each */
    void (*softmax)(size_t n, const float *x, const float *mask, float *out);
    void (*softmax_log)(size_t n, const float *x, const float *mask, float *out);
    void (*softmax_backward)(size_t n, const float *y, const float *dy, float *dx);
    void (*softmax_log_backward)(size_t n, const float *y, const float *dy, const float *mask, float *dx);
    float (*logprob)(size_t n, const float *logits, int32_t target, float *lse);
    void (*logprob_backward)(size_t n, const float *logits, int32_t target, float lse, float g, float *dlogits);
    float (*entropy)(size_t n, const float *logits, float lse);
    void (*entropy_backward)(size_t n, const float *logits, float lse, float entropy, float g, float *dlogits);
    /* norm.h: rows; columns for the weight gradients */
    float (*rms)(size_t n, const float *x, const float *weight, float eps, float offset, float *y);
    void (*rms_backward)(size_t n, const float *x, const float *weight, float offset, float r, const float *dy, float *dx);
    void (*rms_dweight)(size_t rows, size_t inner, size_t width, const float *x, const float *rstd, const float *dy,
                        float *dweight);
    float (*layer)(size_t n, const float *x, const float *weight, const float *bias, float eps, float *y, float *mean);
    void (*layer_backward)(size_t n, const float *x, const float *weight, float mean, float r, const float *dy, float *dx);
    void (*layer_dweight)(size_t rows, size_t inner, size_t width, const float *x, const float *mean, const float *rstd,
                          const float *dy, float *dweight, float *dbias);
    /* order.h, `width` (at most ORDER_TILE) neighbouring columns of [n, inner] */
    void (*sort)(size_t n, size_t inner, size_t width, const float *x, float *sorted);
    void (*rank)(size_t n, size_t inner, size_t width, const float *x, int32_t *rank);
    double (*dist2)(size_t n, const float *x, const float *y);
    /* sines and cosines of `half` angles position * frequency; rotation of `heads` rows of `dim` by them */
    void (*rope_angles)(size_t half, int32_t position, const float *frequency, int inverse, float *sine, float *cosine);
    void (*rope)(size_t heads, size_t dim, size_t width, int interleaved, const float *sine, const float *cosine, const float *x,
                 float *out);
    /* gather.h: out[r * out_row + c] = sum over i of a[i][a_at + r * a_step] * b[i][c], products rounded */
    void (*outer_sum)(size_t count, const float *const *a, ptrdiff_t a_at, ptrdiff_t a_step, size_t rows, const float *const *b,
                      size_t columns, float *out, size_t out_row);
};

#define ORDER_TILE 64

extern const struct loops loops_scalar, loops_avx2, loops_avx512, loops_neon;

/* The table of kernel_isa(). */
const struct loops *loops(void);

#endif
