#include "native/kernel/attention.h"

#include <assert.h>
#include <string.h>

#include "native/kernel/attention_part.h"
#include "native/kernel/class.h"
#include "native/kernel/loops.h"

struct job {
    struct attention_task task;
    const struct loops *loops;
    size_t blocks, group_parts;
    const float *y;
    float *delta;
    void (*forward)(const struct attention_task *task, size_t batch, size_t head, size_t g0, size_t groups, size_t i0,
                    float *scratch);
    void (*backward)(const struct attention_task *task, size_t batch, size_t head, float *scratch);
};

static void forward_share(void *context, size_t index)
{
    const struct job *job = context;
    const struct attention *at = job->task.at;
    size_t i0 = index % job->blocks * ATTENTION_BLOCK, rest = index / job->blocks,
           g0 = rest % job->group_parts * ATTENTION_GROUPS;
    size_t head = rest / job->group_parts % at->heads, batch = rest / job->group_parts / at->heads;
    size_t groups = at->group - g0 < ATTENTION_GROUPS ? at->group - g0 : ATTENTION_GROUPS;

    job->forward(&job->task, batch, head, g0, groups, i0, pool_scratch());
}

void attention_run(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v, float *y,
                   float *lse)
{
    struct job job = { .task = { .at = attention, .q = q, .k = k, .v = v, .y = y, .lse_out = lse } };

    assert(attention->width <= ATTENTION_WIDTH_MAX);
    if (kernel_isa() == KERNEL_SCALAR) {
        attention_reference(attention, q, k, v, y, lse);
        return;
    }
    job.forward = kernel_isa() == KERNEL_AVX512 ? KERNEL_X86(attention_forward_avx512) : KERNEL_X86(attention_forward_avx2);
    job.blocks = (attention->queries + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    job.group_parts = (attention->group + ATTENTION_GROUPS - 1) / ATTENTION_GROUPS;
    pool_run(pool, attention->batch * attention->heads * job.group_parts * job.blocks, forward_share, &job);
}

/* Zeros for dq, dk, dv, and delta, of one head of k and v. */
static void backward_prepare(const struct job *job, size_t b, size_t h)
{
    const struct attention_task *task = &job->task;
    const struct attention *at = task->at;

    for (size_t j = 0; j < at->keys; j++) {
        ptrdiff_t to = attention_k_at(at, b, h) + (ptrdiff_t)j * at->k_time;

        memset(task->dk + to, 0, at->width * sizeof(float));
        memset(task->dv + to, 0, at->width * sizeof(float));
    }
    for (size_t g = 0; g < at->group; g++)
        for (size_t i = 0; i < at->queries; i++) {
            ptrdiff_t from = attention_q_at(at, b, h, g) + (ptrdiff_t)i * at->q_time;

            memset(task->dq + from, 0, at->width * sizeof(float));
            job->delta[attention_lse_at(at, b, h, g) + (ptrdiff_t)i] =
                job->loops->dot_row(at->width, job->y + from, task->dy + from);
        }
}

static void backward_share(void *context, size_t index)
{
    const struct job *job = context;
    size_t head = index % job->task.at->heads, batch = index / job->task.at->heads;

    backward_prepare(job, batch, head);
    if (job->backward)
        job->backward(&job->task, batch, head, pool_scratch());
}

void attention_backward(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v,
                        const float *y, const float *lse, const float *dy, float *delta, float *dq, float *dk, float *dv)
{
    struct job job = {
        .task = { .at = attention, .q = q, .k = k, .v = v, .lse = lse, .delta = delta, .dy = dy, .dq = dq, .dk = dk, .dv = dv },
        .loops = loops(),
        .y = y,
        .delta = delta
    };

    assert(attention->width <= ATTENTION_WIDTH_MAX);
    job.backward = kernel_isa() == KERNEL_SCALAR   ? NULL
                   : kernel_isa() == KERNEL_AVX512 ? KERNEL_X86(attention_backward_avx512)
                                                   : KERNEL_X86(attention_backward_avx2);
    pool_run(pool, attention->batch * attention->heads, backward_share, &job);
    if (kernel_isa() == KERNEL_SCALAR)
        attention_reference_backward(attention, q, k, v, lse, delta, dy, dq, dk, dv);
}
