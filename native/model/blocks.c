#include "native/model/blocks.h"

#include "native/numerics/f32.h"

static float half(const uint8_t *at)
{
    return f32_from_f16((uint16_t)(at[0] | at[1] << 8));
}

static uint32_t word(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Value i of 32 nibbles. */
static unsigned nibble(const uint8_t *at, unsigned i)
{
    return i < 16 ? at[i] & 15 : at[i - 16] >> 4;
}

/* Blocks of 32 ---------------------------------------------------------------------------------------------------------- */

static void read_q5_0(const uint8_t *at, float *out)
{
    const float d = half(at);
    const uint32_t high = word(at + 2);

    for (unsigned i = 0; i < 32; i++)
        out[i] = d * (float)((int)(nibble(at + 6, i) | (high >> i & 1) << 4) - 16);
}

static void read_q5_1(const uint8_t *at, float *out)
{
    const float d = half(at), m = half(at + 2);
    const uint32_t high = word(at + 4);

    for (unsigned i = 0; i < 32; i++)
        out[i] = d * (float)(nibble(at + 8, i) | (high >> i & 1) << 4) + m;
}

static void read_iq4_nl(const uint8_t *at, float *out)
{
    static const int8_t codes[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
    const float d = half(at);

    for (unsigned i = 0; i < 32; i++)
        out[i] = d * (float)codes[nibble(at + 2, i)];
}

/* The codes are twice E2M1's values, so the power is half of 2^(e - 127). */
static void read_mxfp4(const uint8_t *at, float *out)
{
    static const int8_t codes[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    const float d = f32_from_bits(at[0] < 2 ? 0x00200000u << at[0] : (uint32_t)(at[0] - 1) << 23);

    for (unsigned i = 0; i < 32; i++)
        out[i] = d * (float)codes[nibble(at + 1, i)];
}

/* Blocks of 256 --------------------------------------------------------------------------------------------------------- */

static void read_q2_k(const uint8_t *at, float *out)
{
    const uint8_t *q = at + 16;
    const float d = half(at + 80), m = half(at + 82);

    for (unsigned i = 0; i < 256; i++) {
        const uint8_t s = at[i / 16];

        out[i] = d * (float)(s & 15) * (float)(q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) - m * (float)(s >> 4);
    }
}

static void read_q3_k(const uint8_t *at, float *out)
{
    const uint8_t *q = at + 32, *s = at + 96;
    const float d = half(at + 108);

    for (unsigned i = 0; i < 256; i++) {
        const unsigned j = i / 16, low = j < 8 ? s[j] & 15 : s[j - 8] >> 4, scale = low | (s[8 + j % 4] >> j / 4 * 2 & 3) << 4;
        const int code = (q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) - (at[i % 32] >> i / 32 & 1 ? 0 : 4);

        out[i] = d * (float)((int)scale - 32) * (float)code;
    }
}

/* Scale and minimum j of eight, packed to 6 bits each. */
static void unpack_scale(const uint8_t *s, unsigned j, unsigned *scale, unsigned *minimum)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *minimum = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (unsigned)(s[j - 4] >> 6) << 4;
        *minimum = (s[j + 4] >> 4) | (unsigned)(s[j] >> 6) << 4;
    }
}

/* q4_k and q5_k: `high` holds the fifth bits or is NULL. */
static void read_pairs(const uint8_t *at, const uint8_t *high, const uint8_t *q, float *out)
{
    const float d = half(at), m = half(at + 2);

    for (unsigned j = 0; j < 8; j++) {
        unsigned scale, minimum;

        unpack_scale(at + 4, j, &scale, &minimum);
        const float each = d * (float)scale, less = m * (float)minimum;

        for (unsigned l = 0; l < 32; l++) {
            const unsigned code = q[j / 2 * 32 + l] >> j % 2 * 4 & 15, fifth = high ? (high[l] >> j & 1) << 4 : 0;

            out[32 * j + l] = each * (float)(code | fifth) - less;
        }
    }
}

static void read_q4_k(const uint8_t *at, float *out)
{
    read_pairs(at, NULL, at + 16, out);
}

static void read_q5_k(const uint8_t *at, float *out)
{
    read_pairs(at, at + 16, at + 48, out);
}

static void read_q6_k(const uint8_t *at, float *out)
{
    const uint8_t *low = at, *high = at + 128;
    const float d = half(at + 208);

    for (unsigned i = 0; i < 256; i++) {
        const unsigned n = i / 128, l = i % 32, part = i / 32 % 4;
        const unsigned code = (low[64 * n + 32 * (part % 2) + l] >> part / 2 * 4 & 15) | (high[32 * n + l] >> part * 2 & 3) << 4;

        out[i] = d * (float)(int8_t)at[192 + i / 16] * (float)((int)code - 32);
    }
}

block_read *block_reader(enum tensor_type type)
{
    static block_read *const readers[TENSOR_TYPES] = {
        [TENSOR_Q5_0] = read_q5_0,   [TENSOR_Q5_1] = read_q5_1, [TENSOR_IQ4_NL] = read_iq4_nl,
        [TENSOR_MXFP4] = read_mxfp4, [TENSOR_Q2_K] = read_q2_k, [TENSOR_Q3_K] = read_q3_k,
        [TENSOR_Q4_K] = read_q4_k,   [TENSOR_Q5_K] = read_q5_k, [TENSOR_Q6_K] = read_q6_k,
    };

    return readers[type];
}
