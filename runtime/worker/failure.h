/* failure.h - which failures of a computation are a result, and which are one machine's.
 *
 *     everywhere   the work itself cannot be done: a loss that is not finite, an index outside its axis, a script that raises, runs out of
 *                  instructions or of the memory that the spec gives it. Every machine of the kernel class meets it at the same leaf
 *     here         memory, disk, network, time, a block that is not there or that the disk has spoiled, a process that died, a kernel or a
 *                  processor that lacks something: says nothing about the work, and is tried again. Errors of this machine (error_is_local), and `missing`
 *
 * Every other code is about what was read: bytes that another gave. docs/protocol.md (section 7, "Whose failure it is") has the table.
 */
#ifndef RONDO_WORKER_FAILURE_H
#define RONDO_WORKER_FAILURE_H

#include <stdbool.h>

#include "native/base/error.h"

bool failure_is_everywhere(const struct error *err);
bool failure_is_here(const struct error *err);

#endif
