/* pool.h - threads that share out the tasks of one kernel call.
 *
 *     caller ──pool_run(tasks)──> counter 0,1,2,...,tasks-1 <── sleeping threads wake, take the next number, run it
 *
 * Tasks write disjoint outputs and no task reads what another writes, so the result never depends on how many threads there are or
 * which takes what. The caller takes part and returns when all tasks are done. A NULL pool runs everything in the caller.
 * One call at a time: a pool belongs to one thread of control, and a task does not call pool_run on its own pool.
 */
#ifndef RONDO_KERNEL_POOL_H
#define RONDO_KERNEL_POOL_H

#include <stddef.h>

struct pool;

/* `threads` counts the caller, at least 1. NULL when the threads cannot be made. */
struct pool *pool_new(unsigned threads);
void pool_free(struct pool *pool);

/* 1 for NULL. */
unsigned pool_threads(const struct pool *pool);

/* Runs task(context, 0) ... task(context, tasks - 1), each once, in any order. */
void pool_run(struct pool *pool, size_t tasks, void (*task)(void *context, size_t index), void *context);

/* Working memory of the calling thread: POOL_SCRATCH bytes, aligned to 64, kept until the thread ends. One user at a time. */
#define POOL_SCRATCH ((size_t)4 << 20)
void *pool_scratch(void);

#endif
