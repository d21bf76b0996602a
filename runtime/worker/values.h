/* values.h - the trained values that a job which only reads a model names.
 *
 *     outer                the values of that stored outer state
 *     adapter              the model's own, with those of the folder's adapter in their place
 *     neither              the model's own: then its files must hold every one of them
 */
#ifndef RONDO_WORKER_VALUES_H
#define RONDO_WORKER_VALUES_H

#include <jansson.h>

#include "runtime/worker/session.h"

/* `job`: { outer: CID | null, adapter: folder | null }. As many as the layout has; the caller frees them. NULL with `err`: missing (a weight
 * that the model's files do not hold), shape (an adapter of another model), memory, those of reading the state. */
float *values_read(struct session *s, const json_t *job, struct error *err);

#endif
