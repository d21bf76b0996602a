/* activation.h - tanh, sigmoid, erf and the activations built of them; each formula is the definition, step by step. */
#ifndef RONDO_NUMERICS_ACTIVATION_H
#define RONDO_NUMERICS_ACTIVATION_H

#include "native/numerics/exp.h"

/* (high + low) / (d + d_low): a quotient, then one correction by its remainder. */
NUMERICS_FN float divide_pair(float high, float low, float d, float d_low)
{
    float inverse = 1.0f / d, q = high * inverse, rest = f32_fma(-q, d, high) + (low - q * d_low);

    return f32_fma(rest, inverse, q);
}

/* x + x^3 p(x^2) below 0.6 (p interpolates at Chebyshev's nodes of [0, 0.36]), else (1 - e)/(1 + e), e = e^-2|x| carried as a pair. */
NUMERICS_FN float f32_tanh(float x)
{
    float a = f32_abs(x), s = x * x, r, far, low, e = exp_pair(-(a + a), &low), n = 1.0f - e, d = 1.0f + e;

    far = divide_pair(n, ((1.0f - n) - e) - low, d, (e - (d - 1.0f)) + low);
    r = -6.2691194e-3f;
    r = f32_fma(r, s, 2.1110959e-2f);
    r = f32_fma(r, s, -5.3873949e-2f);
    r = f32_fma(r, s, 1.33329154e-1f);
    r = f32_fma(r, s, -3.33333303e-1f);
    r = f32_fma(r * s, x, x);
    r = a >= 0.599609375f ? f32_copysign(far, x) : r;
    return x != x || x == 0.0f ? x : r;
}

/* e = e^-|x| as a pair; 1/(1 + e) for x >= 0, e/(1 + e) below. */
NUMERICS_FN float f32_sigmoid(float x)
{
    float low, e = exp_pair(-f32_abs(x), &low), d = 1.0f + e, d_low = (e - (d - 1.0f)) + low;

    return divide_pair(x < 0.0f ? e : 1.0f, x < 0.0f ? low : 0.0f, d, d_low);
}

NUMERICS_FN float f32_silu(float x)
{
    return x * f32_sigmoid(x);
}

/* d silu / dx = s (1 + x (1 - s)) */
NUMERICS_FN float f32_silu_slope(float x)
{
    float s = f32_sigmoid(x);

    return s * f32_fma(x, 1.0f - s, 1.0f);
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|) */
NUMERICS_FN float f32_softplus(float x)
{
    return (x > 0.0f ? x : 0.0f) + f32_log1p(f32_exp(-f32_abs(x)));
}

/* log sigmoid(x) = min(x, 0) - log1p(e^-|x|) */
NUMERICS_FN float f32_logsigmoid(float x)
{
    return (x < 0.0f ? x : 0.0f) - f32_log1p(f32_exp(-f32_abs(x)));
}

/* log(1 - e^x), x <= 0: log(-expm1(x)) above -ln 2, else log1p(-e^x) (M. Maechler). -inf at 0. */
NUMERICS_FN float f32_log1mexp(float x)
{
    float near = f32_log(-f32_expm1(x)), far = f32_log1p(-f32_exp(x));

    return x > -0.693147182f ? near : far;
}

/* Two polynomials, after N. Juffa. */
NUMERICS_FN float f32_erf(float x)
{
    float t = f32_abs(x), s = x * x, r, u, near;

    t = t > 4.0f ? 4.0f : t;
    u = t * t;
    r = f32_fma(-1.72853470e-5f, t, 3.83197126e-4f);
    r = f32_fma(r, u, f32_fma(-3.88396438e-3f, t, 2.42546219e-2f));
    r = f32_fma(r, t, -1.06777877e-1f);
    r = f32_fma(r, t, -6.34846687e-1f);
    r = f32_fma(r, t, -1.28717512e-1f);
    r = f32_fma(r, t, -t);
    r = f32_copysign(1.0f - f32_exp(r), x);
    near = -5.96761703e-4f;
    near = f32_fma(near, s, 4.99119423e-3f);
    near = f32_fma(near, s, -2.67681349e-2f);
    near = f32_fma(near, s, 1.12819925e-1f);
    near = f32_fma(near, s, -3.76125336e-1f);
    near = f32_fma(near, s, 1.28379166e-1f);
    near = f32_fma(near, x, x);
    r = t > 0.927734375f ? r : near;
    return x != x ? x : r;
}

/* x (1 + erf(x/sqrt 2)) / 2 */
NUMERICS_FN float f32_gelu(float x)
{
    float h = 0.5f * x;

    return f32_fma(h, f32_erf(x * 0.707106769f), h);
}

/* Phi(x) + x phi(x) */
NUMERICS_FN float f32_gelu_slope(float x)
{
    float cdf = f32_fma(0.5f, f32_erf(x * 0.707106769f), 0.5f), pdf = 0.398942292f * f32_exp(-0.5f * (x * x));

    return f32_fma(x, pdf, cdf);
}

/* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
NUMERICS_FN float f32_gelu_tanh(float x)
{
    float h = 0.5f * x, u = 0.797884583f * f32_fma(0.044715f * x, x * x, x);

    return f32_fma(h, f32_tanh(u), h);
}

NUMERICS_FN float f32_gelu_tanh_slope(float x)
{
    float u = 0.797884583f * f32_fma(0.044715f * x, x * x, x), t = f32_tanh(u);
    float du = 0.797884583f * f32_fma(0.134145f * x, x, 1.0f);

    return f32_fma((0.5f * x) * f32_fma(-t, t, 1.0f), du, f32_fma(0.5f, t, 0.5f));
}

#endif
