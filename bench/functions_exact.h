/* functions_exact.h - what the elementary functions should give: in binary64 with a stated error, and in MPFR.
 *
 * `near` is computed in binary64 by the C library, several at once where it can, and is off by at most `bound` of itself (checked
 * against `exact` on a sample of every run); `exact` turns the argument in r into the value, with EXACT_BITS bits.
 */
#ifndef RONDO_BENCH_FUNCTIONS_EXACT_H
#define RONDO_BENCH_FUNCTIONS_EXACT_H

#include <math.h>
#include <mpfr.h>

#include "native/kernel/elementwise.h"

#define EXACT_BITS 256

/* glibc has these for vectors of each width (libmvec, at most 4 ulp); without the declaration gcc calls the scalar ones. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define IN_VECTORS __attribute__((simd("notinbranch")))
IN_VECTORS double exp(double);
IN_VECTORS double exp2(double);
IN_VECTORS double expm1(double);
IN_VECTORS double log(double);
IN_VECTORS double log1p(double);
IN_VECTORS double tanh(double);
IN_VECTORS double erf(double);
IN_VECTORS double erfc(double);
IN_VECTORS double sin(double);
IN_VECTORS double cos(double);
IN_VECTORS double pow(double, double);
#endif

struct reference {
    const char *name;
    enum elementwise_op op;
    float second;     /* the second operand of a power; NaN: another one for every argument, so that the pairs are a sample */
    float limit;      /* no argument may be off by more, in ulp */
    float from, to;   /* the domain; outside nothing is compared */
    bool of_argument; /* the error is told in ulp of the argument where that is larger than the result */
    double bound;
    void (*near)(size_t n, const float *x, const float *y, double *out);
    void (*exact)(mpfr_t r, double y);
};

#define REFERENCE(name, formula, steps)                                                                                          \
    static void near_##name(size_t n, const float *px, const float *py, double *out)                                             \
    {                                                                                                                            \
        (void)py;                                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                                                         \
            double x = (double)px[i];                                                                                            \
            out[i] = formula;                                                                                                    \
        }                                                                                                                        \
    }                                                                                                                            \
    static void exact_##name(mpfr_t r, double y)                                                                                 \
    {                                                                                                                            \
        (void)y;                                                                                                                 \
        steps;                                                                                                                   \
    }

/* Both sides are computed. */
static inline double choose(bool first, double a, double b)
{
    return first ? a : b;
}

/* e^x, cut where binary32 has long ended: the C library is slow where binary64 ends. */
static inline double exp_cut(double x)
{
    return exp(choose(x > 250, 250, choose(x < -250, -250, x)));
}

/* 1/(1 + e^-x), x/(1 + e^-u) without overflow on either side */
static inline double logistic(double x, double u)
{
    double e = exp_cut(-fabs(u));

    return x * (choose(u < 0, e, 1) / (1 + e));
}

static inline double softplus(double x)
{
    return choose(x > 0, x, 0) + log1p(exp_cut(-fabs(x)));
}

/* log(1 + e^r) = max(r, 0) + log1p(e^-|r|) in place */
static void exact_log1pexp(mpfr_t r)
{
    mpfr_t base;

    mpfr_init2(base, EXACT_BITS);
    mpfr_set(base, r, MPFR_RNDN);
    if (mpfr_signbit(r))
        mpfr_set_zero(base, 1);
    else
        mpfr_neg(r, r, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_log1p(r, r, MPFR_RNDN);
    mpfr_add(r, r, base, MPFR_RNDN);
    mpfr_clear(base);
}

/* log(1 - e^r) in place, r < 0 */
static void exact_log_less(mpfr_t r)
{
    if (mpfr_cmp_si(r, -1) > 0) {
        mpfr_expm1(r, r, MPFR_RNDN);
        mpfr_neg(r, r, MPFR_RNDN);
        mpfr_log(r, r, MPFR_RNDN);
    } else {
        mpfr_exp(r, r, MPFR_RNDN);
        mpfr_neg(r, r, MPFR_RNDN);
        mpfr_log1p(r, r, MPFR_RNDN);
    }
}

/* e^r/(1 + e^r) in place */
static void exact_logistic(mpfr_t r)
{
    mpfr_neg(r, r, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void exact_swish(mpfr_t r)
{
    mpfr_t x;

    mpfr_init2(x, EXACT_BITS);
    mpfr_set(x, r, MPFR_RNDN);
    exact_logistic(r);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_clear(x);
}

/* x erfc(-x / sqrt 2) / 2 in place */
static void exact_normal_gelu(mpfr_t r)
{
    mpfr_t x;

    mpfr_init2(x, EXACT_BITS);
    mpfr_set(x, r, MPFR_RNDN);
    mpfr_sqrt_ui(r, 2, MPFR_RNDN);
    mpfr_div(r, x, r, MPFR_RNDN);
    mpfr_neg(r, r, MPFR_RNDN);
    mpfr_erfc(r, r, MPFR_RNDN);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_div_2ui(r, r, 1, MPFR_RNDN);
    mpfr_clear(x);
}

/* x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), in place */
static void exact_tanh_gelu(mpfr_t r)
{
    mpfr_t x, factor;

    mpfr_init2(x, EXACT_BITS);
    mpfr_init2(factor, EXACT_BITS);
    mpfr_set(x, r, MPFR_RNDN);
    mpfr_sqr(r, r, MPFR_RNDN);
    mpfr_mul_ui(r, r, 44715, MPFR_RNDN);
    mpfr_div_ui(r, r, 1000000, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_const_pi(factor, MPFR_RNDN);
    mpfr_ui_div(factor, 8, factor, MPFR_RNDN);
    mpfr_sqrt(factor, factor, MPFR_RNDN);
    mpfr_mul(r, r, factor, MPFR_RNDN);
    exact_logistic(r);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_clear(x);
    mpfr_clear(factor);
}

static void exact_power(mpfr_t r, double y)
{
    mpfr_t exponent;

    mpfr_init2(exponent, 64);
    mpfr_set_d(exponent, y, MPFR_RNDN);
    mpfr_pow(r, r, exponent, MPFR_RNDN);
    mpfr_clear(exponent);
}

REFERENCE(exp, exp_cut(x), mpfr_exp(r, r, MPFR_RNDN))
REFERENCE(exp2, exp2(choose(x > 300, 300, choose(x < -300, -300, x))), mpfr_exp2(r, r, MPFR_RNDN))
REFERENCE(expm1, expm1(choose(x > 200, 200, x)), mpfr_expm1(r, r, MPFR_RNDN))
REFERENCE(log, log(x), mpfr_log(r, r, MPFR_RNDN))
REFERENCE(log1p, log1p(x), mpfr_log1p(r, r, MPFR_RNDN))
REFERENCE(tanh, tanh(x), mpfr_tanh(r, r, MPFR_RNDN))
REFERENCE(sigmoid, logistic(1, x), exact_logistic(r))
REFERENCE(erf, erf(x), mpfr_erf(r, r, MPFR_RNDN))
REFERENCE(sin, sin(choose(fabs(x) > 0x1p20, 0, x)), mpfr_sin(r, r, MPFR_RNDN))
REFERENCE(cos, cos(choose(fabs(x) > 0x1p20, 0, x)), mpfr_cos(r, r, MPFR_RNDN))
REFERENCE(rsqrt, 1 / sqrt(x), mpfr_rec_sqrt(r, r, MPFR_RNDN))
REFERENCE(pow, pow(x, (double)py[i]), exact_power(r, y))
REFERENCE(silu, logistic(x, x), exact_swish(r))
REFERENCE(softplus, softplus(x), exact_log1pexp(r))
REFERENCE(logsigmoid, -softplus(-x), (mpfr_neg(r, r, MPFR_RNDN), exact_log1pexp(r), mpfr_neg(r, r, MPFR_RNDN)))
REFERENCE(log1mexp, choose(x > -0.7, log(-expm1(x)), log1p(-exp_cut(x))), exact_log_less(r))
REFERENCE(gelu, x *(0.5 * erfc(-x * 0.70710678118654752440)), exact_normal_gelu(r))
REFERENCE(gelu_tanh, logistic(x, 1.5957691216057307117 * x * (1 + 0.044715 * x * x)), exact_tanh_gelu(r))

#define ALL -INFINITY, INFINITY
#define LINE(name, id, limit, ...)                                                                                               \
    {                                                                                                                            \
#name, ELEMENTWISE_##id, 0, limit, __VA_ARGS__, near_##name, exact_##name                                                \
    }
#define POWER(text, second, ...)                                                                                                 \
    {                                                                                                                            \
        text, ELEMENTWISE_POW, second, __VA_ARGS__, near_pow, exact_pow                                                          \
    }

static const struct reference references[] = {
    LINE(exp, EXP, 1, ALL, false, 0x1p-48),
    LINE(exp2, EXP2, 1, ALL, false, 0x1p-48),
    LINE(expm1, EXPM1, 1.5f, ALL, false, 0x1p-48),
    LINE(log, LOG, 1, ALL, false, 0x1p-48),
    LINE(log1p, LOG1P, 1.6f, ALL, false, 0x1p-48),
    LINE(tanh, TANH, 1, ALL, false, 0x1p-48),
    LINE(sigmoid, SIGMOID, 1, ALL, false, 0x1p-48),
    LINE(erf, ERF, 1.1f, ALL, false, 0x1p-48),
    LINE(sin, SIN, 1, -0x1p20f, 0x1p20f, false, 0x1p-48),
    LINE(cos, COS, 1, -0x1p20f, 0x1p20f, false, 0x1p-48),
    LINE(rsqrt, RSQRT, 1, ALL, false, 0x1p-48),
    POWER("pow", NAN, 0.51f, ALL, false, 0x1p-48),
    POWER("pow(x, 3)", 3, 0.51f, ALL, false, 0x1p-48),
    POWER("pow(x, -1)", -1, 0.51f, ALL, false, 0x1p-48),
    POWER("pow(x, 1/2)", 0.5f, 0.51f, ALL, false, 0x1p-48),
    LINE(silu, SILU, 53, ALL, false, 0x1p-48),
    LINE(softplus, SOFTPLUS, 2, ALL, false, 0x1p-48),
    LINE(logsigmoid, LOGSIGMOID, 2, ALL, false, 0x1p-48),
    LINE(log1mexp, LOG1MEXP, 3, -INFINITY, 0, false, 0x1p-48),
    LINE(gelu, GELU, 2, ALL, true, 0x1p-40),
    LINE(gelu_tanh, GELU_TANH, 3, ALL, true, 0x1p-40),
};

#define REFERENCES (sizeof references / sizeof references[0])

#endif
