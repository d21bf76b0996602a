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

/* A number in all lanes, without arithmetic between a scalar and a vector: x87 would make the scalar a long double. */
static inline void floats_all(floats16 *out, float x)
{
    float lanes[16];

    for (unsigned i = 0; i < 16; i++)
        lanes[i] = x;
    memcpy(out, lanes, sizeof *out);
}

#define INTEGERS(bytes) __builtin_convertvector(bytes, integers16)
#define FLOATS(bytes)   __builtin_convertvector(INTEGERS(bytes), floats16)

static inline void block_q8_0(const uint8_t *at, float *out)
{
    floats16 scale;

    floats_all(&scale, f32_from_f16(half(at)));
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
    bytes16 q;
    floats16 scale, low, high;

    floats_all(&scale, f32_from_f16(half(at)));
    memcpy(&q, at + 2, sizeof q);
    low = scale * __builtin_convertvector(INTEGERS(q & 15) - 8, floats16);
    high = scale * __builtin_convertvector(INTEGERS(q >> 4) - 8, floats16);
    memcpy(out, &low, sizeof low);
    memcpy(out + 16, &high, sizeof high);
}

static inline void block_q4_1(const uint8_t *at, float *out)
{
    bytes16 q;
    floats16 scale, minimum, low, high;

    floats_all(&scale, f32_from_f16(half(at)));
    floats_all(&minimum, f32_from_f16(half(at + 2)));
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
