#include "native/kernel/attention.h"

#include <assert.h>
#include <string.h>

#include "native/kernel/attention_part.h"
#include "native/kernel/loops.h"

struct job {
    const struct attention *at;
    const struct loops *loops;
    const float *q, *k, *v, *y, *lse, *dy;
    float *out, *delta, *dq, *dk, *dv;
};

void attention_run(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v, float *y,
                   float *lse)
{
    (void)pool;
    assert(attention->width <= ATTENTION_WIDTH_MAX);
    attention_reference(attention, q, k, v, y, lse);
}

static void zero_rows(const struct attention *at, size_t b, size_t h, float *dq, float *dk, float *dv)
{
    for (size_t j = 0; j < at->keys; j++) {
        memset(dk + attention_k_at(at, b, h) + (ptrdiff_t)j * at->k_time, 0, at->width * sizeof(float));
        memset(dv + attention_k_at(at, b, h) + (ptrdiff_t)j * at->k_time, 0, at->width * sizeof(float));
    }
    for (size_t g = 0; g < at->group; g++)
        for (size_t i = 0; i < at->queries; i++)
            memset(dq + attention_q_at(at, b, h, g) + (ptrdiff_t)i * at->q_time, 0, at->width * sizeof(float));
}

static void delta_head(const struct job *job, size_t b, size_t h)
{
    const struct attention *at = job->at;

    for (size_t g = 0; g < at->group; g++)
        for (size_t i = 0; i < at->queries; i++) {
            ptrdiff_t from = attention_q_at(at, b, h, g) + (ptrdiff_t)i * at->q_time;

            job->delta[attention_lse_at(at, b, h, g) + (ptrdiff_t)i] =
                job->loops->dot_row(at->width, job->dy + from, job->y + from);
        }
}

void attention_backward(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v,
                        const float *y, const float *lse, const float *dy, float *delta, float *dq, float *dk, float *dv)
{
    struct job job = { .at = attention,
                       .loops = loops(),
                       .q = q,
                       .k = k,
                       .v = v,
                       .y = y,
                       .lse = lse,
                       .dy = dy,
                       .delta = delta,
                       .dq = dq,
                       .dk = dk,
                       .dv = dv };

    (void)pool;
    for (size_t b = 0; b < attention->batch; b++)
        for (size_t h = 0; h < attention->heads; h++) {
            zero_rows(attention, b, h, dq, dk, dv);
            delta_head(&job, b, h);
        }
    attention_reference_backward(attention, q, k, v, lse, delta, dy, dq, dk, dv);
}
