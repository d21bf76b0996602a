/* f32.h - the ground of the portable kernel class: binary32 as bits, fused multiply-add, rounding to 16-bit storage.
 *
 * Everything in native/numerics is header-only and branch-free where vectors need it: compiled for x86-64, AArch64 and CUDA from
 * this text it gives the same bits. Allowed are + - * / on binary32 (binary64 where said), sqrtf, explicit fma, comparisons, bit and
 * integer operations (docs/numerics.md, rule 2). Compile with -ffp-contract=off.
 */
#ifndef RONDO_NUMERICS_F32_H
#define RONDO_NUMERICS_F32_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define NUMERICS_FN static __host__ __device__ __forceinline__
#else
#define NUMERICS_FN static inline __attribute__((always_inline, unused))
#endif

NUMERICS_FN uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NUMERICS_FN float f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

NUMERICS_FN uint64_t f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NUMERICS_FN double f64_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a*b + c, rounded once. */
NUMERICS_FN float f32_fma(float a, float b, float c)
{
#ifdef __CUDA_ARCH__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

NUMERICS_FN float f32_sqrt(float x)
{
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

NUMERICS_FN double f64_sqrt(double x)
{
#ifdef __CUDA_ARCH__
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/* 1/sqrt(x) in binary64, rounded once to binary32: 1/sqrtf(x) is off by up to 1.5 ulp. */
NUMERICS_FN float f32_rsqrt(float x)
{
    return (float)(1.0 / f64_sqrt((double)x));
}

NUMERICS_FN float f32_abs(float x)
{
    return f32_from_bits(f32_bits(x) & 0x7fffffffu);
}

/* The magnitude of x with the sign of s. */
NUMERICS_FN float f32_copysign(float x, float s)
{
    return f32_from_bits((f32_bits(x) & 0x7fffffffu) | (f32_bits(s) & 0x80000000u));
}

/* Compare and select: y where they are equal or where either is NaN. */
NUMERICS_FN float f32_max(float x, float y)
{
    return x > y ? x : y;
}

NUMERICS_FN float f32_min(float x, float y)
{
    return x < y ? x : y;
}

NUMERICS_FN uint32_t f32_is_finite(float x)
{
    return (f32_bits(x) & 0x7f800000u) != 0x7f800000u;
}

/* To the nearest integer, ties to even; the sign of zero is kept. */
NUMERICS_FN float f32_round(float x)
{
    float a = f32_abs(x), r = (a + 8388608.0f) - 8388608.0f;

    return f32_copysign(a < 8388608.0f ? r : a, x);
}

NUMERICS_FN float f32_floor(float x)
{
    float r = f32_round(x);

    return r > x ? r - 1.0f : r;
}

/* bfloat16: round to nearest even on the bit pattern; a NaN stays one (quiet). */
NUMERICS_FN uint16_t bf16_from_f32(float x)
{
    uint32_t bits = f32_bits(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

NUMERICS_FN float f32_from_bf16(uint16_t x)
{
    return f32_from_bits((uint32_t)x << 16);
}

/* binary16: round to nearest even, overflow to infinity, subnormals kept; a NaN becomes 0x7e00 with its sign. */
NUMERICS_FN uint16_t f16_from_f32(float x)
{
    uint32_t bits = f32_bits(x), sign = (bits >> 16) & 0x8000u, mag = bits & 0x7fffffffu;

    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (mag >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (mag >= 0x38800000u) /* normal: rebias, round the 13 bits that go */
        return (uint16_t)(sign | ((mag - 0x38000000u + 0xfffu + ((mag >> 13) & 1)) >> 13));
    if (mag < 0x33000000u) /* below half of the least subnormal */
        return (uint16_t)sign;

    uint32_t shift = 126 - (mag >> 23), mantissa = (mag & 0x7fffffu) | 0x800000u;
    uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);

    return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
}

NUMERICS_FN float f32_from_f16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = (x >> 10) & 31, mantissa = x & 0x3ffu;

    if (exponent == 31)
        return f32_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) /* mantissa * 2^-24, exact */
        return f32_from_bits(sign | f32_bits((float)mantissa * 0x1p-24f));
    return f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

#endif
