/* simulator_parts.h - what the parts of the simulator share; not for tests.
 *
 *     simulator.c           nodes, network, ledger, the run itself
 *     simulator_events.c    events by time; chance
 *     simulator_worker.c    keys that cost nothing, hashes instead of training, blocks that follow from their height
 *     simulator_checks.c    the invariants of simulator.h
 */
#ifndef RONDO_SIMULATION_SIMULATOR_PARTS_H
#define RONDO_SIMULATION_SIMULATOR_PARTS_H

#include "runtime/round/member.h"
#include "runtime/round/trainer.h"
#include "tests/simulation/simulator.h"

enum { SIM_NODES = 24, BLOCK_MS = 200, VIEW_MS = 1000 };

enum what { WHAT_EVENT, WHAT_TIMER, WHAT_BLOCK, WHAT_START, WHAT_WIPE };

struct queued {
    int64_t at;
    uint64_t order;
    enum what what;
    int node, life; /* life: of which incarnation; -1 any */
    enum event_kind kind;
    json_t *body;
};

struct node {
    char did[96], account[48];
    bool syncer, liar, alive, wiped, started;
    int life;
    struct member *member;
    struct trainer *trainer;
    json_t *disk;      /* key -> value: what was persisted */
    json_t *documents; /* cid -> envelope: what the node's store holds */
    json_t *enrolment;
    int64_t timer, cancelled; /* jobs of rounds up to `cancelled` are never answered */
};

struct sim {
    const struct simulation *set;
    struct simulation_result *result;
    bool trace;
    uint64_t random;
    int64_t now;
    uint64_t order;
    struct queued *heap;
    size_t heap_size, heap_capacity;
    struct rules rules;
    struct node nodes[SIM_NODES];
    int count;
    int64_t height;
    json_t *waiting;   /* [ { node, life, height } ] for blocks */
    json_t *computing; /* request hash -> round */
    json_t *signed_by; /* "did/type/round/view/phase" -> cid */
    json_t *finals;    /* round -> CID of the record */
    json_t *records;   /* round -> record */
    json_t *documents; /* cid -> payload of everything ever signed */
    int done;
};

/* ---- simulator_events.c */

uint64_t sim_chance(struct sim *s);
int64_t sim_below(struct sim *s, int64_t n);        /* 0 .. n-1 */
bool sim_faulty(struct sim *s, int per_mille);      /* never once faults have stopped */
void sim_push(struct sim *s, struct queued q);      /* gives it its order */
struct queued sim_pop(struct sim *s);               /* the earliest; there must be one */
int sim_find(const struct sim *s, const char *did); /* -1: nobody */

/* An answer to this incarnation of the node. Takes the reference of `body`. */
void sim_later(struct sim *s, int node, int64_t ms, enum event_kind kind, json_t *body);

/* The first failure is kept. */
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- simulator_worker.c; values are new references */

json_t *sim_sign(void *context, const char *type, json_t *payload, struct error *err);
json_t *sim_open(void *context, const json_t *envelope, char type[32], struct error *err);
json_t *sim_compute(const json_t *request, bool wrong);
json_t *sim_training(struct sim *s, int node, const json_t *context);
const char *sim_check(const json_t *document, const json_t *context); /* a code */
const char *sim_judge(const struct sim *s, const json_t *body);       /* the code of a move */
json_t *sim_move(const struct sim *s, int node, const json_t *body);  /* CID of what the move names, null, or NULL: no answer */
int64_t sim_replay(const struct sim *s, const json_t *body);          /* -1: equal */
json_t *sim_fold_step(const json_t *outer, const json_t *round, const json_t *contributions);
json_t *sim_block_at(const struct sim *s, int64_t height);

/* ---- simulator_checks.c; each fails the simulation */

void sim_check_statement(struct sim *s, const struct node *from, const json_t *envelope);
void sim_check_final(struct sim *s, int node, json_t *record);
void sim_check_state(struct sim *s);
void sim_check_history(struct sim *s);

#endif
