/* bench.h - scripts and models on a bench: tried out on this machine, in no run and without keys.
 *
 *     bench_draft   a script  ──> the run file of a small run in which it plays its part, for fit.h
 *     bench_open    a model   ──> a worker that has it open, for sampling
 */
#ifndef RONDO_ROLE_BENCH_H
#define RONDO_ROLE_BENCH_H

#include <jansson.h>

#include "native/base/error.h"
#include "runtime/role/archive.h"

struct bench_part {
    const char *script; /* name or path */
    const char *kind;   /* objective, optimiser, aggregator, schedule, model or reward */
    bool keeps_peer;    /* of an aggregator: its result still has every peer, so that `mean` must follow */
    json_t *options;    /* of the script, or NULL; borrowed */
    const char *model;  /* folder or .gguf file */
    const char *data;   /* JSONL file */
    int64_t context;    /* tokens of a batch and of its longest row */
    int64_t steps;      /* of each of two rounds; a schedule says its own */
};

/* Trainers of such a run: an aggregator has something to aggregate. */
size_t bench_trainers(const char *kind);

/* { spec, network } with the script in its part and shipped scripts in all others. New reference; NULL with `err` (unsupported: a kind that
 * has no part in training). */
json_t *bench_draft(const struct bench_part *part, struct error *err);

/* The model's longest sequence by its configuration, at most `most`; where positions are stretched by the length of a sequence (rope scaling
 * dynamic or longrope) the longest that is not. */
int64_t bench_context(const json_t *config, int64_t most);

/* The folder of the model that ships: models/pocket beside the scripts. */
const char *bench_pocket(char path[4200]);

/* A worker in `a` (made by archive_new) that has the model open, with the adapter's rank and alpha when `adapter` names a folder. The model
 * script is the shipped one whose `architectures` has the model's. `template`: text of a chat template, NULL: the model's. */
bool bench_open(struct archive *a, const char *model, const char *adapter, const char *template, unsigned threads,
                struct error *err);

#endif
