#include "native/codec/topk.h"

#include <inttypes.h>
#include <string.h>

#include "native/codec/codec_loops.h"
#include "native/numerics/f32.h"

bool topk_known(const struct topk *codec)
{
    return quantise_known(codec->bits) && codec->keep >= 1 && codec->keep <= codec->of && codec->of >= 2 &&
           codec->of <= TOPK_CHUNK;
}

size_t topk_kept(const struct topk *codec, size_t count)
{
    return (count * codec->keep + codec->of - 1) / codec->of;
}

static unsigned position_bits(const struct topk *codec)
{
    unsigned bits = 1;

    while (1u << bits < codec->of)
        bits++;
    return bits;
}

static size_t position_bytes(const struct topk *codec, size_t kept)
{
    return (kept * position_bits(codec) + 7) / 8;
}

static size_t chunk_at(const struct topk *codec, uint64_t at, uint64_t count)
{
    return count - at < codec->of ? (size_t)(count - at) : codec->of;
}

static uint64_t chunk_size(const struct topk *codec, size_t count)
{
    const size_t kept = topk_kept(codec, count);
    uint64_t values = 0;

    quantise_size(codec->bits, kept, &values);
    return position_bytes(codec, kept) + values;
}

bool topk_size(const struct topk *codec, uint64_t count, uint64_t *bytes)
{
    if (!topk_known(codec) || count > UINT64_MAX / 64) /* no value needs more than 6 bytes and its share of a scale */
        return false;
    *bytes = count / codec->of * chunk_size(codec, codec->of);
    if (count % codec->of)
        *bytes += chunk_size(codec, (size_t)(count % codec->of));
    return true;
}

/* Encoding -------------------------------------------------------------------------------------------------------------- */

/* A magnitude that at least `kept` of the values reach, and not many more: down from the largest in growing steps, then halving between
 * the last two. What it lets through is cheap to choose from. */
static uint32_t rough_threshold(size_t n, const float *x, size_t kept, uint32_t largest)
{
    const struct codec_loops *loops = codec_loops();
    uint32_t above = largest + 1, least = largest, step = UINT32_C(1) << 21; /* 2^23 halves a magnitude */
    size_t reached = loops->reaching(n, x, least);

    while (reached < kept) {
        above = least, least = largest > step ? largest - step : 0, step *= 2;
        reached = loops->reaching(n, x, least);
    }
    while (reached > 4 * kept && above - least > 1) {
        const uint32_t middle = least + (above - least) / 2;
        const size_t count = loops->reaching(n, x, middle);

        if (count >= kept)
            least = middle, reached = count;
        else
            above = middle;
    }
    return least;
}

/* The greatest magnitude that at least `kept` of the values reach, bit by bit. */
static uint32_t threshold(size_t n, const float *x, size_t kept)
{
    const struct codec_loops *loops = codec_loops();
    uint32_t least = 0;

    for (uint32_t bit = UINT32_C(1) << 30; bit > 0; bit >>= 1) {
        const size_t reached = loops->reaching(n, x, least | bit);

        if (reached >= kept)
            least |= bit;
        if (reached == kept)
            break;
    }
    return least;
}

/* The positions of the values that reach `least`, ascending; how many. */
static size_t collect(size_t n, const float *x, uint32_t least, uint16_t *position)
{
    uint8_t flag[TOPK_CHUNK + 8] = { 0 };
    size_t count = 0;

    codec_loops()->flags(n, x, least, flag);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t eight;

        for (memcpy(&eight, flag + i, sizeof eight); eight; eight &= eight - 1)
            position[count++] = (uint16_t)(i + (size_t)__builtin_ctzll(eight) / 8);
    }
    return count;
}

static void choose(size_t n, const float *x, size_t kept, uint32_t largest, uint16_t *position)
{
    const size_t count = collect(n, x, rough_threshold(n, x, kept, largest), position);
    float candidate[TOPK_CHUNK];
    size_t chosen = 0;

    if (count == kept)
        return;
    for (size_t i = 0; i < count; i++)
        candidate[i] = x[position[i]];

    const uint32_t least = threshold(count, candidate, kept);
    const size_t above = codec_loops()->reaching(count, candidate, least + 1);

    for (size_t i = 0, equal = kept - above; i < count; i++) {
        const uint32_t magnitude = f32_bits(candidate[i]) & 0x7fffffffu;

        if (magnitude < least || (magnitude == least && equal == 0))
            continue;
        equal -= magnitude == least;
        position[chosen++] = position[i];
    }
}

static void write_positions(unsigned width, size_t kept, const uint16_t *position, struct buffer *out)
{
    uint32_t waiting = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < kept; i++) {
        waiting |= (uint32_t)position[i] << bits;
        for (bits += width; bits >= 8; bits -= 8, waiting >>= 8)
            buffer_add_u8(out, (uint8_t)waiting);
    }
    if (bits)
        buffer_add_u8(out, (uint8_t)waiting);
}

/* One chunk of values that were found good. */
static void encode_chunk(const struct topk *codec, const float *values, float *rest, size_t count, uint32_t largest,
                         struct buffer *out)
{
    const size_t kept = topk_kept(codec, count);
    uint16_t position[TOPK_CHUNK];
    float chosen[TOPK_CHUNK];

    choose(count, values, kept, largest, position);
    for (size_t i = 0; i < kept; i++)
        chosen[i] = values[position[i]];
    write_positions(position_bits(codec), kept, position, out);
    quantise_encode_rest(codec->bits, chosen, kept, out, NULL);
    for (size_t i = 0; rest && i < kept; i++)
        rest[position[i]] = chosen[i];
}

static bool encode(const struct topk *codec, const float *values, float *rest, uint64_t count, struct buffer *out,
                   struct error *err)
{
    const size_t before = out->size;
    uint64_t bytes;

    if (!topk_size(codec, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, "keep 1 to `of` of 2 to 4096 values, with 32, 16, 8 or 4 bits",
                         "a codec that keeps %u of %u values with %u bits", codec->keep, codec->of, codec->bits);
    buffer_reserve(out, bytes);
    for (uint64_t i = 0; i < count; i += codec->of) {
        const size_t n = chunk_at(codec, i, count);
        const uint32_t largest = codec_loops()->largest(n, values + i);

        if (largest > f32_bits(QUANTISE_LARGEST)) {
            out->size = before;
            return quantise_check(values + i, n, i, err);
        }
        encode_chunk(codec, values + i, rest ? rest + i : NULL, n, largest, out);
    }
    return true;
}

bool topk_encode(const struct topk *codec, const float *values, uint64_t count, struct buffer *out, struct error *err)
{
    return encode(codec, values, NULL, count, out, err);
}

bool topk_encode_rest(const struct topk *codec, float *values, uint64_t count, struct buffer *out, struct error *err)
{
    return encode(codec, values, values, count, out, err);
}

/* Decoding -------------------------------------------------------------------------------------------------------------- */

static bool read_positions(unsigned width, size_t kept, size_t count, struct reader *in, uint16_t *position, struct error *err)
{
    const uint8_t *bytes = reader_bytes(in, (kept * width + 7) / 8);
    uint32_t waiting = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < kept; i++) {
        for (; bits < width; bits += 8)
            waiting |= (uint32_t)*bytes++ << bits;
        position[i] = (uint16_t)(waiting & ((1u << width) - 1));
        waiting >>= width, bits -= width;
        if (position[i] >= count)
            return error_set(err, ERROR_RANGE, NULL, "position %u in a chunk of %zu values", position[i], count);
        if (i && position[i] <= position[i - 1])
            return error_set(err, ERROR_RANGE, NULL, "position %u after %u", position[i], position[i - 1]);
    }
    return waiting == 0 || error_set(err, ERROR_CONFLICT, NULL, "unused bits after the positions are not 0");
}

static bool decode_chunk(const struct topk *codec, struct reader *in, size_t count, float *values, struct error *err)
{
    const size_t kept = topk_kept(codec, count);
    uint16_t position[TOPK_CHUNK];
    float chosen[TOPK_CHUNK];

    if (!read_positions(position_bits(codec), kept, count, in, position, err) ||
        !quantise_decode(codec->bits, in, kept, chosen, err))
        return false;
    memset(values, 0, count * sizeof *values);
    for (size_t i = 0; i < kept; i++)
        values[position[i]] = chosen[i];
    return true;
}

bool topk_decode(const struct topk *codec, struct reader *in, uint64_t count, float *values, struct error *err)
{
    uint64_t bytes;

    if (!topk_size(codec, count, &bytes))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "a codec that keeps %u of %u values with %u bits", codec->keep, codec->of,
                         codec->bits);
    if (bytes > reader_left(in))
        return error_set(err, ERROR_TRUNCATED, NULL, "%" PRIu64 " bytes are needed, %zu are left", bytes, reader_left(in));
    for (uint64_t i = 0; i < count; i += codec->of)
        if (!decode_chunk(codec, in, chunk_at(codec, i, count), values + i, err))
            return error_at(err, "chunk %" PRIu64, i / codec->of);
    return true;
}
