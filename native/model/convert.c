#include "native/model/convert.h"

#include <string.h>

#include "native/model/blocks.h"
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
    default:
        read_blocks(type, at, count, out);
        break;
    }
}

bool convert_from_f32(enum tensor_type type, const float *values, uint64_t count, void *stored)
{
    uint8_t *at = stored;

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
