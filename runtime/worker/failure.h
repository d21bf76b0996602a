/* failure.h - which failures of a computation are a result, and which are one machine's.
 *
 *     everywhere   the work itself cannot be done: a loss that is not finite, an index outside its axis, a script that raises, runs out of
 *                  instructions or of the memory that the spec gives it. Every machine of the kernel class meets it at the same leaf
 *     here         memory, disk, network, time, a block that is not there, a process that died: says nothing about the work, and is tried again
 */
#ifndef RONDO_WORKER_FAILURE_H
#define RONDO_WORKER_FAILURE_H

#include <stdbool.h>

#include "native/base/error.h"

bool failure_is_everywhere(const struct error *err);

#endif
