/* training.h - inner steps: a trainer's values and optimiser state, moved on step by step over the executors of a session.
 *
 *     struct training t;
 *     training_new(&t, session, values, clip, err);        values: n floats, changed in place
 *     training_step(&t, &batch, lr, progress, err);        t.loss, t.norm
 *     training_root(&t)                                    what the next step reads
 */
#ifndef RONDO_WORKER_TRAINING_H
#define RONDO_WORKER_TRAINING_H

#include "runtime/worker/states.h"

/* A shape's executor with the memory of this training. */
struct training_bound {
    int64_t rows, time;
    uint64_t serial; /* of the session's step */
    const struct session_step *step;
    const void **inputs; /* NULL where a batch field goes */
    const char **fields; /* the name of that field in the batch */
    void **outputs;
    float *spare; /* one float an output: metrics, for training_metrics */
};

struct training {
    struct session *session;
    float *values; /* borrowed */
    double clip;
    struct states states;
    struct training_bound *bound;
    size_t bound_count, last;      /* `last`: the one of the last step */
    struct executor_random random; /* the caller sets seed and round; step is counted */
    float lr, progress, loss, norm;
};

bool training_new(struct training *t, struct session *s, float *values, double clip, struct error *err);
void training_free(struct training *t);

/* One step. Errors: non_finite (the loss: "step 12: the loss is not finite"), those of tracing a new shape. */
bool training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err);

/* The same step with every value shown to `see` (native/graph/trace.h), one operator after the other: the same bits, more slowly. */
bool training_step_seen(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see, void *context,
                        struct error *err);

/* What the objective called `metric` in the last step, by name; for people. New reference. */
json_t *training_metrics(const struct training *t);

/* State root over values and optimiser state. */
struct hash training_root(const struct training *t);

/* State root of a batch's arrays. */
struct hash batch_root(const struct batch *b);

/* Where the data of bound node `i` of a step's graph lies: a trained value or a weight in *data; or, with *data NULL, the name of a
 * batch field in *field. Errors: missing (no such parameter), shape (the graph wants another size). */
bool training_input(struct session *s, const struct session_step *step, uint32_t i, const float *values, const void **data,
                    const char **field, struct error *err);

/* Log-probability of each token, and 1 where it is the arg max, [batch time]; at the run's sampling temperature. */
bool training_logprobs(struct session *s, const float *values, const struct batch *b, float *logprobs, float *best,
                       struct error *err);

/* Loss over evaluation rows: sums of -logprob over trained tokens, and rows whose every trained token is the arg max. */
struct evaluation {
    double loss; /* Σ over rows of -Σ weight · logprob, in ascending order */
    double weight;
    uint64_t rows, exact;
};
bool evaluate_batch(struct session *s, const float *values, const struct batch *b, struct evaluation *sum, bool *row_exact,
                    struct error *err);

#endif
