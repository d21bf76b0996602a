/* packs.h - whether rows may hold several examples, each as if it were alone (`packing`), and examples several turns (`coalesce`).
 *
 * Of a model every token may depend on others of its example through attention that is given segments, and on nothing else along
 * the row: no other operator takes `time` together, and nothing counts places from the row's beginning. Of an objective the loss is
 * made of what each token gives and of sums over all of them.
 */
#ifndef RONDO_WORKER_PACKS_H
#define RONDO_WORKER_PACKS_H

#include <stdbool.h>

#include "native/base/error.h"
#include "runtime/script/host.h"

/* Errors: unsupported, with the operator that does otherwise and what to do. */
bool packs_model(const struct script_trace *model, struct error *err);
bool packs_objective(const struct script_trace *objective, const char *field, struct error *err); /* `field`: of the spec */

#endif
