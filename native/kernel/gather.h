/* gather.h - rows by index: embedding lookup and its adjoint. */
#ifndef RONDO_KERNEL_GATHER_H
#define RONDO_KERNEL_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

/* out[i,:] = table[index[i],:], each row `width` floats; every index in [0, rows) (gather_check tells). */
void gather_rows(struct pool *pool, size_t count, size_t width, const float *table, const int32_t *index, float *out);

/* table[index[i],:] += x[i,:] for i ascending, onto what the table holds. Parallel over columns. */
void gather_scatter_add(struct pool *pool, size_t count, size_t width, const float *x, const int32_t *index, float *table);

/* out[o,i] = x[o, index[o,i], i]: x is [outer, n, inner], index [outer, inner]. And its adjoint: out is zeroed, then assigned. */
void gather_pick(struct pool *pool, size_t outer, size_t n, size_t inner, const float *x, const int32_t *index, float *out);
void gather_pick_backward(struct pool *pool, size_t outer, size_t n, size_t inner, const int32_t *index, const float *g,
                          float *out);

/* Positions 0 .. count - 1 by their index, ascending within each: those of index t are order[starts[t]] .. order[starts[t + 1] - 1].
 * `starts` has room for rows + 1; every index in [0, rows). */
void gather_sorted(size_t count, const int32_t *index, size_t rows, uint32_t *order, uint32_t *starts);

/* out[t, r, c] = sum over i from starts[t] to starts[t + 1] - 1, ascending, of a[i][r * a_step] * b[i][c], from +0, each product rounded
 * before it is added: what scattering outer products gives. out is [tables, rows, columns]. Parallel over tables and rows. */
void gather_outer_sums(struct pool *pool, size_t tables, const uint32_t *starts, const float *const *a, ptrdiff_t a_step,
                       size_t rows, const float *const *b, size_t columns, float *out);

/* The first i whose index lies outside [0, rows), or `count`. */
size_t gather_check(size_t count, const int32_t *index, size_t rows);

#endif
