/* attention_part.h - what the definition and the fast versions of attention share; internal to native/kernel. */
#ifndef RONDO_KERNEL_ATTENTION_PART_H
#define RONDO_KERNEL_ATTENTION_PART_H

#include <stdbool.h>

#include "native/kernel/attention.h"

/* Where a head's first row starts, in q, in k, and in lse. */
static inline ptrdiff_t attention_q_at(const struct attention *at, size_t batch, size_t head, size_t group)
{
    return (ptrdiff_t)batch * at->q_batch + (ptrdiff_t)head * at->q_head + (ptrdiff_t)group * at->q_group;
}

static inline ptrdiff_t attention_k_at(const struct attention *at, size_t batch, size_t head)
{
    return (ptrdiff_t)batch * at->k_batch + (ptrdiff_t)head * at->k_head;
}

static inline ptrdiff_t attention_lse_at(const struct attention *at, size_t batch, size_t head, size_t group)
{
    return (ptrdiff_t)(((batch * at->heads + head) * at->group + group) * at->queries);
}

/* The keys that the position of query i may see, by causality and window: [from, to), to > from or both 0. */
static inline void attention_range(const struct attention *at, size_t i, size_t *from, size_t *to)
{
    ptrdiff_t p = (ptrdiff_t)(i + at->keys) - (ptrdiff_t)at->queries, window = (ptrdiff_t)at->window;
    ptrdiff_t low = window && p - window + 1 > 0 ? p - window + 1 : 0;
    ptrdiff_t high = at->causal ? p + 1 : window ? p + window : (ptrdiff_t)at->keys;

    high = high < (ptrdiff_t)at->keys ? high : (ptrdiff_t)at->keys;
    *from = low < high ? (size_t)low : 0;
    *to = low < high ? (size_t)high : 0;
}

static inline bool attention_allowed(const struct attention *at, size_t batch, size_t i, size_t j)
{
    size_t from, to;

    attention_range(at, i, &from, &to);
    if (j < from || j >= to)
        return false;
    return !at->segment_q || at->segment_q[batch * at->queries + i] == at->segment_k[batch * at->keys + j];
}

/* The definition. Backward: delta as lse; dq, dk, dv hold zeros on entry. */
void attention_reference(const struct attention *at, const float *q, const float *k, const float *v, float *y, float *lse);
void attention_reference_backward(const struct attention *at, const float *q, const float *k, const float *v, const float *lse,
                                  const float *delta, const float *dy, float *dq, float *dk, float *dv);

/* The fast versions: one task each. Forward: `groups` heads of a group from g0, queries of one block. Backward: one head of k and v with
 * its whole group; dq, dk, dv hold zeros. `scratch`: ATTENTION_SCRATCH floats, aligned to 64. */
struct attention_task {
    const struct attention *at;
    const float *q, *k, *v, *lse, *delta, *dy;
    float *y, *lse_out, *dq, *dk, *dv;
};

#define ATTENTION_GROUPS  4
#define ATTENTION_SCRATCH ((size_t)192 << 10)

void attention_forward_avx2(const struct attention_task *task, size_t batch, size_t head, size_t g0, size_t groups, size_t i0,
                            float *scratch);
void attention_forward_avx512(const struct attention_task *task, size_t batch, size_t head, size_t g0, size_t groups, size_t i0,
                              float *scratch);
void attention_backward_avx2(const struct attention_task *task, size_t batch, size_t head, float *scratch);
void attention_backward_avx512(const struct attention_task *task, size_t batch, size_t head, float *scratch);

#endif
