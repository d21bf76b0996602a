/* stored.h - values of weights as they are stored, read to binary32 where they are used: a part of a row at a time, never a whole copy.
 *
 *     f16, bf16     exact
 *     q8_0          32 values: f16 scale, 32 x i8; scale * q, exact
 *     q4_0          32 values: f16 scale, 16 bytes; scale * (q - 8), exact
 *     q4_1          32 values: f16 scale, f16 minimum, 16 bytes; scale * q, exact, plus minimum, rounded once
 *     nf4           64 values: f32 scale, 32 bytes; scale * value of the code, rounded once
 *     nf4_dq        the same, the scale itself stored: (scale of scales * value of its code), rounded, plus mean, rounded
 *
 * Byte j of q4 blocks holds values j (low half) and j + 16; layouts of nf4: native/tensor/tensor.h, values of its codes:
 * native/numerics/nf4.h. Blocks run through the tensor's values in row-major order. Any alignment.
 * The bits are those of native/model/convert.h.
 */
#ifndef RONDO_KERNEL_STORED_H
#define RONDO_KERNEL_STORED_H

#include <stddef.h>

enum stored_type { STORED_F16, STORED_BF16, STORED_Q8_0, STORED_Q4_0, STORED_Q4_1, STORED_NF4, STORED_NF4_DQ, STORED_TYPES };

/* Values first, first + 1, ... of `stored`. */
typedef void stored_read(const void *stored, size_t first, size_t count, float *out);

stored_read *stored_reader(enum stored_type type);

#endif
