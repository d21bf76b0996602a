/* step_layer.c - the operators of which models are made. */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/attention.h"
#include "native/kernel/norm.h"
#include "native/kernel/rope.h"
#include "native/kernel/softmax.h"

/* ---- norms: rows are [kept, normed] ---- */

struct rows {
    struct graph_axis order[GRAPH_AXES];
    unsigned rank, kept, normed;
    uint64_t rows, n;
};

static struct rows rows_of(const struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const struct graph_axis *given = graph_axes(w->g, w->n);
    struct rows r = { .rank = x->rank, .normed = w->n->axes_count };
    r.kept = axes_without(x, given, r.normed, r.order);
    memcpy(r.order + r.kept, given, r.normed * sizeof *given);
    r.rows = axes_product(r.order, r.kept);
    r.n = axes_product(given, r.normed);
    return r;
}

bool step_rmsnorm(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *weight = step_operand(w, 1, r.order + r.kept, r.normed, TENSOR_F32);
    const struct result y = step_result(w, w->id, r.order, r.rank);
    const uint32_t extra = step_extra(w, 1);
    struct result scale = { 0 };
    if (extra != GRAPH_NONE)
        scale = step_result(w, extra, r.order, r.kept);
    if (w->measure)
        return true;
    const double *v = graph_numbers(w->g, w->n);
    norm_rms(w->pool, r.rows, r.n, x, weight, (float)v[0], (float)v[1], y.at, extra == GRAPH_NONE ? NULL : scale.at);
    step_settle(w, &y);
    if (extra != GRAPH_NONE)
        step_settle(w, &scale);
    return true;
}

bool step_rmsnorm_grad(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *weight = step_operand(w, 1, r.order + r.kept, r.normed, TENSOR_F32);
    const float *scale = step_operand(w, 2, r.order, r.kept, TENSOR_F32), *g = step_operand(w, 3, r.order, r.rank, TENSOR_F32);
    const struct result dx = step_result(w, w->id, r.order, r.rank);
    if (w->measure)
        return true;
    norm_rms_backward(w->pool, r.rows, r.n, x, weight, (float)graph_numbers(w->g, w->n)[1], scale, g, dx.at, NULL);
    step_settle(w, &dx);
    return true;
}

bool step_rmsnorm_weight_grad(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *scale = step_operand(w, 1, r.order, r.kept, TENSOR_F32), *g = step_operand(w, 2, r.order, r.rank, TENSOR_F32);
    if (w->measure)
        return true;
    norm_rms_backward(w->pool, r.rows, r.n, x, NULL, 0, scale, g, NULL, w->data[w->id]);
    return true;
}

bool step_layernorm(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *weight = step_operand(w, 1, r.order + r.kept, r.normed, TENSOR_F32);
    const float *bias = w->n->input_count == 3 ? step_operand(w, 2, r.order + r.kept, r.normed, TENSOR_F32) : NULL;
    const struct result y = step_result(w, w->id, r.order, r.rank);
    struct result kept[2] = { { 0 }, { 0 } }; /* mean, 1 / deviation */
    for (unsigned i = 0; i < 2; i++)
        if (step_extra(w, i + 1) != GRAPH_NONE)
            kept[i] = step_result(w, step_extra(w, i + 1), r.order, r.kept);
    if (w->measure)
        return true;
    norm_layer(w->pool, r.rows, r.n, x, weight, bias, (float)graph_numbers(w->g, w->n)[0], y.at, kept[0].at, kept[1].at);
    step_settle(w, &y);
    for (unsigned i = 0; i < 2; i++)
        step_settle(w, &kept[i]);
    return true;
}

bool step_layernorm_grad(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *weight = step_operand(w, 1, r.order + r.kept, r.normed, TENSOR_F32);
    const float *mean = step_operand(w, 2, r.order, r.kept, TENSOR_F32), *scale = step_operand(w, 3, r.order, r.kept, TENSOR_F32);
    const float *g = step_operand(w, 4, r.order, r.rank, TENSOR_F32);
    const struct result dx = step_result(w, w->id, r.order, r.rank);
    if (w->measure)
        return true;
    norm_layer_backward(w->pool, r.rows, r.n, x, weight, mean, scale, g, dx.at, NULL, NULL);
    step_settle(w, &dx);
    return true;
}

bool step_layernorm_weight_grad(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *x = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const float *mean = step_operand(w, 1, r.order, r.kept, TENSOR_F32), *scale = step_operand(w, 2, r.order, r.kept, TENSOR_F32);
    const float *g = step_operand(w, 3, r.order, r.rank, TENSOR_F32);
    struct result bias = { 0 };
    if (step_extra(w, 1) != GRAPH_NONE)
        bias = step_result(w, step_extra(w, 1), r.order + r.kept, r.normed);
    if (w->measure)
        return true;
    norm_layer_backward(w->pool, r.rows, r.n, x, NULL, mean, scale, g, NULL, w->data[w->id], bias.at);
    step_settle(w, &bias);
    return true;
}

/* ---- rope: [tokens, heads, dim], a position for each token ---- */

bool step_rope(struct work *w)
{
    const struct graph_node *x = step_input(w, 0), *position = step_input(w, 1);
    const int64_t *k = graph_integers(w->g, w->n);
    const double *v = graph_numbers(w->g, w->n);
    const struct graph_axis *axis = graph_axes(w->g, w->n);
    struct graph_axis order[GRAPH_AXES];
    const unsigned kept = axes_without(x, axis, 1, order);
    unsigned lead = kept; /* up to the last axis that positions have */
    while (lead > 0 && graph_axis_find(position, order[lead - 1].name) < 0)
        lead--;
    order[kept] = *axis;
    const float *values = step_operand(w, 0, order, x->rank, TENSOR_F32);
    const int32_t *positions = step_operand(w, 1, order, lead, TENSOR_I32);
    const bool scaled = k[2] == ROPE_FACTORS;
    const float *factors = scaled ? step_operand(w, 2, step_input(w, 2)->axis, 1, TENSOR_F32) : NULL;
    const struct result y = step_result(w, w->id, order, x->rank);
    if (w->measure)
        return true;
    for (uint64_t i = 0; scaled && i < step_input(w, 2)->values; i++)
        if (!(factors[i] >= 1e-6f && factors[i] <= 1e6f))
            return error_set(w->err, ERROR_RANGE, NULL, "rope: factor %llu is not within 1e-6 to 1e6", (unsigned long long)i);
    const uint64_t tokens = axes_product(order, lead), heads = axes_product(order + lead, kept - lead);
    for (uint64_t i = 0; i < tokens; i++)
        if (positions[i] < 0 || positions[i] > 1 << 24)
            return error_set(w->err, ERROR_RANGE, NULL, "rope: position %d is not within 0 to 2^24", positions[i]);
    const struct rope rope = { .width = k[0] ? (size_t)k[0] : axis->size,
                               .base = (float)v[0],
                               .scaling = (enum rope_scaling)k[2],
                               .factor = (float)v[1],
                               .low_factor = (float)v[2],
                               .high_factor = (float)v[3],
                               .original_length = (float)v[4],
                               .attention = (float)v[4],
                               .factors = factors,
                               .interleaved = k[1] != 0 };
    rope_run(w->pool, &rope, tokens, heads, axis->size, positions, k[3] != 0, values, y.at);
    step_settle(w, &y);
    return true;
}

/* ---- attention: q is [batch, time, heads, group, width], k and v lack group ---- */

struct heads {
    struct graph_axis q[GRAPH_AXES], k[GRAPH_AXES], lse[GRAPH_AXES], segment[GRAPH_AXES];
    unsigned q_rank, k_rank, segment_rank;
    struct attention a;
    const int32_t *segments;
};

/* `segment`: its operand, or 0. */
static struct heads heads_of(struct work *w, unsigned segment)
{
    const struct graph_node *q = step_input(w, 0), *k = step_input(w, 1), *s = segment ? step_input(w, segment) : NULL;
    const struct graph_axis *given = graph_axes(w->g, w->n);
    struct graph_axis batch[GRAPH_AXES] = { 0 }, heads[GRAPH_AXES] = { 0 }, group[GRAPH_AXES] = { 0 };
    unsigned batches = 0, headed = 0, grouped = 0;
    bool before = true; /* the axes before `over`, and those of the segment, are the batch */
    for (unsigned i = 0; i < q->rank; i++) {
        const uint32_t name = q->axis[i].name;
        if (name == given[0].name)
            before = false;
        if (name == given[0].name || name == given[1].name)
            continue;
        if (graph_axis_find(k, name) < 0)
            group[grouped++] = q->axis[i];
        else if (before || (s && graph_axis_find(s, name) >= 0))
            batch[batches++] = q->axis[i];
        else
            heads[headed++] = q->axis[i];
    }
    struct heads h = { .a = { .batch = axes_product(batch, batches),
                              .heads = axes_product(heads, headed),
                              .group = axes_product(group, grouped),
                              .queries = given[0].size,
                              .keys = given[0].size,
                              .width = given[1].size } };
    unsigned l = 0;
    for (unsigned i = 0; i < batches; i++)
        h.q[h.q_rank++] = h.k[h.k_rank++] = h.lse[l++] = h.segment[h.segment_rank++] = batch[i];
    h.q[h.q_rank++] = h.k[h.k_rank++] = h.segment[h.segment_rank++] = given[0];
    for (unsigned i = 0; i < headed; i++)
        h.q[h.q_rank++] = h.k[h.k_rank++] = h.lse[l++] = heads[i];
    for (unsigned i = 0; i < grouped; i++)
        h.q[h.q_rank++] = h.lse[l++] = group[i];
    h.q[h.q_rank++] = h.k[h.k_rank++] = given[1];
    h.lse[l] = given[0];
    struct attention *a = &h.a;
    a->scale = (float)graph_numbers(w->g, w->n)[0];
    a->softcap = (float)graph_numbers(w->g, w->n)[1];
    a->causal = graph_integers(w->g, w->n)[0] != 0;
    a->window = (size_t)graph_integers(w->g, w->n)[1];
    a->q_group = a->k_head = (ptrdiff_t)a->width;
    a->q_head = a->q_group * (ptrdiff_t)a->group;
    a->q_time = a->q_head * (ptrdiff_t)a->heads;
    a->k_time = a->k_head * (ptrdiff_t)a->heads;
    a->q_batch = a->q_time * (ptrdiff_t)a->queries;
    a->k_batch = a->k_time * (ptrdiff_t)a->keys;
    a->segment_q = a->segment_k = segment ? step_operand(w, segment, h.segment, h.segment_rank, TENSOR_I32) : NULL;
    return h;
}

static bool width_good(const struct work *w, const struct attention *a)
{
    return a->width <= ATTENTION_WIDTH_MAX ||
           error_set(w->err, ERROR_UNSUPPORTED, NULL, "attention: heads wider than %d are not offered", ATTENTION_WIDTH_MAX);
}

/* Rows go on with sequences: their new keys and values join those of before, and queries see all of them. */
static void attention_continued(struct work *w, const struct attention *a, const float *q, const float *k, const float *v,
                                float *y)
{
    for (size_t r = 0; r < w->cache->rows; r++) {
        struct cache_sequence *s = w->cache->sequences[r];
        struct attention row = *a;

        row.batch = 1;
        row.queries = w->cache->counts[r];
        row.segment_q = row.segment_k = NULL;
        float *to = y + (ptrdiff_t)r * a->q_batch;

        memset(to + (ptrdiff_t)row.queries * a->q_time, 0, (a->queries - row.queries) * (size_t)a->q_time * sizeof *to);
        if (row.queries == 0)
            continue;
        row.keys = cache_sequence_length(s) + row.queries;
        cache_add(s, w->layer[w->id], k + (ptrdiff_t)r * a->k_batch, v + (ptrdiff_t)r * a->k_batch, w->cache->counts[r]);
        cache_pages(s, w->layer[w->id], &row.k_block, &row.v_block);
        attention_run(w->pool, &row, q + (ptrdiff_t)r * a->q_batch, NULL, NULL, to, NULL);
    }
}

bool step_attention(struct work *w)
{
    const struct heads h = heads_of(w, w->n->input_count == 4 ? 3 : 0);
    const float *q = step_operand(w, 0, h.q, h.q_rank, TENSOR_F32), *k = step_operand(w, 1, h.k, h.k_rank, TENSOR_F32);
    const float *v = step_operand(w, 2, h.k, h.k_rank, TENSOR_F32);
    const struct result y = step_result(w, w->id, h.q, h.q_rank);
    const uint32_t extra = step_extra(w, 1);
    struct result lse = { 0 };
    if (extra != GRAPH_NONE)
        lse = step_result(w, extra, h.lse, h.q_rank - 1);
    if (w->measure)
        return true;
    if (!width_good(w, &h.a))
        return false;
    if (w->cache)
        attention_continued(w, &h.a, q, k, v, y.at);
    else
        attention_run(w->pool, &h.a, q, k, v, y.at, extra == GRAPH_NONE ? NULL : lse.at);
    step_settle(w, &y);
    if (extra != GRAPH_NONE)
        step_settle(w, &lse);
    return true;
}

bool step_attention_grad(struct work *w)
{
    const unsigned at = w->n->input_count - 3;
    const struct heads h = heads_of(w, at == 4 ? 3 : 0);
    const float *q = step_operand(w, 0, h.q, h.q_rank, TENSOR_F32), *k = step_operand(w, 1, h.k, h.k_rank, TENSOR_F32);
    const float *v = step_operand(w, 2, h.k, h.k_rank, TENSOR_F32), *y = step_operand(w, at, h.q, h.q_rank, TENSOR_F32);
    const float *lse = step_operand(w, at + 1, h.lse, h.q_rank - 1, TENSOR_F32);
    const float *dy = step_operand(w, at + 2, h.q, h.q_rank, TENSOR_F32);
    const struct result dq = step_result(w, w->id, h.q, h.q_rank), dk = step_result(w, step_extra(w, 1), h.k, h.k_rank),
                        dv = step_result(w, step_extra(w, 2), h.k, h.k_rank);
    float *delta = step_take(w, axes_product(h.lse, h.q_rank - 1) * sizeof *delta);
    if (w->measure)
        return true;
    if (!width_good(w, &h.a))
        return false;
    attention_backward(w->pool, &h.a, q, k, v, y, lse, dy, delta, dq.at, dk.at, dv.at);
    step_settle(w, &dq);
    step_settle(w, &dk);
    step_settle(w, &dv);
    return true;
}

/* ---- token_logprob: [ids, vocab] ---- */

bool step_ids_good(struct work *w, const int32_t *ids, uint64_t count, uint64_t n)
{
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] >= 0 && (uint64_t)ids[i] >= n)
            return error_set(w->err, ERROR_RANGE, NULL, "token_logprob: id %d, but there are %llu", ids[i],
                             (unsigned long long)n);
    return true;
}

bool step_token_logprob(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *logits = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const int32_t *ids = step_operand(w, 1, r.order, r.kept, TENSOR_I32);
    const struct result y = step_result(w, w->id, r.order, r.kept);
    const uint32_t extra = step_extra(w, 1);
    struct result lse = { 0 };
    if (extra != GRAPH_NONE)
        lse = step_result(w, extra, r.order, r.kept);
    if (w->measure)
        return true;
    if (!step_ids_good(w, ids, r.rows, r.n))
        return false;
    softmax_logprob(w->pool, r.rows, r.n, logits, ids, y.at, extra == GRAPH_NONE ? NULL : lse.at);
    step_settle(w, &y);
    if (extra != GRAPH_NONE)
        step_settle(w, &lse);
    return true;
}

bool step_token_logprob_grad(struct work *w)
{
    const struct rows r = rows_of(w);
    const float *logits = step_operand(w, 0, r.order, r.rank, TENSOR_F32);
    const int32_t *ids = step_operand(w, 1, r.order, r.kept, TENSOR_I32);
    const float *lse = step_operand(w, 2, r.order, r.kept, TENSOR_F32), *g = step_operand(w, 3, r.order, r.kept, TENSOR_F32);
    const struct result dx = step_result(w, w->id, r.order, r.rank);
    if (w->measure)
        return true;
    if (!step_ids_good(w, ids, r.rows, r.n))
        return false;
    softmax_logprob_backward(w->pool, r.rows, r.n, logits, ids, lse, g, dx.at);
    step_settle(w, &dx);
    return true;
}
