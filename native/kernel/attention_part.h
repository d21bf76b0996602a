/* attention_part.h - what the definition and the fast versions of attention share; internal to native/kernel. */
#ifndef RONDO_KERNEL_ATTENTION_PART_H
#define RONDO_KERNEL_ATTENTION_PART_H

#include <sched.h>
#include <stdatomic.h>
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

/* Key (or value) j0 of a head, j0 a multiple of ATTENTION_BLOCK; what follows to the end of the block lies k_time apart. */
static inline const float *attention_block_at(const struct attention *at, const float *k, const float *const *blocks,
                                              size_t batch, size_t head, size_t j0)
{
    return blocks ? blocks[j0 / ATTENTION_BLOCK] + (ptrdiff_t)head * at->k_head
                  : k + attention_k_at(at, batch, head) + (ptrdiff_t)j0 * at->k_time;
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

/* The fast versions: one task each. Forward: `groups` heads of a group from g0, queries of one block. Backward: one key block of one head
 * of k and v with its whole group; dq, dk, dv hold zeros. `scratch`: ATTENTION_SCRATCH floats, aligned to 64. */
struct attention_task {
    const struct attention *at;
    const float *q, *k, *v, *lse, *delta, *dy;
    float *y, *lse_out, *dq, *dk, *dv;
};

/* dq's additions come by key blocks ascending, whoever computes them: a key block counts up the query blocks that it is through with,
 * and adds to one only when the key block before it (NULL: there is none, or it is long done) has. */
struct attention_turn {
    atomic_size_t *own;
    const atomic_size_t *before;
};

static inline void attention_turn_wait(const struct attention_turn *turn, size_t step)
{
    for (unsigned spins = 0; turn->before && atomic_load_explicit(turn->before, memory_order_acquire) <= step; spins++)
        if (spins > 64)
            sched_yield();
}

static inline void attention_turn_pass(const struct attention_turn *turn, size_t step)
{
    attention_turn_wait(turn, step);
    atomic_store_explicit(turn->own, step + 1, memory_order_release);
}

#define ATTENTION_GROUPS  4
#define ATTENTION_SCRATCH ((size_t)192 << 10)

typedef void attention_forward(const struct attention_task *task, size_t batch, size_t head, size_t g0, size_t groups, size_t i0,
                               float *scratch);
typedef void attention_backward_block(const struct attention_task *task, size_t batch, size_t head, size_t j0,
                                      struct attention_turn turn, float *scratch);

attention_forward attention_forward_avx2, attention_forward_avx512, attention_forward_neon;
attention_backward_block attention_backward_avx2, attention_backward_avx512, attention_backward_neon;

#endif
