#include "native/kernel/softmax.h"

#include "native/kernel/loops.h"

#define SHARE 8192 /* elements a task, about */

struct job {
    void (*row)(const struct job *job, size_t row);
    const struct loops *loops;
    size_t rows, n, rows_a_task;
    const float *x, *dy, *mask, *lse, *g, *entropy;
    ptrdiff_t mask_row;
    const int32_t *target;
    float *out, *lse_out;
};

static void share(void *context, size_t task)
{
    const struct job *job = context;
    size_t row = task * job->rows_a_task, end = job->rows - row < job->rows_a_task ? job->rows : row + job->rows_a_task;

    for (; row < end; row++)
        job->row(job, row);
}

static void run(struct pool *pool, struct job *job)
{
    job->loops = loops();
    job->rows_a_task = job->n >= SHARE ? 1 : SHARE / (job->n + 1);
    pool_run(pool, (job->rows + job->rows_a_task - 1) / job->rows_a_task, share, job);
}

static const float *mask_of(const struct job *job, size_t row)
{
    return job->mask ? job->mask + (ptrdiff_t)row * job->mask_row : NULL;
}

static void softmax_row(const struct job *job, size_t row)
{
    job->loops->softmax(job->n, job->x + row * job->n, mask_of(job, row), job->out + row * job->n);
}

void softmax_run(struct pool *pool, size_t rows, size_t n, const float *x, const float *mask, ptrdiff_t mask_row, float *out)
{
    struct job job = { .row = softmax_row, .rows = rows, .n = n, .x = x, .mask = mask, .mask_row = mask_row, .out = out };

    run(pool, &job);
}

static void log_row(const struct job *job, size_t row)
{
    job->loops->softmax_log(job->n, job->x + row * job->n, mask_of(job, row), job->out + row * job->n);
}

void softmax_log_run(struct pool *pool, size_t rows, size_t n, const float *x, const float *mask, ptrdiff_t mask_row, float *out)
{
    struct job job = { .row = log_row, .rows = rows, .n = n, .x = x, .mask = mask, .mask_row = mask_row, .out = out };

    run(pool, &job);
}

static void backward_row(const struct job *job, size_t row)
{
    job->loops->softmax_backward(job->n, job->x + row * job->n, job->dy + row * job->n, job->out + row * job->n);
}

void softmax_backward(struct pool *pool, size_t rows, size_t n, const float *y, const float *dy, float *dx)
{
    struct job job = { .row = backward_row, .rows = rows, .n = n, .x = y, .dy = dy, .out = dx };

    run(pool, &job);
}

static void log_backward_row(const struct job *job, size_t row)
{
    job->loops->softmax_log_backward(job->n, job->x + row * job->n, job->dy + row * job->n, mask_of(job, row),
                                     job->out + row * job->n);
}

void softmax_log_backward(struct pool *pool, size_t rows, size_t n, const float *y, const float *dy, const float *mask,
                          ptrdiff_t mask_row, float *dx)
{
    struct job job = {
        .row = log_backward_row, .rows = rows, .n = n, .x = y, .dy = dy, .mask = mask, .mask_row = mask_row, .out = dx
    };

    run(pool, &job);
}

static void logprob_row(const struct job *job, size_t row)
{
    job->out[row] =
        job->loops->logprob(job->n, job->x + row * job->n, job->target[row], job->lse_out ? job->lse_out + row : NULL);
}

void softmax_logprob(struct pool *pool, size_t rows, size_t n, const float *logits, const int32_t *target, float *logprob,
                     float *lse)
{
    struct job job = { .row = logprob_row, .rows = rows, .n = n, .x = logits, .target = target, .out = logprob, .lse_out = lse };

    run(pool, &job);
}

static void logprob_backward_row(const struct job *job, size_t row)
{
    job->loops->logprob_backward(job->n, job->x + row * job->n, job->target[row], job->lse[row], job->g[row],
                                 job->out + row * job->n);
}

void softmax_logprob_backward(struct pool *pool, size_t rows, size_t n, const float *logits, const int32_t *target,
                              const float *lse, const float *g, float *dlogits)
{
    struct job job = {
        .row = logprob_backward_row, .rows = rows, .n = n, .x = logits, .target = target, .lse = lse, .g = g, .out = dlogits
    };

    run(pool, &job);
}

static void entropy_row(const struct job *job, size_t row)
{
    job->out[row] = job->loops->entropy(job->n, job->x + row * job->n, job->lse[row]);
}

void softmax_entropy(struct pool *pool, size_t rows, size_t n, const float *logits, const float *lse, float *entropy)
{
    struct job job = { .row = entropy_row, .rows = rows, .n = n, .x = logits, .lse = lse, .out = entropy };

    run(pool, &job);
}

static void entropy_backward_row(const struct job *job, size_t row)
{
    job->loops->entropy_backward(job->n, job->x + row * job->n, job->lse[row], job->entropy[row], job->g[row],
                                 job->out + row * job->n);
}

void softmax_entropy_backward(struct pool *pool, size_t rows, size_t n, const float *logits, const float *lse,
                              const float *entropy, const float *g, float *dlogits)
{
    struct job job = {
        .row = entropy_backward_row, .rows = rows, .n = n, .x = logits, .lse = lse, .entropy = entropy, .g = g, .out = dlogits
    };

    run(pool, &job);
}
