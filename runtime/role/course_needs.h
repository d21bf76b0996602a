/* course_needs.h - what must be in a node's store before its worker can open the run, and how that is laid out for the worker.
 *
 *     spec ── scripts, chat template, dataset manifest, model manifests ── files ──> store ── models/CID/ and the `open` job
 *
 * Model manifest, the block that `base_model` names (`reference` likewise, and `adapter.start` of a PEFT folder):
 *     { "files": [ { "name": "config.json", "object": CID, "size": n }, ... ], "version": 1 }
 * Dataset manifest:
 *     { "rows": n, "shards": [ { "object": CID, "rows": n, "size": n }, ... ], "version": 1 }
 */
#ifndef RONDO_ROLE_COURSE_NEEDS_H
#define RONDO_ROLE_COURSE_NEEDS_H

#include "runtime/role/course.h"
#include "runtime/role/fetch.h"

/* A file's name inside a model's folder: no path. */
bool course_plain_name(const char *name);

/* What must be in the store before a worker can open. The caller frees. Grows: call it again when what it named has arrived, until
 * *complete. */
bool course_wants(struct course *course, struct fetch_want **wants, size_t *count, bool *complete, struct error *err);

/* Lays the model out as files and makes course->open. Everything of course_wants must be in the store. */
bool course_prepare(struct course *course, struct error *err);

#endif
