/* driver_internal.h - the parts of a driver. Only these include it:
 *
 *     driver.c         events in, actions out
 *     driver_keep.c    what is signed here, and what is on disk before it is said
 *     driver_start.c   until the machine runs
 *     driver_jobs.c    workers
 *     driver_send.c    peers
 *     driver_ledger.c  blocks, escrows, releases
 *     driver_dues.c    what a trainer is owed
 */
#ifndef RONDO_ROLE_DRIVER_INTERNAL_H
#define RONDO_ROLE_DRIVER_INTERNAL_H

#include "runtime/role/driver.h"
#include "runtime/round/member.h"
#include "runtime/round/trainer.h"

struct pending_event {
    enum event_kind kind;
    json_t *body;
    struct pending_event *next;
};

/* A job that waits for blocks, or runs in a worker. */
struct driver_job {
    enum action_kind kind; /* CHECK, REPLAY, COMPUTE or TRAIN */
    json_t *body;          /* of the action; owned */
    int64_t round;
    struct fetch *fetch;   /* while blocks are missing */
    struct worker *worker; /* once it was handed over */
    uint64_t id;           /* in that worker */
    uv_timer_t *pause;     /* after a fault of this machine, until it is tried again */
    unsigned failures;
    bool damaged; /* by the last of them: the disk has spoiled a block */
    struct driver *driver;
    struct driver_job *next;
};

/* The release of one round, on its way to the ledger. */
struct driver_release {
    int64_t round;
    json_t *body; /* of the RELEASE action */
    struct release release;
    struct hash digest;
    bool known; /* release and digest are worked out */
    struct {
        struct address signer;
        struct account_signature signature;
    } signatures[SPEC_PANEL];
    size_t signature_count;
    bool submitting, done;
    uint64_t next_try;
    struct driver *driver;
    struct driver_release *next;
};

/* A signature that came before this member had worked the release out itself: whose it is cannot be told yet. */
struct driver_early {
    int64_t round; /* 0: none */
    struct account_signature signature;
};

/* A message that a machine has taken. */
struct driver_said {
    struct hash name; /* of machine and text */
    uint64_t at;
};

enum { DRIVER_EARLY = 1024, DRIVER_SAID = 256 };

/* An enrolment whose deposit is looked for on the ledger. */
struct driver_deposit {
    json_t *body; /* of the DEPOSIT action; owned */
    bool busy;
    struct driver *driver;
    struct driver_deposit *next;
};

struct driver {
    struct node *node;
    struct course *course;
    bool is_member;
    struct member *member;
    struct trainer *trainer;
    struct signing signing;
    json_t *statements; /* signed since the last PERSIST: [ { type, view, phase, id } ] */
    json_t *enrolment;  /* own envelope */
    json_t *finals;     /* [ { record, certificate } ] from round 0 */

    struct pending_event *first, **last;
    size_t waiting; /* bytes of messages that wait for the machine */
    bool draining;
    uv_timer_t timer, tick; /* the machine's; the driver's own, four times a block */
    bool timers;

    struct worker *main, *replay; /* replay: of members, from the first job for it on */
    struct fetch *fetch;          /* while preparing */
    struct driver_job *jobs;
    struct delivery *deliveries;          /* messages on their way */
    struct driver_said said[DRIVER_SAID]; /* a ring of what was taken by others a moment ago */
    size_t said_next;
    struct question *questions; /* what was asked of others and not answered yet */
    json_t *told;               /* refusals that were told: "did code" -> true */
    json_t *asked_rounds;       /* round -> true while a FETCH of it is out */
    size_t turn;                /* which panel member is asked next */

    int64_t await_height; /* -1: none */
    bool await_busy, head_busy, head_now, funded;
    uint64_t head_next;      /* when the next head is asked for, where not every one is */
    struct funding *funding; /* while the escrows are looked at */
    struct ledger_status ledger;
    bool ledger_known;
    struct driver_release *releases;
    struct driver_early early[DRIVER_EARLY]; /* a ring: the oldest gives way, and comes again if it is of use */
    size_t early_next;
    json_t *dues; /* of a trainer: [ { round, record, since } ] settled with pay for it and not seen released */
    bool due_busy;
    uint64_t due_next;
    struct driver_deposit *deposits;
    uint64_t last_expiry; /* of the escrow of the run's last round; 0: not known yet */
    uint64_t last_refresh;
    bool leaving;
    uint32_t verified; /* decided rounds that were recomputed here */
    json_t *over;      /* the machine's DONE, until people are told */
    bool collect_due;  /* a round was decided since blocks were last collected */
};

/* driver.c */
void driver_feed(struct driver *d, enum event_kind kind, json_t *body); /* takes the reference */
void driver_fail(struct driver *d, const struct error *err);
bool driver_machine_new(struct driver *d, struct error *err);
/* What was sent once, to members that acknowledged it, and is in no record yet: a member that starts again has it from its journal alone.
 * Contributions of the open round; challenges, leaves and evidence of all rounds: the machine knows which of them a record lists. */
bool driver_take_up(struct driver *d, struct error *err);

/* driver_keep.c */
/* How the machine signs and reads documents. What a key may say once for a (run, round, view, phase) is kept before it can be sent: two
 * would be an equivocation. Borrows `d`. */
struct signing driver_signing(struct driver *d);
/* A PERSIST action, in one write and one sync: the open round's variables with the statements that follow from them, or a decided round. */
bool driver_persist(struct driver *d, const json_t *body, struct error *err);
/* The decided rounds of the journal into d->finals, as the machine wants them, and d->verified. */
bool driver_load_finals(struct driver *d, struct error *err);
/* A small number of this run under `name`; 0 when it was never put. */
bool driver_put_number(struct driver *d, const char *name, uint32_t number, struct error *err);
uint32_t driver_get_number(struct driver *d, const char *name);

/* driver_start.c */
bool driver_enrol(struct driver *d, struct error *err); /* makes and keeps the own enrolment */
json_t *driver_own_enrolment(const struct driver *d);   /* its payload, or NULL. Borrowed */
void driver_prepare(struct driver *d);
/* The worker for what takes long: a member's second one, started when it is first needed, else the only one. Borrowed. */
struct worker *driver_replay_worker(struct driver *d);

/* driver_jobs.c */
void driver_job_start(struct driver *d, enum action_kind kind, const json_t *body);
void driver_jobs_cancel(struct driver *d, int64_t round);
void driver_jobs_free(struct driver *d);

/* driver_send.c */
void driver_send(struct driver *d, const json_t *body);
void driver_fetch(struct driver *d, const json_t *body);
void driver_deliveries_free(struct driver *d); /* and the questions; with the client: no answer may come any more */

/* driver_ledger.c */
void driver_ledger_tick(struct driver *d);
void driver_closing(struct driver *d);     /* a round closes: the ledger's present head is asked for */
void driver_await_block(struct driver *d); /* asks for the block of await_height, unless that is on its way */
void driver_release(struct driver *d, const json_t *body);
void driver_deposit(struct driver *d, const json_t *body);
bool driver_releases_done(const struct driver *d); /* every release begun here is on the ledger */
void driver_ledger_free(struct driver *d);         /* with the ledger: no answer may come any more */

/* driver_dues.c */
void driver_dues_add(struct driver *d, const json_t *record);
/* Asks the ledger about the oldest now and then; what stays unreleased too long ends the node (node_options.most_unpaid). */
void driver_dues_tick(struct driver *d, uint64_t now);

#endif
