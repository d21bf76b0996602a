#include "native/model/convert.h"

#include <string.h>

#include "native/model/blocks.h"
#include "native/model/nf4.h"
#include "native/numerics/f32.h"

static uint16_t load_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t load_u32(const uint8_t *at)
{
    return load_u16(at) | (uint32_t)load_u16(at + 2) << 16;
}

static void read_f64(const uint8_t *at, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = load_u32(at + 8 * i) | (uint64_t)load_u32(at + 8 * i + 4) << 32;
        double x;

        memcpy(&x, &bits, sizeof x);
        out[i] = (float)x;
    }
}

static void read_q8_0(const uint8_t *at, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i += 32, at += 34) {
        const float scale = f32_from_f16(load_u16(at));

        for (unsigned j = 0; j < 32; j++)
            out[i + j] = scale * (float)(int8_t)at[2 + j];
    }
}

static void read_q4_0(const uint8_t *at, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i += 32, at += 18) {
        const float scale = f32_from_f16(load_u16(at));

        for (unsigned j = 0; j < 16; j++) {
            out[i + j] = scale * (float)((at[2 + j] & 15) - 8);
            out[i + 16 + j] = scale * (float)((at[2 + j] >> 4) - 8);
        }
    }
}

static void read_q4_1(const uint8_t *at, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i += 32, at += 20) {
        const float scale = f32_from_f16(load_u16(at)), minimum = f32_from_f16(load_u16(at + 2));

        for (unsigned j = 0; j < 16; j++) {
            out[i + j] = scale * (float)(at[4 + j] & 15) + minimum;
            out[i + 16 + j] = scale * (float)(at[4 + j] >> 4) + minimum;
        }
    }
}

static void read_blocks(enum tensor_type type, const uint8_t *at, uint64_t count, float *out)
{
    const size_t values = tensor_block_values(type), bytes = tensor_block_bytes(type);
    block_read *const read = block_reader(type);

    for (uint64_t i = 0; i < count; i += values, at += bytes)
        read(at, out + i);
}

void convert_to_f32(enum tensor_type type, const void *stored, uint64_t count, float *out)
{
    const uint8_t *at = stored;

    switch (type) {
    case TENSOR_F32:
        for (uint64_t i = 0; i < count; i++)
            out[i] = f32_from_bits(load_u32(at + 4 * i));
        break;
    case TENSOR_I32:
        for (uint64_t i = 0; i < count; i++)
            out[i] = (float)(int32_t)load_u32(at + 4 * i);
        break;
    case TENSOR_F16:
        for (uint64_t i = 0; i < count; i++)
            out[i] = f32_from_f16(load_u16(at + 2 * i));
        break;
    case TENSOR_BF16:
        for (uint64_t i = 0; i < count; i++)
            out[i] = f32_from_bf16(load_u16(at + 2 * i));
        break;
    case TENSOR_F64:
        read_f64(at, count, out);
        break;
    case TENSOR_Q8_0:
        read_q8_0(at, count, out);
        break;
    case TENSOR_Q4_0:
        read_q4_0(at, count, out);
        break;
    case TENSOR_Q4_1:
        read_q4_1(at, count, out);
        break;
    case TENSOR_U8:
        for (uint64_t i = 0; i < count; i++)
            out[i] = at[i];
        break;
    case TENSOR_NF4:
    case TENSOR_NF4_DQ:
        nf4_read(type, at, count, out);
        break;
    default:
        read_blocks(type, at, count, out);
        break;
    }
}

/* The value of largest magnitude, the first of several. */
static float extreme(const float *values)
{
    float best = values[0];

    for (unsigned j = 1; j < 32; j++)
        if (f32_abs(values[j]) > f32_abs(best))
            best = values[j];
    return best;
}

static void store_half(float value, uint8_t *at)
{
    const uint16_t bits = f16_from_f32(value);

    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
}

/* 1 / d; 0 where that is no number to multiply by. */
static float inverse(float d)
{
    const float one = d == 0 ? 0 : 1 / d;

    return f32_is_finite(one) ? one : 0;
}

/* Halves away from zero. */
static void write_q8_0(const float *values, uint64_t count, uint8_t *at)
{
    for (uint64_t i = 0; i < count; i += 32, at += 34) {
        const float d = f32_abs(extreme(values + i)) / 127, one = inverse(d);

        store_half(d, at);
        for (unsigned j = 0; j < 32; j++) {
            const float x = values[i + j] * one, size = f32_abs(x), whole = (float)(int)size;
            const int q = (int)whole + (size - whole >= 0.5f);

            at[2 + j] = (uint8_t)(x < 0 ? -q : q);
        }
    }
}

static unsigned q4_code(float x, float one)
{
    const int q = (int)(x * one + 8.5f);

    return (unsigned)(q > 15 ? 15 : q);
}

static void write_q4_0(const float *values, uint64_t count, uint8_t *at)
{
    for (uint64_t i = 0; i < count; i += 32, at += 18) {
        const float d = extreme(values + i) / -8, one = inverse(d);

        store_half(d, at);
        for (unsigned j = 0; j < 16; j++)
            at[2 + j] = (uint8_t)(q4_code(values[i + j], one) | q4_code(values[i + 16 + j], one) << 4);
    }
}

bool convert_from_f32(enum tensor_type type, const float *values, uint64_t count, void *stored)
{
    uint8_t *at = stored;

    if (type == TENSOR_Q8_0 || type == TENSOR_Q4_0) {
        (type == TENSOR_Q8_0 ? write_q8_0 : write_q4_0)(values, count, stored);
        return true;
    }
    if (type == TENSOR_NF4 || type == TENSOR_NF4_DQ)
        return nf4_write(type, values, count, stored);
    if (type != TENSOR_F32 && type != TENSOR_F16 && type != TENSOR_BF16)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bits = type == TENSOR_F32   ? f32_bits(values[i])
                              : type == TENSOR_F16 ? f16_from_f32(values[i])
                                                   : bf16_from_f32(values[i]);
        const unsigned size = type == TENSOR_F32 ? 4 : 2;

        for (unsigned j = 0; j < size; j++)
            *at++ = (uint8_t)(bits >> 8 * j);
    }
    return true;
}
