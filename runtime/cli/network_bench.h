/* network_bench.h - a network of real processes on loopback that train next to nothing, as `rondo bench network` runs and looks at it.
 *
 *     bench ── rondo local RUNFILE ──┬─ ledger, sponsor
 *       │  reads metrics.jsonl,      ├─ 4 syncers, each with two workers
 *       │  /proc of all of them      └─ 4 trainers, each with a worker
 */
#ifndef RONDO_CLI_NETWORK_BENCH_H
#define RONDO_CLI_NETWORK_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "native/base/error.h"

enum { NETWORK_TRAINERS = 4, NETWORK_SYNCERS = 4 };

struct network_bench {
    char folder[64], home[96], metrics[400];
    pid_t pid;
    double started;                  /* measure_now when it was started */
    json_t *events;                  /* of metrics.jsonl so far, in order */
    long read_to;                    /* bytes of it that were read */
    int64_t rounds;                  /* that train */
    uint64_t resident, proportional; /* most bytes of all its processes, RSS and PSS, that was seen */
    int processes;                   /* then; RSS counts a page of several processes for each, PSS once */
};

/* Writes the run into a folder of its own and starts it. */
bool network_bench_start(struct network_bench *b, int64_t rounds, struct error *err);
/* Reads what was told meanwhile. False with `err` when the network has ended of itself in a fault. */
bool network_bench_look(struct network_bench *b, struct error *err);
/* Looks at the memory of all its processes: the most that was seen is kept. */
void network_bench_weigh(struct network_bench *b);
/* Ends it, and removes its folder. */
void network_bench_stop(struct network_bench *b);

/* Milliseconds, by the network's own clock, at which a first member had this round's record; -1: not yet. */
int64_t network_bench_final(const struct network_bench *b, int64_t round);
/* The longest training among the trainers of a round, as they told it. */
int64_t network_bench_training(const struct network_bench *b, int64_t round);
/* The rounds first..last that are decided: the median of the milliseconds that they took beyond training; -1: none is. */
double network_bench_beyond(const struct network_bench *b, int64_t first, int64_t last);
/* The last round that a first member had a record of; -1: none. */
int64_t network_bench_round(const struct network_bench *b);
/* Where a node listens; NULL while it has not told. Borrowed. */
const char *network_bench_endpoint(const struct network_bench *b, const char *node);
/* Its process, 0 when it is not found. */
pid_t network_bench_process(const struct network_bench *b, const char *node);
/* Resident bytes of one process; 0 when it is gone. */
uint64_t network_bench_resident(pid_t pid);

#endif
