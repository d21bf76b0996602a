/* kernel_random.h - inputs for tests of kernels: mostly ordinary numbers, some zeros of both signs, subnormals and large ones. */
#ifndef RONDO_TESTS_KERNEL_RANDOM_H
#define RONDO_TESTS_KERNEL_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "native/numerics/random.h"

static inline uint32_t test_word(void)
{
    static uint32_t counter[4], key[2] = { 2026, 11 };
    uint32_t out[4];

    counter[0]++;
    philox_block(counter, key, out);
    return out[0];
}

static inline size_t test_below(size_t limit)
{
    return test_word() % limit;
}

static inline float test_ordinary(void)
{
    return random_normal(test_word());
}

static inline float test_odd(void)
{
    switch (test_below(24)) {
    case 0:
        return 0.0f;
    case 1:
        return -0.0f;
    case 2:
        return f32_from_bits(test_word() & 0x807fffffu); /* subnormal */
    case 3:
        return test_ordinary() * 0x1p40f;
    case 4:
        return test_ordinary() * 0x1p-70f;
    default:
        return test_ordinary();
    }
}

/* `count` floats; free() it. */
static inline float *test_floats(size_t count, float (*draw)(void))
{
    float *x = malloc((count + 1) * sizeof *x);

    for (size_t i = 0; i < count; i++)
        x[i] = draw();
    return x;
}

static inline int same_bits(const void *a, const void *b, size_t floats)
{
    return floats == 0 || memcmp(a, b, floats * sizeof(float)) == 0;
}

#endif
