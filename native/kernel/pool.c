#include "native/kernel/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BITS = 8 * sizeof(unsigned long), CPUS = 1024 };

/* Between two calls of a training step lie microseconds: a helper looks for the next call that often before it sleeps, since waking
 * one up takes longer than many a call. */
enum { SPINS = 20000 };

struct pool {
    unsigned threads;
    pthread_t *helpers; /* threads - 1 */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_ulong generation; /* grows by one with each call, and when the pool ends; read without the lock while spinning */
    atomic_uint active;      /* helpers inside the current call */
    bool stopping;
    atomic_ulong taken[CPUS / BITS]; /* processors on which a thread of the current call runs */
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

/* Whether this thread is the first of the call on its processor. */
static bool take_processor(struct pool *pool, int cpu)
{
    const unsigned long bit = 1ul << (unsigned)cpu % BITS;

    return !(atomic_fetch_or_explicit(&pool->taken[(unsigned)cpu / BITS], bit, memory_order_relaxed) & bit);
}

/* A sleeper is often woken on the waker's processor and left there, though others idle: the scheduler sees too little of it. So a
 * helper that finds another thread of the call where it runs asks for any other processor, and then for all it had, which moves it
 * and pins nothing. */
static void part(struct pool *pool)
{
    const int cpu = sched_getcpu();
    cpu_set_t had, others;

    if (cpu < 0 || cpu >= CPUS || take_processor(pool, cpu) || sched_getaffinity(0, sizeof had, &had) != 0)
        return;
    others = had;
    for (unsigned i = 0; i < CPUS; i++)
        if (atomic_load_explicit(&pool->taken[i / BITS], memory_order_relaxed) >> i % BITS & 1)
            CPU_CLR(i, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return;
    take_processor(pool, sched_getcpu());
    sched_setaffinity(0, sizeof had, &had);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* With the lock, which is let go meanwhile: whoever sees no change goes to sleep. */
static void spin_while_generation(struct pool *pool, unsigned long seen)
{
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool->generation, memory_order_relaxed) == seen; i++)
        pause_briefly();
    pthread_mutex_lock(&pool->lock);
}

static void spin_while_active(struct pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool->active, memory_order_relaxed) > 0; i++)
        pause_briefly();
    pthread_mutex_lock(&pool->lock);
}

static void *pool_helper(void *argument)
{
    struct pool *pool = argument;
    unsigned long seen = 0;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        if (pool->generation == seen || !pool->task) {
            seen = pool->generation;
            spin_while_generation(pool, seen);
            while (pool->generation == seen)
                pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        struct call call = { pool->task, pool->context, pool->tasks };

        seen = pool->generation;
        pool->active++;
        pthread_mutex_unlock(&pool->lock);
        part(pool);
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
    pool->generation++;
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
    const int here = sched_getcpu();

    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    for (size_t i = 0; i < CPUS / BITS; i++)
        atomic_store_explicit(&pool->taken[i], 0, memory_order_relaxed);
    if (here >= 0 && here < CPUS)
        take_processor(pool, here);
    pool->generation++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);

    pool_take(pool, (struct call){ task, context, tasks });

    /* A helper that comes late finds `task` gone and sleeps on: the call's memory is never touched after it returned. */
    pthread_mutex_lock(&pool->lock);
    pool->task = NULL;
    if (pool->active)
        spin_while_active(pool);
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
