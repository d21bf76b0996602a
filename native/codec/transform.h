/* transform.h - the coefficients that a transformed payload says in place of values (docs/protocol.md, section 12).
 *
 *     [.., columns], rows all axes but the last      tiles of high x wide, each side the largest divisor that is at most `tile`
 *     +----+----+
 *     | 0  | 1  |     forward: DCT-II of each tile alone (native/kernel/dct.h); coefficients stand tile by tile, 0, 1, 2, ..., each
 *     +----+----+     by its rows, so that a chunk of high * wide of them is one tile
 *     | 2  | 3  |     inverse: DCT-III, back in place
 *     +----+----+
 *
 * A tensor of one axis is one row.
 */
#ifndef RONDO_CODEC_TRANSFORM_H
#define RONDO_CODEC_TRANSFORM_H

#include <stdbool.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

enum { TRANSFORM_TILE = 256 }; /* the longest side of a tile; the shortest is 2 */

/* The values of `t` (f32) to `coefficients`, as many, elsewhere. Errors: memory. */
bool transform_forward(const struct tensor *t, unsigned tile, float *coefficients, struct error *err);

/* And back into t->data. */
bool transform_inverse(const float *coefficients, unsigned tile, const struct tensor *t, struct error *err);

#endif
