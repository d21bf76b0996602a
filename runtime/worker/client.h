/* client.h - the node's side of a worker process: jobs in, answers out, on the node's loop.
 *
 *     node ── {"id": 7, "job": "train", ...} + bytes ──> worker        one job at a time, in the order given (worker_prefer)
 *          <── {"id": 7, "progress": {...}} ───────────               any number
 *          <── {"id": 7, "result": {...}} + bytes ──────               or {"id": 7, "error": {code, place, message, hint}}
 *
 * The worker is a child without keys and network: `rondo --worker` on a pipe, with the node's blocks folder as its only other
 * descriptor. A worker that dies is started again and given its opening job once more; the job it died in fails with `fault`.
 */
#ifndef RONDO_WORKER_CLIENT_H
#define RONDO_WORKER_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "native/base/error.h"

struct worker;

struct worker_options {
    const char *program; /* NULL: /proc/self/exe */
    const char *blocks;  /* folder of the node's blocks */
    unsigned threads;    /* 0: this machine's cores */
    int nice;            /* added niceness: 10 for replays */
};

struct worker_answer {
    const struct error *error; /* NULL when it worked */
    json_t *result;            /* borrowed */
    const uint8_t *bytes;      /* borrowed */
    size_t size;
};

typedef void worker_done(void *context, const struct worker_answer *answer);
typedef void worker_progress(void *context, json_t *progress);

/* NULL with `err` when the process cannot be started. */
struct worker *worker_new(uv_loop_t *loop, const struct worker_options *options, struct error *err);

/* Kills the process; no callback runs any more. The loop must run until its handles are closed. NULL is fine. */
void worker_free(struct worker *w);

/* The job that opens a run; runs first, and again after every restart. Takes the reference. `done` may be NULL. */
void worker_open(struct worker *w, json_t *job, worker_done *done, void *context);

/* Queues a job and returns its id (never 0). Takes the reference of `job`; bytes are copied. `progress` may be NULL. */
uint64_t worker_submit(struct worker *w, json_t *job, const void *bytes, size_t size, worker_progress *progress,
                       worker_done *done, void *context);

/* A job that waits goes before all that were not preferred. One that runs goes on, whatever waits. */
void worker_prefer(struct worker *w, uint64_t id);

/* Forgets a job: `done` will not run. One that runs already is stopped by ending the process. */
void worker_cancel(struct worker *w, uint64_t id);

size_t worker_waiting(const struct worker *w); /* jobs queued or running */

#endif
