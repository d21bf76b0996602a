/* attention_part.h - what the definition and the fast versions of attention share; internal to native/kernel. */
#ifndef RONDO_KERNEL_ATTENTION_PART_H
#define RONDO_KERNEL_ATTENTION_PART_H

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

/* The definition. Backward: delta as lse; dq, dk, dv hold zeros on entry. */
void attention_reference(const struct attention *at, const float *q, const float *k, const float *v, float *y, float *lse);
void attention_reference_backward(const struct attention *at, const float *q, const float *k, const float *v, const float *lse,
                                  const float *delta, const float *dy, float *dq, float *dk, float *dv);

#endif
