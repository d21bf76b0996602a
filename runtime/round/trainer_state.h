/* trainer_state.h - a trainer's memory, shared by the files that hold its rules. Of no interest outside this folder.
 *
 *     trainer.c          events, following records, enrolment, training and pushing
 *     trainer_closed.c   the replicated tier: committing before anything is shown
 *     trainer_dispute.c  what it answers when it is challenged; what it replays, challenges and picks as an auditor
 */
#ifndef RONDO_ROUND_TRAINER_STATE_H
#define RONDO_ROUND_TRAINER_STATE_H

#include "runtime/round/trainer.h"
#include "runtime/round/value.h"

enum phase { FOLLOWING, TRAINING, COMMITTING, PUSHING, DONE, HALTED };

struct trainer {
    const struct rules *rules;
    char did[96];
    struct signing signing;
    struct record_memory own_memory, *memory;
    json_t *enrolment;
    struct actions *out;
    int64_t now, wake, timer;

    json_t *finals;
    const json_t *previous; /* borrowed */
    int64_t round;
    bool funded;
    enum phase phase;

    json_t *moves; /* contribution/index -> null: being made; CID of a trace or of evidence; envelope of the opening or pick */
    struct trainer_audit audit;
    json_t *replays;    /* cid -> null: being replayed; first wrong leaf, -1: none */
    json_t *challenges; /* cid, of demands cid/0 -> envelope */
    json_t *waits;      /* cid -> when its replay was asked for */
    bool told;          /* the verdict that was waited for */
    bool leaving;
    json_t *leave; /* envelope, once signed */
    int64_t left_at;

    /* the open round */
    json_t *block, *plan, *contribution; /* contribution: signed fields, durable */
    json_t *envelope, *acknowledged;     /* acknowledged: did -> true */
    json_t *shown,
        *shown_to; /* the carry of the last round's contribution: NULL: not decided, null: nobody needs it, envelope; did -> true */
    json_t *committee, *commitment, *committed_to; /* of the replicated tier: DIDs; envelope; did -> true: who holds it */
    json_t *closed;                                /* did -> envelope of its `closed` that lists the commitment */
    char committed[CID_TEXT];                      /* cid of the commitment */
    char cid[CID_TEXT], shown_cid[CID_TEXT], plan_hash[HASH_TEXT];
    struct hash seed;
    bool asked_block, asked_plan, asked_training;
    int64_t traced_in; /* the round in which it was last asked for a trace */
    size_t turn;       /* which of several moves is sent first */
    int64_t pushed_at, fetched_at, enrolled_at, answered_at, challenged_at, demanded_at, picked_at, shown_at, committed_at;
};

void trainer_act(struct trainer *t, enum action_kind kind, json_t *body);
void trainer_push(struct trainer *t, json_t *envelope, const json_t *but); /* to the panel, less the DIDs in `but` */
void trainer_halt(struct trainer *t, const char *code, const char *message);
void trainer_ask_block(struct trainer *t); /* of the open round's seed, once */
/* Whether `*last` is an interval or more ago; then it is now. */
bool trainer_due(struct trainer *t, int64_t *last);

void trainer_tell_state(struct trainer *t);

/* trainer_closed.c: whether the contribution may be shown: at once, in the replicated tier when q of the committee list its commitment, which
 * is sent until then. Takes a `closed` in. What is pushed: the contribution, and who lists it. New reference. */
bool trainer_may_show(struct trainer *t);
void trainer_take_closed(struct trainer *t, json_t *envelope);
json_t *trainer_shown(const struct trainer *t);

void trainer_rule_answer(struct trainer *t);
void trainer_rule_show(struct trainer *t);
void trainer_rule_audit(struct trainer *t);
void trainer_rule_pick(struct trainer *t);

#endif
