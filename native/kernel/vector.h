/* vector.h - the vector register of the instruction set that a file is compiled for; internal to native/kernel.
 *
 *     VW             floats a register: 16 (AVX-512), 8 (AVX2), 4 (NEON)
 *     vf, vf_*       the register and what the hand-written kernels do with it: each the lane-wise binary32 operation, rounded once
 *     vector_transpose    VW registers of VW floats, rows to columns; _quarters: four registers, within each 128 bits
 *     vector_transpose8   8 x 8 floats in memory
 *
 * Not included by the scalar class, which has no registers.
 */
#ifndef RONDO_KERNEL_VECTOR_H
#define RONDO_KERNEL_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#else
#error "no vector registers: compile with -mavx2 -mfma, -mavx512f, or for AArch64"
#endif

#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
#define VW        16
#define vf        __m512
#define vf_load   _mm512_loadu_ps
#define vf_store  _mm512_storeu_ps
#define vf_all    _mm512_set1_ps
#define vf_fma    _mm512_fmadd_ps
#define vf_add    _mm512_add_ps
#define vf_mul    _mm512_mul_ps
#define vf_zero() _mm512_setzero_ps()
#elif defined(__AVX2__)
#define VW        8
#define vf        __m256
#define vf_load   _mm256_loadu_ps
#define vf_store  _mm256_storeu_ps
#define vf_all    _mm256_set1_ps
#define vf_fma    _mm256_fmadd_ps
#define vf_add    _mm256_add_ps
#define vf_mul    _mm256_mul_ps
#define vf_zero() _mm256_setzero_ps()
#else
#define VW              4
#define vf              float32x4_t
#define vf_load         vld1q_f32
#define vf_store        vst1q_f32
#define vf_all          vdupq_n_f32
#define vf_fma(a, b, c) vfmaq_f32(c, a, b)
#define vf_add          vaddq_f32
#define vf_mul          vmulq_f32
#define vf_zero()       vdupq_n_f32(0.0f)
#endif

#if defined(__AVX512F__)
#define vf_unpack_low         _mm512_unpacklo_ps
#define vf_unpack_high        _mm512_unpackhi_ps
#define vf_shuffle(a, b, way) _mm512_shuffle_ps(a, b, way)
#elif defined(__AVX2__)
#define vf_unpack_low         _mm256_unpacklo_ps
#define vf_unpack_high        _mm256_unpackhi_ps
#define vf_shuffle(a, b, way) _mm256_shuffle_ps(a, b, way)
#endif

#if defined(__AVX2__)
VECTOR_INLINE void vector_transpose_quarters(vf r[4])
{
    vf a = vf_unpack_low(r[0], r[1]), b = vf_unpack_high(r[0], r[1]), c = vf_unpack_low(r[2], r[3]),
       d = vf_unpack_high(r[2], r[3]);

    r[0] = vf_shuffle(a, c, 0x44);
    r[1] = vf_shuffle(a, c, 0xee);
    r[2] = vf_shuffle(b, d, 0x44);
    r[3] = vf_shuffle(b, d, 0xee);
}
#else
VECTOR_INLINE void vector_transpose_quarters(vf r[4])
{
    vf t0 = vzip1q_f32(r[0], r[2]), t1 = vzip2q_f32(r[0], r[2]), t2 = vzip1q_f32(r[1], r[3]), t3 = vzip2q_f32(r[1], r[3]);

    r[0] = vzip1q_f32(t0, t2);
    r[1] = vzip2q_f32(t0, t2);
    r[2] = vzip1q_f32(t1, t3);
    r[3] = vzip2q_f32(t1, t3);
}
#endif

#if defined(__AVX512F__)
VECTOR_INLINE void vector_transpose(vf t[VW])
{
    vf r[VW];

#pragma GCC unroll 4
    for (int i = 0; i < VW; i += 4)
        vector_transpose_quarters(t + i);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* 4 x 4 quarters */
        vf a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd),
           c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88), d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);

        r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < VW; i++)
        t[i] = r[i];
}
#elif defined(__AVX2__)
VECTOR_INLINE void vector_transpose(vf t[VW])
{
    vf r[VW];

    vector_transpose_quarters(t);
    vector_transpose_quarters(t + 4);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < VW; i++)
        t[i] = r[i];
}
#else
VECTOR_INLINE void vector_transpose(vf r[VW])
{
    vector_transpose_quarters(r);
}
#endif

/* 128 bits from `at`, `at` + step, ..., as one register. */
VECTOR_INLINE vf vector_quarters(const uint8_t *at, size_t step)
{
#if defined(__AVX512F__)
    const __m256 low = _mm256_loadu2_m128((const float *)(const void *)(at + step), (const float *)(const void *)at),
                 high = _mm256_loadu2_m128((const float *)(const void *)(at + 3 * step),
                                           (const float *)(const void *)(at + 2 * step));

    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#elif defined(__AVX2__)
    return _mm256_loadu2_m128((const float *)(const void *)(at + step), (const float *)(const void *)at);
#else
    (void)step;
    return vreinterpretq_f32_u8(vld1q_u8(at));
#endif
}

/* Eight rows of eight, transposed. */
#if defined(__AVX2__)
VECTOR_INLINE void vector_transpose8(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row)
{
    __m256 r0 = _mm256_loadu_ps(from), r1 = _mm256_loadu_ps(from + from_row), r2 = _mm256_loadu_ps(from + 2 * from_row),
           r3 = _mm256_loadu_ps(from + 3 * from_row), r4 = _mm256_loadu_ps(from + 4 * from_row),
           r5 = _mm256_loadu_ps(from + 5 * from_row), r6 = _mm256_loadu_ps(from + 6 * from_row),
           r7 = _mm256_loadu_ps(from + 7 * from_row);
    __m256 t0 = _mm256_unpacklo_ps(r0, r1), t1 = _mm256_unpackhi_ps(r0, r1), t2 = _mm256_unpacklo_ps(r2, r3),
           t3 = _mm256_unpackhi_ps(r2, r3), t4 = _mm256_unpacklo_ps(r4, r5), t5 = _mm256_unpackhi_ps(r4, r5),
           t6 = _mm256_unpacklo_ps(r6, r7), t7 = _mm256_unpackhi_ps(r6, r7);

    r0 = _mm256_shuffle_ps(t0, t2, 0x44);
    r1 = _mm256_shuffle_ps(t0, t2, 0xee);
    r2 = _mm256_shuffle_ps(t1, t3, 0x44);
    r3 = _mm256_shuffle_ps(t1, t3, 0xee);
    r4 = _mm256_shuffle_ps(t4, t6, 0x44);
    r5 = _mm256_shuffle_ps(t4, t6, 0xee);
    r6 = _mm256_shuffle_ps(t5, t7, 0x44);
    r7 = _mm256_shuffle_ps(t5, t7, 0xee);
    _mm256_storeu_ps(to, _mm256_permute2f128_ps(r0, r4, 0x20));
    _mm256_storeu_ps(to + to_row, _mm256_permute2f128_ps(r1, r5, 0x20));
    _mm256_storeu_ps(to + 2 * to_row, _mm256_permute2f128_ps(r2, r6, 0x20));
    _mm256_storeu_ps(to + 3 * to_row, _mm256_permute2f128_ps(r3, r7, 0x20));
    _mm256_storeu_ps(to + 4 * to_row, _mm256_permute2f128_ps(r0, r4, 0x31));
    _mm256_storeu_ps(to + 5 * to_row, _mm256_permute2f128_ps(r1, r5, 0x31));
    _mm256_storeu_ps(to + 6 * to_row, _mm256_permute2f128_ps(r2, r6, 0x31));
    _mm256_storeu_ps(to + 7 * to_row, _mm256_permute2f128_ps(r3, r7, 0x31));
}
#else
/* Four rows of four. */
VECTOR_INLINE void vector_transpose4(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row)
{
    vf r[4];

    for (int i = 0; i < 4; i++)
        r[i] = vld1q_f32(from + i * from_row);
    vector_transpose(r);
    for (int i = 0; i < 4; i++)
        vst1q_f32(to + i * to_row, r[i]);
}

VECTOR_INLINE void vector_transpose8(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row)
{
    for (ptrdiff_t r = 0; r < 8; r += 4)
        for (ptrdiff_t c = 0; c < 8; c += 4)
            vector_transpose4(from + r * from_row + c, from_row, to + c * to_row + r, to_row);
}
#endif

#endif
