/* local_internal.h - the parts of a local network: local.c (course of the whole), local_setup.c (keys, run, home), local_watch.c (what is
 * shown), local_result.c (evaluation, replay, result). Only these include it. */
#ifndef RONDO_ROLE_LOCAL_INTERNAL_H
#define RONDO_ROLE_LOCAL_INTERNAL_H

#include <uv.h>

#include "runtime/role/archive.h"
#include "runtime/role/local.h"
#include "runtime/role/run_file.h"
#include "runtime/role/sponsor.h"

enum { LOCAL_PROCESSES = RUN_FILE_TRAINERS + RUN_FILE_SYNCERS + 2, LOCAL_ARGUMENTS = 24 };

struct local;

struct local_process {
    struct local *local;
    char name[32]; /* "ledger", "sponsor", "syncer-1", "trainer-1" */
    char arguments[LOCAL_ARGUMENTS][256];
    size_t argument_count;
    uv_process_t process;
    uv_pipe_t out;
    struct buffer line;
    int handles; /* of this start that are not closed yet */
    bool running, ready, done;
    unsigned deaths; /* one after another, each soon after the start */
    uint64_t started_at;
    uv_timer_t restart;
    /* what it said last */
    char phase[24], endpoint[256];
    int64_t step, steps;
    double speed, mean_step_loss;
    int64_t trained; /* the round that mean_step_loss is of */
};

struct local {
    struct local_options options;
    char stake[40];          /* what a trainer locks */
    json_t *draft, *network; /* of the run file; the draft's names become CIDs when the run is made */
    json_t *base;            /* its base_model, as the run file names it */
    int64_t trainers, syncers;
    char run[80], ledger_url[256];
    uv_loop_t loop;
    uv_signal_t interrupt, terminate;
    uv_timer_t tick;
    struct local_process processes[LOCAL_PROCESSES]; /* 0: ledger, 1: sponsor, then syncers, then trainers */
    size_t count;
    bool stopping, interrupted, finished;
    struct error fault;
    int64_t rounds, last_round;
    uint64_t started, began; /* ms of the loop's clock: this call, and its trainers */
    FILE *metrics;
    bool bar; /* a progress line stands on the terminal */
};

/* local_setup.c */
bool local_setup_home(struct local *l, struct error *err); /* run file, keys, what was there before */
bool local_setup_run(struct local *l, struct error *err);  /* run document and escrows; the ledger runs */
/* HOME/run.json, new reference; NULL when there is none. False with `err`: it is damaged. */
bool local_state(struct local *l, json_t **state, struct error *err);

/* local.c */
void local_fail(struct local *l, const struct error *err);

/* local_watch.c */
void local_heard(struct local_process *p, const json_t *event);
/* An event as a line of metrics.jsonl, with who told it and when (docs/researcher.md). */
void local_measure(struct local *l, const char *node, const json_t *event);
void local_show(struct local *l);
void local_clear(struct local *l);
void local_say(struct local *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* local_result.c */
json_t *local_result(struct local *l, struct error *err);
/* The result of a run that is over: as it was written, when records and ledger still say so; made again when the file was changed. NULL
 * without `err`: the run is not over. NULL with `err`: what it comes from is damaged. */
json_t *local_result_again(struct local *l, struct error *err);

#endif
