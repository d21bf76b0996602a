/* confine.h - what a worker gives up before its first job.
 *
 *     descriptors above 2 closed, no core dumps, no_new_privs, and a seccomp filter: no sockets but a stream pair for a script's process,
 *     no tracing and reading of other processes, no mounts, namespaces, modules, keys, io_uring, ...
 *
 * A worker runs kernels over hostile models and data. What it may still do is what its jobs need: files, memory, threads, starting
 * and ending its own script children (which give up the rest: runtime/script/sandbox.h).
 */
#ifndef RONDO_WORKER_CONFINE_H
#define RONDO_WORKER_CONFINE_H

#include <stdbool.h>

#include "native/base/error.h"

/* Once, before threads are made. Error: absent (the kernel lacks what is needed). */
bool confine_worker(struct error *err);

#endif
