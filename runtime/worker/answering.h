/* answering.h - many prompts answered at once: what measures a model by what it writes.
 *
 *     items ── tokens ──> generate.h, `rows` at a time ──> text of each
 *
 * job    { outer, adapter: as in values.h, items: [ { prompt | conversation: as in sampling.h, place?: text for errors } ], rows,
 *          max_tokens, temperature, top_k?, top_p?, min_p?, repetition?, constrain?, seed }
 * report { answered, tokens }, so far
 * result { answers: [ { text, tokens, prompt_tokens, end } ] }, in the order of the items
 *
 * An answer is what the job "sample" gives for the item alone, whatever runs beside it; item i has the seed `seed` + i. An item as long as
 * the model's context is answered by nothing, with the end "context".
 */
#ifndef RONDO_WORKER_ANSWERING_H
#define RONDO_WORKER_ANSWERING_H

#include "runtime/worker/jobs.h"

/* New reference; NULL with `err`: those of job_sample, with the item's place. */
json_t *job_answer(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);

#endif
