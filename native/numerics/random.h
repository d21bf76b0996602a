/* random.h - counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), uniforms and normals.
 *
 * Key: 64 bits of the round seed. Counter: 128 bits (block, purpose, step, tensor), so that any element can be drawn alone:
 * element i of a tensor is word i mod 4 of the block with counter[0] = i div 4.
 */
#ifndef RONDO_NUMERICS_RANDOM_H
#define RONDO_NUMERICS_RANDOM_H

#include "native/numerics/exp.h"

/* out = the four words of this counter. */
NUMERICS_FN void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;

        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* The upper 24 bits times 2^-24: [0, 1), exact. */
NUMERICS_FN float random_uniform(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* A standard normal from the upper 23 bits k: x = (2k + 1) 2^-23 - 1 in (-1, 1), exact and never 0; sqrt 2 erfinv(x) by the
 * single-precision polynomials of M. Giles (GPU Computing Gems, 2011). |result| < 5.4. */
NUMERICS_FN float random_normal(uint32_t word)
{
    int32_t odd = (int32_t)((word >> 9) << 1 | 1u) - 8388608;
    float x = (float)odd * 0x1p-23f, w = -f32_log((1.0f - x) * (1.0f + x)), v, p, q;

    v = w - 2.5f;
    p = 2.81022636e-08f;
    p = f32_fma(p, v, 3.43273939e-07f);
    p = f32_fma(p, v, -3.5233877e-06f);
    p = f32_fma(p, v, -4.39150654e-06f);
    p = f32_fma(p, v, 0.00021858087f);
    p = f32_fma(p, v, -0.00125372503f);
    p = f32_fma(p, v, -0.00417768164f);
    p = f32_fma(p, v, 0.246640727f);
    p = f32_fma(p, v, 1.50140941f);
    v = f32_sqrt(w) - 3.0f;
    q = -0.000200214257f;
    q = f32_fma(q, v, 0.000100950558f);
    q = f32_fma(q, v, 0.00134934322f);
    q = f32_fma(q, v, -0.00367342844f);
    q = f32_fma(q, v, 0.00573950773f);
    q = f32_fma(q, v, -0.0076224613f);
    q = f32_fma(q, v, 0.00943887047f);
    q = f32_fma(q, v, 1.00167406f);
    q = f32_fma(q, v, 2.83297682f);
    return (w < 5.0f ? p : q) * x * 1.41421354f;
}

#endif
