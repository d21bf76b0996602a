#include "runtime/script/script_math.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ln 2 = LN2_HIGH + LN2_LOW, the first with 11 zero bits at its end: k * LN2_HIGH is exact for |k| < 2^11. */
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW  0x1.ef35793c76730p-45
#define LOG2E    0x1.71547652b82fep+0

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double power_of_two(int k)
{
    return from_bits((uint64_t)(k + 1023) << 52);
}

/* x * 2^k with one rounding, for results below the normal range too. */
static double scaled(double x, int k)
{
    if (k > 1023)
        return x * 0x1p1023 * power_of_two(k - 1023 > 1023 ? 1023 : k - 1023);
    if (k < -1022)
        return x * power_of_two(k + 200 < -1022 ? -1022 : k + 200) * 0x1p-200;
    return x * power_of_two(k);
}

static double nearest(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* exp(high + low), |low| far below |high|: k ln2 is taken off, then the series to degree 13 on |r| <= 0.35. */
static double exp_of(double high, double low)
{
    if (high != high)
        return high;
    if (high > 710)
        return INFINITY;
    if (high < -746)
        return 0;
    double k = nearest(high * LOG2E);
    double r = fma(-k, LN2_HIGH, high), t = fma(-k, LN2_LOW, low);
    double s = r + t, rest = (r - s) + t;
    static const double c[] = { 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5 };
    double p = c[0];
    for (int i = 1; i < 12; i++)
        p = fma(p, s, c[i]);
    return scaled(1 + (s + fma(p, s * s, rest)), (int)k);
}

/* log(x) = high + low for finite x > 0: x = 2^e m, m in [sqrt(1/2), sqrt 2); log m = 2 atanh f, f = (m - 1) / (m + 1). */
static double log_of(double x, double *low, int *exponent, double *mantissa_log)
{
    int e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        e = -54;
    }
    uint64_t bits = bits_of(x);
    e += (int)(bits >> 52) - 1023;
    double m = from_bits((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    double n = m - 1, d = m + 1, lost = m - (d - 1);
    double f = n / d, f_low = (fma(-f, d, n) - f * lost) / d;
    double q = f * f, p = 1.0 / 27;
    for (int i = 25; i >= 3; i -= 2)
        p = fma(p, q, 1.0 / i);
    double a = 2 * f, b = fma(2 * f * q, p, 2 * f_low);
    double whole = e * LN2_HIGH, sum = whole + a, bit = sum - whole;
    double rest = (whole - (sum - bit)) + (a - bit) + fma(e, LN2_LOW, b);
    *exponent = e;
    *mantissa_log = a + b;
    double high = sum + rest;
    *low = (sum - high) + rest;
    return high;
}

double script_exp(double x)
{
    return exp_of(x, 0);
}

static double log_outside(double x)
{
    return x == 0 ? -INFINITY : x < 0 ? NAN : x;
}

double script_log(double x)
{
    if (!(x > 0) || isinf(x))
        return log_outside(x);
    double low, mantissa;
    int e;
    return log_of(x, &low, &e, &mantissa);
}

double script_log2(double x)
{
    if (!(x > 0) || isinf(x))
        return log_outside(x);
    double low, mantissa;
    int e;
    log_of(x, &low, &e, &mantissa);
    return fma(mantissa, LOG2E, e);
}

/* |y| a small integer: by squaring, so that x^2 is x*x. */
static double whole_power(double x, unsigned n)
{
    double out = 1;
    for (; n; n >>= 1) {
        if (n & 1)
            out *= x;
        if (n > 1)
            x *= x;
    }
    return out;
}

static double pow_outside(double x, double y, bool odd)
{
    bool grows = y > 0;
    if (x == 0 || isinf(x)) {
        double size = (x == 0) == grows ? 0 : INFINITY;
        return odd && signbit(x) ? -size : size;
    }
    x = fabs(x);
    return x == 1 ? 1 : (x > 1) == grows ? INFINITY : 0;
}

double script_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return NAN;
    bool whole = fabs(y) >= 0x1p53 || nearest(y) == y, odd = whole && fabs(y) < 0x1p53 && ((int64_t)y & 1);
    if (x == 0 || isinf(x) || isinf(y))
        return pow_outside(x, y, odd);
    if (x < 0 && !whole)
        return NAN;
    if (whole && fabs(y) <= 3)
        return y > 0 ? whole_power(x, (unsigned)y) : 1 / whole_power(x, (unsigned)-y);
    double low, mantissa;
    int e;
    double high = log_of(fabs(x), &low, &e, &mantissa);
    double p = y * high, rest = fma(y, high, -p) + y * low;
    double size = isinf(p) ? (p > 0 ? INFINITY : 0) : exp_of(p, rest);
    return x < 0 && odd ? -size : size;
}

/* pi/2 in three parts, the first two with enough zero bits that k times them is exact for k < 2^17. */
#define HALF_PI_1 0x1.921fb54400000p+0
#define HALF_PI_2 0x1.0b4611a600000p-34
#define HALF_PI_3 0x1.3198a2e037073p-69

static double sine(double r, double low)
{
    static const double c[] = { -1.0 / 121645100408832000.0,
                                1.0 / 355687428096000.0,
                                -1.0 / 1307674368000.0,
                                1.0 / 6227020800.0,
                                -1.0 / 39916800.0,
                                1.0 / 362880.0,
                                -1.0 / 5040.0,
                                1.0 / 120.0,
                                -1.0 / 6.0 };
    double q = r * r, p = c[0];
    for (int i = 1; i < 9; i++)
        p = fma(p, q, c[i]);
    return r + fma(p, q * r, low);
}

static double cosine(double r, double low)
{
    static const double c[] = { 1.0 / 2432902008176640000.0,
                                -1.0 / 6402373705728000.0,
                                1.0 / 20922789888000.0,
                                -1.0 / 87178291200.0,
                                1.0 / 479001600.0,
                                -1.0 / 3628800.0,
                                1.0 / 40320.0,
                                -1.0 / 720.0,
                                1.0 / 24.0 };
    double q = r * r, p = c[0];
    for (int i = 1; i < 9; i++)
        p = fma(p, q, c[i]);
    double half = 0.5 * q, top = 1 - half, lost = (1 - top) - half;
    return top + (fma(p, q * q, lost) - r * low);
}

static double turned(double x, int quarter)
{
    if (!(fabs(x) <= 1e5))
        return NAN;
    double k = nearest(x * (2 / 3.14159265358979323846));
    double r = fma(-k, HALF_PI_1, x), s = fma(-k, HALF_PI_2, r);
    double low = fma(-k, HALF_PI_2, r - s) - k * HALF_PI_3;
    switch (((int)k + quarter) & 3) {
    case 0:
        return sine(s, low);
    case 1:
        return cosine(s, low);
    case 2:
        return -sine(s, low);
    default:
        return -cosine(s, low);
    }
}

double script_sin(double x)
{
    return x == 0 ? x : turned(x, 0);
}

double script_cos(double x)
{
    return turned(x, 1);
}

/* What the engines call for `^`. */
double pow(double x, double y)
{
    return script_pow(x, y);
}
