#include "native/kernel/gather.h"

#include <string.h>

#define ROWS    64  /* rows a task */
#define COLUMNS 256 /* columns a task of the adjoint */

struct job {
    size_t count, width, n, inner;
    const float *x;
    const int32_t *index;
    float *out;
};

static void rows_share(void *context, size_t task)
{
    const struct job *job = context;
    size_t i = task * ROWS, end = job->count - i < ROWS ? job->count : i + ROWS;

    for (; i < end; i++)
        memcpy(job->out + i * job->width, job->x + (size_t)job->index[i] * job->width, job->width * sizeof(float));
}

void gather_rows(struct pool *pool, size_t count, size_t width, const float *table, const int32_t *index, float *out)
{
    struct job job = { .count = count, .width = width, .x = table, .index = index, .out = out };

    pool_run(pool, (count + ROWS - 1) / ROWS, rows_share, &job);
}

static void scatter_share(void *context, size_t task)
{
    const struct job *job = context;
    size_t column = task * COLUMNS, end = job->width - column < COLUMNS ? job->width : column + COLUMNS;

    for (size_t i = 0; i < job->count; i++) {
        const float *x = job->x + i * job->width;
        float *row = job->out + (size_t)job->index[i] * job->width;

        for (size_t c = column; c < end; c++)
            row[c] = row[c] + x[c];
    }
}

void gather_scatter_add(struct pool *pool, size_t count, size_t width, const float *x, const int32_t *index, float *table)
{
    struct job job = { .count = count, .width = width, .x = x, .index = index, .out = table };

    pool_run(pool, (width + COLUMNS - 1) / COLUMNS, scatter_share, &job);
}

static void pick_share(void *context, size_t outer)
{
    const struct job *job = context;

    for (size_t c = 0; c < job->inner; c++)
        job->out[outer * job->inner + c] = job->x[(outer * job->n + (size_t)job->index[outer * job->inner + c]) * job->inner + c];
}

void gather_pick(struct pool *pool, size_t outer, size_t n, size_t inner, const float *x, const int32_t *index, float *out)
{
    struct job job = { .n = n, .inner = inner, .x = x, .index = index, .out = out };

    pool_run(pool, outer, pick_share, &job);
}

static void pick_backward_share(void *context, size_t outer)
{
    const struct job *job = context;

    memset(job->out + outer * job->n * job->inner, 0, job->n * job->inner * sizeof(float));
    for (size_t c = 0; c < job->inner; c++)
        job->out[(outer * job->n + (size_t)job->index[outer * job->inner + c]) * job->inner + c] = job->x[outer * job->inner + c];
}

void gather_pick_backward(struct pool *pool, size_t outer, size_t n, size_t inner, const int32_t *index, const float *g,
                          float *out)
{
    struct job job = { .n = n, .inner = inner, .x = g, .index = index, .out = out };

    pool_run(pool, outer, pick_backward_share, &job);
}

size_t gather_check(size_t count, const int32_t *index, size_t rows)
{
    for (size_t i = 0; i < count; i++)
        if (index[i] < 0 || (size_t)index[i] >= rows)
            return i;
    return count;
}
