/* simulation.h - a whole run in one process, from one seed: trainers, syncers, a ledger, and everything that may go wrong.
 *
 *     events by time:  message | answer of a worker | timer | block | crash | restart | mischief
 *
 *     seed ──mix──> struct simulation ──run──> records, payments, faults by kind, the first invariant that broke
 *                        ^                         │
 *                        └────────shrink───────────┘ the smallest set-up that still breaks it
 *
 * The round machines, the books of the ledger and the signatures of releases are the product's; keys of documents and arithmetic are
 * cheap stand-ins: an outer state is the hash of what was folded into it. Until `faults_until` everything in `faults` happens by chance;
 * from then on the network is merely slow. Liars lie to the end. Who crashes comes back with what it had written.
 *
 * After every event these hold (enum invariant; docs/simulation.md says what each means):
 *     fork       one final record a round, each linked to the one before, each what its documents, seed and ledger give
 *     statement  no honest key ever says two things in one place of the protocol
 *     money      conserved; exactly the accepted are paid, once, after the window; refunds at expiry only
 *     censored   what reached every honest member before it closed stands in the record
 *     convicted  nobody honest is
 *     assigned   what a trainer is told to do follows from the record before and the seed; shards stay in their regions
 *     state      a skip carries the state; the last state is the fold of what was kept
 *     ends       once faults have stopped, every round is over within simulation_bound
 *     restart    what a restarted machine has is what was decided
 */
#ifndef RONDO_SIMULATION_SIMULATION_H
#define RONDO_SIMULATION_SIMULATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIMULATION_TRAINERS = 1000, SIMULATION_SYNCERS = 64 }; /* at most */

enum fault {
    FAULT_LOSS,    /* a message is lost */
    FAULT_DELAY,   /* late by seconds */
    FAULT_REORDER, /* overtaken by those sent after it */
    FAULT_REPEAT,  /* delivered twice */
    FAULT_HIDE,    /* one with commit votes or final records is lost: views change after a decision */
    FAULT_FAVOUR, /* in the early views of a round a few members alone see the commit votes, or all votes, and what was decided */
    FAULT_PARTITION, /* one side does not hear the other, for seconds */
    FAULT_CRASH,     /* between any two actions of a step */
    FAULT_TORN,      /* in the middle of a write: it is there or not */
    FAULT_FSYNC,     /* a write fails; the machine stops; the write is there or not */
    FAULT_FULL,      /* no write for seconds */
    FAULT_POWER,     /* all syncers stop at once */
    FAULT_FLIP,      /* a document in the store of a machine no longer has the hash it is kept under: it is gone */
    FAULT_ROT,       /* a disk that cannot be read is replaced by an empty one */
    FAULT_SKEW,      /* a clock that runs fast or slow by up to 20 % */
    FAULT_JUMP,      /* a clock that jumps ahead */
    FAULT_OUTAGE,    /* no block for seconds */
    FAULT_REORG,     /* blocks that are not final are made anew */
    FAULT_LATE,      /* a fold that takes so long that others have decided meanwhile */
    FAULT_ABSENT,    /* a trainer that misses rounds */

    LIE_EQUIVOCATE, /* syncers: votes for everything, other votes for others */
    LIE_SILENT,     /* says nothing */
    LIE_EARLY,      /* commits without a certificate, speaks of views far ahead */
    LIE_LATE,       /* votes in views that are over */
    LIE_ITEMS,      /* tells every member something else of what it holds, also what nobody has */
    LIE_PROPOSE,    /* proposes records that its documents do not give, and skips */
    LIE_ROOTS,      /* its worker gives wrong roots; signs releases that pay itself */
    LIE_CENSOR,     /* never lists one trainer */
    LIE_FORGE,      /* certificates of too few, repeated, foreign or unfit votes */
    LIE_REPLAY,     /* sends again what was said long ago */
    LIE_RUBBISH,    /* answers fetches with something else */
    LIE_SLOW,       /* answers fetches after seconds */
    LIE_HEADS,      /* claims heads of the ledger that suit it */
    LIE_ACCUSE,     /* trainers: accuses the honest */
    LIE_BODY,       /* a payload that honest training would not give */
    LIE_MUTE,       /* such a payload, and no answer to a challenge */
    LIE_COPY, /* another's payload; in the replicated tier that of its partner, committed to before it is known, or after it was shown */
    LIE_TWICE,    /* two contributions */
    LIE_BROKEN,   /* a payload that does not decode */
    LIE_WITHHOLD, /* blocks that nobody can have */
    LIE_MANY,     /* joins as many, who do nothing */

    FAULT_KINDS,
    LIE_FIRST = LIE_EQUIVOCATE,
    LIE_TRAINER = LIE_ACCUSE
};

enum invariant { HOLDS, FORK, STATEMENT, MONEY, CENSORED, CONVICTED, ASSIGNED, STATE, ENDS, RESTART, INVARIANTS };

struct simulation {
    uint64_t seed;
    int trainers, syncers, threshold, rounds;
    int seats;                         /* of a committee, drawn from honest syncers with weights; 0: all of them */
    int quorum;                        /* trainers needed for a round */
    int lying_trainers, lying_syncers; /* of a lie each, drawn among `faults` */
    uint64_t faults;                   /* 1 << enum fault */
    int rate[LIE_FIRST];               /* how often, per mille of the occasions */
    int64_t faults_until;              /* ms; 0: none */
    const char *spot_check;            /* "1" replays everything */
    bool rollback;
    bool keeps;   /* the plan says inner = "keep": contributions begin with what the one before ended with */
    int replicas; /* machines that get the same shards; 0: one (runtime/round/replica.h) */
    bool
        besieged; /* challenges are decided by replays, one after another at each machine; the liars but one accuse all the honest */
    bool deposits;                 /* trainers lock a stake, which can be lost */
    bool capacities;               /* trainers state how many batches they take in a step; liars the most that they may */
    bool regions;                  /* some shards belong to a region; liars say that they are there */
    bool amends;                   /* the sponsor changes the run as it goes on */
    int64_t wipe_at;               /* ms at which the first syncer loses its disk; 0: never */
    bool absent_trainer;           /* the last trainer answers nothing in rounds 2 to 4: it is dropped */
    bool late_trainers;            /* one fewer trainer than the quorum answers in round 2 */
    uint64_t keep_first, keep_end; /* only faults with these numbers happen (lies have none): [first, end) */
    bool weigh;                    /* count the bytes of messages, too */
    int trace;                     /* 0: nothing; 1: faults, statements and decisions; 2: every action, on standard output */
};

struct simulation_result {
    enum invariant broken;
    char failure[512];       /* "" when all invariants hold */
    int64_t ended;           /* ms */
    int rounds, train, skip; /* records */
    bool overcome;           /* the run stopped: a round with more liars in its committee than that tolerates did not end */
    bool liar_convicted;
    int64_t last_trainer_at;                  /* round of the last contribution accepted from the last trainer */
    uint64_t events, messages, most_messages; /* most_messages: of one node */
    uint64_t bytes, most_bytes;               /* of their JSON texts, where they are weighed */
    uint64_t faults[FAULT_KINDS], injected;   /* injected: numbered ones, also those left out by keep_first, keep_end */
    char state[80];                           /* last state root */
};

/* Runs to the end, or to the first invariant that breaks. The same simulation has the same result on every machine. */
void simulation_run(const struct simulation *simulation, struct simulation_result *result);

/* A mixed bag of parameters from one number. */
struct simulation simulation_from_seed(uint64_t seed);

/* A small network without faults: 4 trainers, 3 of 4 syncers. */
struct simulation simulation_calm(uint64_t seed);

/* Makes a failing simulation smaller while it breaks the same invariant: fewer nodes, rounds, kinds of faults, faults. Gives the number
 * of runs it took. */
int simulation_shrink(struct simulation *simulation, int runs);

/* The options of `rondo simulate` that repeat it; the caller frees. */
char *simulation_command(const struct simulation *simulation);

/* Milliseconds within which a round is over once faults have stopped, from its seed on, when no member is beyond `view`. */
int64_t simulation_bound(const struct simulation *simulation, int64_t view);

const char *fault_name(enum fault fault);              /* "loss" */
enum fault fault_named(const char *name, size_t size); /* FAULT_KINDS: none */
const char *invariant_name(enum invariant invariant);

#endif
