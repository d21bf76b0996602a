/* simulator.h - a whole run in one process, from one seed: trainers, syncers, a ledger, a network that does its worst, one liar.
 *
 *     events by time:  deliver a message | answer a compute, check, replay, training | timer | block | crash | restart
 *
 * The machines are the product's; keys and arithmetic are cheap stand-ins (a state is the hash of what was folded into it). Until
 * `faults_until` messages are delayed, lost, repeated and reordered and machines crash between any two actions; from then on the
 * network is merely slow. A crashed machine comes back with what it had persisted, a wiped one with nothing.
 *
 * After every decided round and every signature the invariants are checked; the first that fails is told with its seed:
 *   - one final record a round, each linked to the one before
 *   - no honest key signs two different statements for one (run, round, view, phase)
 *   - nobody honest is convicted
 *   - exactly the accepted are paid, and what a pool pays is what it holds
 *   - the last state is the fold of exactly the contributions that were kept
 *   - once faults have stopped the run comes to its end
 */
#ifndef RONDO_SIMULATION_SIMULATOR_H
#define RONDO_SIMULATION_SIMULATOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum liar {
    LIAR_NONE,
    LIAR_VOTES,      /* a syncer that signs any vote for anyone, and other ones for others */
    LIAR_DOCUMENTS,  /* a syncer that tells every member something else: received, proposals */
    LIAR_FOLD,       /* a syncer whose worker gives wrong roots */
    LIAR_SILENT,     /* a syncer that says nothing */
    LIAR_BODY,       /* a trainer whose payload honest training would not give */
    LIAR_TWICE,      /* a trainer that sends two contributions */
    LIAR_BROKEN,     /* a trainer whose payload does not decode */
    LIAR_WITHHELD,   /* a trainer whose blocks nobody can have */
    LIAR_CHALLENGER, /* a trainer that accuses the honest */
    LIAR_KINDS,
};

struct simulation {
    uint64_t seed;
    int trainers, syncers, threshold, rounds;
    int quorum; /* trainers needed for a round */
    enum liar liar;
    const char *spot_check;        /* "1" replays everything */
    int64_t faults_until;          /* ms; 0: none */
    int64_t give_up;               /* ms of simulated time after which a run that has not ended is a failure */
    int loss, slow, repeat, crash; /* per mille: messages lost, late by seconds, sent twice; steps cut off by a crash */
    int hide;                      /* per mille of messages with commit votes or final records that are lost besides */
    int64_t wipe_at;               /* ms at which the first syncer loses its disk; 0: never */
    bool rollback;
    bool absent_trainer; /* the last trainer answers nothing in rounds 2 to 4: it is dropped */
    bool late_trainers;  /* one fewer trainer than the quorum answers in round 2 */
};

struct simulation_result {
    char failure[512]; /* "" when all invariants hold */
    int64_t ended;     /* ms */
    int train, skip;   /* records of these kinds */
    bool liar_convicted;
    int64_t last_trainer_at; /* round of the last contribution accepted from the last trainer */
    uint64_t events, deaths;
    char state[80]; /* last state root */
};

/* Runs to the end. `trace` prints every event. */
void simulation_run(const struct simulation *simulation, struct simulation_result *result, bool trace);

/* A mixed bag of parameters from one number. */
struct simulation simulation_from_seed(uint64_t seed);

#endif
