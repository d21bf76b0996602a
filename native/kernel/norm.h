/* norm.h - RMS normalisation (Zhang and Sennrich, 2019) and layer normalisation over contiguous rows [rows, n].
 *
 *     rmsnorm    q = sum fmaf(x, x, lane) by rule 4; r = 1 / sqrtf(q / n + eps); y_i = (x_i r) w'_i, w' = offset + w
 *     layernorm  u = (sum x) / n; d_i = x_i - u; q = sum fmaf(d, d, lane); r as above; y_i = fmaf(d_i r, w_i, bias_i)
 */
#ifndef RONDO_KERNEL_NORM_H
#define RONDO_KERNEL_NORM_H

#include <stddef.h>

#include "native/kernel/pool.h"

/* `weight` is [n] or NULL (all 1, then offset is not used). `rstd` [rows] keeps r for the backward pass; may be NULL. y may be x. */
void norm_rms(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, float eps, float offset, float *y,
              float *rstd);

/* g_i = dy_i w'_i; s = sum fmaf(g, x, lane) by rule 4; c = ((s r) r) r / n; dx_i = fmaf(-c, x_i, r g_i). dx may be dy.
 * dweight (NULL: not wanted) [n] = rule 4 over rows of fmaf(dy, x r, lane). With dx NULL only dweight. If dx is dy, ask for dweight
 * in a call of its own before. */
void norm_rms_backward(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, float offset,
                       const float *rstd, const float *dy, float *dx, float *dweight);

/* `bias` may be NULL (then y_i = (d_i r) w_i). `mean`, `rstd` [rows] are kept for the backward pass; may be NULL. */
void norm_layer(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, const float *bias, float eps,
                float *y, float *mean, float *rstd);

/* h_i = d_i r; g_i = dy_i w_i; a = (sum g) / n; b = (sum fmaf(g, h, lane)) / n; dx_i = r fmaf(-b, h_i, g_i - a).
 * dweight = rule 4 over rows of fmaf(dy, h, lane), dbias = rule 4 over rows of dy; each may be NULL, and dx (then `weight`
 * is not read). dx must not be dy. */
void norm_layer_backward(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, const float *mean,
                         const float *rstd, const float *dy, float *dx, float *dweight, float *dbias);

#endif
