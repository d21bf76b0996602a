/* fit.h - a run without a network: one trainer with every shard (or several in turn, with a share each), one fold a round, in one
 * process and its worker.
 *
 *     HOME/{ fit.json, audit/..., runs/RUN/adapter }
 *
 * The arithmetic is that of a run with as many trainers: the same batches for the same seed, payload, fold. For trying a run file out, and for
 * baselines. A call on a home that holds an unfinished fit of the same run file goes on with the next round.
 */
#ifndef RONDO_ROLE_FIT_H
#define RONDO_ROLE_FIT_H

#include <jansson.h>

#include "native/base/error.h"
#include "runtime/worker/client.h"

enum { FIT_TRAINERS = 16 };

struct fit_options {
    const char *runfile, *home, *seed;
    json_t *run; /* { spec, network } instead of the file's; borrowed, changed; NULL: `runfile` is read */
    unsigned threads;
    int64_t rounds;  /* at most so many; 0: all */
    size_t trainers; /* 0: one; at most FIT_TRAINERS, and no more than there are shards */
    bool quiet;
    worker_progress *step; /* NULL, or called for each step with the worker's report, `round` added; then nothing is printed */
    void *context;
};

/* { run, rounds: [ { round, loss, tokens, state_root } ], eval, adapter }; new reference. NULL with `err`. */
json_t *fit_run(const struct fit_options *options, struct error *err);

#endif
