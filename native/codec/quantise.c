#include "native/codec/quantise.h"

#include <inttypes.h>

#include "native/numerics/f32.h"

bool quantise_known(unsigned bits)
{
    return bits == 32 || bits == 16 || bits == 8 || bits == 4;
}

static int largest_code(unsigned bits)
{
    return bits == 8 ? 127 : 7;
}

bool quantise_size(unsigned bits, uint64_t count, uint64_t *bytes)
{
    if (!quantise_known(bits) || count > UINT64_MAX / 8)
        return false;
    if (bits >= 16)
        *bytes = count * (bits / 8);
    else
        *bytes = (count * bits + 7) / 8 + (count + QUANTISE_BLOCK - 1) / QUANTISE_BLOCK * 4;
    return true;
}

/* Encoding -------------------------------------------------------------------------------------------------------------- */

static bool check_values(const float *values, uint64_t count, struct error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (f32_abs(values[i]) <= QUANTISE_LARGEST)
            continue;
        if (f32_is_finite(values[i]))
            error_set(err, ERROR_RANGE, "lower the learning rate or clip the gradient", "a value beyond 2^60");
        else
            error_set(err, ERROR_NON_FINITE, "lower the learning rate or clip the gradient", "NaN or infinity");
        return error_at(err, "value %" PRIu64, i);
    }
    return true;
}

static int code_of(float value, float scale, int most)
{
    int code = (int)f32_round(value / scale);

    return code > most ? most : code < -most ? -most : code;
}

static void encode_block(unsigned bits, const float *values, unsigned count, struct buffer *out)
{
    const int most = largest_code(bits);
    uint8_t codes[QUANTISE_BLOCK] = { 0 };
    float largest = 0;

    for (unsigned i = 0; i < count; i++)
        largest = f32_max(f32_abs(values[i]), largest);
    const float scale = largest / (float)most;

    if (scale > 0)
        for (unsigned i = 0; i < count; i++)
            codes[i] = (uint8_t)code_of(values[i], scale, most);
    buffer_add_u32(out, f32_bits(scale));
    if (bits == 8) {
        buffer_add(out, codes, count);
        return;
    }
    for (unsigned i = 0; i < (count + 1) / 2; i++)
        codes[i] = (uint8_t)((codes[2 * i] & 15) | codes[2 * i + 1] << 4);
    buffer_add(out, codes, (count + 1) / 2);
}

bool quantise_encode(unsigned bits, const float *values, uint64_t count, struct buffer *out, struct error *err)
{
    uint64_t bytes;

    if (!quantise_size(bits, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, "use 32, 16, 8 or 4", "%u bits", bits);
    if (!check_values(values, count, err))
        return false;
    buffer_reserve(out, bytes);
    if (bits == 32)
        for (uint64_t i = 0; i < count; i++)
            buffer_add_u32(out, f32_bits(values[i]));
    else if (bits == 16)
        for (uint64_t i = 0; i < count; i++)
            buffer_add_u16(out, bf16_from_f32(values[i]));
    else
        for (uint64_t i = 0; i < count; i += QUANTISE_BLOCK)
            encode_block(bits, values + i, count - i < QUANTISE_BLOCK ? (unsigned)(count - i) : QUANTISE_BLOCK, out);
    return true;
}

/* Decoding -------------------------------------------------------------------------------------------------------------- */

static bool decode_plain(unsigned bits, struct reader *in, uint64_t count, float *values, struct error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        const float x = bits == 32 ? f32_from_bits(reader_u32(in)) : f32_from_bf16(reader_u16(in));

        if (!f32_is_finite(x)) {
            error_set(err, ERROR_NON_FINITE, NULL, "NaN or infinity");
            return error_at(err, "value %" PRIu64, i);
        }
        if (f32_abs(x) > QUANTISE_LARGEST) {
            error_set(err, ERROR_RANGE, NULL, "a value beyond 2^60");
            return error_at(err, "value %" PRIu64, i);
        }
        values[i] = x;
    }
    return true;
}

static bool check_scale(float scale, int most, struct error *err)
{
    if (!f32_is_finite(scale))
        return error_set(err, ERROR_NON_FINITE, NULL, "the scale is NaN or infinite");
    if (f32_bits(scale) >> 31)
        return error_set(err, ERROR_RANGE, NULL, "the scale is negative");
    if (scale * (float)most > QUANTISE_LARGEST)
        return error_set(err, ERROR_RANGE, NULL, "the scale allows values beyond 2^60");
    return true;
}

/* The code at index i, sign extended. */
static int code_at(unsigned bits, const uint8_t *codes, unsigned i)
{
    if (bits == 8)
        return (int8_t)codes[i];
    return (int)((codes[i / 2] >> (i % 2 * 4) & 15) ^ 8) - 8;
}

static bool decode_block(unsigned bits, float scale, const uint8_t *codes, unsigned count, float *values, struct error *err)
{
    const int most = largest_code(bits);

    if (!check_scale(scale, most, err))
        return false;
    if (bits == 4 && count % 2 != 0 && codes[count / 2] >> 4 != 0)
        return error_set(err, ERROR_CONFLICT, NULL, "the unused half of the last byte is not 0");
    for (unsigned i = 0; i < count; i++) {
        const int code = code_at(bits, codes, i);

        if (code < -most)
            return error_set(err, ERROR_RANGE, NULL, "code %d is never written", code);
        if (scale == 0 && code != 0)
            return error_set(err, ERROR_CONFLICT, NULL, "code %d under the scale 0", code);
        values[i] = scale * (float)code;
    }
    return true;
}

bool quantise_decode(unsigned bits, struct reader *in, uint64_t count, float *values, struct error *err)
{
    uint64_t bytes;

    if (!quantise_size(bits, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, "use 32, 16, 8 or 4", "%u bits", bits);
    if (bytes > reader_left(in))
        return error_set(err, ERROR_TRUNCATED, NULL, "%" PRIu64 " bytes are needed, %zu are left", bytes, reader_left(in));
    if (bits >= 16)
        return decode_plain(bits, in, count, values, err);
    for (uint64_t i = 0; i < count; i += QUANTISE_BLOCK) {
        const unsigned n = count - i < QUANTISE_BLOCK ? (unsigned)(count - i) : QUANTISE_BLOCK;
        const float scale = f32_from_bits(reader_u32(in));
        const uint8_t *codes = reader_bytes(in, (n * bits + 7) / 8);

        if (!decode_block(bits, scale, codes, n, values + i, err))
            return error_at(err, "block %" PRIu64, i / QUANTISE_BLOCK);
    }
    return true;
}
