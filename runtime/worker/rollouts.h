/* rollouts.h - batches of a run on rollouts: completions drawn by the seed, rewarded, and prepared for the objective.
 *
 *     prompts of the assigned shards ── order of the seed ──> P prompts ── G completions each ──> tokens, sampler's log-probabilities
 *                                                                                                │
 *          batch [P G rows, time] <── prepare (advantages) <── kept log-probabilities <── rewards (scoring.h)
 *
 * One batch serves the objective's `updates` steps. As many prompts as fit: groups times rows of the longest prompt and `max_tokens` after
 * padding are at most the spec's batch_tokens; one group at least. A completion's seed is a word of the stream (round's seed and trainer,
 * "rondo/rollout", the batch's number), so whoever has the state before the step draws the same tokens. Everything here stands in the batch
 * root that the step log commits to: ids, mask, rewards, log-probabilities, what `prepare` returned.
 *
 * Fields beside batch.h's: reward, valid, truncated [batch]; sampler_logprobs [batch time]; and where the objective reads them,
 * old_logprobs (of the values before the batch's first step) and ref_logprobs (reference.h). The mask is 1 on the tokens
 * that were drawn, the end of the turn among them.
 */
#ifndef RONDO_WORKER_ROLLOUTS_H
#define RONDO_WORKER_ROLLOUTS_H

#include "runtime/worker/scoring.h"
#include "runtime/worker/training.h"

struct rollouts {
    struct session *session;
    const struct prompt **prompts; /* owned list of borrowed ones */
    const struct prompt **taken;   /* likewise: one for each row of the last batch */
    uint32_t *order;               /* owned */
    size_t count, at;
    uint64_t lap, number; /* of the order; of the batch */
    struct hash seed, draws;
    int64_t round;
    double clip;
    int64_t batch_tokens; /* the spec's; running.c sets what the trainer's part of the round has */
};

/* `shards` are CIDs. `did` is the trainer's, or the first of its group (runtime/round/replica.h). Errors: range (no prompt). Free with rollouts_free, after a failure too. */
bool rollouts_new(struct rollouts *r, struct session *s, const json_t *shards, struct hash seed, const char *did, int64_t round,
                  double clip, struct error *err);
void rollouts_free(struct rollouts *r);

/* The next batch, drawn from the model with these values. Errors: script (every completion was declined by a failure of the script; the first is
 * told), those of generate and scoring. */
bool rollouts_next(struct rollouts *r, const float *values, struct batch *b, struct error *err);

/* Draws one completion of each prompt with fixed seeds and rewards it. */
struct rollout_measure {
    double reward; /* sum over the valid */
    uint64_t rows, valid, truncated, tokens;
};
bool rollouts_measure(struct session *s, const float *values, const struct prompt *const *prompts, size_t count,
                      struct rollout_measure *sum, struct error *err);

#endif
