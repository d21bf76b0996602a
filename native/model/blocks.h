/* blocks.h - the block types of ggml that are turned into binary32 when a model is loaded (the others: native/kernel/stored.h).
 *
 *     q5_0     32 values:  f16 d, u32 h, 16 bytes                  d * (nibble + 16 * bit of h - 16)
 *     q5_1     32 values:  f16 d, f16 m, u32 h, 16 bytes           d * (nibble + 16 * bit of h) + m
 *     iq4_nl   32 values:  f16 d, 16 bytes                         d * code[nibble]
 *     mxfp4    32 values:  u8 e, 16 bytes                          2^(e - 127) * E2M1(nibble)
 *     q2_k    256 values:  16 bytes s, 64 bytes q, f16 d, f16 m    d * (s & 15) * q - m * (s >> 4), a byte of s for 16 values
 *     q3_k    256 values:  32 bytes h, 64 bytes q, 12 bytes s, f16 d    d * (s - 32) * (q - (bit of h ? 0 : 4)), s of 6 bits for 16
 *     q4_k    256 values:  f16 d, f16 m, 12 bytes s, 128 bytes     d * scale * nibble - m * minimum, both of 6 bits for 32 values
 *     q5_k    256 values:  f16 d, f16 m, 12 bytes s, 32 bytes h, 128 bytes     as q4_k with a fifth bit from h
 *     q6_k    256 values:  128 bytes l, 64 bytes h, 16 x i8 s, f16 d    d * s * (l + 16 * h - 32), an s for 16 values
 *
 * Byte j of a block of 32 holds values j (low half) and j + 16. Products and sums are rounded one by one, from left to right, as by
 * ggml's own functions and by its Python package (tools/oracle/gguf_blocks.py, tests/golden/gguf_blocks.gguf): the bits are equal.
 */
#ifndef RONDO_MODEL_BLOCKS_H
#define RONDO_MODEL_BLOCKS_H

#include <stdint.h>

#include "native/tensor/tensor.h"

/* Reads one block of `type` from `at` to `out`. */
typedef void block_read(const uint8_t *at, float *out);

/* NULL for types that are none of the above. */
block_read *block_reader(enum tensor_type type);

#endif
