/* stored_body.h - the readers of stored.h, compiled once an instruction set under the name STORED_TABLE; internal. */
#include <stdint.h>
#include <string.h>

#include "native/kernel/stored_part.h"
#include "native/numerics/f32.h"

static uint16_t half(const uint8_t *at)
{
    uint16_t bits;

    memcpy(&bits, at, sizeof bits);
    return bits;
}

static void read_f16(const void *stored, size_t first, size_t count, float *out)
{
    const uint8_t *at = (const uint8_t *)stored + 2 * first;

    for (size_t i = 0; i < count; i++)
        out[i] = f32_from_f16(half(at + 2 * i));
}

static void read_bf16(const void *stored, size_t first, size_t count, float *out)
{
    const uint8_t *at = (const uint8_t *)stored + 2 * first;

    for (size_t i = 0; i < count; i++)
        out[i] = f32_from_bf16(half(at + 2 * i));
}

/* Sixteen at a time, as the compiler's own vectors: a loop over bytes that may alias what is written is not made into one. */
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int8_t signed16 __attribute__((vector_size(16)));
typedef int32_t integers16 __attribute__((vector_size(64)));
typedef float floats16 __attribute__((vector_size(64)));
#define FLOATS(bytes) __builtin_convertvector(__builtin_convertvector(bytes, integers16), floats16)

static inline void block_q8_0(const uint8_t *at, float *out)
{
    const float scale = f32_from_f16(half(at));

    for (unsigned j = 0; j < 32; j += 16) {
        signed16 q;
        floats16 x;

        memcpy(&q, at + 2 + j, sizeof q);
        x = scale * FLOATS(q);
        memcpy(out + j, &x, sizeof x);
    }
}

static inline void block_q4_0(const uint8_t *at, float *out)
{
    const float scale = f32_from_f16(half(at));
    bytes16 q;
    floats16 low, high;

    memcpy(&q, at + 2, sizeof q);
    low = scale * (FLOATS(q & 15) - 8.0f); /* the difference is exact */
    high = scale * (FLOATS(q >> 4) - 8.0f);
    memcpy(out, &low, sizeof low);
    memcpy(out + 16, &high, sizeof high);
}

static inline void block_q4_1(const uint8_t *at, float *out)
{
    const float scale = f32_from_f16(half(at)), minimum = f32_from_f16(half(at + 2));
    bytes16 q;
    floats16 low, high;

    memcpy(&q, at + 4, sizeof q);
    low = scale * FLOATS(q & 15) + minimum;
    high = scale * FLOATS(q >> 4) + minimum;
    memcpy(out, &low, sizeof low);
    memcpy(out + 16, &high, sizeof high);
}

#define BLOCKS(name, size, block)                                                                                                \
    static void name(const void *stored, size_t first, size_t count, float *out)                                                 \
    {                                                                                                                            \
        const uint8_t *at = (const uint8_t *)stored + first / 32 * (size);                                                       \
                                                                                                                                 \
        for (size_t skip = first % 32; count > 0; skip = 0, at += (size)) {                                                      \
            size_t here = 32 - skip < count ? 32 - skip : count;                                                                 \
            float values[32];                                                                                                    \
                                                                                                                                 \
            if (here == 32) {                                                                                                    \
                block(at, out);                                                                                                  \
            } else {                                                                                                             \
                block(at, values);                                                                                               \
                memcpy(out, values + skip, here * sizeof *out);                                                                  \
            }                                                                                                                    \
            out += here;                                                                                                         \
            count -= here;                                                                                                       \
        }                                                                                                                        \
    }

BLOCKS(read_q8_0, 34, block_q8_0)
BLOCKS(read_q4_0, 18, block_q4_0)
BLOCKS(read_q4_1, 20, block_q4_1)

stored_read *const STORED_TABLE[STORED_TYPES] = {
    [STORED_F16] = read_f16,   [STORED_BF16] = read_bf16, [STORED_Q8_0] = read_q8_0,
    [STORED_Q4_0] = read_q4_0, [STORED_Q4_1] = read_q4_1,
};
