/* gemm_thin.h - a few rows of A against a B whose columns lie along memory: a weight [out, in], a token of each of a few sequences; internal,
 * included by the files of one instruction set.
 *
 *     VW columns of B, VW steps of k at a time: loaded as they lie, turned in registers, used by all rows of A     B ──────────────> k
 *                                                                                                                  0  xxxx | xxxx
 * B is met once and nothing of it is written; while one strip of VW columns is used, the next is fetched.           1  xxxx | xxxx
 */
#ifndef RONDO_KERNEL_GEMM_THIN_H
#define RONDO_KERNEL_GEMM_THIN_H

#include "native/kernel/gemm_kernel.h"

/* `ahead`: as many bytes of what is read next as this call reads, fetched evenly; NULL: nothing. */
GEMM_INLINE void gemm_thin(const int rows, size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                           ptrdiff_t b_col, const float *ahead, const struct gemm_end *end)
{
    vf acc[GEMM_ROWS][GEMM_WIDE];
    size_t i = 0;

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r][0] = vf_zero();
    for (; i + VW <= k; i += VW) {
        vf turned[VW];

        if (ahead)
            for (size_t line = 0; line < VW * VW; line += 16)
                __builtin_prefetch(ahead + i * VW + line, 0, 2);
#pragma GCC unroll 16
        for (int j = 0; j < VW; j++)
            turned[j] = vf_load(b + (ptrdiff_t)i + j * b_col);
        vector_transpose(turned);
#pragma GCC unroll 16
        for (int t = 0; t < VW; t++)
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                acc[r][0] = vf_fma(vf_all(a[r * a_row + ((ptrdiff_t)i + t) * a_col]), turned[t], acc[r][0]);
    }
    for (; i < k; i++) {
        float lanes[VW];

        for (int j = 0; j < VW; j++)
            lanes[j] = b[(ptrdiff_t)i + j * b_col];
        for (int r = 0; r < rows; r++)
            acc[r][0] = vf_fma(vf_all(a[r * a_row + (ptrdiff_t)i * a_col]), vf_load(lanes), acc[r][0]);
    }
    gemm_tile_end(rows, 1, acc, end);
}

/* One function a number of rows, so that the sums stay in registers. */
#define GEMM_THIN(rows)                                                                                                          \
    static __attribute__((noinline)) void gemm_thin_##rows(size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,           \
                                                           const float *b, ptrdiff_t b_col, const float *ahead,                  \
                                                           const struct gemm_end *end)                                           \
    {                                                                                                                            \
        gemm_thin(rows, k, a, a_row, a_col, b, b_col, ahead, end);                                                               \
    }
GEMM_THIN(1)
GEMM_THIN(2)
GEMM_THIN(3)
GEMM_THIN(4)
GEMM_THIN(5)
GEMM_THIN(6)
#if GEMM_ROWS == 8
GEMM_THIN(7)
GEMM_THIN(8)
#endif

typedef void gemm_thin_function(size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, ptrdiff_t b_col,
                                const float *ahead, const struct gemm_end *end);

static gemm_thin_function *const gemm_thins[GEMM_ROWS] = {
    gemm_thin_1, gemm_thin_2, gemm_thin_3, gemm_thin_4, gemm_thin_5, gemm_thin_6,
#if GEMM_ROWS == 8
    gemm_thin_7, gemm_thin_8,
#endif
};

#endif
