/* convert.h - stored values to binary32 and back (layouts: native/tensor/tensor.h).
 *
 * Reading is exact up to the one rounding that a definition names, the same everywhere:
 *     f16, bf16     exact
 *     q8_0          scale * q                 exact in binary32 (11 + 8 bits)
 *     q4_0          scale * (q - 8)           exact
 *     q4_1          scale * q + minimum       the product is exact, the sum rounded once
 *     nf4, nf4_dq   native/model/nf4.h
 *     f64, i32, u8      rounded to nearest even
 *     the rest      native/model/blocks.h
 */
#ifndef RONDO_MODEL_CONVERT_H
#define RONDO_MODEL_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

/* `count` values (a multiple of the type's block; of nf4 and nf4_dq the whole tensor, or all up to a multiple of 16384) from `stored` to `out`. Any alignment. */
void convert_to_f32(enum tensor_type type, const void *stored, uint64_t count, float *out);

/* To nf4 or nf4_dq (nf4.h), f32, f16 or bf16, rounded to nearest even, or finite values by blocks to q8_0 (scale: the largest magnitude / 127; codes: halves away
 * from zero) or q4_0 (scale: the value of largest magnitude / -8; codes: cut after adding 8.5), with the bits of ggml's functions. False for
 * other types. */
bool convert_from_f32(enum tensor_type type, const float *values, uint64_t count, void *stored);

#endif
