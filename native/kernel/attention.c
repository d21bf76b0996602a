#include "native/kernel/attention.h"

#include <assert.h>
#include <string.h>

#include "native/kernel/attention_part.h"
#include "native/kernel/class.h"
#include "native/kernel/loops.h"

#define BLOCK ATTENTION_BLOCK
#define TURNS 4096 /* key blocks a call of the pool: their counters stand on the stack */

struct job {
    struct attention_task task;
    const struct loops *loops;
    size_t blocks, group_parts;
    const float *y;
    float *delta;
    attention_forward *forward;
    attention_backward_block *backward;
    size_t first; /* key block of all heads that turns[0] stands for */
    atomic_size_t *turns;
};

/* The last queries see the most keys, where masks are causal: they come first, so that threads end together. */
static void forward_share(void *context, size_t index)
{
    const struct job *job = context;
    const struct attention *at = job->task.at;
    size_t i0 = (job->blocks - 1 - index % job->blocks) * BLOCK, rest = index / job->blocks,
           g0 = rest % job->group_parts * ATTENTION_GROUPS;
    size_t head = rest / job->group_parts % at->heads, batch = rest / job->group_parts / at->heads;
    size_t groups = at->group - g0 < ATTENTION_GROUPS ? at->group - g0 : ATTENTION_GROUPS;

    job->forward(&job->task, batch, head, g0, groups, i0, pool_scratch());
}

void attention_run(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v, float *y,
                   float *lse)
{
    static attention_forward *const forward[KERNEL_ISAS] = KERNEL_TABLE(NULL, attention_forward);
    struct job job = { .task = { .at = attention, .q = q, .k = k, .v = v, .y = y, .lse_out = lse },
                       .forward = forward[kernel_isa()] };

    assert(attention->width <= ATTENTION_WIDTH_MAX);
    if (!job.forward) {
        attention_reference(attention, q, k, v, y, lse);
        return;
    }
    job.blocks = (attention->queries + BLOCK - 1) / BLOCK;
    job.group_parts = (attention->group + ATTENTION_GROUPS - 1) / ATTENTION_GROUPS;
    pool_run(pool, attention->batch * attention->heads * job.group_parts * job.blocks, forward_share, &job);
}

/* Zeros for dq, dk, dv, and delta, of the queries and keys of one block of one head of k and v. */
static void prepare_share(void *context, size_t index)
{
    const struct job *job = context;
    const struct attention_task *task = &job->task;
    const struct attention *at = task->at;
    size_t start = index % job->blocks * BLOCK, h = index / job->blocks % at->heads, b = index / job->blocks / at->heads;

    for (size_t j = start; j < start + BLOCK && j < at->keys; j++) {
        ptrdiff_t to = attention_k_at(at, b, h) + (ptrdiff_t)j * at->k_time;

        memset(task->dk + to, 0, at->width * sizeof(float));
        memset(task->dv + to, 0, at->width * sizeof(float));
    }
    for (size_t g = 0; g < at->group; g++)
        for (size_t i = start; i < start + BLOCK && i < at->queries; i++) {
            ptrdiff_t from = attention_q_at(at, b, h, g) + (ptrdiff_t)i * at->q_time;

            memset(task->dq + from, 0, at->width * sizeof(float));
            job->delta[attention_lse_at(at, b, h, g) + (ptrdiff_t)i] =
                job->loops->dot_row(at->width, job->y + from, task->dy + from);
        }
}

/* Neighbouring tasks are the same key block of different heads: so the key block before is mostly done when one starts. */
static void backward_share(void *context, size_t index)
{
    const struct job *job = context;
    size_t heads = job->task.at->batch * job->task.at->heads, unit = job->first + index, head = unit % heads;
    struct attention_turn turn = { job->turns + index, index >= heads ? job->turns + index - heads : NULL };

    job->backward(&job->task, head / job->task.at->heads, head % job->task.at->heads, unit / heads * BLOCK, turn, pool_scratch());
}

void attention_backward(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v,
                        const float *y, const float *lse, const float *dy, float *delta, float *dq, float *dk, float *dv)
{
    static attention_backward_block *const backward[KERNEL_ISAS] = KERNEL_TABLE(NULL, attention_backward);
    struct job job = {
        .task = { .at = attention, .q = q, .k = k, .v = v, .lse = lse, .delta = delta, .dy = dy, .dq = dq, .dk = dk, .dv = dv },
        .loops = loops(),
        .y = y,
        .delta = delta,
        .backward = backward[kernel_isa()]
    };
    size_t longer = attention->keys > attention->queries ? attention->keys : attention->queries,
           heads = attention->batch * attention->heads, units = (attention->keys + BLOCK - 1) / BLOCK * heads;
    atomic_size_t turns[TURNS];

    assert(attention->width <= ATTENTION_WIDTH_MAX);
    job.blocks = (longer + BLOCK - 1) / BLOCK;
    pool_run(pool, heads * job.blocks, prepare_share, &job);
    if (!job.backward) {
        attention_reference_backward(attention, q, k, v, lse, delta, dy, dq, dk, dv);
        return;
    }
    for (job.turns = turns; job.first < units; job.first += TURNS) {
        size_t count = units - job.first < TURNS ? units - job.first : TURNS;

        for (size_t i = 0; i < count; i++)
            atomic_init(&turns[i], 0);
        pool_run(pool, count, backward_share, &job);
    }
}
