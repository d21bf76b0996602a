#include "native/kernel/gather.h"

#include <string.h>

#include "native/kernel/loops.h"

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

void gather_sorted(size_t count, const int32_t *index, size_t rows, uint32_t *order, uint32_t *starts)
{
    memset(starts, 0, (rows + 1) * sizeof *starts);
    for (size_t i = 0; i < count; i++)
        starts[index[i] + 1]++;
    for (size_t t = 0; t < rows; t++)
        starts[t + 1] += starts[t];
    for (size_t i = 0; i < count; i++)
        order[starts[index[i]]++] = (uint32_t)i;
    memmove(starts + 1, starts, rows * sizeof *starts); /* each now stands at its end */
    starts[0] = 0;
}

struct outer_job {
    const uint32_t *starts;
    const float *const *a, *const *b;
    ptrdiff_t a_step;
    size_t rows, columns, blocks;
    float *out;
};

static void outer_share(void *context, size_t task)
{
    const struct outer_job *job = context;
    const size_t t = task / job->blocks, row = task % job->blocks * ROWS, rows = job->rows - row < ROWS ? job->rows - row : ROWS;
    const uint32_t first = job->starts[t];

    loops()->outer_sum(job->starts[t + 1] - first, job->a + first, (ptrdiff_t)row * job->a_step, job->a_step, rows,
                       job->b + first, job->columns, job->out + (t * job->rows + row) * job->columns, job->columns);
}

void gather_outer_sums(struct pool *pool, size_t tables, const uint32_t *starts, const float *const *a, ptrdiff_t a_step,
                       size_t rows, const float *const *b, size_t columns, float *out)
{
    struct outer_job job = { starts, a, b, a_step, rows, columns, (rows + ROWS - 1) / ROWS, out };

    pool_run(pool, tables * job.blocks, outer_share, &job);
}

size_t gather_check(size_t count, const int32_t *index, size_t rows)
{
    for (size_t i = 0; i < count; i++)
        if (index[i] < 0 || (size_t)index[i] >= rows)
            return i;
    return count;
}
