/* dct.h - the orthonormal discrete cosine transform by blocks, DCT-II, and its inverse, DCT-III (Ahmed, Natarajan and Rao, 1974): what
 * decoupled momentum sends of an update.
 *
 *     C[k,i] = s_k cos(pi (2i + 1) k / (2n)), s_0 = sqrt(1/n), s_k = sqrt(2/n)      [n, n], C C^T = 1
 *
 *     columns                    A matrix is cut into tiles of `high` x `wide`; each tile X is transformed alone:
 *     +----+----+----+               forward   Y = C (X C^T)      rows of the tile first
 *     |    |    |    | high          inverse   X = (C^T Y) C      columns of the tile first
 *     +----+----+----+           Every product is one of rule 3 (gemm.h): a chain of fmaf from +0, ascending; a side is at most 256, so
 *     |    |    |    |           there is one chunk. A side of 1 is left out. A vector is a matrix of one row: blocks of `wide`.
 *     +----+----+----+
 *       wide
 */
#ifndef RONDO_KERNEL_DCT_H
#define RONDO_KERNEL_DCT_H

#include <stdbool.h>
#include <stddef.h>

#include "native/kernel/pool.h"

#define DCT_MAX 256

/* C for 1 <= n <= DCT_MAX. Cosines are reduced to an eighth of a turn by whole numbers and summed in binary64 (+ - * / sqrt), times s_k,
 * rounded to binary32 once: the same on every machine. */
void dct_table(size_t n, float *table);

/* The largest divisor of `size` that is at most `most` (both at least 1): the side of the tiles of an axis. */
size_t dct_side(size_t size, size_t most);

struct dct {
    size_t rows, columns, high, wide; /* high divides rows, wide divides columns; both at most DCT_MAX */
    bool inverse;
};

/* x, out: [rows, columns], contiguous. `between` is working memory as large (NULL allowed where a side is 1). None may overlap. */
void dct_run(struct pool *pool, const struct dct *dct, const float *x, float *between, float *out);

#endif
