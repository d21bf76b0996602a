#include "native/kernel/norm.h"

#include "native/kernel/lanes.h"
#include "native/kernel/loops.h"

#define SHARE 8192 /* elements a task, about */

struct job {
    void (*row)(const struct job *job, size_t row);
    const struct loops *loops;
    size_t rows, n, rows_a_task;
    const float *x, *weight, *bias, *rstd, *mean, *dy;
    float eps, offset;
    float *y, *rstd_out, *mean_out, *dweight, *dbias;
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
    job->rows_a_task = job->n >= SHARE ? 1 : SHARE / (job->n + 1);
    pool_run(pool, (job->rows + job->rows_a_task - 1) / job->rows_a_task, share, job);
}

static void rms_row(const struct job *job, size_t row)
{
    float r = job->loops->rms(job->n, job->x + row * job->n, job->weight, job->eps, job->offset, job->y + row * job->n);

    if (job->rstd_out)
        job->rstd_out[row] = r;
}

void norm_rms(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, float eps, float offset, float *y,
              float *rstd)
{
    struct job job = { .row = rms_row,
                       .loops = loops(),
                       .rows = rows,
                       .n = n,
                       .x = x,
                       .weight = weight,
                       .eps = eps,
                       .offset = offset,
                       .y = y,
                       .rstd_out = rstd };

    run(pool, &job);
}

static void rms_backward_row(const struct job *job, size_t row)
{
    size_t at = row * job->n;

    job->loops->rms_backward(job->n, job->x + at, job->weight, job->offset, job->rstd[row], job->dy + at, job->y + at);
}

static void rms_dweight_tile(void *context, size_t tile)
{
    const struct job *job = context;
    size_t column = tile * LANES_COLUMNS, width = job->n - column < LANES_COLUMNS ? job->n - column : LANES_COLUMNS;

    job->loops->rms_dweight(job->rows, job->n, width, job->x + column, job->rstd, job->dy + column, job->dweight + column);
}

void norm_rms_backward(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, float offset,
                       const float *rstd, const float *dy, float *dx, float *dweight)
{
    struct job job = { .row = rms_backward_row,
                       .loops = loops(),
                       .rows = rows,
                       .n = n,
                       .x = x,
                       .weight = weight,
                       .offset = offset,
                       .rstd = rstd,
                       .dy = dy,
                       .y = dx,
                       .dweight = dweight };

    if (dweight)
        pool_run(pool, (n + LANES_COLUMNS - 1) / LANES_COLUMNS, rms_dweight_tile, &job);
    if (dx)
        run(pool, &job);
}

static void layer_row(const struct job *job, size_t row)
{
    float mean,
        r = job->loops->layer(job->n, job->x + row * job->n, job->weight, job->bias, job->eps, job->y + row * job->n, &mean);

    if (job->mean_out)
        job->mean_out[row] = mean;
    if (job->rstd_out)
        job->rstd_out[row] = r;
}

void norm_layer(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, const float *bias, float eps,
                float *y, float *mean, float *rstd)
{
    struct job job = { .row = layer_row,
                       .loops = loops(),
                       .rows = rows,
                       .n = n,
                       .x = x,
                       .weight = weight,
                       .bias = bias,
                       .eps = eps,
                       .y = y,
                       .mean_out = mean,
                       .rstd_out = rstd };

    run(pool, &job);
}

static void layer_backward_row(const struct job *job, size_t row)
{
    size_t at = row * job->n;

    job->loops->layer_backward(job->n, job->x + at, job->weight, job->mean[row], job->rstd[row], job->dy + at, job->y + at);
}

static void layer_dweight_tile(void *context, size_t tile)
{
    const struct job *job = context;
    size_t column = tile * LANES_COLUMNS, width = job->n - column < LANES_COLUMNS ? job->n - column : LANES_COLUMNS;

    job->loops->layer_dweight(job->rows, job->n, width, job->x + column, job->mean, job->rstd, job->dy + column,
                              job->dweight ? job->dweight + column : NULL, job->dbias ? job->dbias + column : NULL);
}

void norm_layer_backward(struct pool *pool, size_t rows, size_t n, const float *x, const float *weight, const float *mean,
                         const float *rstd, const float *dy, float *dx, float *dweight, float *dbias)
{
    struct job job = { .row = layer_backward_row,
                       .loops = loops(),
                       .rows = rows,
                       .n = n,
                       .x = x,
                       .weight = weight,
                       .mean = mean,
                       .rstd = rstd,
                       .dy = dy,
                       .y = dx,
                       .dweight = dweight,
                       .dbias = dbias };

    if (dweight || dbias)
        pool_run(pool, (n + LANES_COLUMNS - 1) / LANES_COLUMNS, layer_dweight_tile, &job);
    if (dx)
        run(pool, &job);
}
