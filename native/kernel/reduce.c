#include "native/kernel/reduce.h"

#include "native/kernel/lanes.h"
#include "native/kernel/loops.h"

#define SHARE 16384 /* elements a task, about */

struct job {
    enum reduce_op op;
    const struct loops *loops;
    size_t outer, n, inner, rows_a_task, tiles;
    const float *x, *y;
    ptrdiff_t x_row, y_row;
    float *out;
    int32_t *index;
};

static size_t rows_a_task(size_t n)
{
    return n >= SHARE ? 1 : SHARE / (n + 1);
}

static void rows_share(void *context, size_t task)
{
    const struct job *job = context;
    size_t row = task * job->rows_a_task, end = job->outer - row < job->rows_a_task ? job->outer : row + job->rows_a_task;

    for (; row < end; row++)
        job->out[row] = job->loops->reduce_row(job->op, job->n, job->x + row * job->n, job->y ? job->y + row * job->n : NULL);
}

static void columns_share(void *context, size_t task)
{
    const struct job *job = context;
    size_t outer = task / job->tiles, column = task % job->tiles * LANES_COLUMNS;
    size_t width = job->inner - column < LANES_COLUMNS ? job->inner - column : LANES_COLUMNS,
           at = outer * job->n * job->inner + column;

    job->loops->reduce_columns(job->op, job->n, job->inner, width, job->x + at, job->y ? job->y + at : NULL,
                               job->out + outer * job->inner + column);
}

void reduce_run(struct pool *pool, enum reduce_op op, size_t outer, size_t n, size_t inner, const float *x, const float *weight,
                float *out)
{
    struct job job = { .op = op, .loops = loops(), .outer = outer, .n = n, .inner = inner, .x = x, .y = weight, .out = out };

    if (inner == 1) {
        job.rows_a_task = rows_a_task(n);
        pool_run(pool, (outer + job.rows_a_task - 1) / job.rows_a_task, rows_share, &job);
    } else {
        job.tiles = (inner + LANES_COLUMNS - 1) / LANES_COLUMNS;
        pool_run(pool, outer * job.tiles, columns_share, &job);
    }
}

static void argmax_share(void *context, size_t outer)
{
    const struct job *job = context;

    for (size_t c = 0; c < job->inner; c++) {
        const float *x = job->x + outer * job->n * job->inner + c;
        size_t best = 0;

        for (size_t i = 1; i < job->n; i++)
            if (x[i * job->inner] > x[best * job->inner])
                best = i;
        job->index[outer * job->inner + c] = (int32_t)best;
    }
}

void reduce_argmax(struct pool *pool, size_t outer, size_t n, size_t inner, const float *x, int32_t *out)
{
    struct job job = { .n = n, .inner = inner, .x = x, .index = out };

    pool_run(pool, outer, argmax_share, &job);
}

static void dot_share(void *context, size_t task)
{
    const struct job *job = context;
    size_t row = task * job->rows_a_task, end = job->outer - row < job->rows_a_task ? job->outer : row + job->rows_a_task;

    for (; row < end; row++)
        job->out[row] = job->loops->dot_row(job->n, job->x + (ptrdiff_t)row * job->x_row, job->y + (ptrdiff_t)row * job->y_row);
}

void reduce_dot(struct pool *pool, size_t rows, size_t n, const float *x, ptrdiff_t x_row, const float *y, ptrdiff_t y_row,
                float *out)
{
    struct job job = { .loops = loops(),
                       .outer = rows,
                       .n = n,
                       .rows_a_task = rows_a_task(n),
                       .x = x,
                       .y = y,
                       .x_row = x_row,
                       .y_row = y_row,
                       .out = out };

    pool_run(pool, (rows + job.rows_a_task - 1) / job.rows_a_task, dot_share, &job);
}

struct job_f64 {
    size_t n;
    const double *x;
    double *out;
};

static void sum_f64_row(void *context, size_t row)
{
    const struct job_f64 *job = context;
    const double *x = job->x + row * job->n;
    double total = 0.0;

    for (size_t start = 0; start < job->n; start += REDUCE_BLOCK) {
        size_t count = job->n - start < REDUCE_BLOCK ? job->n - start : REDUCE_BLOCK;
        double lane[REDUCE_LANES] = { 0.0 };

        for (size_t i = 0; i < count; i++)
            lane[i % REDUCE_LANES] += x[start + i];
        for (int w = REDUCE_LANES / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                lane[j] += lane[j + w];
        total += lane[0];
    }
    job->out[row] = total;
}

void reduce_sum_f64(struct pool *pool, size_t rows, size_t n, const double *x, double *out)
{
    struct job_f64 job = { .n = n, .x = x, .out = out };

    pool_run(pool, rows, sum_f64_row, &job);
}
