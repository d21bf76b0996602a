/* gemm_part.h - one task of a matrix product: a rectangle of C; internal to native/kernel. */
#ifndef RONDO_KERNEL_GEMM_PART_H
#define RONDO_KERNEL_GEMM_PART_H

#include <stdbool.h>

#include "native/kernel/gemm.h"

#define GEMM_RECTANGLE 480 /* most columns of a rectangle: 480 KiB of packed B */

/* Pointers stand at the rectangle's first row and column. K > 256 with GEMM_LOW_RANK is not for the fast versions. */
struct gemm_rectangle {
    const struct gemm *gemm;
    size_t rows, columns; /* columns <= GEMM_RECTANGLE */
    const float *a, *b, *onto;
    float *c;
};

/* `pack`: (GEMM_RECTANGLE + 16) * GEMM_CHUNK floats, aligned to 64. */
void gemm_block_scalar(const struct gemm_rectangle *at, float *pack);
void gemm_block_avx2(const struct gemm_rectangle *at, float *pack);
void gemm_block_avx512(const struct gemm_rectangle *at, float *pack);

#endif
