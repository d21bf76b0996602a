/* inner.h - one trainer's part of a round: from the start state and the assignment to payload and step log.
 *
 *     context (runtime/round/assignment.h) ── batches in the seed's order ── steps ── end state
 *                                                              │ a leaf each            │ start minus end, quantised
 *                                                          step log                  payload
 *
 * The same for the trainer, for who replays it, and for an auditor: the result is a function of the context and what it names. So is a failure
 * that the work itself brings (failure.h): whoever submitted a leaf that nobody can compute is convicted like one who submitted another.
 */
#ifndef RONDO_WORKER_INNER_H
#define RONDO_WORKER_INNER_H

#include "runtime/round/step_log.h"
#include "runtime/worker/batch.h"
#include "runtime/worker/reporter.h"
#include "runtime/worker/session.h"

struct inner {
    struct step_log log;
    struct buffer payload, carry; /* carry: empty where nothing is kept */
    size_t body;                  /* where the payload's body starts */
    json_t *probes;
    uint64_t tokens;
    int64_t failed; /* when it ended with an error: the leaf that is not to be had; those before it are in `log` */
    struct hash payload_id, log_id, carry_id; /* once stored */
};

/* `shards` are the CIDs of the context's shards, in its order; `carry` as in running.h. */
bool inner_run(struct session *s, const json_t *context, const json_t *shards, const json_t *carry, const struct job_reporter *to,
               struct inner *out, struct error *err);
void inner_free(struct inner *inner);

/* The first `most` batches of rollouts of that part (0: all), drawn again: `show` sees each before it is trained on, with its prompts, one a row.
 * Nothing is trained after the last. Errors: unsupported (a run on given text), what `show` says. */
typedef bool inner_show(void *context, int64_t step, const struct batch *b, const struct prompt *const *prompts,
                        struct error *err);
bool inner_rollouts(struct session *s, const json_t *context, const json_t *shards, const json_t *carry, int64_t most,
                    inner_show *show, void *to, struct error *err);

#endif
