/* nf4.h - NormalFloat4 with blocks of 64, the 4-bit type of QLoRA (T. Dettmers et al., arXiv 2305.14314), as bitsandbytes stores it.
 *
 * Reading, in binary32, each step rounded once; v and m are the tables of native/numerics/nf4.h:
 *
 *     nf4        x = a * v[code]
 *     nf4_dq     a = (s * m[code of a]) + mean;  x = a * v[code]
 *
 * with the bits of bitsandbytes' dequantisation to float32. Writing finite values: through the whole tensor in row-major order, 64 a block (the
 * last may be shorter; what it lacks is 0),
 *
 *     a          the largest magnitude of the block
 *     code       how many bounds lie below t = x * (1 / max(a, 1e-38)), cut to [-1, 1]: the nearest value, the lower where two are
 *
 * which are bitsandbytes' codes of whole blocks. With double quantisation, for each 256 blocks (the last group may be shorter),
 *
 *     mean       of all scales of the tensor: summed in binary64 in ascending order, divided by their number, rounded to binary32
 *     d          a - mean, rounded;   s = the largest magnitude of d in the group
 *     code of a  of the nearest m to d * (1 / max(s, 1e-38)), cut to [-1, 1], the lower where two are as near, compared in binary64
 *
 * (bitsandbytes sums in an order that depends on the machine, and its search for the nearest misses it now and then: its files read with the
 * same bits, but a file it writes may differ in the codes of scales.)
 */
#ifndef RONDO_MODEL_NF4_H
#define RONDO_MODEL_NF4_H

#include <stdbool.h>
#include <stdint.h>

#include "native/tensor/tensor.h"

/* The first `count` values of a tensor of type nf4 or nf4_dq: of all of it, or from a block whose number is a multiple of 256. */
void nf4_read(enum tensor_type type, const void *stored, uint64_t count, float *out);

/* A whole tensor of `count` finite values, in tensor_measure's bytes. False: no memory. */
bool nf4_write(enum tensor_type type, const float *values, uint64_t count, void *stored);

#endif
