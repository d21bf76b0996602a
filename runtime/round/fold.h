/* fold.h - what a worker is asked for: the plan of a round, and the outer state after one or more rounds.
 *
 *   plan request    { kind: "plan", run, round, peers, last }            last: telemetry of the newest train record, or null
 *   plan result     { plan }
 *   fold request    { kind: "fold", run, from, rounds: [ { round, plan, contributions: [ { cid, did, weight } ] } ] }
 *   fold result     { aggregate, steps: [ { round, outer, state } ], telemetry }
 *
 * `from` is the root of the outer state to start from; contributions ascend by DID, one of a group (replica.h); a round that folds as skipped is
 * left out.
 * A plain round asks for itself alone. A correction asks for every round from the earliest newly convicted one on, without what is
 * removed, and so gives the state that the run would have with the same other bytes (docs/protocol.md, section 7).
 * The same request has the same answer on every honest machine: the hash of its canonical text is its name.
 */
#ifndef RONDO_ROUND_FOLD_H
#define RONDO_ROUND_FOLD_H

#include <jansson.h>

#include "runtime/crypto/hash.h"
#include "runtime/round/rules.h"

json_t *fold_plan_request(const struct rules *rules, const json_t *previous, int64_t round);

/* `entries`: open rounds, ascending (record.h, `unsettled`). `first` is the round from which to fold again, or that of the last
 * entry for a plain fold; `own` tells whether the last entry's contributions take part. NULL when no round is left to fold: the
 * state is then that before `first`. `previous`: the record before, which knows the quorum of each of them (amendment.h). New reference. */
json_t *fold_request(const struct rules *rules, const json_t *previous, const json_t *entries, const json_t *convicted,
                     int64_t first, bool own);

/* Writes the roots after a fold (or after none, `result` NULL) into the entries: each starts where the one before ends. The roots at
 * the end are given in `outer` and `state` (borrowed from the arguments). False when the result does not fit the request. */
bool fold_apply(json_t *entries, int64_t first, const json_t *request, const json_t *result, json_t **outer, json_t **state);

/* The plan in the answer to a plan request; NULL where there is none, or one that the rules do not allow: a carry is its trainer's own, and
 * machines that are to give the same result begin with the same. Borrowed. */
const json_t *fold_plan_in(const struct rules *rules, const json_t *answer);

bool fold_is_removed(const json_t *convicted, const char *did, int64_t round);
void fold_hash(const json_t *request, char hex[HASH_TEXT]); /* H("rondo/request", canonical text) */

#endif
