/* dispute.h - disputes about contributions: what a record says of them as a pure function of the one before and of the items it takes.
 *
 *     challenge (leaf i is wrong)    code "ok": a dispute by tiles is open      "upheld", "rejected": decided at once, by a replay
 *     opening   (the step's trace)   code "ok": now the challenger picks        "upheld": malformed, or not what leaf i says
 *     pick      (a tile that is wrong)                                          "upheld", "rejected"
 *
 * A challenge counts in a record at most `challenge_rounds` (W) after the contribution's. One of leaf 0 of a contribution that begins with a carry
 * asks for that. Its opening shows the carry (`trace` is the object). Then the challenger has the records in which it could pick to challenge another leaf;
 * if it does not, the carry was right, and nobody has lost.
 *
 * A dispute is over 2 (`answer_rounds` + 1) train and close records after the one that opened it, so a round r is settled at r + W + D, skips not
 * counted, whatever anybody does (nor does silence decide anything in a skip that is forced or that too few contributions reached): D = 2 (`answer_rounds` + 1), twice that where contributions begin with a carry (disputes_most).
 *
 *     disputes: [ { contribution, did, round, index, challenger, trace, left } ]     ascending by contribution, then challenger
 *
 * `trace` is null until the accused has opened. `left` counts the train and close records in which the move that is due may still come; a
 * move in time is taken before it is asked for, so the silent lose in the record after. Several may dispute one contribution; an opening
 * serves all who named its index. Who opens one step twice, differently, is convicted. What a dispute may not outlast is its round's escrow:
 * then it ends, at nobody's cost.
 *
 *     openings: [ { contribution, index, trace } ]     left out where there is none; dropped when the contribution's round is settled
 *
 * What was opened once stays opened: a dispute about the same step that begins later begins with its trace. Otherwise the honest, whose
 * opening no record lists a second time, would lose it by silence.
 */
#ifndef RONDO_ROUND_DISPUTE_H
#define RONDO_ROUND_DISPUTE_H

#include <jansson.h>

#include "runtime/doc/cid.h"
#include "runtime/round/rules.h"

struct disputes_input {
    const struct rules *rules;
    const json_t *previous; /* the record before */
    const json_t *items;    /* of received_tally */
    const json_t *checked;  /* of received_tally; so many vouch for a contribution: */
    int64_t t;
    const json_t *documents; /* cid -> { type, payload } */
    int64_t time;            /* ledger time of the record, seconds */
    bool outage;             /* trainers may have been cut off in this round: silence decides nothing */
};

/* New references. */
struct verdicts {
    json_t *open;     /* the disputes that go on */
    json_t *openings; /* [ { contribution, index, trace } ]: what was shown in these and in earlier ones */
    json_t *
        upheld; /* [ { did, round, by, account } ]: whose work is wrong from which round on, and the challenger's DID and account */
    json_t *rejected; /* [ { did, accused, account } ]: who challenged for nothing, and the accused's DID and account */
};

struct verdicts disputes_judge(const struct disputes_input *in);
void verdicts_free(struct verdicts *v);

/* One more train or close record went by: counts those down that were open before it. */
void disputes_count(json_t *open, const json_t *before);

/* Whether the move that is due in some dispute of this record may come in the next one and no later. */
bool disputes_due(const json_t *record);

/* Leaves out the openings about contributions that can no longer be disputed after this record. */
void disputes_keep_openings(json_t *openings, const json_t *record);

/* The unsettled round of a record (an entry of `unsettled`) that holds this contribution, or NULL; then *did is who made it (borrowed). */
const json_t *disputes_entry_of(const json_t *record, const char *cid, const char **did);

/* The same for all of them: contribution -> [entry, did]. New reference. */
json_t *disputes_entries(const json_t *record);

/* Whether a dispute about a contribution of this round is open. */
bool disputes_on(const json_t *open, int64_t round);

/* Whether the object of an opening or a pick is asked of its signer: the carry that its contribution began with, as `before`, the record
 * before that round, has it; or what a dispute asks that `last`, the newest record, has open. Either may be NULL. */
bool disputes_ask(const json_t *before, const json_t *last, const char *type, const json_t *payload);

/* "contribution/index", what a dispute's moves are kept under. */
enum { DISPUTE_KEY = CID_TEXT + 24 };
void disputes_key(const json_t *dispute, char key[DISPUTE_KEY]);

/* Whether a challenge about a contribution of `entry` comes too late for record `round`. Who has asked for the carry in time, by a dispute of
 * leaf 0 that is open, may accuse another leaf as long as that is. */
bool disputes_late(const struct rules *rules, const json_t *open, int64_t round, const json_t *entry, const json_t *challenge);

/* D: train and close records that a dispute takes at most. */
int64_t disputes_most(const struct rules *rules, bool carries);

/* The open dispute of this challenger about this leaf, or NULL. */
json_t *disputes_find(const json_t *open, const char *contribution, int64_t index, const char *challenger);

#endif
