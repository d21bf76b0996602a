/* exp.h - exponentials, logarithms and what rests on them, by fixed polynomials in binary32.
 *
 * exp: x = n ln2 + r, |r| <= ln2/2, n to nearest by the constant 1.5 * 2^23; e^r = 1 + r + r^2 q(r); scaled by two powers of two,
 * so that subnormal results round once. Cephes' coefficients (S. Moshier, expf).
 * log: x = 2^e m, m in [2/3, 4/3); polynomial in m - 1 after N. Juffa. Maximal errors stand in docs/numerics.md.
 */
#ifndef RONDO_NUMERICS_EXP_H
#define RONDO_NUMERICS_EXP_H

#include "native/numerics/f32.h"

#define EXP_MAGIC 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */

/* Reduces x (already clamped) to r; returns q(r), where e^r = 1 + r + r^2 q(r), and n as an integer. */
NUMERICS_FN float exp_reduce(float x, float *reduced, uint32_t *n)
{
    float t = f32_fma(x, 1.44269504f, EXP_MAGIC), k = t - EXP_MAGIC, r, q;

    *n = f32_bits(t) - f32_bits(EXP_MAGIC);
    r = f32_fma(k, -0.693145752f, x);
    r = f32_fma(k, -1.42860677e-6f, r);
    *reduced = r;
    q = 1.9875691500e-4f;
    q = f32_fma(q, r, 1.3981999507e-3f);
    q = f32_fma(q, r, 8.3334519073e-3f);
    q = f32_fma(q, r, 4.1665795894e-2f);
    q = f32_fma(q, r, 1.6666665459e-1f);
    return f32_fma(q, r, 5.0000001201e-1f);
}

/* 2^n for n in [-126, 127], n as a two's complement word. */
NUMERICS_FN float exp_power(uint32_t n)
{
    return f32_from_bits((n + 127u) << 23);
}

/* p 2^n, n in two halves: a subnormal result rounds once. */
NUMERICS_FN float exp_scale(float p, uint32_t n)
{
    uint32_t half = (uint32_t)((int32_t)n >> 1);

    return p * exp_power(half) * exp_power(n - half);
}

/* e^r as sum + rest: what 1 + r loses to rounding is kept with the small r^2 q(r). x is clamped. */
NUMERICS_FN float exp_parts(float x, float *rest, uint32_t *n)
{
    float r, q = exp_reduce(x, &r, n), sum = 1.0f + r;

    *rest = f32_fma(q, r * r, r - (sum - 1.0f));
    return sum;
}

NUMERICS_FN float f32_exp(float x)
{
    uint32_t n;
    float sum, rest;

    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    sum = exp_parts(x, &rest, &n);
    return exp_scale(sum + rest, n);
}

/* 2^x: n to nearest, r = x - n exact; 2^r = 1 + (r ln2 + r (r q(r) + the rest of ln2)), q of degree 5 by Remez' exchange. */
NUMERICS_FN float f32_exp2(float x)
{
    float t, r, q;
    uint32_t n;

    x = x > 129.0f ? 129.0f : x;
    x = x < -151.0f ? -151.0f : x;
    t = x + EXP_MAGIC;
    n = f32_bits(t) - f32_bits(EXP_MAGIC);
    r = x - (t - EXP_MAGIC);
    q = 1.5290949e-5f;
    q = f32_fma(q, r, 1.5453163e-4f);
    q = f32_fma(q, r, 1.3333522e-3f);
    q = f32_fma(q, r, 9.618083e-3f);
    q = f32_fma(q, r, 5.550411e-2f);
    q = f32_fma(q, r, 2.402265e-1f);
    q = f32_fma(q, r, -1.9046542e-9f);
    return exp_scale(1.0f + f32_fma(r, 0.693147182f, r * q), n);
}

/* e^x for x <= 0 as high + low, low the part that rounding loses. */
NUMERICS_FN float exp_pair(float x, float *low)
{
    uint32_t n;
    float sum, rest, p;

    x = x < -104.0f ? -104.0f : x;
    sum = exp_parts(x, &rest, &n);
    p = sum + rest;
    *low = exp_scale(rest - (p - sum), n);
    return exp_scale(p, n);
}

/* e^x - 1 without cancellation near 0. */
NUMERICS_FN float f32_expm1(float x)
{
    uint32_t n;
    float y = x, r, q, p, s;

    y = y > 89.0f ? 89.0f : y;
    y = y < -20.0f ? -20.0f : y;
    q = exp_reduce(y, &r, &n);
    p = f32_fma(q, r * r, r);
    s = exp_power(n - 1u);
    p = n == 0u ? p : 2.0f * f32_fma(s, p, s - 0.5f);
    return x == 0.0f ? x : p;
}

/* log(1 + m) for m in [-1/3, 1/3]. */
NUMERICS_FN float log_near_one(float m, float ln2_multiple)
{
    float s = m * m, r, t;

    r = -0.130310059f;
    t = 0.140869141f;
    r = f32_fma(r, s, -0.121483512f);
    t = f32_fma(t, s, 0.139814854f);
    r = f32_fma(r, s, -0.166846126f);
    t = f32_fma(t, s, 0.200120345f);
    r = f32_fma(r, s, -0.249996200f);
    r = f32_fma(t, m, r);
    r = f32_fma(r, m, 0.333331972f);
    r = f32_fma(r, m, -0.5f);
    r = f32_fma(r, s, m);
    return f32_fma(ln2_multiple, 0.693147182f, r);
}

/* log 0 = -inf, log of less than 0 is NaN. */
NUMERICS_FN float f32_log(float x)
{
    uint32_t small = f32_bits(x) < 0x00800000u; /* +0 and positive subnormals */
    float y = small ? x * 8388608.0f : x, r;
    uint32_t e = (f32_bits(y) - 0x3f2aaaabu) & 0xff800000u;
    float m = f32_from_bits(f32_bits(y) - e) - 1.0f;
    float i = f32_fma((float)(int32_t)e, 0x1p-23f, small ? -23.0f : 0.0f);

    r = log_near_one(m, i);
    r = f32_bits(x) == 0x7f800000u ? x : r;
    r = x == 0.0f ? -__builtin_inff() : r;
    return x < 0.0f || x != x ? __builtin_nanf("") : r;
}

/* log(1 + x), accurate near 0; -inf at -1, NaN below. */
NUMERICS_FN float f32_log1p(float x)
{
    float u = 1.0f + x, r, m, s;
    uint32_t e = (f32_bits(u) - 0x3f2aaaabu) & 0xff800000u;

    /* x 2^-e + (2^-e - 1), 2^-e kept in range by a factor of 4 */
    s = f32_from_bits(f32_bits(4.0f) - e);
    m = (e == 0u ? x : f32_from_bits(f32_bits(x) - e)) + f32_fma(0.25f, s, -1.0f);
    r = log_near_one(m, (float)(int32_t)e * 0x1p-23f);
    r = x == 0.0f || f32_bits(x) == 0x7f800000u ? x : r;
    r = u == 0.0f ? -__builtin_inff() : r;
    return u < 0.0f || x != x ? __builtin_nanf("") : r;
}

#endif
