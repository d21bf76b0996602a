/* fit.h - a run without a network: one trainer with every shard, one fold a round, in one process and its worker.
 *
 *     HOME/{ fit.json, audit/..., runs/RUN/adapter }
 *
 * The arithmetic is that of a run with one trainer: the same batches for the same seed, payload, fold. For trying a run file out, and for
 * baselines. A call on a home that holds an unfinished fit of the same run file goes on with the next round.
 */
#ifndef RONDO_ROLE_FIT_H
#define RONDO_ROLE_FIT_H

#include <jansson.h>

#include "native/base/error.h"

struct fit_options {
    const char *runfile, *home, *seed;
    unsigned threads;
    int64_t rounds; /* at most so many; 0: all */
    bool quiet;
};

/* { run, rounds: [ { round, loss, tokens, state_root } ], eval, adapter }; new reference. NULL with `err`. */
json_t *fit_run(const struct fit_options *options, struct error *err);

#endif
