#include "native/codec/transform.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/dct.h"

static struct dct tiles_of(const struct tensor *t, unsigned tile)
{
    const size_t columns = t->rank == 0 ? 1 : (size_t)t->dims[t->rank - 1], rows = (size_t)tensor_values(t) / columns;

    return (struct dct){ .rows = rows, .columns = columns, .high = dct_side(rows, tile), .wide = dct_side(columns, tile) };
}

/* Between rows of the matrix and rows of the tiles one after another. */
static void move_tiles(const struct dct *dct, float *matrix, float *tiles, bool out)
{
    for (size_t top = 0; top < dct->rows; top += dct->high)
        for (size_t left = 0; left < dct->columns; left += dct->wide)
            for (size_t i = 0; i < dct->high; i++, tiles += dct->wide) {
                float *at = matrix + (top + i) * dct->columns + left;

                memcpy(out ? tiles : at, out ? at : tiles, dct->wide * sizeof *at);
            }
}

bool transform_forward(const struct tensor *t, unsigned tile, float *coefficients, struct error *err)
{
    const size_t count = (size_t)tensor_values(t);
    float *work = malloc((2 * count + 1) * sizeof *work);

    if (!work)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu coefficients", count);
    if (count > 0) {
        const struct dct dct = tiles_of(t, tile);

        dct_run(NULL, &dct, t->data, work, work + count);
        move_tiles(&dct, work + count, coefficients, true);
    }
    free(work);
    return true;
}

bool transform_inverse(const float *coefficients, unsigned tile, const struct tensor *t, struct error *err)
{
    const size_t count = (size_t)tensor_values(t);
    float *work = malloc((2 * count + 1) * sizeof *work);

    if (!work)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu coefficients", count);
    if (count > 0) {
        struct dct dct = tiles_of(t, tile);

        dct.inverse = true;
        move_tiles(&dct, work, (float *)(uintptr_t)coefficients, false);
        dct_run(NULL, &dct, work, work + count, t->data);
    }
    free(work);
    return true;
}
