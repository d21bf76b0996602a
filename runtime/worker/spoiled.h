/* spoiled.h - whether this machine's own files still are what was fetched, before it says that another computed wrongly.
 *
 *     blocks                      hashed whenever they are read (runtime/store/block.h)
 *     the model's files           hashed when a node starts, then mapped: a page that is read again, later, nobody hashes
 *
 * What was computed from a spoiled file differs from everybody's, and looks like a lie of whoever is replayed. So the files are hashed once more
 * where a replay differs or a tile convicts; where nothing differs it costs nothing.
 */
#ifndef RONDO_WORKER_SPOILED_H
#define RONDO_WORKER_SPOILED_H

#include "runtime/worker/session.h"

/* Errors: damaged, with the file's path; io. */
bool spoiled_none(const struct session *s, struct error *err);

#endif
