/* rules.h - the part of a run spec that the round machines read, as numbers.
 *
 * The spec itself is checked field by field elsewhere; here a missing or impossible field is still an error, never a guess.
 * Decimal strings ("0.8") become exact fractions over 10^9.
 */
#ifndef RONDO_ROUND_RULES_H
#define RONDO_ROUND_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"

enum { RULES_UNIT = 1000000000, RULES_RECORD = 1 << 20 };

struct snp_roots;
struct verified;

struct rules {
    char run[80];      /* run id: CID of the spec */
    json_t *spec;      /* owned */
    json_t *panel;     /* borrowed from spec: [ { did, account, weight? } ] in spec order */
    json_t *allowed;   /* borrowed from spec: [ did ] of an allow-list, or NULL */
    json_t *regions;   /* borrowed from spec: where shards may be trained (regions.h), or NULL */
    json_t *amendable; /* borrowed from spec: [ name ] of what its sponsor may change (amendment.h), or NULL */
    int64_t rounds, shards;
    int64_t trainers_quorum, trainers_limit, round_ms, close_ms, drop_after;
    int64_t grace_factor, grace_min_ms, grace_max_ms; /* factor in units */
    int64_t threshold, size, view_ms, settle_ms, release_threshold;
    int64_t spot_check;       /* units */
    int64_t checkpoint_every; /* steps; 1 where the spec does not say */
    int64_t batches;          /* most batches of a step that a trainer may state; 0: all do one */
    int64_t replicas;         /* machines that get the same shards (replica.h); 1 where the spec does not say */
    int64_t challenge_rounds, answer_rounds, seed_lead;
    int64_t expiry_rounds, share_trainers, share_syncers; /* shares in units */
    int rollback;                                         /* correction: 0 refold, 1 rollback */
    const char *stake, *deposit; /* borrowed from spec: what trainers and challengers lock; NULL: nothing (deposit.h) */
    char per_round[40];          /* decimal */
    /* Bytes of a record's text, at most: RULES_RECORD, and 1 KiB for each machine there may be (limits.trainers, the panel) and each round that
     * may be open in it (challenge_rounds, disputes' 4 (answer_rounds + 1), its own); VALUE_MOST at most. A machine takes some 400 bytes of
     * a record beside 250 in each open round. */
    size_t record_most;
    bool attested;                             /* trainers and auditors must show evidence of their hardware (hardware.h) */
    const struct snp_roots *roots;             /* under which it stands: the vendors'. NULL: none does */
    struct verified *evidence;                 /* owned: what was found good; NULL: nothing is known again */
    char genesis_outer[80], genesis_state[80]; /* roots before round 1: set by the caller (rules_set_genesis) */
};

/* Reads `spec` (a new reference is kept). `run` is its CID. Free with rules_free also after a failure. */
bool rules_read(struct rules *rules, json_t *spec, const char *run, struct error *err);

/* The roots of the state that round 1 starts from (hex or CID, as the driver's worker gives and takes them). */
void rules_set_genesis(struct rules *rules, const char *outer, const char *state);

void rules_free(struct rules *rules);

#endif
