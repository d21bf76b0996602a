/* quantise.h - binary32 arrays in fewer bits, in blocks of 256 values (docs/protocol.md, section 12).
 *
 *     bits 32   f32 x n
 *     bits 16   bf16 x n                               rounded to nearest even
 *     bits 8    [ f32 scale | i8 x 256 ] ...           scale = largest |x| / 127, value = scale * q, q in -127..127
 *     bits 4    [ f32 scale | nibbles x 256 ] ...      scale = largest |x| / 7,   value = scale * q, q in -7..7
 *
 * All little-endian. q is x / scale rounded to nearest, ties to even, and held within the range (a subnormal scale can be too
 * small by half). A block whose scale is 0 has only q = 0. Two nibbles share a byte, the even index in its low half; the last
 * block of an array is as short as its values, an unused high nibble is 0. So equal arrays have equal bytes.
 *
 * No value may exceed 2^60: then no sum over contributors overflows.
 */
#ifndef RONDO_CODEC_QUANTISE_H
#define RONDO_CODEC_QUANTISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum { QUANTISE_BLOCK = 256 };
#define QUANTISE_LARGEST 0x1p60f

/* Whether `bits` is one of 32, 16, 8, 4. */
bool quantise_known(unsigned bits);

/* Bytes of `count` values. False when that does not fit 64 bits or `bits` is not known. */
bool quantise_size(unsigned bits, uint64_t count, uint64_t *bytes);

/* Appends `count` values. Errors: non_finite, range (beyond 2^60); the place names the index. Nothing is appended then. */
bool quantise_encode(unsigned bits, const float *values, uint64_t count, struct buffer *out, struct error *err);

/* The same, and leaves in `values` what was not said: each value less what it is read back as, one subtraction. After an error they
 * are undefined. */
bool quantise_encode_rest(unsigned bits, float *values, uint64_t count, struct buffer *out, struct error *err);

/* Reads `count` values from hostile bytes into `values`. Errors: truncated; non_finite (a value or a scale); range (beyond
 * 2^60, a negative scale, q = -128 or -8); conflict (a value in a block of scale 0, an unused nibble that is not 0). */
bool quantise_decode(unsigned bits, struct reader *in, uint64_t count, float *values, struct error *err);

/* Whether no value is NaN, infinite or beyond 2^60; the place names the index of the first that is, counted from `first`. */
bool quantise_check(const float *values, uint64_t count, uint64_t first, struct error *err);

#endif
