/* running.h - one trainer's inner steps, one after another: what training, replay and disputes share.
 *
 *     running_new ── running_batch(0) ── training_step ── running_batch(1) ── training_step ── ...
 *
 * Who only wants batches, as a judge does, begins and loads nothing: the start state, what it grew from and the rates are then not there.
 *
 * Internal to runtime/worker. `context` is the trainer's (runtime/round/assignment.h).
 */
#ifndef RONDO_WORKER_RUNNING_H
#define RONDO_WORKER_RUNNING_H

#include "runtime/worker/rollouts.h"

struct running {
    struct session *s;
    const json_t *context, *plan; /* borrowed */
    int64_t round, steps;
    float *start, *values;
    uint32_t fragment; /* what the round exchanges */
    float
        *moved;  /* with fragments and inner = "keep": what tensors have moved by since their fragment was exchanged; else NULL */
    float *rest; /* with feedback: what the payloads so far have left out; else NULL */
    const double *rates;      /* one a step; the session's */
    struct sampler sampler;   /* of a run on given text */
    struct rollouts rollouts; /* else */
    struct batch batch;
    struct training training;
};

/* At the round's start state, with what `carry` (carry.h; NULL: nothing) brings from an earlier one. Free with running_free, also after a failure. */
bool running_new(struct running *r, struct session *s, const json_t *context, const json_t *shards, const json_t *carry,
                 struct error *err);
void running_free(struct running *r);

/* running_new in four parts: round, plan and draws; the data in its order; state and rates; what the carry brings. */
bool running_begin(struct running *r, struct session *s, const json_t *context, struct error *err);
bool running_data(struct running *r, const json_t *shards, struct error *err);
bool running_load(struct running *r, struct error *err);
bool running_carry(struct running *r, const json_t *carry, struct error *err);
bool running_rates(struct running *r, struct error *err); /* the rates alone */

/* The batch of step `step` (from 0) into r->batch; each step's in turn. */
bool running_batch(struct running *r, int64_t step, struct error *err);

/* How far the run is before that step, 0 to 1. */
double running_progress(const struct running *r, int64_t step);

#endif
