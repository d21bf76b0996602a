/* attention.h - scaled dot-product attention with the online softmax (Milakov and Gimelshein 2018; Dao et al. 2022), memory linear in
 * the sequence, forward and backward. Key blocks of 64 are the definition; tiles of queries and threads are not.
 *
 * Query i, key j (positions from 0; the last query stands at the last key: p_i = i + keys - queries):
 *     allowed   (not causal or j <= p_i) and (window = 0 or |p_i - j| < window) and (no segments or segment_q[i] = segment_k[j])
 *     s_ij      +0 + fmaf chain over the head's width ascending from +0 (rule 3; one chunk), times scale;
 *               with softcap: softcap * tanh(s / softcap)
 * Forward, per query, key blocks ascending; a block without an allowed key changes nothing. m = -inf, l = +0, o = +0 at the start:
 *     m' = max(m, block's maximum); a = exp(m - m') (0 at the first block); p_j = exp(s_ij - m'), +0 where not allowed
 *     l = fmaf(l, a, rule-4 sum of the block's p)          o_d = fmaf(o_d, a, +0 + fmaf chain over the block's j of p_j v_jd)
 *     y = o (1 / l); lse = m + log l. A query with no allowed key: y = 0, lse = 0.
 * Backward: delta_i = rule 4 of fmaf(dy, y); p_ij = exp(s_ij - lse_i); dp_ij = +0 + chain over d of dy_id v_jd;
 *     ds = (p (dp - delta)) [softcap: times fmaf(-t, t, 1), t = s / softcap] times scale; p = ds = +0 where not allowed.
 *     Per (batch, key head): key blocks ascending, heads of the group ascending, query blocks of 64 ascending:
 *     dv_j += chain over the block's i of p_ij dy_i,  dk_j += chain over i of ds_ij q_i,  dq_i += chain over the block's j of ds_ij k_j;
 *     every += starts from +0. (Blocks with nothing allowed add +0 and may be skipped.)
 */
#ifndef RONDO_KERNEL_ATTENTION_H
#define RONDO_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define ATTENTION_BLOCK     64
#define ATTENTION_WIDTH_MAX 256

struct attention {
    size_t batch, queries, keys, heads, group, width; /* heads: of k and v; q has heads * group; width <= ATTENTION_WIDTH_MAX */
    float scale, softcap;                             /* softcap 0: none */
    bool causal;
    size_t window; /* 0: none */
    /* Strides in floats; the width axis is contiguous. q, y, dy, dq share q's; k, v, dk, dv share k's. */
    ptrdiff_t q_batch, q_time, q_head, q_group;
    ptrdiff_t k_batch, k_time, k_head;
    const int32_t *segment_q, *segment_k; /* both NULL, or [batch, queries] and [batch, keys], contiguous */
    /* Forward only, batch 1: NULL, or where each block of ATTENTION_BLOCK keys starts; then k and v are not read. */
    const float *const *k_block, *const *v_block;
};

/* y as q; lse is [batch, heads, group, queries], contiguous; may be NULL. */
void attention_run(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v, float *y,
                   float *lse);

/* `delta` is working memory as large as lse. dq, dk, dv are overwritten. */
void attention_backward(struct pool *pool, const struct attention *attention, const float *q, const float *k, const float *v,
                        const float *y, const float *lse, const float *dy, float *delta, float *dq, float *dk, float *dv);

#endif
