/* rope.h - rotary position embedding (Su et al., 2021).
 *
 * Frequencies, i = 0 .. width/2 - 1, binary32: f_i = 1 / pow(base, (float)(2i) / (float)width) (our pow, native/numerics/power.h).
 *     linear  f_i / factor
 *     llama3  with w = 6.28318548f / f_i, low = original / low_factor, high = original / high_factor (original = original_length):
 *             w < high: f_i; w > low: f_i / factor; else u = (original / w - low_factor) / (high_factor - low_factor),
 *             ((1 - u) f_i) / factor + u f_i      each operation rounded to binary32, left to right
 *     yarn    u = (i - low_factor) / (high_factor - low_factor), held within 0 and 1: (f_i / factor) u + f_i (1 - u), rounded likewise;
 *             sin and cos are multiplied by `attention` (Peng, Quesnelle, Fan and Shippole, 2023)
 *     factors 1 / (factors[i] pow(base, (float)(2i) / (float)width)); sin and cos are multiplied by `attention`. LongRoPE (Ding and others,
 *             2024) has two lists of factors, for short and for long sequences: runtime/lua/nn.lua takes one
 * Dynamic scaling is another base: base (factor L / original - (factor - 1))^(width / (width - 2)), L the length of a row where that
 * is beyond the original (runtime/lua/nn.lua).
 * Angle of position p: p f_i in binary64 (exact), of which native/numerics/trig.h gives sin and cos.
 * Rotation of a pair (a, b): a' = fmaf(-b, sin, a cos), b' = fmaf(a, sin, b cos). The backward pass rotates by -sin.
 * Pairs: half-split (i, i + width/2), or interleaved (2i, 2i + 1). Elements from `width` on are copied.
 */
#ifndef RONDO_KERNEL_ROPE_H
#define RONDO_KERNEL_ROPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define ROPE_WIDTH_MAX 1024

enum rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_FACTORS };

struct rope {
    size_t width; /* even, at most ROPE_WIDTH_MAX */
    float base;
    enum rope_scaling scaling;
    float factor, low_factor, high_factor, original_length; /* low, high: of llama3; of yarn the pairs between which it ramps */
    float attention;                                        /* of yarn and factors */
    const float *factors;                                   /* of factors alone: [width/2], above 0; borrowed */
    bool interleaved;
};

/* frequencies: [width/2] */
void rope_frequencies(const struct rope *rope, float *frequencies);

/* x, out: [tokens, heads, dim] contiguous, dim >= width; position: [tokens], from 0 to 2^24. `inverse` rotates back. out may be x. */
void rope_run(struct pool *pool, const struct rope *rope, size_t tokens, size_t heads, size_t dim, const int32_t *position,
              bool inverse, const float *x, float *out);

#endif
