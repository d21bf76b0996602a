/* amendment.h - what a sponsor changes of a run that goes on: only what its spec marks, only in rounds to come.
 *
 *     spec:       amendable: [ "end", "pause", "quorum.trainers", "trust.spot_check" ]       any of these; without it nothing changes
 *     amendment:  signed by the sponsor: number, from, changes
 *     record k:   amendments: [ { number, from, record: k, changes } ]                       ascending by number; from >= k + 2
 *
 *       end: true              no round from `from` on trains; what is open is settled, escrows of the rest go back at expiry
 *       pause: true, false     from then on no round trains; each is a skip ("paused") that lasts round_ms, so that escrows keep pace
 *       quorum.trainers        integer
 *       trust.spot_check       decimal text
 *
 * The highest number that is in force in a round says how it is. Two amendments of one number that are not in force yet void each other: `changes`
 * is empty then, and the number is used up. Neither touches a round that is open or past, money that is in escrow, or a window that runs.
 */
#ifndef RONDO_ROUND_AMENDMENT_H
#define RONDO_ROUND_AMENDMENT_H

#include <jansson.h>

#include "runtime/round/rules.h"

enum { AMENDMENT_NOTICE = 2 /* records between the one that lists it and the first round it touches */ };

/* Whether the record after `previous` may list it: "ok", or "run", "signer", "amendable" (a field that the spec does not mark, or a value
 * that does not fit), "late" (its first round is too near, or past the last), "number" (one of that number is in force). Pure. */
const char *amendment_code(const struct rules *rules, const json_t *previous, const json_t *payload);

/* `amendments` of the record after `previous`, from its items. New reference; NULL where the spec marks nothing. */
json_t *amendments_after(const struct rules *rules, const json_t *previous, const json_t *items, const json_t *documents);

/* As `record` (NULL before round 0) knows it. */
int64_t amendment_rounds(const struct rules *rules, const json_t *record); /* the last round that may train */
bool amendment_trains(const struct rules *rules, const json_t *record, int64_t round);
bool amendment_pauses(const struct rules *rules, const json_t *record, int64_t round); /* one that would train otherwise */
int64_t amendment_quorum(const struct rules *rules, const json_t *record, int64_t round);
int64_t amendment_spot_check(const struct rules *rules, const json_t *record, int64_t round); /* units */

#endif
