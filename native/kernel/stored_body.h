/* stored_body.h - the readers of stored.h, compiled once an instruction set under the name STORED_TABLE; internal. */
#include <stdint.h>
#include <string.h>

#include "native/kernel/stored_part.h"
#include "native/numerics/f32.h"
#include "native/numerics/nf4.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

/* The values of 16 codes, times `scale`. */
static inline void codes_nf4(const uint8_t *codes, float scale, float *out)
{
#if defined(__AVX512F__)
    const __m512i at = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));

    _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_permutexvar_ps(at, _mm512_loadu_ps(nf4_values))));
#elif defined(__AVX2__)
    const __m256 low = _mm256_loadu_ps(nf4_values), high = _mm256_loadu_ps(nf4_values + 8), all = _mm256_set1_ps(scale);

    for (unsigned i = 0; i < 16; i += 8) {
        const __m256i at = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes + i)));
        const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)); /* the code's highest bit as a sign */

        _mm256_storeu_ps(out + i, _mm256_mul_ps(all, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at),
                                                                      _mm256_permutevar8x32_ps(high, at), upper)));
    }
#else
    for (unsigned i = 0; i < 16; i++)
        out[i] = scale * nf4_values[codes[i]];
#endif
}

static inline void values_nf4(const uint8_t *at, float scale, float *out)
{
    uint8_t codes[NF4_BLOCK];

    for (unsigned j = 0; j < NF4_BLOCK / 2; j++) {
        codes[2 * j] = at[j] >> 4;
        codes[2 * j + 1] = at[j] & 15;
    }
    for (unsigned i = 0; i < NF4_BLOCK; i += 16)
        codes_nf4(codes + i, scale, out + i);
}

static float single(const uint8_t *at)
{
    float x;

    memcpy(&x, at, sizeof x);
    return x;
}

static inline void block_nf4(const uint8_t *stored, size_t block, float *out)
{
    const uint8_t *at = stored + 36 * block;

    values_nf4(at + 4, single(at), out);
}

static inline void block_nf4_dq(const uint8_t *stored, size_t block, float *out)
{
    const uint8_t *group = stored + block / NF4_GROUP * (8 + 33 * NF4_GROUP), *at = group + 8 + block % NF4_GROUP * 33;
    const float scale = single(group) * nf4_scales[at[0]];

    values_nf4(at + 1, scale + single(group + 4), out);
}

#define NF4_BLOCKS(name, block)                                                                                                  \
    static void name(const void *stored, size_t first, size_t count, float *out)                                                 \
    {                                                                                                                            \
        for (size_t skip = first % NF4_BLOCK, at = first / NF4_BLOCK; count > 0; skip = 0, at++) {                               \
            size_t here = NF4_BLOCK - skip < count ? NF4_BLOCK - skip : count;                                                   \
            float values[NF4_BLOCK];                                                                                             \
                                                                                                                                 \
            if (here == NF4_BLOCK) {                                                                                             \
                block(stored, at, out);                                                                                          \
            } else {                                                                                                             \
                block(stored, at, values);                                                                                       \
                memcpy(out, values + skip, here * sizeof *out);                                                                  \
            }                                                                                                                    \
            out += here;                                                                                                         \
            count -= here;                                                                                                       \
        }                                                                                                                        \
    }

NF4_BLOCKS(read_nf4, block_nf4)
NF4_BLOCKS(read_nf4_dq, block_nf4_dq)

stored_read *const STORED_TABLE[STORED_TYPES] = {
    [STORED_F16] = read_f16,   [STORED_BF16] = read_bf16, [STORED_Q8_0] = read_q8_0,     [STORED_Q4_0] = read_q4_0,
    [STORED_Q4_1] = read_q4_1, [STORED_NF4] = read_nf4,   [STORED_NF4_DQ] = read_nf4_dq,
};
