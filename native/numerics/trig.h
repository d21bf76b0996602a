/* trig.h - sin and cos, in binary64 with + - * only, rounded once.
 *
 * k = nearest integer to x 2/pi, r = (x - k P1) - k P2, P1 the upper 33 bits of pi/2, so that k P1 is exact for |k| < 2^20; beyond
 * 2^20 pi/2 (about 1.6e6) the result is NaN: no angle of a model is that large. On [-pi/4, pi/4] the series of sin to the 13th and of
 * cos to the 14th power.
 */
#ifndef RONDO_NUMERICS_TRIG_H
#define RONDO_NUMERICS_TRIG_H

#include "native/numerics/f32.h"

#define TRIG_LIMIT 1600000.0f
#define TRIG_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */

/* sin(x + quarter pi/2), x in binary64. */
NUMERICS_FN float trig_sin(double x, uint32_t quarter)
{
    double t = x * 0.63661977236758134308 + TRIG_MAGIC, k = t - TRIG_MAGIC;
    double r = (x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11, z = r * r, s, c;
    uint32_t q = (uint32_t)f64_bits(t) + quarter;
    float result;

    s = 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = (s * z) * r + r;
    c = -1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = c * z + 1.0;
    result = (float)(q & 1u ? c : s);
    return f32_from_bits(f32_bits(result) ^ ((q & 2u) << 30));
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

#endif
