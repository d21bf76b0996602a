/* replay.h - recomputing what a run says it did, from an archive alone. */
#ifndef RONDO_ROLE_REPLAY_H
#define RONDO_ROLE_REPLAY_H

#include "runtime/role/archive.h"

/* Recomputes one contribution of a round (`did` given), or all accepted ones and then the whole record, its fold with it. Result, new
 * reference:
 *   { run, round, kind, reason, match, contributions: [ { did, cid, match, removed?, leaf?, where?, failure? } ],
 *     fold: { match, rounds, outer, state } | null, settled: [ round ] }
 * `leaf` is the first that differs (runtime/round/step_log.h), `where` what in it does; `failure`
 * { code, leaf, place, message } where the work cannot be done at all. `removed`: its maker is convicted, and of a whole
 * round it then counts for nothing. `rounds` of a fold: more than its own after a conviction; null: the record folds nothing. NULL with `err` when something needed is missing
 * or damaged. */
json_t *replay_round(struct archive *a, int64_t round, const char *did, worker_progress *progress, void *context,
                     struct error *err);

/* The rollouts of one contribution of a round (`did` given), or of all accepted ones, drawn again: the first `batches` of each, 0 for all.
 *   { run, round, trainers: [ { did, batches: [ ... ] } ] }, new reference; the batches are told in runtime/worker/drawn.h.
 * NULL with `err`: as replay_round, unsupported (a run on given text). */
json_t *replay_rollouts(struct archive *a, int64_t round, const char *did, int64_t batches, worker_progress *progress,
                        void *context, struct error *err);

/* The spot checks that seeds drew in a whole run: { drawn, matched, reported }. What the drawn member has not reported as equal in a
 * record that followed soon is recomputed here. */
json_t *replay_spot_checks(struct archive *a, worker_progress *progress, void *context, struct error *err);

/* Payload bytes of every contribution in the records times its receivers, and what dense exchange of every step would have been. */
bool replay_traffic(struct archive *a, int64_t parameters, int64_t *sent, int64_t *dense, struct error *err);

/* A worker's answer about one contribution that a record lists (runtime/worker/jobs.h: replay, rollouts, judge, move, compare). Takes the
 * reference of `job`, which gets context, document and shards. New reference; NULL with `err`. */
json_t *replay_job(struct archive *a, json_t *job, int64_t round, const json_t *listed, worker_progress *progress,
                   void *context_of_progress, struct error *err);

#endif
