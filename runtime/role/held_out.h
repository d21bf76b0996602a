/* held_out.h - the held-out data of a run file, looked at before anything begins: `network.eval = { data = FILE, rows = N }`. */
#ifndef RONDO_ROLE_HELD_OUT_H
#define RONDO_ROLE_HELD_OUT_H

#include <jansson.h>

#include "native/base/error.h"

/* Whether the evaluation at the end of the run will have rows: the file is there, each row reads as a conversation or text under the run's
 * model, template and context, and some of them give an example. True when the run file has no eval. `draft` as the run file gives it:
 * names, not content ids. Errors with the place network.eval.data (and line of the file): missing, type, range, those of rows. */
bool held_out_check(const json_t *draft, const json_t *network, struct error *err);

#endif
