/* inner.h - one trainer's part of a round: from the start state and the assignment to payload and step log.
 *
 *     context (runtime/round/assignment.h) ── batches in the seed's order ── steps ── end state
 *                                                              │ a leaf each            │ start minus end, quantised
 *                                                          step log                  payload
 *
 * The same for the trainer, for who replays it, and for an auditor: the result is a function of the context and what it names.
 */
#ifndef RONDO_WORKER_INNER_H
#define RONDO_WORKER_INNER_H

#include "runtime/round/step_log.h"
#include "runtime/worker/jobs.h"

struct inner {
    struct step_log log;
    struct buffer payload;
    size_t body; /* where the payload's body starts */
    json_t *probes;
    uint64_t tokens;
    struct hash payload_id, log_id; /* once stored */
};

/* `shards` are the CIDs of the context's shards, in its order. */
bool inner_run(struct session *s, const json_t *context, const json_t *shards, const struct job_reporter *to, struct inner *out,
               struct error *err);
void inner_free(struct inner *inner);

/* A number of a plan: a JSON number or a decimal string; `otherwise` when absent. */
double plan_number(const json_t *plan, const char *name, double otherwise);

#endif
