/* scoring.h - rewards of completions, by the run's reward script in its sandboxed process.
 *
 *     completions ── one process for all of them ──> numbers
 *                          │ it failed
 *                          └── halves, each in a fresh process, down to the one that fails
 *
 * The rule, one for all: a completion has a reward when `score` returns a finite number for it. Where it returns nil, raises, returns anything
 * else (NaN among it), or runs out of instructions or memory, the completion is *declined*: valid 0, reward 0; it takes no part in
 * its group's mean. These ends depend on the script and what it reads alone, so every replay finds the same. The wall clock is the machine's:
 * when it runs out, or the process is ended from outside, the job fails, and nothing of it is committed.
 */
#ifndef RONDO_WORKER_SCORING_H
#define RONDO_WORKER_SCORING_H

#include "runtime/worker/session.h"

struct scores {
    float *reward, *valid; /* the caller's, one a completion */
    size_t failed;         /* declined by a failure rather than nil */
    struct error first;    /* the first such failure, for people */
};

/* `completions`: a list of what script_score takes. False with `err`: timeout, fault. */
bool scoring_run(struct session *s, const json_t *completions, struct scores *out, struct error *err);

#endif
