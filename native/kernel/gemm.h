/* gemm.h - matrix products in the fixed order of the portable kernel class (docs/numerics.md, rule 3).
 *
 *     C[m,n] = sum over k of A[m,k] B[k,n]      K cut into chunks of 256; inside a chunk one fmaf chain over k ascending from +0;
 *                                               chunk results are added in ascending order to the start value
 *     GEMM_PLAIN      starts from +0
 *     GEMM_ONTO       starts from `onto` (same strides as C; may be C itself)
 *     GEMM_LOW_RANK   C = fmaf(scale, 0 + sum, onto): an adapter's product as one more chunk; onto may be C
 *
 * Any strides: a transposed operand is one whose strides are swapped; a batch stride of 0 shares an operand. C's columns are
 * contiguous. K = 0 gives the start value. No operand may overlap C, except `onto` being C itself.
 * Source of the loop order: Goto and van de Geijn, TOMS 2008; Van Zee and van de Geijn, BLIS, TOMS 2015.
 */
#ifndef RONDO_KERNEL_GEMM_H
#define RONDO_KERNEL_GEMM_H

#include <stddef.h>

#include "native/kernel/pool.h"
#include "native/kernel/stored.h"

#define GEMM_CHUNK 256
#define GEMM_CHAIN 16 /* most products of one chain */

/* Bytes at the start of a thread's working memory (pool.h) that a product uses. */
#define GEMM_SCRATCH ((size_t)1 << 20)

enum gemm_form { GEMM_PLAIN, GEMM_ONTO, GEMM_LOW_RANK };

struct gemm {
    size_t m, n, k;
    size_t batch[2]; /* outer, inner; both at least 1 */
    enum gemm_form form;
    float scale; /* GEMM_LOW_RANK only */
    const float *a, *b, *onto;
    float *c;
    /* strides in floats */
    ptrdiff_t a_row, a_col, a_batch[2]; /* a_row steps m, a_col steps k */
    ptrdiff_t b_row, b_col, b_batch[2]; /* b_row steps k, b_col steps n */
    ptrdiff_t c_row, c_batch[2];
    /* B in storage of another type: b_read gives `count` values of b_stored from value `first` on; element (0, 0) is value b_first. `b` is
     * not read then. NULL: B is floats. */
    stored_read *b_read;
    enum stored_type b_type;
    const void *b_stored;
    size_t b_first;
};

/* A dense product, row-major, one batch: A is [m,k] or, transposed, stored [k,m]; B is [k,n] or, transposed, stored [n,k]. */
struct gemm gemm_dense(size_t m, size_t n, size_t k, const float *a, int a_transposed, const float *b, int b_transposed,
                       float *c);

void gemm_run(struct pool *pool, const struct gemm *gemm);

/* Several products onto one C, one after the other: the first as it says, each further one (GEMM_ONTO or GEMM_LOW_RANK) onto what is there
 * by then, whatever its `onto`. m, n, batch, c, c_row and c_batch are those of all. At most GEMM_CHAIN. */
void gemm_run_chain(struct pool *pool, const struct gemm *chain, size_t count);

/* The definition, one output after the other. */
void gemm_reference(const struct gemm *gemm);

#endif
