/* power.h - powers: 2^(y log2 |x|), the logarithm and the exponential in binary64 with + - * / only, rounded once. */
#ifndef RONDO_NUMERICS_POWER_H
#define RONDO_NUMERICS_POWER_H

#include "native/numerics/f32.h"

#define POW_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */

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
    double t = x + POW_MAGIC, k = t - POW_MAGIC, r = (x - k) * 0.69314718055994530942, p;
    uint64_t n = f64_bits(t) - f64_bits(POW_MAGIC);

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

/* |x|^y with the sign of x where `odd`; a negative base needs an integer exponent, else NaN; 0^0 = 1, 0^y = 0 or inf. */
NUMERICS_FN float pow_signed(float x, double y, uint32_t integer, uint32_t odd)
{
    float a = f32_abs(x), r;
    double l = pow_log2(a > 0.0f && f32_is_finite(a) ? (double)a : 1.0) * y;

    l = l > 300.0 ? 300.0 : l;
    l = l < -300.0 ? -300.0 : l;
    r = (float)pow_exp2(l);
    r = a == 0.0f ? (y > 0.0 ? 0.0f : __builtin_inff()) : r;
    r = f32_bits(a) == 0x7f800000u ? (y > 0.0 ? a : 0.0f) : r;
    r = f32_bits(x) >> 31 ? (integer ? (odd ? -r : r) : (a == 0.0f || !f32_is_finite(x) ? r : __builtin_nanf(""))) : r;
    r = x != x || y != y ? __builtin_nanf("") : r;
    return y == 0.0 || x == 1.0f ? 1.0f : r;
}

/* x^y for a real exponent; an integer-valued one is an integer. */
NUMERICS_FN float f32_pow(float x, float y)
{
    uint32_t integer = f32_round(y) == y, odd = integer && f32_round(0.5f * y) != 0.5f * y;

    return pow_signed(x, (double)y, integer, odd);
}

/* x^n; equals f32_pow(x, (float)n) where n is a binary32. */
NUMERICS_FN float f32_powi(float x, int32_t n)
{
    return pow_signed(x, (double)n, 1, (uint32_t)n & 1u);
}

#endif
