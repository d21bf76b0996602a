/* received.h - the document in which a member says what it holds.
 *
 *     { version: 1, signer, run, round, view,
 *       head:    { height, time },                 finalised head of the ledger, as this member sees it
 *       funded,                                    ledger time at which the last escrow became final (0: unknown)
 *       items:   [ { cid, code, ms } ],            ascending by cid; ms from this member's sight of the seed block
 *       checked: [ cid ],                          contributions of the round before that this member replayed and found right
 *       lock:    prepare certificate or null }
 *
 * An item is a contribution, enrolment, leave, challenge, opening, pick or equivocation that this member holds with all its blocks. Its
 * code is "ok" ("ok" or "upheld" for the moves of a dispute: dispute.h), or why it is refused.
 */
#ifndef RONDO_ROUND_RECEIVED_H
#define RONDO_ROUND_RECEIVED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"

enum { RECEIVED_ITEMS = 4096, RECEIVED_CODE = 32 };

/* Shape only: types, limits, ascending and unique items. Errors: missing, type, range, duplicate. */
bool received_check(const json_t *payload, struct error *err);

/* What the listed documents agree on. `received` is an array of payloads of distinct members. */
struct received_tally {
    json_t *
        items; /* owned: [ { cid, code, ms, by } ] ascending by cid: taken or refused; others are left out. by: how many gave the code */
    json_t *checked;      /* owned: cid -> how many of the documents say that their member replayed it and found it right */
    int64_t height, time; /* (f+1)-th largest head and its time */
    int64_t
        middle; /* the middle head, of an even number the smaller: an honest one's, or between two, while fewer than half lie */
};

/* An item is taken when at least t list it ok or upheld; refused when t list it with any code: the most frequent of the codes
 * that are neither, ties to the bytewise smaller. ms: the t-th smallest among those that list it with the code chosen. */
struct received_tally received_tally(const json_t *received, int64_t t);

/* The items whose code stands: that of a contribution, of which this round decides, and any that t gave. The rest is listed nowhere and comes
 * again: fewer than t may all lie, and an honest challenge that one member calls `rejected` before others have judged it is not. `documents`: cid
 * -> { type }. New reference. */
json_t *received_agreed(const json_t *items, const json_t *documents, int64_t t);

#endif
