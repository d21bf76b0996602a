/* bisect.h - where two runs of one spec part: two machines, two builds of the program, or a run and one that was tampered with.
 *
 *     round after round        seed, start, plan, shards          what both give their trainers
 *                              step logs, leaf by leaf            what each trainer that both list says it did
 *                              who was accepted; the next state
 *     the first wrong leaf     traces of that step of both runs   which operator's value, which 256 KiB tile of it
 *
 * A trace is an opening (runtime/worker/dispute.h): the one of a dispute, where the home has it, else the step computed again. Only a
 * program that computes as the run's machines did gives that run's trace, so each run may name one; a trace that does not end in the run's
 * own leaf is not used.
 */
#ifndef RONDO_ROLE_BISECT_H
#define RONDO_ROLE_BISECT_H

#include <jansson.h>

#include "native/base/error.h"
#include "runtime/worker/client.h"

struct bisect_side {
    const char *home;
    const char *run;     /* NULL: the one of the home */
    const char *program; /* that computed it; NULL: this one */
};

/* { equal, rounds: compared, run_a, run_b, round?, what?, ... }; new reference. `what` is the first that differs in that round: "seed", "outer" (the
 * start state), "plan", "shards", "step", "payload", "accepted", "state". Of "step": did, leaf, where ("batch", "loss", "state"), operator, entry, tile,
 * traces: { a, b } ("stored", "computed", or why there is none; then operator is null). NULL with `err`: a home cannot be read, or the
 * specs differ: each field with both values. */
json_t *bisect_run(const struct bisect_side sides[2], unsigned threads, worker_progress *progress, void *context,
                   struct error *err);

#endif
