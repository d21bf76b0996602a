/* simulation_parts.h - what the parts of the simulator share.
 *
 *     simulation.c   set-up, the loop, the end
 *     mix.c          parameters from a seed; names; shrinking
 *     events.c       events by time; chance; faults
 *     node.c         a machine: its disk and clock, its actions
 *     network.c      messages, partitions, fetches
 *     chain.c        the ledger: blocks, finality, escrows
 *     worker.c       keys that cost nothing, hashes instead of training
 *     sponsor.c      amendments
 *     liars.c        what a liar says instead; liars_copy.c in the replicated tier
 *     checks.c       the invariants of records; checks_money.c those of payments, checks_work.c those of assignments
 */
#ifndef RONDO_SIMULATION_PARTS_H
#define RONDO_SIMULATION_PARTS_H

#include "runtime/crypto/account.h"
#include "runtime/round/member.h"
#include "runtime/round/trainer.h"
#include "runtime/simulation/simulation.h"

/* Where there are more nodes than LARGE, what a record is called is remembered and not found again by each of them, and machines share one memory
 * of what follows from content (record_memory.h): small networks show whether someone changes what it was given, or finds something else. */
enum { LARGE = 100, NAMES = 64 };

enum {
    BLOCK_MS = 200,
    VIEW_MS = 1000,
    ROUND_MS = 8000,
    TICK_MS = 250,
    SEED_LEAD = 15,
    EXPIRY_ROUNDS = 200,
    FINALITY = 3,
    HEARSAY = 5, /* two that each vote four times for every vote they hear of would never end */
    MOST_BATCHES = 4
};

enum what { WHAT_EVENT, WHAT_TIMER, WHAT_BLOCK, WHAT_START, WHAT_WIPE, WHAT_TICK };

struct queued {
    int64_t at;
    uint64_t order;
    enum what what;
    int node, life; /* life: of which incarnation; -1 any */
    enum event_kind kind;
    json_t *body;
    int heard; /* of a message: so many liars have added something to it, each to what the one before added */
};

struct node {
    char did[32], account[ADDRESS_TEXT];
    struct account_key key;
    struct address address;
    bool syncer, alive;
    enum fault lie; /* FAULT_KINDS: honest */
    int life;
    struct member *member;
    struct trainer *trainer;
    json_t *disk;      /* key -> value: what was written */
    json_t *documents; /* cid -> envelope: what the node's store holds */
    json_t *enrolled;  /* did -> true: whose enrolment came by */
    json_t *enrolment;
    int64_t timer; /* s->now at which it is due; 0: none */
    int64_t timer_local;
    int64_t rate, offset;    /* the own clock is now * rate / 1000 + offset */
    int64_t full_until;      /* no write succeeds before */
    int64_t cancelled;       /* jobs of rounds up to this one are never answered */
    bool wiped, lost_disk;   /* started with an empty disk and nothing signed since; a disk was lost */
    int64_t head;            /* height last told */
    json_t *heard, *closing; /* contributions: taken in during this life; those among them when the round closed */
    int64_t closing_round;
    int64_t jumped;  /* round open when the clock last jumped; -1: never */
    json_t *replays; /* of a besieged run: those that wait for the one that runs */
    bool replaying;  /* one runs */
    json_t *wanting; /* replays that wait for a carry to be shown */
    uint64_t messages, bytes;
};

struct chain;

struct sim {
    const struct simulation *set;
    struct simulation_result *result;
    uint64_t random;
    int64_t now;
    uint64_t order;
    struct queued *heap;
    size_t heap_size, heap_capacity;
    struct rules rules;
    struct node *nodes;
    int count;
    struct chain *chain;
    int64_t outage_until, partition_until;
    uint64_t sides; /* bit i: node i mod 64 does not hear the others while partition_until lasts */
    bool both_ways;
    json_t *waiting;   /* [ { node, life, height } ] for blocks */
    json_t *unlocked;  /* [ { node, life, body } ]: enrolments of round 0 whose deposits are looked for */
    json_t *signed_by; /* "did/type/round/view/phase" -> cid */
    json_t *items_of;  /* "did/round" -> items: frozen when first signed */
    json_t *closed_of; /* "did/round" -> the commitments that an honest member listed when it closed */
    json_t *timely;    /* "did/round" -> closing set of the member that signed `received` */
    json_t *prepared;  /* "record/view" -> newest head known to an honest member that voted for it in that view */
    json_t *settled;   /* round -> the round whose record settles it */
    json_t *finals;    /* [ { record, certificate, cid } ] */
    json_t *documents; /* cid -> envelope of everything ever signed that a record may name */
    json_t *old;       /* envelopes that a replaying liar keeps */
    int64_t deadline;  /* of the open round; 0: faults have not stopped */
    int64_t pay;       /* of a round */
    json_t *weighed;
    uint64_t weight; /* of the message weighed last */
    int adding;      /* `heard` of what is sent now */
    struct {
        json_t *record; /* held, so that nothing else can lie there */
        char cid[CID_TEXT];
    } named[NAMES];
    size_t named_count;
    struct record_memory memory;
    struct {
        const json_t *before; /* one of `finals` */
        char seed[HASH_TEXT];
        json_t *parts;
    } drawn;           /* the assignment that was drawn last to check another */
    json_t *results;   /* request hash -> result of an honest worker */
    json_t *overheard; /* of the newest round: "round/view" -> did -> payload of `received` */
    json_t *schemes;   /* "did/round/view" -> the records that a liar proposes to even and to odd numbers */
    json_t
        *views; /* "round/view" -> { first, members, led }: when the first honest member was in it, how many, whether one leads */
};

/* ---- events.c */

uint64_t sim_chance(struct sim *s);
uint64_t sim_drawn(const struct sim *s, uint64_t what); /* the same for the same `what`, whatever else happened */
int64_t sim_below(struct sim *s, int64_t n);            /* 0 .. n-1 */
/* Whether the fault happens now; it is counted and told. Never once faults have stopped. */
bool sim_fault(struct sim *s, enum fault fault, int node);
void sim_lie(struct sim *s, enum fault lie);
bool sim_may(const struct sim *s, enum fault fault); /* set for this run, and faults have not stopped */
void sim_push(struct sim *s, struct queued q);       /* gives it its order */
struct queued sim_pop(struct sim *s);                /* the earliest; there must be one */
int sim_find(const struct sim *s, const char *did);  /* -1: nobody */
bool sim_shows_nothing(const struct sim *s);         /* the mute: openings whose objects nobody gets, in place of none */
void sim_tell(struct sim *s, int level, const char *who, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* An answer to this incarnation of the node. Takes the reference of `body`. */
void sim_later(struct sim *s, int node, int64_t ms, enum event_kind kind, json_t *body);

/* The first failure is kept. */
void sim_fail(struct sim *s, enum invariant broken, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- node.c */

void sim_start(struct sim *s, int i);
void sim_stop(struct sim *s, int i, bool wipe);
void sim_step(struct sim *s, int i, enum event_kind kind, json_t *body);
/* Its account's signature, in the replicated tier: the enrolment may be one of another machine that it makes up. */
void sim_claim(const struct sim *s, const struct node *n, json_t *enrolment);
int64_t sim_clock(const struct sim *s, const struct node *n);
void sim_timer(struct sim *s, int i); /* puts the timer into the queue, again after the clock has jumped */
int64_t sim_round(const struct node *n);
void sim_replayed(struct sim *s, int i); /* of a besieged run: one is done, the next begins */
void sim_shown(struct sim *s);           /* replays whose carry has come are done */

/* ---- network.c */

void network_deliver(struct sim *s, int from, int to, json_t *message);
void network_send(struct sim *s, int from, const json_t *body);
void network_fetch(struct sim *s, int from, const json_t *body);
void network_store(struct node *n, const json_t *message);

/* ---- chain.c */

struct chain *sim_chain_new(struct sim *s);
void sim_chain_free(struct chain *chain);
void chain_tick(struct sim *s);  /* one block's time has passed */
void chain_reorg(struct sim *s); /* blocks that are not final are made anew */
bool chain_funded(const struct chain *chain, int64_t *time);
int64_t chain_final(const struct chain *chain);                  /* height of the newest final block */
json_t *chain_block(const struct sim *s, int64_t height);        /* final: { height, hash, entropy }; new reference, NULL */
void chain_release(struct sim *s, int node, const json_t *body); /* a panel member's signature */
const char *chain_sponsor(const struct chain *chain, char account[ADDRESS_TEXT]);
bool chain_deposit(const struct sim *s, const char *did); /* stands in a final block */
bool chain_quiet(const struct sim *s);                    /* everything settled is paid */
void chain_end(struct sim *s);                            /* expiry, refunds, the sums */

/* ---- worker.c; values are new references */

json_t *sim_sign(void *context, const char *type, json_t *payload, struct error *err);
bool sim_name(void *context, const json_t *record, char cid[CID_TEXT]);
struct signing sim_signing(struct sim *s);
json_t *sim_open(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err);
json_t *sim_compute(const struct sim *s, const json_t *request, bool wrong);
json_t *sim_training(struct sim *s, int node, const json_t *context);
const char *sim_check(const json_t *document, const json_t *context); /* a code */
int64_t sim_replay(const struct sim *s, const json_t *body);          /* -1: equal */
const char *sim_judge(const struct sim *s, const json_t *body);       /* the code of a move */
json_t *sim_move(struct sim *s, int node, const json_t *body);        /* CID of what the move names, null, or NULL: no answer */
json_t *sim_fold_step(const json_t *outer, const json_t *round, const json_t *contributions);

/* ---- liars.c */

/* The message that `to` gets in place of `message`; new reference, NULL: none. */
json_t *liar_message(struct sim *s, const struct node *n, int to, json_t *message);
/* Liars know what every member says that it holds. */
void liar_overhears(struct sim *s, const json_t *envelope);
/* What it sends to some members after hearing `heard`; new reference, NULL. */
json_t *liar_extra(struct sim *s, const struct node *n, json_t *heard);
/* A liar signs with its own key only, or with keys that nobody knows. Takes the reference; new reference. */
json_t *liar_signs(struct sim *s, const char *type, json_t *payload);
json_t *liar_documents(json_t *documents); /* a message, NULL when there is nothing in it. Takes the reference */
/* What it answers to a fetch instead; new reference. */
json_t *liar_answer(struct sim *s, json_t *message);

/* ---- liars_copy.c: the replicated tier; new references */

/* A member that lies lists whatever was committed to, also after others have shown their work. */
json_t *liar_closed(struct sim *s, const json_t *said);
/* Commits in a partner's words before it knows what they mean, or to the partner's work once that was shown; then shows it as its own. */
json_t *liar_copies(struct sim *s, const struct node *n);

/* ---- sponsor.c */

void sponsor_amends(struct sim *s); /* once a block: now and then a change of the run, as a rule one that may be refused */

/* ---- checks.c, checks_money.c, checks_work.c; each fails the simulation */

void check_statement(struct sim *s, struct node *from, const json_t *envelope);
void check_final(struct sim *s, int node, json_t *record, json_t *certificate);
void check_restart(struct sim *s, int node);
void check_leads(struct sim *s, const struct node *n, const json_t *state); /* what ACTION_STATE tells */
void check_deadline(struct sim *s);
void check_end(struct sim *s);
void check_told(struct sim *s, int node, const json_t *context); /* what a trainer is told to do */
void check_work(struct sim *s, const json_t *previous, const json_t *record);
void check_payout(struct sim *s, const json_t *record, const json_t *payout);
const json_t *check_record(const struct sim *s, int64_t round); /* the final record; NULL */

#endif
