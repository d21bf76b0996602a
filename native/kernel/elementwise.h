/* elementwise.h - one operation on each element, with broadcasting and strided reading.
 *
 * The output is contiguous, row-major over `space`. Each input is a view: data and one stride an axis, in elements; stride 0 repeats
 * (broadcasts), any other stride reads in place, so that a transpose is ELEMENTWISE_COPY of a view with permuted strides.
 * Formulas stand in elementwise_ops.h (a line an operation) and native/numerics/. Order: none, elements do not meet.
 */
#ifndef RONDO_KERNEL_ELEMENTWISE_H
#define RONDO_KERNEL_ELEMENTWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define KERNEL_RANK 8

enum kernel_type { KERNEL_F32, KERNEL_I32, KERNEL_F64 };

enum elementwise_op {
#define ELEMENTWISE_OP(name, text, arity, formula) ELEMENTWISE_##name,
#include "native/kernel/elementwise_ops.h"
#undef ELEMENTWISE_OP
    ELEMENTWISE_OPS
};

struct space {
    unsigned rank; /* 0: one element */
    size_t size[KERNEL_RANK];
};

struct view {
    const void *data;
    ptrdiff_t stride[KERNEL_RANK];
};

size_t space_count(const struct space *space);

unsigned elementwise_arity(enum elementwise_op op);
const char *elementwise_name(enum elementwise_op op); /* "log1p" */

/* F32 has every operation. F64: copy neg abs square sqrt add sub mul div min max, comparisons, where. I32: copy neg abs add sub mul
 * min max, comparisons, where; wraps. */
bool elementwise_offered(enum elementwise_op op, enum kernel_type type);

/* out = op(in[0], ...). Comparisons write f32 0 or 1 whatever the type; the mask of `where` (in[0]) is f32. The output may be an input
 * that is read contiguously, else must not overlap. The operation must be offered for the type. */
void elementwise_run(struct pool *pool, enum elementwise_op op, enum kernel_type type, const struct space *space,
                     const struct view *in, void *out);

/* min(max(x, lo), hi) by selects: x < lo ? lo : x > hi ? hi : x. lo, hi may be infinite. Contiguous. */
void elementwise_clamp(struct pool *pool, size_t n, const float *x, float lo, float hi, float *out);

/* Contiguous conversion. To i32: truncated, then clamped to the range; NaN gives 0. f64 to f32 rounds to nearest even. */
void elementwise_cast(struct pool *pool, enum kernel_type from, enum kernel_type to, size_t n, const void *x, void *out);

/* 16-bit storage by integer rounding (native/numerics/f32.h). */
void elementwise_to_bf16(struct pool *pool, size_t n, const float *x, uint16_t *out);
void elementwise_from_bf16(struct pool *pool, size_t n, const uint16_t *x, float *out);
void elementwise_to_f16(struct pool *pool, size_t n, const float *x, uint16_t *out);
void elementwise_from_f16(struct pool *pool, size_t n, const uint16_t *x, float *out);

/* False when any element is NaN or infinite. */
bool elementwise_finite(struct pool *pool, size_t n, const float *x);

#endif
