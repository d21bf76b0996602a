/* measuring.h - the objective's own loss and metrics on held-out rows, for data whose loss is none of single tokens: pairs, images, series.
 *
 *     examples ── batches of a few rows ── model, objective ──> { loss, metrics: { accuracy, ... }, rows, dropped }
 *
 * Each batch counts by its rows: sum over batches of rows * value / rows of all. A pair is one row.
 */
#ifndef RONDO_WORKER_MEASURING_H
#define RONDO_WORKER_MEASURING_H

#include "runtime/worker/reporter.h"
#include "runtime/worker/session.h"

/* The result of the job `evaluate`; NULL with `err`: missing (no row), non_finite, those of session_shard and session_step. */
json_t *measuring_run(struct session *s, const json_t *job, const float *values, const struct job_reporter *to,
                      struct error *err);

#endif
