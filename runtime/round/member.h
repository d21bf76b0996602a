/* member.h - a committee member: docs/protocol.md section 5 as a machine. Also the replica that every syncer keeps of the run.
 *
 *     await_entropy -> training -> collecting -> voting (view 0, 1, ...) -> final -> await_entropy of the next round
 *
 * All of a member's memory is sets of documents and the durable variables; after each event every rule is tried until none
 * fires, so the order in which messages arrive never matters. Who is not in a round's committee follows it without voting.
 */
#ifndef RONDO_ROUND_MEMBER_H
#define RONDO_ROUND_MEMBER_H

#include "runtime/round/machine.h"
#include "runtime/round/record_memory.h"
#include "runtime/round/rules.h"

struct member;

struct member_start {
    const struct rules *rules; /* borrowed, outlives the machine */
    const char *did;           /* copied */
    struct signing signing;    /* borrowed context */
    json_t *enrolment;         /* envelope of this syncer's enrolment, repeated until a record lists it; borrowed, may be NULL */
    json_t *durable;           /* the value last persisted under "round", or NULL; borrowed */
    json_t *finals;            /* array of the values last persisted under "final/R", R from 0 on; or NULL; borrowed */
    /* Nothing was persisted under "round": the folder is new, fetched, restored, or stopped before that. Its key may have signed what it
     * does not know of. The enrolment is then one that no folder had before: after round 0 the machine signs only once a record lists
     * it, for what was signed before it was made belongs to that record's round or an earlier one. Without an enrolment it trusts that
     * the folder is new. */
    bool fresh;
    struct record_memory *memory; /* one that other machines of the run in this process have, too; borrowed. NULL: its own */
};

/* Never fails on good input: what was persisted by a machine is accepted by the next. NULL with `err` (conflict: the folder
 * belongs to another run or is damaged). */
struct member *member_new(const struct member_start *start, struct error *err);
void member_free(struct member *member);

/* One event in, actions appended to `out`. */
void member_step(struct member *member, const struct event *event, struct actions *out);

/* For the node's pages and the tests; borrowed. */
int64_t member_round(const struct member *member);        /* the open round */
const char *member_phase(const struct member *member);    /* "await_entropy", "training", ... "done", "halted" */
int64_t member_view(const struct member *member);         /* -1 before voting */
const json_t *member_last(const struct member *member);   /* the newest final record, or NULL */
const json_t *member_finals(const struct member *member); /* array of { record, certificate } */
json_t *member_closed(const struct member *member);       /* envelopes of the open round's `closed`; new reference */
const json_t *member_document(const struct member *member, const char *cid); /* envelope of a document it holds, or NULL */

#endif
