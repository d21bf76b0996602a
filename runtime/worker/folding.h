/* folding.h - outer steps: payloads of a round, aggregated and applied to the outer state.
 *
 *     outer state object ── values, optimiser state
 *         for each round of the request, ascending:
 *             payloads (ascending DID) ─ decode ─ u [peer n] ─ aggregator, ... ─ update [n] ─ outer optimiser ─> values, state
 *     outer state object of every round, stored as it is made
 *
 * One outer state object holds the trained parameters and the outer optimiser's slots (states.h); its CID is `outer` in records, the
 * root over the parameters alone is `state`.
 */
#ifndef RONDO_WORKER_FOLDING_H
#define RONDO_WORKER_FOLDING_H

#include "native/codec/payload.h"
#include "runtime/worker/states.h"

/* The first outer state: { outer, state }, stored. New reference; NULL with `err`. */
json_t *folding_genesis(struct session *s, struct error *err);

/* `request` as runtime/round/fold.h has it; `payloads` maps the CID of each contribution to that of its payload.
 * The result { aggregate, steps: [ { round, outer, state } ], telemetry: { norm } } is a new reference. NULL with `err`, whose code is why the
 * round cannot be folded (script: a failed check; non_finite; shape; ...). */
json_t *folding_run(struct session *s, const json_t *request, const json_t *payloads, struct error *err);

/* Values of a stored outer state: n floats. */
bool folding_values(struct session *s, struct hash outer, float *values, struct error *err);

/* The header of what `did` sends in round `round` under `plan`. Errors: those of plan_codec_read and fragments_of, range (a DID too long). */
bool folding_header(struct session *s, const json_t *plan, int64_t round, const char *did, struct payload_header *header,
                    struct error *err);

/* The layout as tensors over `values`. The caller frees the list. */
struct tensor *folding_tensors(const struct layout *l, float *values);

/* Those that a payload of this header holds, `*count` of them, each where it lies in `values`. The caller frees the list. */
struct tensor *folding_payload(const struct session *s, const json_t *plan, const struct payload_header *header, float *values,
                               size_t *count);

#endif
