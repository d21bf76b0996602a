/* assignment.h - what the seed gives each machine to do in a round.
 *
 *     shards    unreturned ones first, then the others, each group shuffled; dealt in turn to the shuffled trainers, in proportion to what
 *               they take and inside their regions where the spec says so (deal.h)
 *     probes    steps whose loss and some trained parameters stand in the contribution: one in ten, the last always
 *     spots     contributions of the round before that are replayed, each with the member that does it
 *
 * Every function is pure; lists that reach a document are ascending.
 */
#ifndef RONDO_ROUND_ASSIGNMENT_H
#define RONDO_ROUND_ASSIGNMENT_H

#include "runtime/crypto/hash.h"
#include "runtime/round/rules.h"

/* [ { did, shards: [index], weight, group? } ] in ascending DID order, every enrolled trainer of record r-1, each shard exactly once; with
 * regions, those that nobody there may have are left out; in the replicated tier once a group (replica.h), and whoever is in no group has none.
 * The order of the examples in them is drawn by the worker (runtime/worker/batch.h). A
 * trainer's weight is its number of shards; with `limits.batches` the batches of a step, which it stated, 0 without a shard. New reference. */
json_t *assignment_draw(const struct rules *rules, const json_t *previous, struct hash seed);

/* Appends to `list` the shards of parts of which a record accepts no contribution. */
void assignment_unreturned(const json_t *parts, const json_t *contributions, json_t *list);

/* The shards in nobody's part, ascending. New reference. */
json_t *assignment_undealt(const struct rules *rules, const json_t *parts);

/* Ascending probe steps (from 0) of a trainer that does `steps` steps: max(1, ceil(steps / 10)), the last among them. */
json_t *assignment_probes(struct hash seed, const char *did, int64_t steps);

/* `count` different positions below `limit` (fewer when there are not so many), ascending, at one probe step. */
json_t *assignment_positions(struct hash seed, const char *did, int64_t step, size_t count, uint64_t limit);

/* Spot checks of round r-1 by seed r: [ { cid, did, member } ]; ceil(spot_check * accepted) drawn ones, and all that share
 * a payload body with another. `committee` is that of round r. In the replicated tier one contribution stands for those of its group that are
 * accepted with it, and all of a group that did not agree are replayed, also when the round was skipped. */
json_t *assignment_spots(const struct rules *rules, const json_t *previous, struct hash seed, const json_t *committee);

/* What CHECK, REPLAY and TRAIN are told of one trainer's part of a round: { run, round, did, seed, shards, weight, plan, outer,
 * state, probes, carry?, checkpoint_every?, batches?, group? }; `batches`: of batch_tokens in a step, where the spec lets trainers state it; `carry` is what the trainer may begin with where the plan says inner = "keep" (membership.h), `group` what
 * the draws of its whole group go by (replica.h). NULL when the trainer has no part in it. `previous` is record r-1 (its state is where the trainer starts). */
json_t *assignment_context(const struct rules *rules, const json_t *previous, int64_t round, struct hash seed, const json_t *plan,
                           const char *did);

/* The same where `parts`, what assignment_draw gives for this round, are at hand. */
json_t *assignment_context_in(const struct rules *rules, const json_t *previous, const json_t *parts, int64_t round,
                              struct hash seed, const json_t *plan, const char *did);

/* The same of a decided round, from its record and the one before; NULL also where one of them is NULL. */
json_t *assignment_context_of(const struct rules *rules, const json_t *before, const json_t *record, const char *did);

#endif
