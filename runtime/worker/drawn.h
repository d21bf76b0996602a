/* drawn.h - the job `rollouts`: what a contribution was trained on, for people.
 *
 * The rollouts of a contribution follow from its context, so they are not sent: the step log holds their root. Drawn again they are
 * compared with it and written out:
 *
 *     { batches: [ { step, match, groups: [ { prompt, reference, completions: [
 *           { text, tokens: [ id ], logprobs: [ number ], reward: number | null, advantage?, truncated } ] } ] } ] }
 *
 * `prompt` is the row's messages or text; `tokens` are the drawn ones, with the one that ended the turn, `logprobs` the sampler's;
 * `reward` is null where the script declined; `match` whether the batch is the one that was committed to before this step.
 */
#ifndef RONDO_WORKER_DRAWN_H
#define RONDO_WORKER_DRAWN_H

#include "runtime/worker/jobs.h"

/* `job`: { context, shards: [ CID ], document: the contribution, batches: how many, 0 for all }. Errors: those of inner_rollouts, missing (the
 * step log). */
json_t *job_rollouts(struct session *s, const json_t *job, struct error *err);

#endif
