/* record.h - record_of: the record of a round as a pure function of the record before it and of q `received` documents.
 *
 *     record r-1 ----+
 *     q received ----+--> record_of --> record r          needs a plan or a fold: says which, and is asked again
 *     seed block ----+                                    needs a document: says which
 *
 *     { type: "record", version: 1, run, round, kind: open|train|skip|close, reason,        why a skip: "quorum", "forced", "plan", or the fold's code
 *       previous,                                                            CID of record r-1, null in round 0
 *       seed, block: { height, hash, entropy },                              null in round 0
 *       committee: [ did ], received: [ cid ],                               leader order; ascending by cid
 *       height, time, funded, next_height,                                   (f+1)-th largest of R; h_{r+1}
 *       start,                                                               state root of record r-1
 *       contributions: [ { did, cid, code, weight, arrival, body, group? } ], ascending by did, then cid; also the refused. group: replica.h
 *       items: [ { cid, type, did, code } ],                                 enrolments, leaves, challenges, openings, picks, equivocations
 *       plan, aggregate, outer, state, telemetry,
 *       members: [ { did, role, account, enrolment, absent, trial? } ],      who is counted from the next round on; ascending by did. trial: membership.h
 *       undealt: [ shard ],                                                  only with regions: those that nobody enrolled may have; also in
 *       unreturned: [ shard ], arrivals: [ [ ms ] ], grace_ms,               grace.h: of the last three train rounds; window of round r+1
 *       unsettled: [ { round, kind, settled, outer, state, plan,             roots before the round, corrected ones
 *                      contributions: [ { did, cid, weight, account, group?, code? } ],      code: neither used nor paid (replica.h)
 *                      syncers: [ { did, account } ] } ],
 *       correct,                                                             earliest round still to be folded again, 0: none
 *       convicted: [ { did, round, record } ], barred: [ did ],              barred: filed a challenge that was rejected
 *       disputes,                                                            open ones (dispute.h); their rounds are not settled
 *       settled: [ { round, root, total, paid, payees } ],                   settled by this record (payout.h)
 *       amendments: [ { number, from, record, changes } ],                   only where the spec marks something (amendment.h)
 *       deposits, returned }                                                 only where the spec asks for some (deposit.h)
 *
 * The membership, open rounds and convictions stand in the record in full: one record and its certificate are all that anyone
 * needs to go on from.
 */
#ifndef RONDO_ROUND_RECORD_H
#define RONDO_ROUND_RECORD_H

#include <jansson.h>

#include "native/base/error.h"
#include "runtime/round/committee.h"
#include "runtime/round/record_memory.h"
#include "runtime/round/rules.h"

struct record_input {
    const struct rules *rules;
    const json_t *previous; /* record r-1; NULL for round 0 */
    const json_t *block;    /* { height, hash, entropy }; NULL for round 0 */
    const json_t *received; /* payloads of at least q members, one view */
    const char *before;     /* CID of `previous`, and of each of `received` in its order; NULL: found here */
    const json_t *names;
    bool sound;                   /* each of `received` passes received_check */
    bool forced;                  /* a skip whatever was received */
    struct record_memory *memory; /* used and filled where `names` are given; NULL: none */
    const json_t *documents;      /* cid -> { type, payload } */
    const json_t *results;        /* request hash -> { code, result } */
};

enum record_outcome {
    RECORD_MADE,
    RECORD_NEEDS, /* *out is { request, hash } (fold.h) or { documents: [ cid ] } */
    RECORD_WRONG, /* this input cannot make a record; `err` says why */
};

/* `*out` is a new reference: the record, or what is needed. */
enum record_outcome record_of(const struct record_input *input, json_t **out, struct error *err);

/* Nothing is left to settle or correct, and all rounds are over. */
bool record_is_last(const struct rules *rules, const json_t *record);

#endif
