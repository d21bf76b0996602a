/* trainer.h - a trainer: follow the records, train the assignment, push the contribution until it is acknowledged.
 *
 *     follow -> (certificate r-1, entropy of h_r, plan) -> training -> pushing -> the next round's certificate -> ...
 *
 * The trainer keeps no secret durable state: a restarted one trains the open round again and signs the same bytes, because
 * training is deterministic. What it signed for the open round is persisted all the same, before it is sent: a machine whose
 * kernels changed must not sign two contributions for one round.
 *
 * An auditor is the same machine, enrolled in that role: it is assigned nothing, replays what others did and challenges what is wrong
 * (dispute.h). A trainer may audit, too.
 *
 * One that is told to leave (EVENT_LEAVE) signs a `leave`, trains on until a record lists it, answers for what it did until that is settled, and is
 * done.
 *
 * A trainer that was dropped (`drop_after` rounds missed), or listed while another DID had a seat with its hardware, and still runs signs an enrolment
 * with the next serial, and is back in the round after the one that lists it.
 */
#ifndef RONDO_ROUND_TRAINER_H
#define RONDO_ROUND_TRAINER_H

#include "runtime/round/machine.h"
#include "runtime/round/record_memory.h"
#include "runtime/round/rules.h"

struct trainer;

/* What is replayed of others' work, and challenged where it is wrong. */
struct trainer_audit {
    int64_t share; /* of all contributions, in parts of DECIMAL_ONE */
    char did[96];  /* or this trainer's of `round` alone */
    int64_t round;
    bool sums_up; /* of a share: tells at the end of the run what came of it */
};

/* A STATE of phase "verdict" tells once, of one contribution or at the end: "equal", "convicted" (every wrong one), "rejected" (one is wrong and not
 * convicted), "settled" (nothing of it can be disputed, or nothing was replayed). */

struct trainer_start {
    const struct rules *rules; /* borrowed */
    const char *did;
    struct signing signing;
    json_t *enrolment; /* envelope of this trainer's enrolment, sent to the panel until a record lists it; borrowed */
    json_t *durable;   /* the value last persisted under "round", or NULL; borrowed */
    json_t *finals;    /* as for member_start; borrowed */
    struct trainer_audit audit;
    struct record_memory *memory; /* as for member_start */
};

struct trainer *trainer_new(const struct trainer_start *start, struct error *err);
void trainer_free(struct trainer *trainer);
void trainer_step(struct trainer *trainer, const struct event *event, struct actions *out);

int64_t trainer_round(const struct trainer *trainer);
const char *trainer_phase(const struct trainer *trainer); /* "following", "training", "committing", "pushing", "done", "halted" */
const json_t *trainer_finals(const struct trainer *trainer);

#endif
