/* gemm_thin.h - a few rows of A against a B whose columns lie along memory: a weight [out, in], a token of each of a few sequences; internal,
 * included by the files of one instruction set.
 *
 *     VW columns of B, VW steps of k at a time: loaded as they lie, turned in registers, used by all rows of A     B ──────────────> k
 *                                                                                                                  0  xxxx | xxxx
 * B is met once and nothing of it is written; while one strip of VW columns is used, the next is fetched.           1  xxxx | xxxx
 * Blocks of 4 and 8 bits become values in registers, too.
 */
#ifndef RONDO_KERNEL_GEMM_THIN_H
#define RONDO_KERNEL_GEMM_THIN_H

#include "native/kernel/gemm_kernel.h"
#include "native/kernel/stored_strip.h"

/* How B is stored: floats, or blocks of 32 values along k. */
enum thin_type { THIN_FLOATS, THIN_Q4_0, THIN_Q4_1, THIN_Q8_0, THIN_TYPES };

struct thin {
    size_t k;
    const float *a; /* rows along memory */
    ptrdiff_t a_row;
    const uint8_t *b;     /* column 0 */
    size_t step;          /* bytes from column to column */
    const uint8_t *ahead; /* as many bytes of what is read next as this call reads; NULL: nothing */
};

/* Step `k` of the sums: B's values of all columns. */
GEMM_INLINE void thin_add(const int rows, const struct thin *t, size_t k, vf b, vf acc[GEMM_ROWS][GEMM_MOST])
{
    const float *a = t->a + k;

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r][0] = vf_fma(vf_all(a[r * t->a_row]), b, acc[r][0]);
}

GEMM_INLINE void thin_fetch(const struct thin *t, size_t from, size_t bytes)
{
    for (size_t i = 0; t->ahead && i < bytes; i += 64)
        __builtin_prefetch(t->ahead + from + i, 0, 2);
}

GEMM_INLINE void thin_floats(const int rows, const struct thin *t, vf acc[GEMM_ROWS][GEMM_MOST])
{
    size_t i = 0;

    for (; i + VW <= t->k; i += VW) {
        vf turned[VW];

        thin_fetch(t, i * VW * sizeof(float), VW * VW * sizeof(float));
#pragma GCC unroll 16
        for (size_t j = 0; j < VW; j++)
            turned[j] = vf_load((const float *)(const void *)(t->b + j * t->step) + i);
        vector_transpose(turned);
#pragma GCC unroll 16
        for (size_t k = 0; k < VW; k++)
            thin_add(rows, t, i + k, turned[k], acc);
    }
    for (; i < t->k; i++) {
        float lanes[VW];

        for (size_t j = 0; j < VW; j++)
            memcpy(&lanes[j], t->b + j * t->step + i * sizeof(float), sizeof(float));
        thin_add(rows, t, i, vf_load(lanes), acc);
    }
}

/* A block of Q4_0 or Q4_1 in the words of VW runs: the low halves of 16 bytes, then the high ones. `first`: the 16 bits where they begin. */
GEMM_INLINE void thin_block(const int rows, const enum thin_type type, const struct thin *t, size_t k, const strip_word *words,
                            const unsigned first, vf scale, vf minimum, vf acc[GEMM_ROWS][GEMM_MOST])
{
#pragma GCC unroll 16
    for (unsigned i = 0; i < 16; i++) {
        const unsigned pair = first + i % 8;
        const strip_word two = pair % 2 ? words[pair / 2] >> 16 : words[pair / 2];

#pragma GCC unroll 2
        for (unsigned b = 0; b < 2; b++) {
            vf x = vf_mul(scale, strip_nibbles(two, 8 * b + i / 8 * 4, type == THIN_Q4_0 ? 8 : 0));

            if (type == THIN_Q4_1)
                x = vf_add(x, minimum);
            thin_add(rows, t, k + 2 * i + b, x, acc);
        }
    }
}

/* Of Q4_0 two blocks are nine words. */
GEMM_INLINE void thin_halves(const int rows, const enum thin_type type, const struct thin *t, vf acc[GEMM_ROWS][GEMM_MOST])
{
    const size_t block = type == THIN_Q4_0 ? 18 : 20;
    const uint8_t *at = t->b;
    size_t i = 0;

    for (; type == THIN_Q4_0 && i + 64 <= t->k; i += 64, at += 2 * block) {
        strip_word word[9];

        thin_fetch(t, i / 32 * VW * block, 2 * VW * block);
        strip_words(at, t->step, word);
        strip_words(at + 16, t->step, word + 4);
        word[8] = strip_last(at + 20, t->step);
        thin_block(rows, type, t, i, word, 1, strip_halves(word[0]), vf_zero(), acc);
        thin_block(rows, type, t, i + 32, word, 10, strip_halves(word[4] >> 16), vf_zero(), acc);
    }
    for (; i < t->k; i += 32, at += block) {
        const strip_word head = strip_first(at, t->step); /* scale and, of Q4_1, minimum */
        strip_word code[4];

        thin_fetch(t, i / 32 * VW * block, VW * block);
        strip_words(at + block - 16, t->step, code);
        thin_block(rows, type, t, i, code, 0, strip_halves(head), strip_halves(head >> 16), acc);
    }
}

GEMM_INLINE void thin_bytes(const int rows, const struct thin *t, vf acc[GEMM_ROWS][GEMM_MOST])
{
    const uint8_t *at = t->b;

    for (size_t i = 0; i < t->k; i += 32, at += 34) {
        strip_word code[8];
        const vf scale = strip_halves(strip_first(at, t->step));

        thin_fetch(t, i / 32 * VW * 34, VW * 34);
        strip_words(at + 2, t->step, code);
        strip_words(at + 18, t->step, code + 4);
        for (unsigned w = 0; w < 8; w++)
#pragma GCC unroll 4
            for (unsigned b = 0; b < 4; b++) {
                const strip_integer q = (strip_integer)(code[w] << (24 - 8 * b)) >> 24;

                thin_add(rows, t, i + 4 * w + b, vf_mul(scale, strip_floats(q)), acc);
            }
    }
}

/* VW columns of C. */
GEMM_INLINE void gemm_thin(const int rows, const enum thin_type type, const struct thin *t, const struct gemm_end *end)
{
    vf acc[GEMM_ROWS][GEMM_MOST];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r][0] = vf_zero();
    if (type == THIN_FLOATS)
        thin_floats(rows, t, acc);
    else if (type == THIN_Q8_0)
        thin_bytes(rows, t, acc);
    else
        thin_halves(rows, type, t, acc);
    gemm_tile_end(rows, 1, acc, end);
}

/* One function a type and number of rows, so that the sums stay in registers. */
#define GEMM_THIN(rows, type)                                                                                                    \
    static __attribute__((noinline)) void gemm_thin_##rows##_##type(const struct thin *t, const struct gemm_end *end)            \
    {                                                                                                                            \
        gemm_thin(rows, type, t, end);                                                                                           \
    }
#if GEMM_ROWS == 8
#define GEMM_THIN_MORE(type) GEMM_THIN(7, type) GEMM_THIN(8, type)
#define GEMM_THIN_NAMES(type)                                                                                                    \
    {                                                                                                                            \
        gemm_thin_1_##type, gemm_thin_2_##type, gemm_thin_3_##type, gemm_thin_4_##type, gemm_thin_5_##type, gemm_thin_6_##type,  \
            gemm_thin_7_##type, gemm_thin_8_##type                                                                               \
    }
#else
#define GEMM_THIN_MORE(type)
#define GEMM_THIN_NAMES(type)                                                                                                    \
    {                                                                                                                            \
        gemm_thin_1_##type, gemm_thin_2_##type, gemm_thin_3_##type, gemm_thin_4_##type, gemm_thin_5_##type, gemm_thin_6_##type   \
    }
#endif
#define GEMM_THINS(type)                                                                                                         \
    GEMM_THIN(1, type)                                                                                                           \
    GEMM_THIN(2, type)                                                                                                           \
    GEMM_THIN(3, type) GEMM_THIN(4, type) GEMM_THIN(5, type) GEMM_THIN(6, type) GEMM_THIN_MORE(type)
GEMM_THINS(THIN_FLOATS)
GEMM_THINS(THIN_Q4_0)
GEMM_THINS(THIN_Q4_1)
GEMM_THINS(THIN_Q8_0)

static void (*const gemm_thins[THIN_TYPES][GEMM_ROWS])(const struct thin *t, const struct gemm_end *end) = {
    [THIN_FLOATS] = GEMM_THIN_NAMES(THIN_FLOATS),
    [THIN_Q4_0] = GEMM_THIN_NAMES(THIN_Q4_0),
    [THIN_Q4_1] = GEMM_THIN_NAMES(THIN_Q4_1),
    [THIN_Q8_0] = GEMM_THIN_NAMES(THIN_Q8_0),
};

#endif
