#include "native/model/nf4.h"

#include <stdlib.h>
#include <string.h>

#include "native/numerics/f32.h"
#include "native/numerics/nf4.h"

static float load(const uint8_t *at)
{
    return f32_from_bits((uint32_t)(at[0] | at[1] << 8 | at[2] << 16) | (uint32_t)at[3] << 24);
}

static void store(float x, uint8_t *at)
{
    const uint32_t bits = f32_bits(x);

    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(bits >> 8 * i);
}

/* Where block `b` has its codes. */
static size_t codes_of(enum tensor_type type, uint64_t b)
{
    const uint64_t groups = b / NF4_GROUP + 1;

    return (size_t)(type == TENSOR_NF4 ? 36 * b + 4 : groups * 8 + 33 * b + 1);
}

/* Where the group of block `b` of nf4_dq begins. */
static size_t group_of(uint64_t b)
{
    return tensor_block_place(TENSOR_NF4_DQ, b / NF4_GROUP * NF4_GROUP * NF4_BLOCK);
}

void nf4_read(enum tensor_type type, const void *stored, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t b = i / NF4_BLOCK;
        const uint8_t *codes = (const uint8_t *)stored + codes_of(type, b), *group = (const uint8_t *)stored + group_of(b);
        const unsigned code = i % 2 == 0 ? codes[i % NF4_BLOCK / 2] >> 4 : codes[i % NF4_BLOCK / 2] & 15;
        const float product = type == TENSOR_NF4 ? 0 : load(group) * nf4_scales[codes[-1]];
        const float scale = type == TENSOR_NF4 ? load(codes - 4) : product + load(group + 4);

        out[i] = scale * nf4_values[code];
    }
}

static float scaled(float x, float largest)
{
    const float t = x * (1 / (largest < 1e-38f ? 1e-38f : largest));

    return t < -1 ? -1 : t > 1 ? 1 : t;
}

static float largest_of(const float *values, uint64_t count)
{
    float a = 0;

    for (uint64_t i = 0; i < count; i++)
        a = f32_abs(values[i]) > a ? f32_abs(values[i]) : a;
    return a;
}

static unsigned code_of(float t)
{
    unsigned code = 0;

    for (unsigned i = 0; i < 15; i++)
        code += t > nf4_bounds[i];
    return code;
}

static void write_codes(const float *values, uint64_t count, float a, uint8_t *codes)
{
    memset(codes, 7 << 4 | 7, NF4_BLOCK / 2); /* 7 is 0 */
    for (uint64_t i = 0; i < count; i++) {
        const unsigned code = code_of(scaled(values[i], a));

        codes[i / 2] = (uint8_t)(i % 2 == 0 ? code << 4 | 7 : (codes[i / 2] & 0xf0) | code);
    }
}

/* The nearest of an ascending table, by halves. */
static uint8_t scale_code(float t)
{
    unsigned low = 0, high = 255;

    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;

        if (t < nf4_scales[middle])
            high = middle;
        else
            low = middle;
    }
    return (uint8_t)((double)t - nf4_scales[low] <= (double)nf4_scales[high] - t ? low : high);
}

/* The scales of a tensor, coded in place into its groups. */
static void write_scales(const float *scales, uint64_t blocks, uint8_t *stored)
{
    double sum = 0;
    float d[NF4_GROUP];

    for (uint64_t b = 0; b < blocks; b++)
        sum += scales[b];
    const float mean = (float)(sum / (double)blocks);

    for (uint64_t b = 0; b < blocks; b += NF4_GROUP) {
        const uint64_t here = blocks - b < NF4_GROUP ? blocks - b : NF4_GROUP;
        uint8_t *group = stored + group_of(b);

        for (uint64_t i = 0; i < here; i++)
            d[i] = scales[b + i] - mean;
        const float s = largest_of(d, here);

        store(s, group);
        store(mean, group + 4);
        for (uint64_t i = 0; i < here; i++)
            stored[codes_of(TENSOR_NF4_DQ, b + i) - 1] = scale_code(scaled(d[i], s));
    }
}

bool nf4_write(enum tensor_type type, const float *values, uint64_t count, void *stored)
{
    const uint64_t blocks = count / NF4_BLOCK + (count % NF4_BLOCK != 0);
    uint8_t *out = stored;
    float *scales = malloc((blocks + 1) * sizeof *scales);

    if (!scales)
        return false;
    for (uint64_t b = 0; b < blocks; b++) {
        const uint64_t here = count - b * NF4_BLOCK < NF4_BLOCK ? count - b * NF4_BLOCK : NF4_BLOCK;
        uint8_t *codes = out + codes_of(type, b);

        scales[b] = largest_of(values + b * NF4_BLOCK, here);
        if (type == TENSOR_NF4)
            store(scales[b], codes - 4);
        write_codes(values + b * NF4_BLOCK, here, scales[b], codes);
    }
    if (type == TENSOR_NF4_DQ && blocks > 0)
        write_scales(scales, blocks, out);
    free(scales);
    return true;
}
