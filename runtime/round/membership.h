/* membership.h - who is counted in a run, from one record to the next.
 *
 *     members of record r-1
 *       - trainers absent for drop_after rounds     absent: had shards, and nothing of it was found right
 *       - those who leave                           `leave` taken by the record
 *       + those who enrol                           a seat of the panel as syncer, anyone admitted as trainer, up to the limit
 *       - the convicted
 *     = members of record r, ascending by DID
 *
 * Where the spec lets trainers state what they take (`limits.batches`) or has regions, `batches` and `region` of an entry are those of
 * the newest enrolment.
 *
 * In the replicated tier trainers are taken with their account's signature only (claim.h), and `trial` of an entry, where it is not 0, is how many results
 * of it must be taken before a group may depend on it (replica.h).
 *
 * Who shows evidence of its hardware has the `root` of it in its entry. Of two enrolments with one root the first taken stays: one that a record
 * before has seated, else the one that stands first among this record's items (hardware.h); one of the panel is seated without it.
 *
 * A trainer whose contribution a train record accepts takes along what that ended with, where it ended with anything: `carry` of its entry is
 * { root, object } of its latest one. Whoever is dropped or leaves begins anew.
 */
#ifndef RONDO_ROUND_MEMBERSHIP_H
#define RONDO_ROUND_MEMBERSHIP_H

#include <jansson.h>

#include "runtime/round/rules.h"

struct membership_change {
    const struct rules *rules;
    const json_t *previous; /* record r-1; NULL for round 0 */
    int64_t round;
    const json_t *items;         /* record r: enrolments and leaves, with others */
    const json_t *documents;     /* cid -> { type, payload } */
    const json_t *parts;         /* assignment of round r; empty where nothing is trained */
    const json_t *contributions; /* record r: all that came, also the refused */
    bool planned;                /* record r has a plan: a trainer could do its part */
    bool train;                  /* record r folds the accepted ones */
    const json_t *convicted, *barred;
};

/* The `members` of record r. New reference. */
json_t *membership_after(const struct membership_change *change);

/* Why an enrolment or leave may not be taken after record r-1 ("ok" when it may): "run", "role", "panel", "admission",
 * "convicted", "barred", "account", "not_enrolled", "capacity" (more batches than the spec lets anyone state), "region" (none of the spec's), "claim" (claim.h), "evidence", "unattested", "root"
 * (hardware.h). Whether a deposit stands (deposit.h) is the ledger's to say. Pure, used by members when they list it and by record_of. */
const char *membership_code(const struct rules *rules, const json_t *previous, const char *type, const json_t *payload);

/* Whether anything that the record after this one says may be about it: a member, or one that has left or was dropped while its work, or a
 * challenge of its own, is still to be judged. False without a record. */
bool membership_concerns(const json_t *record, const char *did);

#endif
