/* feedback.h - what a payload leaves out is carried to the next one.
 *
 *     update ──┐
 *              ├─ e = fma(decay, rest, update) ── codec ──> bytes
 *     rest ────┘                 └── e - what the bytes say ──> rest
 *
 * In binary32, value by value, each operation rounded once. The rest starts at zeros. With decay 1 nothing is ever lost: the sum of all
 * updates is the sum of what was said plus the rest, but for rounding.
 */
#ifndef RONDO_CODEC_FEEDBACK_H
#define RONDO_CODEC_FEEDBACK_H

#include "native/codec/topk.h"

/* Appends update + decay * rest and leaves in `rest` what was not said. codec->keep 0: all values (quantise.h), else topk.h.
 * Errors: those of the codec, about the sum, and range (a decay outside 0..1). After an error the rest is undefined. */
bool feedback_encode(const struct topk *codec, float decay, const float *update, float *rest, uint64_t count, struct buffer *out,
                     struct error *err);

#endif
