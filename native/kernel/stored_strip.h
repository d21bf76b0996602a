/* stored_strip.h - the codes of a block of each of VW runs of stored values, a lane a run; internal, included by the files of one
 * instruction set.
 *
 *     codes of a block, four words of four bytes, of VW runs        word 0 of all runs | word 1 of all runs | ...
 *     turned within registers: a lane is a run from here on         a shift and a mask give one value of each
 */
#ifndef RONDO_KERNEL_STORED_STRIP_H
#define RONDO_KERNEL_STORED_STRIP_H

#include "native/kernel/vector.h"

typedef uint32_t strip_word __attribute__((vector_size(4 * VW)));
typedef int32_t strip_integer __attribute__((vector_size(4 * VW)));
typedef float strip_float __attribute__((vector_size(4 * VW)));

/* Words 0 to 3 of the runs whose codes are `step` bytes apart. */
VECTOR_INLINE void strip_words(const uint8_t *codes, size_t step, strip_word out[4])
{
    vf r[4];

#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        r[i] = vector_quarters(codes + i * step, 4 * step);
    vector_transpose_quarters(r);
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        out[i] = (strip_word)r[i];
}

/* The first, the last of these words alone. */
VECTOR_INLINE strip_word strip_first(const uint8_t *at, size_t step)
{
    strip_word out[4];

    strip_words(at, step, out);
    return out[0];
}

VECTOR_INLINE strip_word strip_last(const uint8_t *at, size_t step)
{
    strip_word out[4];

    strip_words(at, step, out);
    return out[3];
}

/* The half in the lower bits of each lane, exact: its bits in the place of binary32's are the value times 2^-112. */
VECTOR_INLINE vf strip_halves(strip_word h)
{
    const strip_word magnitude = (h & 0x7fff) << 13, value = (strip_word)vf_mul((vf)magnitude, vf_all(0x1p112f)),
                     infinite = (strip_word)(magnitude >= 0x0f800000);

    return (vf)(value | (infinite & 0x7f800000) | (h & 0x8000) << 16);
}

VECTOR_INLINE vf strip_floats(strip_integer x)
{
    return (vf) __builtin_convertvector(x, strip_float);
}

/* Bits `at` .. at + 3 of each lane as a number, less `less`, exact. They are put below the leading bit of 2^(23 - at) and read as binary32:
 * logic and one addition, which the multipliers have no part in. */
VECTOR_INLINE vf strip_nibbles(strip_word x, const unsigned at, const float less)
{
    const uint32_t mask = 15u << at, leading = (127 + 23 - at) << 23;
#if defined(__AVX512F__)
    const vf sum = (vf)_mm512_ternarylogic_epi32((__m512i)x, _mm512_set1_epi32((int)mask), _mm512_set1_epi32((int)leading), 0xea);
#else
    const vf sum = (vf)((x & mask) | leading);
#endif

    return vf_add(sum, vf_all(-((float)(1u << (23 - at)) + less)));
}

#endif
