/* member_state.h - a member's memory, shared by the files that hold its rules. Of no interest outside this folder.
 *
 *     member.c          events, the open round's life, durable state
 *     member_forget.c   what no later round can need
 *     member_take.c     messages: documents, records, certificates, final rounds
 *     member_room.c     who gives way where there is no more room
 *     member_collect.c  items: what is checked, replayed and listed in `received`
 *     member_closed.c   commitments of the replicated tier: what counts, and when all is shown
 *     member_dispute.c  moves of disputes: what is judged, and this member's own
 *     member_replay.c   challenges that a replay decides: whose is judged first
 *     member_vote.c     views, leader, proposals, votes, certificates
 *     member_verify.c   recomputing decided rounds, releases
 *
 * A rule is a function that looks at the memory, does at most one thing and tells whether it did. member_step tries all rules until
 * none does anything. A rule that waits for a moment names it with member_wake.
 */
#ifndef RONDO_ROUND_MEMBER_STATE_H
#define RONDO_ROUND_MEMBER_STATE_H

#include "runtime/round/certificate.h"
#include "runtime/round/member.h"
#include "runtime/round/received.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

enum phase { PHASE_AWAIT, PHASE_TRAINING, PHASE_COLLECTING, PHASE_VOTING, PHASE_DONE, PHASE_HALTED };

enum {
    MEMBER_DID = 96,
    MEMBER_SIGNED = 160,
    MEMBER_RECORDS = 1024,
    MEMBER_VIEWS = 64,
    MEMBER_TELLERS = 8,
    MEMBER_STRANGERS =
        256, /* enrolments of machines that neither the spec nor a record names; `limits.trainers`, where that is more */
    MEMBER_CLAIMS = 16, /* of each kind, of each who may speak of others' work */
    MEMBER_ENROLS = 4,  /* enrolments, leaves, amendments of one signer */
    MEMBER_ALIKE = 2,   /* contributions, and commitments, of one signer to one round: two are proof of a lie */
    MEMBER_SAID = 128   /* `received` of one of the panel in the open round */
};

struct member {
    const struct rules *rules;
    char did[MEMBER_DID];
    struct signing signing;
    json_t *enrolment;
    struct actions *out; /* during a step */
    int64_t now, wake, timer;

    /* the whole run */
    json_t *finals;         /* [ { record, certificate, verified } ]; its last is the previous record's */
    const json_t *previous; /* borrowed from finals; NULL in round 0 */
    size_t verified, released;
    json_t *documents;    /* those of type `received` pass received_check; cid -> { type, cid, payload, envelope, at } */
    json_t *by_signer;    /* "type/signer" -> those of them, in the order they came; member_kept and member_forget keep it */
    json_t *listed;       /* cid -> the round whose record lists this item */
    json_t *wanted;       /* cid -> time of the last FETCH */
    json_t *codes;        /* cid -> code of a contribution or of a move of a dispute */
    json_t *moves;        /* contribution/index -> CID of this member's evidence */
    json_t *spots;        /* [ { cid, did, member, round } ]: what seeds gave this member to replay, while it may be challenged */
    int64_t spots_of;     /* the newest round that they were drawn in */
    json_t *replays;      /* cid -> first differing leaf */
    json_t *false_claims; /* did -> true, account -> how many: challenges that an own replay found false */
    struct {
        char cid[CID_TEXT];
        int64_t round;
    } judging[2];    /* the contribution that was last replayed for one of the panel, for another challenger; since which round */
    json_t *results; /* request hash -> { code, result } */
    json_t *asked;   /* what was asked of the driver -> the round that was open then */
    json_t *answered; /* did -> time of the last answer to someone behind */
    json_t *head;
    int64_t funded;
    int64_t abstain;      /* through this round; -1: not */
    json_t *unproven;     /* enrolment of a folder that began empty, until a record lists it; NULL. Durable */
    char proof[CID_TEXT]; /* its CID */
    bool noted;           /* it was written */
    uint64_t news;        /* documents, statements and records taken in */
    uint64_t answers;     /* results taken in, and requests given up */
    uint64_t verify_at;   /* `answers` when the rule last got as far as it could */
    struct {
        uint64_t answers;
        int64_t view;
        bool leads;
    } lead_at; /* what member_rule_lead last made all that it could of; what more a view received hardly ever asks for another fold */
    struct {
        uint64_t news;
        size_t records, commits;
    } final_at;  /* what member_rule_final last looked through in vain */
    bool awaits; /* the last record_of did */
    bool behind; /* someone is in a later round */
    int64_t fetched_at, repeated_at;

    /* the open round */
    int64_t round;
    enum phase phase;
    json_t *block;
    struct hash seed;
    json_t *committee, *parts;
    struct quorum quorum;
    bool seated;
    int64_t started, closed, first_closed; /* times; closed: items must freeze soon */
    char plan[HASH_TEXT];                  /* of the request for the round's plan; "" before it was made */
    json_t *items, *checked;               /* items: NULL until frozen */
    json_t *unasked,
        *unanswered;      /* documents that may still have to be asked about; whose code is not known for good. NULL: all */
    json_t *disputable;   /* contribution -> [entry, did] of the record before (disputes_entries): each message asks for some */
    json_t *contributors; /* did -> true: assigned, and a contribution of the round is held; NULL: not counted yet */
    json_t *uncounted, *enrolled; /* of round 0: documents to count; role -> { did -> true }: enrolments that may be taken */
    size_t assigned, good;        /* trainers with a part; contributions found right, where contributors is not NULL */
    int64_t shut, first_shut;     /* of the replicated tier: since when commitments are closed here, and at t members; 0: not */
    json_t *closed_list;          /* the commitments that this member said it held then; durable. NULL: it said nothing */
    json_t *committed;            /* cid of a contribution -> cid of the commitment that belongs to it */
    json_t *statements;           /* "type/view/phase/did" -> document */
    int64_t prepare_votes, commit_votes; /* among them, of all views: fewer than the threshold certify nothing */
    json_t *seen;                        /* did -> highest view */
    int64_t seen_most;                   /* the highest of all, no less */
    json_t *records, *verdicts;          /* cid -> record; cid -> "valid" or "wrong" */
    json_t *judged;                      /* cid -> `answers`, as verify_at */
    struct record_memory own_memory, *memory;
    char made[CID_TEXT];        /* the record that this member last made of what it holds: it needs no judgement */
    json_t *namers;             /* cid of a record that was sent -> who named it; "": a certificate */
    json_t *prepares, *commits; /* "view/record" and record -> certificate */

    /* the open view; `own` and `lock` are durable */
    int64_t view;
    json_t *own; /* "received", "proposal", "prepare", "commit" -> payload signed in this view */
    json_t *lock;
    json_t *received; /* those of a view that are held; NULL: not looked for since the round began */
    struct {
        uint64_t news;
        int64_t view;
    } received_at;    /* when they were, and of which view */
    json_t *lead_set; /* received documents the leader settled on */
    int64_t view_ends, settled_at;
};

/* member.c */
void member_wake(struct member *m, int64_t at);
bool member_ask(struct member *m, const char *kind, const char *name); /* true the first time */
bool member_asked(const struct member *m, const char *kind, const char *name);
void member_act(struct member *m, enum action_kind kind, json_t *body);
void member_send(struct member *m, json_t *to, json_t *message); /* both references are taken; this member is left out */
void member_persist(struct member *m);
void member_tell_state(struct member *m);
void member_halt(struct member *m, const char *code, const char *message);
bool member_may_sign(const struct member *m);
bool member_finalise(struct member *m, json_t *record, json_t *certificate);
json_t *member_readers(const struct member *m,
                       const json_t *record);    /* DIDs whom this member tells what was decided; new reference */
int64_t member_interval(const struct member *m); /* between repetitions */
const json_t *member_record_of(const struct member *m, int64_t round); /* final record or NULL */
const char *member_name_of(const struct member *m, int64_t round);     /* its CID, as its certificate says; "" */

/* What a worker needs to know of a contribution of a decided round; NULL where its records are not held. New reference. */
json_t *member_context_of(const struct member *m, int64_t round, const char *did);

/* member_forget.c: drops requests of rounds up to this one, which is given up: a later one may need them again, as for a correction that took too
 * long; documents of rounds that were computed again, what a record listed that was, and what was asked for those that are settled. */
void member_forget_requests(struct member *m, int64_t round);
void member_forget(struct member *m);

/* member_collect.c: takes note of a document that was kept, and of a code that came. */
void member_signed_key(char key[MEMBER_SIGNED], const char *type, const char *did);
void member_kept(struct member *m, const json_t *document);
void member_coded(struct member *m, const char *cid, json_t *code);

/* member_take.c */
void member_take(struct member *m, json_t *envelope);
void member_take_message(struct member *m, json_t *message);
bool member_fetch(struct member *m, const json_t *cids);
const json_t *member_statement(const struct member *m, const char *type, int64_t view, const char *phase, const char *did);
/* Signs `payload` (reference taken; run, round, signer and version are put in), takes it in as if it had arrived; its envelope, new reference,
 * NULL after a halt. */
json_t *member_sign(struct member *m, const char *type, json_t *payload);

/* member_room.c. What a member holds is bounded signer by signer, so that nobody's documents keep out those of another:
 *
 *     whom a record names     MEMBER_CLAIMS challenges, openings, picks and equivocations; MEMBER_ENROLS enrolments, leaves; MEMBER_ALIKE
 *     (members, the panel,    contributions and commitments of each round that is not verified and of the next
 *     who has work unsettled)
 *     the panel               also MEMBER_SAID `received` of the open round; of rounds before, those that records list
 *     strangers               MEMBER_STRANGERS enrolments together; MEMBER_ALIKE contributions and commitments of each that has one
 *
 * With 32 on the panel, 60 trainers and 60 auditors that is 152 · (4 · 16 + 2 · 4) moves and enrolments, 32 · 128 `received`, 256 enrolments of
 * strangers, and (152 + 256) · 2 · 2 contributions and commitments a round.
 *
 * member_has_room: room for this document; where it is a stranger's, the first of those known to have locked nothing, else of those not known to
 * have locked something, gives way. False when all have. What this member has said that it has (`items`) neither counts nor goes.
 * member_make_room_said: the first that this member of the panel said gives way to what it says now, but what is needed.
 * member_make_room: for one more record that `did` names. */
bool member_has_room(struct member *m, const json_t *document);
void member_make_room_said(struct member *m, const json_t *received);
void member_make_room(struct member *m, const char *did);
bool member_is_certified(const struct member *m, const char *cid);
const char *member_namer_of(const struct member *m, const char *cid, const char *but); /* "": nobody. Borrowed */

/* member_collect.c: asks for the replay of a contribution of a decided round, once, and before all others when `first`; signs and sends a challenge. */
void member_ask_replay(struct member *m, const char *cid, const char *did, int64_t round, bool first);
void member_challenge(struct member *m, const char *cid, int64_t round, int64_t index);

/* member_closed.c */
bool member_replicates(const struct member *m); /* the open round is one of the replicated tier */
const char *member_commitment_code(struct member *m, const json_t *contribution); /* "ok", "uncommitted"; NULL: not known yet */
int64_t member_committed_at(struct member *m, const json_t *contribution);        /* when its commitment came */
bool member_has_shown(struct member *m);                                          /* all, or enough, of what was committed to */
json_t *member_sign_closed(struct member *m);                                     /* an envelope; NULL after a halt */
bool member_rule_shut(struct member *m);

/* member_dispute.c: disputes_entry_of in the record before; the code of a challenge, opening or pick, NULL while it is not known, "" when nobody
 * asked for it. */
const json_t *member_entry_of(const struct member *m, const char *cid, const char **did);
const char *member_move_code(struct member *m, const json_t *document);

/* member_replay.c: whether a replay of the whole contribution decides about this challenge of one that is open; who may challenge; the code as this
 * member's own replay has it, NULL while that is not done, "" of who has accused falsely before. */
bool member_by_replay(const struct member *m, const json_t *challenge);
bool member_may_accuse(const struct member *m, const char *did);
const char *member_replay_code(struct member *m, const json_t *document);
/* Asks for one replay among those that challenges in `documents` wait for, unless one that it asked for in this round is not done. */
void member_take_turn(struct member *m, const json_t *documents);
/* Whether a replay is awaited that may speak for an accused who is silent. */
bool member_defends(const struct member *m);
/* Whether the contribution may begin with a carry that its trainer has not shown here. */
bool member_lacks_carry(const struct member *m, const char *cid, const char *did, int64_t round);
/* Whether the move that is due in some dispute is not held. */
bool member_awaits_moves(const struct member *m);

/* rules */
bool member_rule_requests(struct member *m);
bool member_rule_spots(struct member *m);
bool member_rule_picks(struct member *m);
bool member_rule_shown(struct member *m);
bool member_rule_defend(struct member *m);
bool member_rule_close(struct member *m);
bool member_rule_freeze(struct member *m);
bool member_rule_enter(struct member *m);
bool member_rule_jump(struct member *m);
bool member_rule_timeout(struct member *m);
bool member_rule_lead(struct member *m);
bool member_rule_prepare(struct member *m);
bool member_rule_commit(struct member *m);
bool member_rule_final(struct member *m);
bool member_rule_repeat(struct member *m);
bool member_rule_verify(struct member *m);
bool member_rule_release(struct member *m);

/* A statement of did speaks of this view. */
void member_see(struct member *m, const char *did, int64_t view);
/* Sends everything this member has said in its view, with what the others need to judge it. */
void member_repeat(struct member *m);
/* record_of on the documents and results held, among them `received`; asks for what is missing. */
enum record_outcome member_make_record(struct member *m, const json_t *previous, const json_t *block, const json_t *received,
                                       bool forced, json_t **record);
/* The received documents a record lists, as they are kept; NULL while some are missing (then fetched). New reference. */
json_t *member_received_of(struct member *m, const json_t *record);

#endif
