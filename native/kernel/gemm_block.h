/* gemm_block.h - one rectangle of C, the whole of a chain; internal. Compiled once an instruction set under the name GEMM_BLOCK.
 *
 *     for each group of chunks (256 along K, or the short ends of several products, as many as have room):
 *         pack the rectangle's columns of B as panels into private memory that stays in L2
 *         for each row panel of A, for each packed panel, for each chunk of the group:   register tile, C = start + sums
 *
 * The chunks of a group meet C while it lies in L1: an adapter's product costs no further pass over C.
 */
#include <string.h>

#include "native/kernel/gemm_kernel.h"
#include "native/kernel/gemm_part.h"
#include "native/kernel/gemm_thin.h"

/* Few rows: packing B would cost more than the arithmetic, where its rows can be read as they are. */
#define IN_PLACE_ROWS (2 * GEMM_ROWS)
#define PANELS        ((GEMM_RECTANGLE + GEMM_COLUMNS - 1) / GEMM_COLUMNS)

enum { PIECES = 8 };

/* A chunk of one product. */
struct piece {
    const struct gemm *gemm;
    size_t k;
    const float *a, *start;
    const float *source[PANELS];
    ptrdiff_t step[PANELS];
};

struct group {
    const struct gemm_rectangle *at;
    size_t vectors, panels, count, k, most; /* k: of all pieces, and the most that has room */
    float *pack, *a_pack, *stored;
    struct piece piece[PIECES];
};

GEMM_INLINE size_t panel_first(const struct group *g, size_t p)
{
    return gemm_cut(g->vectors, g->panels, p) * VW;
}

/* B from `offset` on, k rows of `columns`, as a panel. `stored` has room for 256 x GEMM_COLUMNS values. */
static void panel_packed(const struct gemm_part *part, size_t k, ptrdiff_t offset, size_t columns, size_t width, float *panel,
                         float *stored)
{
    const struct gemm *gemm = part->gemm;

    if (!gemm->b_read) {
        gemm_pack(k, columns, part->b + offset, gemm->b_row, gemm->b_col, panel, width);
    } else if (gemm->b_col == 1) {
        for (size_t r = 0; r < k; r++)
            gemm->b_read(gemm->b_stored, part->b_first + (size_t)offset + r * (size_t)gemm->b_row, columns,
                         stored + r * GEMM_COLUMNS);
        gemm_pack(k, columns, stored, GEMM_COLUMNS, 1, panel, width);
    } else {
        for (size_t j = 0; j < columns; j++)
            gemm->b_read(gemm->b_stored, part->b_first + (size_t)offset + j * (size_t)gemm->b_col, k, stored + j * GEMM_CHUNK);
        gemm_pack(k, columns, stored, 1, GEMM_CHUNK, panel, width);
    }
}

static void piece_packed(struct group *g, struct piece *piece, const struct gemm_part *part, size_t chunk)
{
    const struct gemm *gemm = part->gemm;
    bool in_place = gemm->b_col == 1 && g->at->rows <= IN_PLACE_ROWS && !gemm->b_read;

    for (size_t p = 0; p < g->panels; p++) {
        size_t first = panel_first(g, p), width = panel_first(g, p + 1) - first;
        size_t columns = g->at->columns - first < width ? g->at->columns - first : width;
        ptrdiff_t offset = (ptrdiff_t)chunk * gemm->b_row + (ptrdiff_t)first * gemm->b_col;

        if (in_place && columns == width) {
            piece->source[p] = part->b + offset;
            piece->step[p] = gemm->b_row;
            continue;
        }
        piece->source[p] = g->pack;
        piece->step[p] = (ptrdiff_t)width;
        panel_packed(part, piece->k, offset, columns, width, g->pack, g->stored);
        g->pack += piece->k * width;
    }
}

/* Whether rows of A lie along memory and are worth packing: `height` beside each other, as the tile reads them. */
GEMM_INLINE bool is_gathered(const struct group *g, const struct piece *piece)
{
    return piece->gemm->a_row == 1 && g->panels > 1;
}

/* Rows `row` .. `row + height` of a piece, and the `next` after them: two panels share each line of memory that they are gathered from. The
 * lines after these are fetched meanwhile: they lie too far apart for the processor to guess them. */
GEMM_INLINE void rows_gathered(const struct piece *piece, size_t row, size_t height, size_t next, float *first, float *second)
{
    const float *a = piece->a + row;
    const ptrdiff_t step = piece->gemm->a_col;

    if (height == GEMM_ROWS && next == GEMM_ROWS) {
        for (size_t k = 0; k < piece->k; k++) {
            memcpy(first + k * GEMM_ROWS, a + (ptrdiff_t)k * step, GEMM_ROWS * sizeof *first);
            memcpy(second + k * GEMM_ROWS, a + (ptrdiff_t)k * step + GEMM_ROWS, GEMM_ROWS * sizeof *second);
            __builtin_prefetch(a + (ptrdiff_t)k * step + (ptrdiff_t)2 * GEMM_ROWS, 0, 2);
        }
        return;
    }
    for (size_t k = 0; k < piece->k; k++) {
        for (size_t r = 0; r < height; r++)
            first[k * GEMM_ROWS + r] = a[(ptrdiff_t)k * step + (ptrdiff_t)r];
        for (size_t r = 0; r < next; r++)
            second[k * GEMM_ROWS + r] = a[(ptrdiff_t)k * step + (ptrdiff_t)(height + r)];
    }
}

/* Whether the rows of a panel, a multiple of 4 KiB apart, fall into the same few lines of the first cache: they are copied close together
 * (a head's gradient +10 %; elsewhere a copy costs more than it gives). */
GEMM_INLINE bool is_copied(const struct group *g, const struct piece *piece)
{
    return piece->gemm->a_col == 1 && piece->gemm->a_row % 1024 == 0 && g->panels > 1;
}

GEMM_INLINE void rows_copied(const struct piece *piece, size_t row, size_t height, float *to)
{
    for (size_t r = 0; r < height; r++)
        memcpy(to + r * piece->k, piece->a + (ptrdiff_t)(row + r) * piece->gemm->a_row, piece->k * sizeof *to);
}

/* One row panel of A against the packed panels of B. */
static void row_panel_run(const struct group *g, size_t row, size_t height, float *room)
{
    const struct gemm_rectangle *at = g->at;
    const float *a[PIECES];
    ptrdiff_t a_row[PIECES], a_col[PIECES];

    for (size_t i = 0; i < g->count; i++) {
        const struct piece *piece = &g->piece[i];
        const bool gathered = is_gathered(g, piece), copied = is_copied(g, piece);

        if (copied)
            rows_copied(piece, row, height, room);
        a[i] = gathered || copied ? room : piece->a + (ptrdiff_t)row * piece->gemm->a_row;
        a_row[i] = copied ? (ptrdiff_t)piece->k : piece->gemm->a_row;
        a_col[i] = gathered ? GEMM_ROWS : piece->gemm->a_col;
        room += piece->k * GEMM_ROWS;
    }
    for (size_t p = 0; p < g->panels; p++) {
        size_t first = panel_first(g, p), width = panel_first(g, p + 1) - first;
        ptrdiff_t to = (ptrdiff_t)row * at->c_row + (ptrdiff_t)first;
        struct gemm_end end = { .c = at->c + to, .row = at->c_row };

        end.columns = at->columns - first < width ? at->columns - first : width;
        for (size_t i = 0; i < g->count; i++) {
            const struct piece *piece = &g->piece[i];

            end.start = piece->start ? piece->start + to : NULL;
            end.form = piece->gemm->form;
            end.scale = piece->gemm->scale;
            gemm_tiles[width / VW - 1][height - 1](piece->k, a[i], a_row[i], a_col[i], piece->source[p], piece->step[p], &end);
        }
    }
}

static void group_run(struct group *g)
{
    const size_t rows = g->at->rows, panels = (rows + GEMM_ROWS - 1) / GEMM_ROWS;
    float *const second = g->a_pack + (size_t)GEMM_ROWS * GEMM_GROUP;

    for (size_t r = 0; r < panels; r += 2) {
        const size_t row = gemm_cut(rows, panels, r), middle = gemm_cut(rows, panels, r + 1),
                     end = r + 1 < panels ? gemm_cut(rows, panels, r + 2) : middle;
        size_t at = 0;

        for (size_t i = 0; i < g->count; i++) {
            if (is_gathered(g, &g->piece[i]))
                rows_gathered(&g->piece[i], row, middle - row, end - middle, g->a_pack + at, second + at);
            at += g->piece[i].k * GEMM_ROWS;
        }
        row_panel_run(g, row, middle - row, g->a_pack);
        if (end > middle)
            row_panel_run(g, middle, end - middle, second);
    }
    g->count = g->k = 0;
}

/* One row panel of A, its rows along memory, against a B whose columns lie along memory: a strip of VW columns at a time, the chunks of
 * these following each other as they lie. */
static bool is_thin(const struct gemm_rectangle *at)
{
    for (size_t i = 0; i < at->count; i++)
        if (at->part[i].gemm->b_row != 1 || at->part[i].gemm->a_col != 1)
            return false;
    return at->rows <= GEMM_ROWS;
}

/* How the strip at value `offset` is stored, where it can be read as it lies, with bytes and values of a block; THIN_TYPES where it cannot. */
static enum thin_type thin_stored(const struct gemm_part *part, size_t k, size_t offset, size_t *bytes, size_t *values)
{
    const struct gemm *gemm = part->gemm;

    *bytes = sizeof(float);
    *values = 1;
    if (!gemm->b_read)
        return THIN_FLOATS;
    *values = 32;
    *bytes = gemm->b_type == STORED_Q4_0 ? 18 : gemm->b_type == STORED_Q4_1 ? 20 : 34;
    if (k % 32 != 0 || gemm->b_col % 32 != 0 || (part->b_first + offset) % 32 != 0)
        return THIN_TYPES;
    return gemm->b_type == STORED_Q4_0   ? THIN_Q4_0
           : gemm->b_type == STORED_Q4_1 ? THIN_Q4_1
           : gemm->b_type == STORED_Q8_0 ? THIN_Q8_0
                                         : THIN_TYPES;
}

/* Chunk of `k` rows from `chunk` on, of the strip at `first`. */
static void thin_chunk(const struct gemm_part *part, size_t rows, size_t chunk, size_t k, size_t first, float *pack,
                       const struct gemm_end *end)
{
    const struct gemm *gemm = part->gemm;
    const size_t apart = (size_t)gemm->b_col, offset = chunk + first * apart;
    struct thin t = {
        .k = k, .a = part->a + chunk, .a_row = gemm->a_row, .b = (const uint8_t *)pack, .step = GEMM_CHUNK * sizeof *pack
    };
    size_t bytes, values;
    enum thin_type type = thin_stored(part, k, offset, &bytes, &values);

    if (type != THIN_TYPES && end->columns == VW) {
        const uint8_t *all =
            gemm->b_read ? (const uint8_t *)gemm->b_stored + part->b_first / values * bytes : (const uint8_t *)part->b;

        t.b = all + offset / values * bytes;
        t.step = apart / values * bytes;
        if (apart == gemm->k) /* strips follow each other */
            t.ahead = all + ((first + VW) * apart + chunk * VW) / values * bytes;
    } else {
        type = THIN_FLOATS;
        for (size_t j = 0; j < VW; j++)
            if (j >= end->columns)
                memset(pack + j * GEMM_CHUNK, 0, k * sizeof *pack);
            else if (gemm->b_read)
                gemm->b_read(gemm->b_stored, part->b_first + offset + j * apart, k, pack + j * GEMM_CHUNK);
            else
                memcpy(pack + j * GEMM_CHUNK, part->b + offset + j * apart, k * sizeof *pack);
    }
    gemm_thins[type][rows - 1](&t, end);
}

static void thin_run(const struct gemm_rectangle *at, float *pack)
{
    for (size_t first = 0; first < at->columns; first += VW) {
        struct gemm_end end = { .c = at->c + first, .row = at->c_row };

        end.columns = at->columns - first < VW ? at->columns - first : VW;
        for (size_t i = 0; i < at->count; i++) {
            const struct gemm_part *part = &at->part[i];
            const struct gemm *gemm = part->gemm;

            end.form = gemm->form;
            end.scale = gemm->scale;
            for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {
                size_t k = gemm->k - chunk < GEMM_CHUNK ? gemm->k - chunk : GEMM_CHUNK;

                end.start = chunk > 0 || i > 0 ? at->c + first : gemm->form == GEMM_PLAIN ? NULL : part->onto + first;
                thin_chunk(part, at->rows, chunk, k, first, pack, &end);
            }
        }
    }
}

void GEMM_BLOCK(const struct gemm_rectangle *at, float *pack)
{
    if (is_thin(at)) {
        thin_run(at, pack);
        return;
    }
    struct group g = {
        .at = at, .vectors = (at->columns + VW - 1) / VW, .a_pack = pack + GEMM_ROOM, .stored = pack + GEMM_ROOM + GEMM_A_ROOM
    };

    g.panels = (g.vectors + GEMM_WIDE - 1) / GEMM_WIDE;
    g.most = GEMM_ROOM / (g.vectors * VW);
    g.most = g.most < GEMM_GROUP ? g.most : GEMM_GROUP;
    for (size_t i = 0; i < at->count; i++) {
        const struct gemm_part *part = &at->part[i];
        const struct gemm *gemm = part->gemm;

        for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {
            struct piece *piece;
            size_t k = gemm->k - chunk < GEMM_CHUNK ? gemm->k - chunk : GEMM_CHUNK;

            if (g.count == PIECES || g.k + k > g.most)
                group_run(&g);
            g.pack = g.count == 0 ? pack : g.pack;
            piece = &g.piece[g.count++];
            piece->gemm = gemm;
            piece->k = k;
            piece->a = part->a + (ptrdiff_t)chunk * gemm->a_col;
            piece->start = chunk > 0 || i > 0 ? at->c : gemm->form == GEMM_PLAIN ? NULL : part->onto;
            piece_packed(&g, piece, part, chunk);
            g.k += k;
        }
    }
    if (g.count > 0)
        group_run(&g);
}
