/* plan_codec.h - how a round's payloads are coded: what the plan's `codec` says, with its defaults (docs/protocol.md, section 12).
 *
 *     bits        32 (default), 16, 8 or 4 for each value that is sent
 *     block       256: values with one scale
 *     keep, of    of every `of` values the `keep` largest; keep_share: of every `of` (default 4096) that share, rounded up
 *     transform   "dct": coefficients of tiles with sides of at most `tile` (default 64) in place of values
 *     feedback    above 0, at most 1: what a payload leaves out is added to the next one, times this. Only with inner = "keep"
 */
#ifndef RONDO_ROUND_PLAN_CODEC_H
#define RONDO_ROUND_PLAN_CODEC_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"

enum { PLAN_CODEC_BLOCK = 256, PLAN_CODEC_CHUNK = 4096, PLAN_CODEC_TILE = 256 };

struct plan_codec {
    unsigned bits, keep, of, tile; /* keep and of 0: all values; tile 0: no transform */
    float feedback;                /* 0: what is left out is forgotten */
};

/* Of a plan, without a codec too. Errors: unsupported (feedback that nothing carries, another transform, bits or block), range, conflict (fields that
 * exclude each other). */
bool plan_codec_read(const json_t *plan, struct plan_codec *codec, struct error *err);

/* As a contribution says it: { bits, block, keep?, of?, tile? }. New reference. */
json_t *plan_codec_document(const struct plan_codec *codec);

/* Whether a contribution's `codec` is that of the plan. */
bool plan_codec_fits(const json_t *document, const json_t *plan);

#endif
