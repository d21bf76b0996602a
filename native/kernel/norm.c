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
    const float *x = job->x + row * job->n;
    float *y = job->y + row * job->n, n = (float)job->n;
    float u = job->loops->reduce_row(REDUCE_SUM, job->n, x, NULL) / n;
    float r = f32_rsqrt(lanes_run(LANE_DISTANCE, job->n, x, NULL, u) / n + job->eps);

    for (size_t i = 0; i < job->n; i++) {
        float h = (x[i] - u) * r;

        y[i] = job->bias ? f32_fma(h, job->weight[i], job->bias[i]) : h * job->weight[i];
    }
    if (job->mean_out)
        job->mean_out[row] = u;
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
    const float *x = job->x + row * job->n, *dy = job->dy + row * job->n;
    float *dx = job->y + row * job->n, n = (float)job->n, u = job->mean[row], r = job->rstd[row], lane[REDUCE_LANES], a, b = 0.0f;

    for (size_t i = 0; i < job->n; i++)
        dx[i] = dy[i] * job->weight[i];
    a = job->loops->reduce_row(REDUCE_SUM, job->n, dx, NULL) / n;
    for (size_t start = 0; start < job->n; start += REDUCE_BLOCK) {
        size_t count = job->n - start < REDUCE_BLOCK ? job->n - start : REDUCE_BLOCK;

        for (int j = 0; j < REDUCE_LANES; j++)
            lane[j] = 0.0f;
        for (size_t i = 0; i < count; i++)
            lane[i % REDUCE_LANES] = f32_fma(dx[start + i], (x[start + i] - u) * r, lane[i % REDUCE_LANES]);
        b += lanes_tree(LANE_SUM, lane);
    }
    b = b / n;
    for (size_t i = 0; i < job->n; i++)
        dx[i] = r * f32_fma(-b, (x[i] - u) * r, dx[i] - a);
}

/* Rule 4 over rows: dweight of fmaf(dy, h, lane), dbias of dy. One column. */
static void layer_dweight_column(void *context, size_t column)
{
    const struct job *job = context;
    float weight = 0.0f, bias = 0.0f;

    for (size_t start = 0; start < job->rows; start += REDUCE_BLOCK) {
        size_t end = job->rows - start < REDUCE_BLOCK ? job->rows : start + REDUCE_BLOCK;
        float w[REDUCE_LANES] = { 0.0f }, b[REDUCE_LANES] = { 0.0f };

        for (size_t i = start; i < end; i++) {
            float dy = job->dy[i * job->n + column], h = (job->x[i * job->n + column] - job->mean[i]) * job->rstd[i];
            size_t j = (i - start) % REDUCE_LANES;

            w[j] = f32_fma(dy, h, w[j]);
            b[j] = b[j] + dy;
        }
        weight += lanes_tree(LANE_SUM, w);
        bias += lanes_tree(LANE_SUM, b);
    }
    if (job->dweight)
        job->dweight[column] = weight;
    if (job->dbias)
        job->dbias[column] = bias;
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
        pool_run(pool, n, layer_dweight_column, &job);
    if (dx)
        run(pool, &job);
}
