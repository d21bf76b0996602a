/* jobs.h - what a worker can be asked. Each takes the job's JSON and gives its result (new reference), or NULL with `err`.
 *
 *     genesis                                      { outer, state }
 *     plan     { request }                         { plan }
 *     train    { context, shards: [CID] }          the fields of a contribution; payload and step log are stored
 *     replay   { context, shards, document }       { index, steps, where, probes, failure? }: first differing leaf of the step log, -1 when all are
 *                                                  equal; with failure { code, leaf, place, message } a leaf that nobody can compute (failure.h)
 *     rollouts { context, shards, document, batches } { batches: [ ... ] }: runtime/worker/drawn.h
 *     check    { context, document }               { code }; a fault of this machine is an error and no code (failure.h)
 *     judge    { move, context, shards, document, index, trace, evidence }
 *                                                  { code }: of a challenge, opening or pick (dispute.h)
 *     move     { move, context, shards, index, trace }
 *                                                  { object, operator, entry, tile }: the trace or the evidence, stored; object null: nothing differs
 *     compare  { context, shards, index, trace, other }
 *                                                  { operator, entry, tile }: where two openings of one leaf part; operator null: nowhere
 *     fit      { context, shards }                 { rows, time, step, traced, allowed, opening, pick, operator, limit }: dispute_fit.h
 *     fold     { request, payloads }               runtime/round/fold.h
 *     evaluate { outer, adapter, shards: [CID], rows }   { loss, tool_call_accuracy, calls, exact, rows, dropped: rows that give no example };
 *                                                  of pairs measuring.h, of rollouts { reward, ... }; values as runtime/worker/values.h
 *     adapter  { outer, folder }                   writes the trained tensors for PEFT
 *     sample   runtime/worker/sampling.h           text that goes on from a prompt
 *     choose   runtime/worker/sampling.h           how likely each of some texts is
 *     answer   runtime/worker/answering.h          the same as sample for many prompts at once
 *
 * A job with `every: true` reports each step.
 */
#ifndef RONDO_WORKER_JOBS_H
#define RONDO_WORKER_JOBS_H

#include "runtime/round/step_log.h"
#include "runtime/worker/reporter.h"
#include "runtime/worker/session.h"

json_t *job_plan(struct session *s, const json_t *job, struct error *err);
json_t *job_train(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);
json_t *job_replay(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);
json_t *job_check(struct session *s, const json_t *job, struct error *err);
json_t *job_judge(struct session *s, const json_t *job, struct error *err);
json_t *job_move(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);
json_t *job_compare(struct session *s, const json_t *job, struct error *err);
json_t *job_evaluate(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);
json_t *job_adapter(struct session *s, const json_t *job, struct error *err);

/* The step log that a contribution names, from the store. Errors: missing, those of step_log_decode. Free with step_log_free. */
bool job_step_log(struct session *s, const json_t *document, struct step_log *log, struct error *err);

/* `rondo --worker BLOCKS THREADS NICE`: serves jobs from standard input until it ends. The exit status. */
int worker_main(int argc, char **argv);

#endif
