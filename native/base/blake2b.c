#include "native/base/blake2b.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "native/base/blake2b_group.h"

size_t blake2b_lanes(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return 8;
    return __builtin_cpu_supports("avx2") ? 4 : 1;
#elif defined(__aarch64__)
    return 2;
#else
    return 1;
#endif
}

static blake2b_group *group_of(size_t lanes)
{
#if defined(__x86_64__)
    if (lanes > 2)
        return lanes == 8 ? blake2b_group_avx512 : blake2b_group_avx2;
#endif
    assert(lanes == 2);
    return blake2b_group_2;
}

static void hash_one(const uint8_t *personal, const uint8_t *bytes, size_t size, uint8_t *out)
{
    crypto_generichash_blake2b_salt_personal(out, BLAKE2B_SIZE, bytes, size, NULL, 0, NULL, personal);
}

void blake2b_many_by(size_t lanes, const uint8_t *personal, const void *bytes, size_t stride, size_t size, size_t count,
                     uint8_t *out)
{
    const uint8_t *from = bytes;
    size_t i = 0;

    /* A short last group repeats its last input: still faster than its inputs one by one, but for a single one. */
    for (; lanes > 1 && i + 1 < count; i += lanes) {
        const size_t left = count - i < lanes ? count - i : lanes;
        const uint8_t *input[BLAKE2B_LANES];
        uint8_t digest[BLAKE2B_LANES][BLAKE2B_SIZE];

        for (size_t j = 0; j < lanes; j++)
            input[j] = from + (i + (j < left ? j : left - 1)) * stride;
        group_of(lanes)(personal, input, size, lanes * stride, digest);
        memcpy(out + i * BLAKE2B_SIZE, digest, left * BLAKE2B_SIZE);
    }
    for (; i < count; i++)
        hash_one(personal, from + i * stride, size, out + i * BLAKE2B_SIZE);
}

void blake2b_many(const uint8_t *personal, const void *bytes, size_t stride, size_t size, size_t count, uint8_t *out)
{
    blake2b_many_by(blake2b_lanes(), personal, bytes, stride, size, count, out);
}

void blake2b_each(const uint8_t *personal, const void *const *inputs, size_t size, size_t count, uint8_t *out)
{
    const size_t lanes = blake2b_lanes();
    size_t i = 0;

    for (; lanes > 1 && i + 1 < count; i += lanes) {
        const size_t left = count - i < lanes ? count - i : lanes;
        const uint8_t *input[BLAKE2B_LANES];
        uint8_t digest[BLAKE2B_LANES][BLAKE2B_SIZE];

        for (size_t j = 0; j < lanes; j++)
            input[j] = inputs[i + (j < left ? j : left - 1)];
        group_of(lanes)(personal, input, size, 0, digest);
        memcpy(out + i * BLAKE2B_SIZE, digest, left * BLAKE2B_SIZE);
    }
    for (; i < count; i++)
        hash_one(personal, inputs[i], size, out + i * BLAKE2B_SIZE);
}
