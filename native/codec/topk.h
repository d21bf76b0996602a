/* topk.h - of every chunk of values those of largest magnitude; the rest is read back as 0 (docs/protocol.md, section 12).
 *
 *     values    | chunk 0: `of` values | chunk 1 | ... | last chunk, as short as its values |
 *                        v
 *     bytes     [ k positions in the chunk, ascending, w bits each | k values as quantise.h writes them ] ...
 *
 * k = keep, of a short last chunk of n values keep * n / of rounded up. Greater magnitudes are kept first, of equal ones (-0 equals 0) the
 * lower position. w is the least width that holds of - 1; positions stand in a row from the low bit of the first byte, the bits that are
 * left in the last byte are 0. Each chunk's values start a new block, so each chunk has a scale of its own. The length depends on the
 * count of values alone.
 */
#ifndef RONDO_CODEC_TOPK_H
#define RONDO_CODEC_TOPK_H

#include "native/codec/quantise.h"

enum { TOPK_CHUNK = 4096 }; /* the largest `of` */

struct topk {
    unsigned keep, of; /* 1 <= keep <= of, 2 <= of <= TOPK_CHUNK */
    unsigned bits;     /* of a kept value: 32, 16, 8 or 4 */
};

/* Whether the numbers are in range and the bits known. */
bool topk_known(const struct topk *codec);

/* Values kept of a chunk of `count` values, at most `of`. */
size_t topk_kept(const struct topk *codec, size_t count);

/* Bytes of `count` values. False when that does not fit 64 bits. */
bool topk_size(const struct topk *codec, uint64_t count, uint64_t *bytes);

/* Appends `count` values. Errors: non_finite, range (beyond 2^60); the place names the index. Nothing is appended then. */
bool topk_encode(const struct topk *codec, const float *values, uint64_t count, struct buffer *out, struct error *err);

/* The same, and leaves in `values` what was not said: what was not kept, and of the kept what quantising lost. */
bool topk_encode_rest(const struct topk *codec, float *values, uint64_t count, struct buffer *out, struct error *err);

/* Reads `count` values from hostile bytes. Errors: truncated; range (a position that is not above the last or not in the chunk); conflict
 * (unused bits that are not 0); those of quantise_decode; the place names the chunk. */
bool topk_decode(const struct topk *codec, struct reader *in, uint64_t count, float *values, struct error *err);

#endif
