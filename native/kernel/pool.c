#include "native/kernel/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct pool {
    unsigned threads;
    pthread_t *helpers; /* threads - 1 */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    unsigned long generation; /* grows by one with each call */
    unsigned active;          /* helpers inside the current call */
    bool stopping;
    void (*task)(void *context, size_t index);
    void *context;
    size_t tasks;
    atomic_size_t next;
};

/* What a call is, copied under the lock: the caller clears `task` while helpers still work. */
struct call {
    void (*task)(void *context, size_t index);
    void *context;
    size_t tasks;
};

static void pool_take(struct pool *pool, struct call call)
{
    size_t index;

    while ((index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed)) < call.tasks)
        call.task(call.context, index);
}

static void *pool_helper(void *argument)
{
    struct pool *pool = argument;
    unsigned long seen = 0;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        if (pool->generation == seen || !pool->task) {
            pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        struct call call = { pool->task, pool->context, pool->tasks };

        seen = pool->generation;
        pool->active++;
        pthread_mutex_unlock(&pool->lock);
        pool_take(pool, call);
        pthread_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct pool *pool_new(unsigned threads)
{
    struct pool *pool = calloc(1, sizeof *pool);

    if (!pool)
        return NULL;
    pool->helpers = calloc(threads, sizeof *pool->helpers);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (pool->threads = 1; pool->helpers && pool->threads < threads; pool->threads++) {
        if (pthread_create(&pool->helpers[pool->threads - 1], NULL, pool_helper, pool) != 0)
            break;
    }
    if (pool->threads < threads) {
        pool_free(pool);
        return NULL;
    }
    return pool;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i + 1 < pool->threads; i++)
        pthread_join(pool->helpers[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->helpers);
    free(pool);
}

unsigned pool_threads(const struct pool *pool)
{
    return pool ? pool->threads : 1;
}

void pool_run(struct pool *pool, size_t tasks, void (*task)(void *context, size_t index), void *context)
{
    if (!pool || pool->threads == 1 || tasks <= 1) {
        for (size_t i = 0; i < tasks; i++)
            task(context, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->generation++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);

    pool_take(pool, (struct call){ task, context, tasks });

    /* A helper that comes late finds `task` gone and sleeps on: the call's memory is never touched after it returned. */
    pthread_mutex_lock(&pool->lock);
    pool->task = NULL;
    while (pool->active)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void scratch_free(void *memory)
{
    munmap(memory, POOL_SCRATCH);
}

static void scratch_init(void)
{
    pthread_key_create(&scratch_key, scratch_free);
}

void *pool_scratch(void)
{
    static _Thread_local void *scratch;

    if (scratch)
        return scratch;
    pthread_once(&scratch_once, scratch_init);
    scratch = mmap(NULL, POOL_SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED) {
        fprintf(stderr, "rondo: no memory for 4 MiB of kernel scratch\n");
        abort();
    }
    pthread_setspecific(scratch_key, scratch);
    return scratch;
}
