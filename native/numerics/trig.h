/* trig.h - sin and cos, and powers.
 *
 * The argument is reduced in binary64 with + - * only: k = nearest integer to x 2/pi, r = (x - k P1) - k P2, P1 the upper 33 bits of
 * pi/2, so that k P1 is exact for |k| < 2^20; beyond 2^20 pi/2 (about 1.6e6) the result is NaN: no angle of a model is that large, and
 * rotary angles are reduced before (native/kernel/rope.h). Kernels on [-pi/4, pi/4] are Cephes' polynomials.
 */
#ifndef RONDO_NUMERICS_TRIG_H
#define RONDO_NUMERICS_TRIG_H

#include "native/numerics/f32.h"

#define TRIG_LIMIT 1600000.0f
#define TRIG_MAGIC 6755399441055744.0 /* 1.5 * 2^52 */

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

/* sin(x + quarter pi/2), x in binary64. */
NUMERICS_FN float trig_sin(double x, uint32_t quarter)
{
    double t = x * 0.63661977236758134308 + TRIG_MAGIC, k = t - TRIG_MAGIC;
    uint32_t q = (uint32_t)f64_bits(t) + quarter;
    float r = (float)((x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11), z = r * r, s, c;

    s = -1.9515295891e-4f;
    s = f32_fma(s, z, 8.3321608736e-3f);
    s = f32_fma(s, z, -1.6666654611e-1f);
    s = f32_fma(s * z, r, r);
    c = 2.443315711809948e-5f;
    c = f32_fma(c, z, -1.388731625493765e-3f);
    c = f32_fma(c, z, 4.166664568298827e-2f);
    c = f32_fma(c * z, z, f32_fma(-0.5f, z, 1.0f));
    s = q & 1u ? c : s;
    return f32_from_bits(f32_bits(s) ^ ((q & 2u) << 30));
}

NUMERICS_FN float f32_sin(float x)
{
    float r = trig_sin(f32_abs(x) <= TRIG_LIMIT ? (double)x : 0.0, 0);

    r = x == 0.0f ? x : r;
    return f32_abs(x) <= TRIG_LIMIT ? r : __builtin_nanf("");
}

NUMERICS_FN float f32_cos(float x)
{
    float r = trig_sin(f32_abs(x) <= TRIG_LIMIT ? (double)x : 0.0, 1);

    return f32_abs(x) <= TRIG_LIMIT ? r : __builtin_nanf("");
}

/* log2 of a positive finite normal binary64: m in [sqrt(1/2), sqrt 2), 2 atanh((m-1)/(m+1)) by its series to the 17th power. */
NUMERICS_FN double pow_log2(double x)
{
    uint64_t bits = f64_bits(x), e = (bits - 0x3fe6a09e667f3bcdull) & 0xfff0000000000000ull;
    double m = f64_from_bits(bits - e), s = (m - 1.0) / (m + 1.0), z = s * s, p;
    double k = (double)((int32_t)(e >> 32) / 0x100000);

    p = 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    p = p * z + 1.0;
    return k + (2.0 * s) * p * 1.44269504088896340736;
}

/* 2^x in binary64 for |x| <= 300: 2^n times the series of e^r, |r| <= ln2/2, to the 11th power. */
NUMERICS_FN double pow_exp2(double x)
{
    double t = x + TRIG_MAGIC, k = t - TRIG_MAGIC, r = (x - k) * 0.69314718055994530942, p;
    uint64_t n = f64_bits(t) - f64_bits(TRIG_MAGIC);

    p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * f64_from_bits((n + 1023u) << 52);
}

/* x^y. A negative base needs an integer exponent, else NaN; 0^0 = 1, 0^y = 0 or inf. The logarithm and the exponential are binary64,
 * + - * / only, the result is rounded once. */
NUMERICS_FN float f32_pow(float x, float y)
{
    float a = f32_abs(x), r;
    double l = pow_log2(a > 0.0f && f32_is_finite(a) ? (double)a : 1.0) * (double)y;
    uint32_t integer = f32_round(y) == y, odd = integer && f32_round(0.5f * y) != 0.5f * y;

    l = l > 300.0 ? 300.0 : l;
    l = l < -300.0 ? -300.0 : l;
    r = (float)pow_exp2(l);
    r = a == 0.0f ? (y > 0.0f ? 0.0f : __builtin_inff()) : r;
    r = f32_bits(a) == 0x7f800000u ? (y > 0.0f ? a : 0.0f) : r;
    r = f32_bits(x) >> 31 ? (integer ? (odd ? -r : r) : (a == 0.0f || !f32_is_finite(x) ? r : __builtin_nanf(""))) : r;
    r = x != x || y != y ? __builtin_nanf("") : r;
    return y == 0.0f || x == 1.0f ? 1.0f : r;
}

#endif
