/* convert.h - stored values to binary32 and back (layouts: native/tensor/tensor.h).
 *
 * Reading is exact up to the one rounding that a definition names, the same everywhere:
 *     f16, bf16     exact
 *     q8_0          scale * q                 exact in binary32 (11 + 8 bits)
 *     q4_0          scale * (q - 8)           exact
 *     q4_1          scale * q + minimum       the product is exact, the sum rounded once
 *     f64, i32      rounded to nearest even
 *     the rest      native/model/blocks.h
 */
#ifndef RONDO_MODEL_CONVERT_H
#define RONDO_MODEL_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

/* `count` values (a multiple of the type's block) from `stored` to `out`. Any alignment. */
void convert_to_f32(enum tensor_type type, const void *stored, uint64_t count, float *out);

/* To f32, f16 or bf16, rounded to nearest even, or finite values by blocks to q8_0 (scale: the largest magnitude / 127; codes: halves away
 * from zero) or q4_0 (scale: the value of largest magnitude / -8; codes: cut after adding 8.5), with the bits of ggml's functions. False for
 * other types. */
bool convert_from_f32(enum tensor_type type, const float *values, uint64_t count, void *stored);

#endif
