/* softmax.h - softmax over contiguous rows, forward and backward, and what a language model's head needs of it.
 *
 * m = exact maximum (rule 4 order); e_i = exp(x_i - m); s = sum of e by rule 4.
 *     softmax       e_i / s                       log_softmax   (x_i - m) - log s
 * `mask` is NULL or f32 [rows, n] with a row stride (0 shares one row): where it is 0 the element is not read, softmax gives 0 and
 * log_softmax gives 0 with no gradient. A row with nothing left gives zeros.
 */
#ifndef RONDO_KERNEL_SOFTMAX_H
#define RONDO_KERNEL_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

/* out may be x. */
void softmax_run(struct pool *pool, size_t rows, size_t n, const float *x, const float *mask, ptrdiff_t mask_row, float *out);
void softmax_log_run(struct pool *pool, size_t rows, size_t n, const float *x, const float *mask, ptrdiff_t mask_row, float *out);

/* y = softmax(x): t = sum dy y (rule 4, fmaf); dx = y (dy - t). dx may be dy. */
void softmax_backward(struct pool *pool, size_t rows, size_t n, const float *y, const float *dy, float *dx);

/* y = log_softmax(x): t = sum dy (rule 4, over mask != 0); dx = fmaf(-exp(y), t, dy), 0 where masked. dx may be dy. */
void softmax_log_backward(struct pool *pool, size_t rows, size_t n, const float *y, const float *dy, const float *mask,
                          ptrdiff_t mask_row, float *dx);

/* Log-probability of target[row] under row's logits, without the rest of log_softmax: logprob = (x_t - m) - log s, lse = m + log s.
 * A target below 0 means none: logprob 0. `lse` may be NULL. */
void softmax_logprob(struct pool *pool, size_t rows, size_t n, const float *logits, const int32_t *target, float *logprob,
                     float *lse);

/* dlogits_i = g ((i = target) - exp(logit_i - lse)): fmaf(-g, exp(x_i - lse), i = target ? g : 0). Rows whose target is below 0 or
 * whose g is 0 give zeros and are not read. dlogits may be logits. */
void softmax_logprob_backward(struct pool *pool, size_t rows, size_t n, const float *logits, const int32_t *target,
                              const float *lse, const float *g, float *dlogits);

/* entropy = lse - sum p_i x_i, p_i = exp(x_i - lse), rule 4 with fmaf(p, x, lane). */
void softmax_entropy(struct pool *pool, size_t rows, size_t n, const float *logits, const float *lse, float *entropy);

/* d entropy / d x_i = -p_i (x_i - lse + entropy); dlogits_i = g times that: (-g p) * ((x_i - lse) + entropy). May be logits. */
void softmax_entropy_backward(struct pool *pool, size_t rows, size_t n, const float *logits, const float *lse,
                              const float *entropy, const float *g, float *dlogits);

#endif
