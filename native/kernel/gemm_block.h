/* gemm_block.h - one rectangle of C, the whole of K; internal. Compiled once an instruction set under the name GEMM_BLOCK.
 *
 *     for each chunk of 256 along K:   pack the rectangle's columns of B as panels into private memory that stays in L2
 *         for each row panel of A, for each packed panel:   register tile (gemm_kernel.h), C = start + sums
 */
#include "native/kernel/gemm_kernel.h"
#include "native/kernel/gemm_part.h"

/* Few rows: packing B would cost more than the arithmetic, where its rows can be read as they are. */
#define IN_PLACE_ROWS (2 * GEMM_ROWS)

static void chunk_panels(const struct gemm_rectangle *at, size_t vectors, size_t panels, size_t k, const float *a, const float *b,
                         struct gemm_end end, float *pack)
{
    const struct gemm *gemm = at->gemm;
    bool in_place = gemm->b_col == 1 && at->rows <= IN_PLACE_ROWS;
    const float *source[GEMM_RECTANGLE / VW];
    ptrdiff_t step[GEMM_RECTANGLE / VW];
    size_t row_panels = (at->rows + GEMM_ROWS - 1) / GEMM_ROWS;

    for (size_t p = 0; p < panels; p++) {
        size_t first = gemm_cut(vectors, panels, p) * VW, width = gemm_cut(vectors, panels, p + 1) * VW - first;
        size_t columns = at->columns - first < width ? at->columns - first : width;
        const float *from = b + (ptrdiff_t)first * gemm->b_col;

        source[p] = in_place && columns == width ? from : pack;
        step[p] = in_place && columns == width ? gemm->b_row : (ptrdiff_t)width;
        if (source[p] != pack)
            continue;
        gemm_pack(k, columns, from, gemm->b_row, gemm->b_col, pack, width);
        pack += k * width;
    }
    for (size_t r = 0; r < row_panels; r++) {
        size_t row = gemm_cut(at->rows, row_panels, r), height = gemm_cut(at->rows, row_panels, r + 1) - row;

        for (size_t p = 0; p < panels; p++) {
            size_t first = gemm_cut(vectors, panels, p) * VW, width = gemm_cut(vectors, panels, p + 1) * VW - first;
            ptrdiff_t to = (ptrdiff_t)row * end.row + (ptrdiff_t)first;
            struct gemm_end part = end;

            part.c = end.c + to;
            part.start = end.start ? end.start + to : NULL;
            part.columns = at->columns - first < width ? at->columns - first : width;
            gemm_tiles[width / VW - 1][height - 1](k, a + (ptrdiff_t)row * gemm->a_row, gemm->a_row, gemm->a_col, source[p],
                                                   step[p], &part);
        }
    }
}

void GEMM_BLOCK(const struct gemm_rectangle *at, float *pack)
{
    const struct gemm *gemm = at->gemm;
    size_t vectors = (at->columns + VW - 1) / VW, panels = (vectors + GEMM_WIDE - 1) / GEMM_WIDE;

    for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {
        size_t k = gemm->k - chunk < GEMM_CHUNK ? gemm->k - chunk : GEMM_CHUNK;
        struct gemm_end end = { .c = at->c, .row = gemm->c_row, .form = gemm->form, .scale = gemm->scale };

        end.start = chunk > 0 ? at->c : gemm->form == GEMM_PLAIN ? NULL : at->onto;
        chunk_panels(at, vectors, panels, k, at->a + (ptrdiff_t)chunk * gemm->a_col, at->b + (ptrdiff_t)chunk * gemm->b_row, end,
                     pack);
    }
}
