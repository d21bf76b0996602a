/* machine.h - what the protocol's state machines are fed with and what they ask for.
 *
 *       node or simulator                               machine (member.h, trainer.h)
 *      ------------------- event (now, body) -------->  pure: no I/O, no clock, no threads
 *      <------------------ actions, in order ---------
 *
 * The driver hands in one event, then carries out the actions **in the order given**. PERSIST must be on disk (fsync)
 * before the next action is started; a driver that dies in between simply never did the rest. After a restart a machine is
 * made again from what was persisted. Times are milliseconds of one local, never decreasing clock whose zero is arbitrary.
 *
 * Events and actions carry JSON bodies, so that either side can be written to a log and fed back.
 *
 * Event            body
 *   TIME           {}                              the time asked for by a TIMER action, or any other moment
 *   MESSAGE        a message (below)               from a peer, the driver's own store, or an answer to FETCH
 *   HEAD           {height, time}                  finalised head of the ledger; time in seconds
 *   BLOCK          {height, hash, entropy}         answer to AWAIT_BLOCK: the block at that height, finalised (hex)
 *   FUNDED         {time}                          every escrow of the run is final; ledger time of the last funding
 *   CHECKED        {cid, code}                     answer to CHECK or JUDGE; "ok", or the code of the first rule it breaks
 *   REPLAYED       {cid, index}                    answer to REPLAY; first differing leaf, -1 when all are equal
 *   MOVED          {key, object}                   answer to MOVE: CID of the trace or the evidence; null: nothing to say
 *   COMPUTED       {hash, code, result}            answer to COMPUTE; code "ok" or why there is no result
 *   TRAINED        {round, contribution}           answer to TRAIN: the fields of the contribution that training gives
 *   ACKNOWLEDGED   {cid, did}                      a peer holds this document with its blocks
 *   RELEASED       {round}                         the round's escrow was released on the ledger (anyone's submission)
 *   LEAVE          {}                              a person wants this trainer to leave the run
 *
 * Action           body
 *   PERSIST        {key, value}                    key "round" (the open round) or "final/R"; replaces the older value
 *   SEND           {to: [did], message}            best effort; the machine repeats what matters. The sender keeps and serves
 *                                                  every document of the message, also when `to` is empty
 *   TIMER          {at}                            hand in TIME at or after `at`; replaces the earlier timer
 *   AWAIT_BLOCK    {height}
 *   CHECK          {cid, document, context}        fetch the blocks of this contribution and check it (step_log.h);
 *                                                  context = what seed, record and plan say it must be. Always answered:
 *                                                  code "missing" when the blocks cannot be had within limit_ms
 *   REPLAY         {cid, document, context, first} recompute this contribution; with `first`, before all that were asked for without it
 *   JUDGE          {cid, move, contribution, index, trace, evidence, context}
 *                                                  a challenge, opening or pick (runtime/worker/dispute.h): its code, answered by CHECKED;
 *                                                  not of challenges that a replay decides (REPLAY)
 *   MOVE           {key, move, contribution, index, trace, context}
 *                                                  make the trace of an "opening" or the evidence of a "pick", and keep it
 *   DEPOSIT        {cid, did, role, account, amount, round}
 *                                                  whether the deposit of this enrolment stands on the ledger (deposit.h), answered by CHECKED: "ok",
 *                                                  "deposit"; in round 0 only once it does
 *   COMPUTE        {hash, request, round}          request.kind "plan" or "fold" (fold.h); same request, same answer. `round` asks for it
 *   TRAIN          {round, context}                train this assignment
 *   CANCEL         {round}                         CHECK, REPLAY, COMPUTE and TRAIN of rounds up to this one are no longer needed
 *   FETCH          {round} | {documents: [cid]} | {closed: round}
 *                                                  ask own store, then peers, for a final record with its certificate, for
 *                                                  documents, or for the `closed` of an open round; answered by a MESSAGE or not at all (then asked again)
 *   FINAL          {round, record, certificate}    the round is decided; already persisted
 *   RELEASE        {round, record, payout, deposit}
 *                                                  sign the release of this round's escrow (payout.h); already persisted. With `deposit`: of a
 *                                                  deposit, whose number `round` is; { did, account } is whose
 *   STATE          {phase, round, view, ...}       for people: progress
 *   HALT           {code, message}                 the machine has stopped for good ("conflict", "record_wrong")
 *   DONE           {round}                         the run is over: everything is settled
 *
 * A message is one JSON object; each member is optional:
 *   { "documents":    [ DSSE envelopes ],                      contribution, received, vote, proposal, enrolment, ...
 *     "finals":       [ { "record":, "certificate": } ],       decided rounds, ascending
 *     "records":      [ record ],                              of a proposal: with the received documents it lists in `documents`
 *     "certificates": [ certificate ] }
 */
#ifndef RONDO_ROUND_MACHINE_H
#define RONDO_ROUND_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "runtime/doc/cid.h"

enum event_kind {
    EVENT_TIME,
    EVENT_MESSAGE,
    EVENT_HEAD,
    EVENT_BLOCK,
    EVENT_FUNDED,
    EVENT_CHECKED,
    EVENT_REPLAYED,
    EVENT_MOVED,
    EVENT_COMPUTED,
    EVENT_TRAINED,
    EVENT_ACKNOWLEDGED,
    EVENT_RELEASED,
    EVENT_LEAVE,
};

enum action_kind {
    ACTION_PERSIST,
    ACTION_SEND,
    ACTION_TIMER,
    ACTION_AWAIT_BLOCK,
    ACTION_CHECK,
    ACTION_REPLAY,
    ACTION_JUDGE,
    ACTION_MOVE,
    ACTION_DEPOSIT,
    ACTION_COMPUTE,
    ACTION_TRAIN,
    ACTION_CANCEL,
    ACTION_FETCH,
    ACTION_FINAL,
    ACTION_RELEASE,
    ACTION_STATE,
    ACTION_HALT,
    ACTION_DONE,
};

struct event {
    enum event_kind kind;
    int64_t now;  /* ms */
    json_t *body; /* borrowed; never changed by the machine */
};

struct action {
    enum action_kind kind;
    json_t *body; /* owned by the list */
};

/* What a machine asked for, in order. Zero is empty. */
struct actions {
    struct action *list;
    size_t count, capacity;
};

void actions_add(struct actions *actions, enum action_kind kind, json_t *body); /* takes the reference of `body` */
void actions_clear(struct actions *actions);                                    /* releases the bodies */
void actions_free(struct actions *actions);

const char *event_name(enum event_kind kind);   /* "message"  */
const char *action_name(enum action_kind kind); /* "persist"  */

/* Keys, as functions, so that a machine never sees a private key and a simulator may use a cheap scheme. Both are pure.
 *   sign   envelope (new reference) of `payload` as document `type`, by this node's key; `signer` and `version` are already in it
 *   open   verifies the envelope; its payload (new reference), type (at most 31 characters) and the payload's CID. NULL with `err`:
 *          syntax, signature
 *   name   the CID of a record, as signing_name gives it, for a driver that remembers records it was asked about; NULL: found each time */
struct signing {
    void *context;
    json_t *(*sign)(void *context, const char *type, json_t *payload, struct error *err);
    json_t *(*open)(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err);
    bool (*name)(void *context, const json_t *record, char cid[CID_TEXT]);
};

/* CID of a record's canonical bytes; false and "" where they are more than `most` or there are none. */
bool signing_name(const struct signing *signing, const json_t *record, size_t most, char cid[CID_TEXT]);

#endif
