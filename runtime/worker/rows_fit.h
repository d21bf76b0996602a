/* rows_fit.h - whether a shard's rows are of the kind that the run's objective reads, and as large as its model. */
#ifndef RONDO_WORKER_ROWS_FIT_H
#define RONDO_WORKER_ROWS_FIT_H

#include "runtime/worker/session.h"

/* false with `err`, the place as "SHARD:3: image.shape": unsupported (another kind of row), shape, range (a label that is no class). */
bool rows_fit(const struct session *s, const struct session_shard *shard, struct error *err);

#endif
