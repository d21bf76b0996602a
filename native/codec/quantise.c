#include "native/codec/quantise.h"

#include <inttypes.h>
#include <string.h>

#include "native/codec/codec_loops.h"
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

/* The values of the block that starts at `at`. */
static size_t block_at(uint64_t at, uint64_t count)
{
    return count - at < QUANTISE_BLOCK ? (size_t)(count - at) : QUANTISE_BLOCK;
}

/* Encoding -------------------------------------------------------------------------------------------------------------- */

static bool check(const float *values, uint64_t count, uint64_t first, const char *hint, struct error *err)
{
    if (codec_loops()->largest((size_t)count, values) <= f32_bits(QUANTISE_LARGEST))
        return true;
    while (f32_abs(*values) <= QUANTISE_LARGEST)
        values++, first++;
    if (f32_is_finite(*values))
        error_set(err, ERROR_RANGE, hint, "a value beyond 2^60");
    else
        error_set(err, ERROR_NON_FINITE, hint, "NaN or infinity");
    return error_at(err, "value %" PRIu64, first);
}

bool quantise_check(const float *values, uint64_t count, uint64_t first, struct error *err)
{
    return check(values, count, first, "lower the learning rate or clip the gradient", err);
}

/* One block of 8 or 4 bits at `to`; its end. `rest` (NULL, or the values themselves) becomes what was not said. */
static uint8_t *write_block(const struct codec_loops *loops, unsigned bits, const float *values, size_t count, uint32_t largest,
                            float *rest, uint8_t *to)
{
    int8_t codes[QUANTISE_BLOCK + 1];
    const int most = largest_code(bits);
    const float scale = f32_from_bits(largest) / (float)most;

    if (scale > 0)
        loops->codes(count, values, scale, most, codes);
    else
        memset(codes, 0, count);
    if (rest)
        loops->subtract(count, codes, scale, rest);
    memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    if (bits == 8) {
        memcpy(to, codes, count);
        return to + count;
    }
    codes[count] = 0;
    loops->pack((count + 1) / 2, codes, to);
    return to + (count + 1) / 2;
}

/* As many values of 32 or 16 bits as a block has. */
static uint8_t *write_plain(const struct codec_loops *loops, unsigned bits, const float *values, size_t count, float *rest,
                            uint8_t *to)
{
    if (bits == 32) {
        memcpy(to, values, count * sizeof *values);
        if (rest)
            memset(rest, 0, count * sizeof *rest);
        return to + count * sizeof *values;
    }

    uint16_t half[QUANTISE_BLOCK];

    loops->half(count, values, half);
    memcpy(to, half, count * sizeof *half);
    if (rest)
        loops->subtract_half(count, rest);
    return to + count * sizeof *half;
}

static bool encode(unsigned bits, const float *values, float *rest, uint64_t count, struct buffer *out, struct error *err)
{
    const struct codec_loops *loops = codec_loops();
    uint64_t bytes;

    if (!quantise_size(bits, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, "use 32, 16, 8 or 4", "%u bits", bits);
    if (count == 0)
        return true;
    buffer_reserve(out, bytes);

    uint8_t *to = out->bytes + out->size;

    for (uint64_t i = 0; i < count; i += QUANTISE_BLOCK) {
        const size_t n = block_at(i, count);
        const uint32_t largest = loops->largest(n, values + i);

        if (largest > f32_bits(QUANTISE_LARGEST))
            return quantise_check(values + i, n, i, err);
        to = bits < 16 ? write_block(loops, bits, values + i, n, largest, rest ? rest + i : NULL, to)
                       : write_plain(loops, bits, values + i, n, rest ? rest + i : NULL, to);
    }
    out->size += bytes;
    return true;
}

bool quantise_encode(unsigned bits, const float *values, uint64_t count, struct buffer *out, struct error *err)
{
    return encode(bits, values, NULL, count, out, err);
}

bool quantise_encode_rest(unsigned bits, float *values, uint64_t count, struct buffer *out, struct error *err)
{
    return encode(bits, values, values, count, out, err);
}

/* Decoding -------------------------------------------------------------------------------------------------------------- */

static bool decode_plain(unsigned bits, struct reader *in, uint64_t count, float *values, struct error *err)
{
    const struct codec_loops *loops = codec_loops();
    const uint8_t *bytes = reader_bytes(in, (size_t)count * (bits / 8));

    for (uint64_t i = 0; i < count; i += QUANTISE_BLOCK) {
        const size_t n = block_at(i, count);
        uint16_t half[QUANTISE_BLOCK];

        if (bits == 32) {
            memcpy(values + i, bytes + i * sizeof *values, n * sizeof *values);
        } else {
            memcpy(half, bytes + i * sizeof *half, n * sizeof *half);
            loops->whole(n, half, values + i);
        }
        if (!check(values + i, n, i, NULL, err))
            return false;
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

/* The first code that no encoder writes. */
static bool check_codes(const int8_t *codes, size_t count, float scale, int most, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (codes[i] < -most)
            return error_set(err, ERROR_RANGE, NULL, "code %d is never written", codes[i]);
        if (scale == 0 && codes[i] != 0)
            return error_set(err, ERROR_CONFLICT, NULL, "code %d under the scale 0", codes[i]);
    }
    return true;
}

static bool decode_block(const struct codec_loops *loops, unsigned bits, float scale, const uint8_t *bytes, size_t count,
                         float *values, struct error *err)
{
    const int most = largest_code(bits);
    int8_t unpacked[QUANTISE_BLOCK + 1];
    const int8_t *codes = unpacked;

    if (!check_scale(scale, most, err))
        return false;
    if (bits == 4 && count % 2 != 0 && bytes[count / 2] >> 4 != 0)
        return error_set(err, ERROR_CONFLICT, NULL, "the unused half of the last byte is not 0");
    if (bits == 4)
        loops->unpack((count + 1) / 2, bytes, unpacked);
    else
        codes = (const int8_t *)bytes;
    if ((scale == 0 || loops->least(count, codes) < -most) && !check_codes(codes, count, scale, most, err))
        return false;
    loops->values(count, codes, scale, values);
    return true;
}

bool quantise_decode(unsigned bits, struct reader *in, uint64_t count, float *values, struct error *err)
{
    const struct codec_loops *loops = codec_loops();
    uint64_t bytes;

    if (!quantise_size(bits, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, "use 32, 16, 8 or 4", "%u bits", bits);
    if (bytes > reader_left(in))
        return error_set(err, ERROR_TRUNCATED, NULL, "%" PRIu64 " bytes are needed, %zu are left", bytes, reader_left(in));
    if (bits >= 16)
        return decode_plain(bits, in, count, values, err);
    for (uint64_t i = 0; i < count; i += QUANTISE_BLOCK) {
        const size_t n = block_at(i, count);
        const float scale = f32_from_bits(reader_u32(in));
        const uint8_t *codes = reader_bytes(in, (n * bits + 7) / 8);

        if (!decode_block(loops, bits, scale, codes, n, values + i, err))
            return error_at(err, "block %" PRIu64, i / QUANTISE_BLOCK);
    }
    return true;
}
