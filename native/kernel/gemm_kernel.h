/* gemm_kernel.h - the register tile of a matrix product, and packing; internal, included by the files of one instruction set.
 *
 *     tile of MR rows x NV vectors: acc[r][v] = fmaf(a[r,k], b[k,v], acc[r][v]) for k ascending from +0
 *
 * A is read in place by broadcasts, whatever its strides. B is read as rows of NV vectors, `b_row` apart: packed panels or in place.
 * AVX-512: 8 x 48, 24 accumulators of 32 registers, and 6 x 64 for products of 64 columns. AVX2: 6 x 16, 12 of 16. NEON: 8 x 12, 24 of 32.
 */
#ifndef RONDO_KERNEL_GEMM_KERNEL_H
#define RONDO_KERNEL_GEMM_KERNEL_H

#include "native/kernel/gemm.h"
#include "native/kernel/vector.h"

#if VW == 8
#define GEMM_ROWS 6
#define GEMM_WIDE 2
#else
#define GEMM_ROWS 8
#define GEMM_WIDE 3
#endif

#define GEMM_COLUMNS (VW * GEMM_WIDE)
#define GEMM_MOST    4 /* vectors of the widest tile */
#if VW == 16
#define GEMM_64_ROWS 6 /* of a tile of 64 columns */
#endif
#define GEMM_INLINE VECTOR_INLINE

/* What becomes of a tile's sums: c = start + sum, or c = fmaf(scale, 0 + sum, start); start is NULL for +0. */
struct gemm_end {
    const float *start;
    float *c;
    ptrdiff_t row; /* of c and of start */
    size_t columns;
    enum gemm_form form;
    float scale;
};

/* `columns` is less than the tile's: what is valid of a row goes one by one. */
GEMM_INLINE void gemm_end_edge(const struct gemm_end *end, ptrdiff_t row, const float *sum)
{
    for (size_t j = 0; j < end->columns; j++) {
        float start = end->start ? end->start[row * end->row + (ptrdiff_t)j] : 0.0f;

        end->c[row * end->row + (ptrdiff_t)j] =
            end->form == GEMM_LOW_RANK ? __builtin_fmaf(end->scale, 0.0f + sum[j], start) : start + sum[j];
    }
}

/* What becomes of the sums of a tile. */
GEMM_INLINE void gemm_tile_end(const int rows, const int wide, vf acc[GEMM_ROWS][GEMM_MOST], const struct gemm_end *end)
{
    if (end->columns < (size_t)(wide * VW)) {
        float sum[GEMM_MOST * VW];

#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
            for (int v = 0; v < wide; v++)
                vf_store(sum + v * VW, acc[r][v]);
            gemm_end_edge(end, r, sum);
        }
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) {
            ptrdiff_t at = r * end->row + v * VW;
            vf start = end->start ? vf_load(end->start + at) : vf_zero();

            if (end->form == GEMM_LOW_RANK)
                vf_store(end->c + at, vf_fma(vf_all(end->scale), vf_add(vf_zero(), acc[r][v]), start));
            else
                vf_store(end->c + at, vf_add(start, acc[r][v]));
        }
}

GEMM_INLINE void gemm_tile(const int rows, const int wide, size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
                           const float *b, ptrdiff_t b_row, const struct gemm_end *end)
{
    vf acc[GEMM_ROWS][GEMM_MOST];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            acc[r][v] = vf_zero();
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < wide * VW; v += 16)
            __builtin_prefetch(end->c + r * end->row + v);
    for (size_t i = 0; i < k; i++, a += a_col, b += b_row) {
        vf bv[GEMM_MOST];

#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            bv[v] = vf_load(b + v * VW);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            vf av = vf_all(a[r * a_row]);

#pragma GCC unroll 4
            for (int v = 0; v < wide; v++)
                acc[r][v] = vf_fma(av, bv[v], acc[r][v]);
        }
    }
    gemm_tile_end(rows, wide, acc, end);
}

/* One function a shape, so that the sums stay in registers. */
#define GEMM_SHAPE(rows, wide)                                                                                                   \
    static __attribute__((noinline, unused)) void gemm_tile_##rows##_##wide(                                                     \
        size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, ptrdiff_t b_row, const struct gemm_end *end) \
    {                                                                                                                            \
        gemm_tile(rows, wide, k, a, a_row, a_col, b, b_row, end);                                                                \
    }
#define GEMM_SHAPES(wide)                                                                                                        \
    GEMM_SHAPE(1, wide)                                                                                                          \
    GEMM_SHAPE(2, wide)                                                                                                          \
    GEMM_SHAPE(3, wide)                                                                                                          \
    GEMM_SHAPE(4, wide) GEMM_SHAPE(5, wide) GEMM_SHAPE(6, wide)
#define GEMM_NAMES(wide)                                                                                                         \
    gemm_tile_1_##wide, gemm_tile_2_##wide, gemm_tile_3_##wide, gemm_tile_4_##wide, gemm_tile_5_##wide, gemm_tile_6_##wide

GEMM_SHAPES(1)
GEMM_SHAPES(2)
#if GEMM_ROWS == 8
GEMM_SHAPES(3)
GEMM_SHAPE(7, 1)
GEMM_SHAPE(8, 1)
GEMM_SHAPE(7, 2)
GEMM_SHAPE(8, 2)
GEMM_SHAPE(7, 3)
GEMM_SHAPE(8, 3)
#endif

#ifdef GEMM_64_ROWS
GEMM_SHAPES(4)
#endif

typedef void gemm_tile_function(size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, ptrdiff_t b_row,
                                const struct gemm_end *end);

static gemm_tile_function *const gemm_tiles[GEMM_WIDE][GEMM_ROWS] = {
#if GEMM_ROWS == 8
    { GEMM_NAMES(1), gemm_tile_7_1, gemm_tile_8_1 },
    { GEMM_NAMES(2), gemm_tile_7_2, gemm_tile_8_2 },
    { GEMM_NAMES(3), gemm_tile_7_3, gemm_tile_8_3 },
#else
    { GEMM_NAMES(1) },
    { GEMM_NAMES(2) },
#endif
};

/* `count` cut into `parts` nearly equal ones: where part i begins. */
GEMM_INLINE size_t gemm_cut(size_t count, size_t parts, size_t i)
{
    return count / parts * i + (i < count % parts ? i : count % parts);
}

/* All rows of one column panel: ceil(rows / MR) row panels of nearly equal height. */
GEMM_INLINE void gemm_panel(size_t rows, size_t wide, size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                            ptrdiff_t b_row, struct gemm_end end)
{
    size_t panels = (rows + GEMM_ROWS - 1) / GEMM_ROWS;

    for (size_t p = 0; p < panels; p++) {
        size_t r = gemm_cut(rows, panels, p), height = gemm_cut(rows, panels, p + 1) - r;
        struct gemm_end part = end;

        part.c += (ptrdiff_t)r * end.row;
        part.start = end.start ? end.start + (ptrdiff_t)r * end.row : NULL;
        gemm_tiles[wide - 1][height - 1](k, a + (ptrdiff_t)r * a_row, a_row, a_col, b, b_row, &part);
    }
}

#ifdef GEMM_64_ROWS
/* The same of 64 columns at once: B is read by one pass over the rows instead of two. */
GEMM_INLINE void gemm_panel_64(size_t rows, size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                               ptrdiff_t b_row, struct gemm_end end)
{
    static gemm_tile_function *const tiles[GEMM_64_ROWS] = { GEMM_NAMES(4) };
    size_t panels = (rows + GEMM_64_ROWS - 1) / GEMM_64_ROWS;

    for (size_t p = 0; p < panels; p++) {
        size_t r = gemm_cut(rows, panels, p), height = gemm_cut(rows, panels, p + 1) - r;
        struct gemm_end part = end;

        part.c += (ptrdiff_t)r * end.row;
        part.start = end.start ? end.start + (ptrdiff_t)r * end.row : NULL;
        tiles[height - 1](k, a + (ptrdiff_t)r * a_row, a_row, a_col, b, b_row, &part);
    }
}
#endif

/* Rows fetched ahead while packing: they lie too far apart for the processor to guess. Columns it guesses. */
#define GEMM_AHEAD 16

/* k rows of `columns`, into a panel whose rows are `width` floats (columns beyond `columns` are zero: computed, never stored). */
GEMM_INLINE void gemm_pack(size_t k, size_t columns, const float *b, ptrdiff_t b_row, ptrdiff_t b_col, float *panel, size_t width)
{
    size_t i = 0;

    if (columns < width)
        for (size_t r = 0; r < k; r++)
            for (size_t j = columns; j < width; j++)
                panel[r * width + j] = 0.0f;
    if (b_col == 1 && columns == width) {
        for (size_t r = 0; r < k; r++)
            for (size_t j = 0; j < width; j += VW) {
                const float *from = b + (ptrdiff_t)r * b_row + (ptrdiff_t)j;

                __builtin_prefetch(from + GEMM_AHEAD * b_row);
                vf_store(panel + r * width + j, vf_load(from));
            }
        return;
    }
    if (b_row == 1)
        for (; i + 8 <= k; i += 8) {
            size_t j = 0;

            for (; j + 8 <= columns; j += 8)
                vector_transpose8(b + (ptrdiff_t)i + (ptrdiff_t)j * b_col, b_col, panel + i * width + j, (ptrdiff_t)width);
            for (; j < columns; j++)
                for (size_t r = i; r < i + 8; r++)
                    panel[r * width + j] = b[(ptrdiff_t)r + (ptrdiff_t)j * b_col];
        }
    for (; i < k; i++)
        for (size_t j = 0; j < columns; j++)
            panel[i * width + j] = b[(ptrdiff_t)i * b_row + (ptrdiff_t)j * b_col];
}

#endif
