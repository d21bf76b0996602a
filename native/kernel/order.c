#include "native/kernel/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "native/kernel/loops.h"

struct job {
    const struct loops *loops;
    size_t n, m, width, k;
    const float *x, *y, *weight;
    float *out;
    int32_t *index;
    double *distance;
};

static size_t tile_width(const struct job *job, size_t tile)
{
    size_t left = job->width - tile * ORDER_TILE;

    return left < ORDER_TILE ? left : ORDER_TILE;
}

static void run(struct pool *pool, struct job *job, void (*tile)(void *context, size_t tile))
{
    assert(job->n <= ORDER_MAX);
    job->loops = loops();
    pool_run(pool, (job->width + ORDER_TILE - 1) / ORDER_TILE, tile, job);
}

static void sort_tile(void *context, size_t tile)
{
    const struct job *job = context;

    job->loops->sort(job->n, job->width, tile_width(job, tile), job->x + tile * ORDER_TILE, job->out + tile * ORDER_TILE);
}

void order_sort(struct pool *pool, size_t n, size_t width, const float *x, float *out)
{
    struct job job = { .n = n, .width = width, .x = x, .out = out };

    run(pool, &job, sort_tile);
}

static void rank_tile(void *context, size_t tile)
{
    const struct job *job = context;

    job->loops->rank(job->n, job->width, tile_width(job, tile), job->x + tile * ORDER_TILE, job->index + tile * ORDER_TILE);
}

void order_rank(struct pool *pool, size_t n, size_t width, const float *x, int32_t *out)
{
    struct job job = { .n = n, .width = width, .x = x, .index = out };

    run(pool, &job, rank_tile);
}

/* The weighted median sends what does not count to +inf, above all finite values. */
static void median_tile(void *context, size_t tile)
{
    const struct job *job = context;
    size_t width = tile_width(job, tile), at = tile * ORDER_TILE;
    float value[ORDER_MAX * ORDER_TILE];
    size_t count[ORDER_TILE] = { 0 };

    for (size_t i = 0; i < job->n; i++)
        for (size_t c = 0; c < width; c++) {
            int counts = !job->weight || job->weight[i * job->width + at + c] != 0.0f;

            value[i * ORDER_TILE + c] = counts ? job->x[i * job->width + at + c] : __builtin_inff();
            count[c] += (size_t)counts;
        }
    job->loops->sort(job->n, ORDER_TILE, width, value, value);
    for (size_t c = 0; c < width; c++) {
        size_t middle = count[c] / 2;
        float upper = count[c] ? value[middle * ORDER_TILE + c] : 0.0f;

        job->out[at + c] = count[c] % 2 || count[c] == 0 ? upper : (value[(middle - 1) * ORDER_TILE + c] + upper) * 0.5f;
    }
}

void order_median(struct pool *pool, size_t n, size_t width, const float *x, const float *weight, float *out)
{
    struct job job = { .n = n, .width = width, .x = x, .weight = weight, .out = out };

    run(pool, &job, median_tile);
}

/* Rank in descending order with the lower position first among equals, then place. */
static void topk_tile(void *context, size_t tile)
{
    const struct job *job = context;
    size_t width = tile_width(job, tile), at = tile * ORDER_TILE;

    for (size_t i = 0; i < job->n; i++)
        for (size_t c = 0; c < width; c++) {
            const float *x = job->x + at + c;
            size_t above = 0;

            for (size_t j = 0; j < job->n; j++)
                above += j < i ? x[j * job->width] >= x[i * job->width] : x[j * job->width] > x[i * job->width];
            if (above >= job->k)
                continue;
            if (job->out)
                job->out[above * job->width + at + c] = x[i * job->width];
            if (job->index)
                job->index[above * job->width + at + c] = (int32_t)i;
        }
}

void order_topk(struct pool *pool, size_t n, size_t width, size_t k, const float *x, float *value, int32_t *index)
{
    struct job job = { .n = n, .width = width, .k = k, .x = x, .out = value, .index = index };

    run(pool, &job, topk_tile);
}

/* Bottom-up merge sort of positions: stable, so equal values keep their order. */
static void rows_sort(const float *x, size_t n, int32_t *order, int32_t *spare)
{
    int32_t *from = order, *to = spare;

    for (size_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (size_t run_length = 1; run_length < n; run_length *= 2) {
        for (size_t start = 0; start < n; start += 2 * run_length) {
            size_t middle = start + run_length < n ? start + run_length : n;
            size_t end = middle + run_length < n ? middle + run_length : n, a = start, b = middle;

            for (size_t i = start; i < end; i++)
                to[i] = b >= end || (a < middle && !(x[from[b]] < x[from[a]])) ? from[a++] : from[b++];
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        memcpy(order, from, n * sizeof *order);
}

bool order_rows(struct pool *pool, size_t rows, size_t n, const float *x, float *value, int32_t *index)
{
    int32_t *order = malloc((2 * n + 1) * sizeof *order);
    float *sorted = malloc((n + 1) * sizeof *sorted);
    bool done = order && sorted;

    (void)pool;
    for (size_t r = 0; done && r < rows; r++) {
        rows_sort(x + r * n, n, order, order + n);
        for (size_t i = 0; i < n; i++)
            sorted[i] = x[r * n + (size_t)order[i]];
        if (value)
            memcpy(value + r * n, sorted, n * sizeof *sorted);
        if (index)
            memcpy(index + r * n, order, n * sizeof *order);
    }
    free(order);
    free(sorted);
    return done;
}

static void distance_pair(void *context, size_t pair)
{
    const struct job *job = context;

    job->distance[pair] = job->loops->dist2(job->width, job->x + pair / job->m * job->width, job->y + pair % job->m * job->width);
}

void order_dist2(struct pool *pool, size_t n, size_t m, size_t width, const float *x, const float *y, double *out)
{
    struct job job = { .loops = loops(), .m = m, .width = width, .x = x, .y = y, .distance = out };

    pool_run(pool, n * m, distance_pair, &job);
}
