/* gemm_part.h - one task of a matrix product: a rectangle of C; internal to native/kernel. */
#ifndef RONDO_KERNEL_GEMM_PART_H
#define RONDO_KERNEL_GEMM_PART_H

#include <stdbool.h>

#include "native/kernel/gemm.h"

#define GEMM_RECTANGLE 480                 /* most columns of a rectangle */
#define GEMM_ROOM      ((size_t)288 * 512) /* floats of B packed at once: 576 KiB */
#define GEMM_GROUP     1024                /* most of K packed at once, where columns are few */

/* One product of the chain; pointers stand at the rectangle's first row and column. */
struct gemm_part {
    const struct gemm *gemm;
    const float *a, *b, *onto;
    size_t b_first;
};

/* K > 256 with GEMM_LOW_RANK is not for the fast versions. */
struct gemm_rectangle {
    size_t rows, columns; /* columns <= GEMM_RECTANGLE */
    float *c;
    ptrdiff_t c_row;
    size_t count;
    struct gemm_part part[GEMM_CHAIN];
};

#define GEMM_A_ROOM ((size_t)16 * GEMM_GROUP) /* floats of A packed at once: two row panels */

/* Floats of `pack`, aligned to 64: panels of B, row panels of A, and values read from storage. */
#define GEMM_PACK (GEMM_ROOM + GEMM_A_ROOM + (size_t)GEMM_CHUNK * 48)

void gemm_block_scalar(const struct gemm_rectangle *at, float *pack);
void gemm_block_avx2(const struct gemm_rectangle *at, float *pack);
void gemm_block_avx512(const struct gemm_rectangle *at, float *pack);
void gemm_block_neon(const struct gemm_rectangle *at, float *pack);

#endif
