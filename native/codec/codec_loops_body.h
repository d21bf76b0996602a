/* codec_loops_body.h - the text of the tables: included once by each codec_loops_ISA.c, which defines CODEC_LOOPS (the table's name). */
#include "native/codec/codec_loops.h"
#include "native/numerics/f32.h"

static uint32_t magnitude(float x)
{
    return f32_bits(x) & 0x7fffffffu;
}

static uint32_t largest(size_t n, const float *x)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++)
        most = magnitude(x[i]) > most ? magnitude(x[i]) : most;
    return most;
}

static size_t reaching(size_t n, const float *x, uint32_t least)
{
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += (int32_t)magnitude(x[i]) >= (int32_t)least;
    return count;
}

static void flags(size_t n, const float *x, uint32_t least, uint8_t *flag)
{
    for (size_t i = 0; i < n; i++)
        flag[i] = (int32_t)magnitude(x[i]) >= (int32_t)least;
}

static void codes_of(size_t n, const float *x, float scale, int most, int8_t *codes)
{
    /* Beside 1.5 * 2^23 numbers are whole, so the addition rounds as asked, and the low bits of the sum are the code. */
    const float beside = 0x1.8p23f;

    for (size_t i = 0; i < n; i++) {
        const int code = (int)(f32_bits(x[i] / scale + beside) - f32_bits(beside));
        const int low = code < most ? code : most;

        codes[i] = (int8_t)(low > -most ? low : -most);
    }
}

static void pack(size_t n, const int8_t *codes, uint8_t *bytes)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t two;

        memcpy(&two, codes + 2 * i, sizeof two);
        bytes[i] = (uint8_t)((two & 0x0f) | (two >> 4 & 0xf0));
    }
}

static void unpack(size_t n, const uint8_t *bytes, int8_t *codes)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t low = (uint8_t)(((bytes[i] & 15) ^ 8) - 8), high = (uint8_t)(((bytes[i] >> 4) ^ 8) - 8);
        const uint16_t two = (uint16_t)(low | high << 8);

        memcpy(codes + 2 * i, &two, sizeof two);
    }
}

static int least(size_t n, const int8_t *codes)
{
    int8_t lowest = 0;

    for (size_t i = 0; i < n; i++)
        lowest = codes[i] < lowest ? codes[i] : lowest;
    return lowest;
}

static void values_of(size_t n, const int8_t *codes, float scale, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * (float)codes[i];
}

static void subtract(size_t n, const int8_t *codes, float scale, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] - scale * (float)codes[i];
}

static void half(size_t n, const float *x, uint16_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_from_f32(x[i]);
}

static void whole(size_t n, const uint16_t *x, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f32_from_bf16(x[i]);
}

static void subtract_half(size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] - f32_from_bf16(bf16_from_f32(x[i]));
}

static void carry(size_t n, float decay, const float *update, float *rest)
{
    for (size_t i = 0; i < n; i++)
        rest[i] = f32_fma(decay, rest[i], update[i]);
}

const struct codec_loops CODEC_LOOPS = {
    .largest = largest,
    .reaching = reaching,
    .flags = flags,
    .codes = codes_of,
    .pack = pack,
    .unpack = unpack,
    .least = least,
    .values = values_of,
    .subtract = subtract,
    .half = half,
    .whole = whole,
    .subtract_half = subtract_half,
    .carry = carry,
};
