/* graph_reference_layer.h - the meaning of the layers, their further results and their gradients, in doubles; a part of
 * graph_reference.h.
 *
 * ref_layer(r, node, which, index) is an element of result `which` of `node` (0: its own).
 */
#ifndef RONDO_TESTS_GRAPH_REFERENCE_LAYER_H
#define RONDO_TESTS_GRAPH_REFERENCE_LAYER_H

#include <sodium.h>

#include "native/base/buffer.h"
#include "native/numerics/random.h"

/* ---- rope ---- */

/* The frequency of a pair, by the formulas of the papers and of the models' configurations. */
static inline double ref_frequency(const double *v, int64_t scaling, uint64_t pair, uint64_t width)
{
    const double f = pow(v[0], -2.0 * (double)pair / (double)width), ramp = ((double)pair - v[2]) / (v[3] - v[2]);
    const double turns = v[4] * f / (2 * M_PI), smooth = (turns - v[2]) / (v[3] - v[2]);
    switch (scaling) {
    case ROPE_LINEAR:
        return f / v[1];
    case ROPE_LLAMA3:
        return turns < v[2] ? f / v[1] : turns > v[3] ? f : (1 - smooth) * f / v[1] + smooth * f;
    case ROPE_YARN:
        return ramp <= 0 ? f : ramp >= 1 ? f / v[1] : f / v[1] * ramp + f * (1 - ramp);
    default:
        return f;
    }
}

static inline double ref_rope(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const struct graph_axis axis = *graph_axes(r->g, n);
    const uint32_t *in = graph_inputs(r->g, n);
    const int64_t *k = graph_integers(r->g, n);
    const double *v = graph_numbers(r->g, n), size = k[2] >= ROPE_YARN ? v[4] : 1;
    const uint64_t width = k[0] ? (uint64_t)k[0] : axis.size, i = index[axis.name];
    if (i >= width)
        return reference_at(r, in[0], index);
    REF_COPY(at, index);
    const uint64_t pair = k[1] ? i / 2 : i % (width / 2), first = k[1] ? i % 2 == 0 : i < width / 2;
    at[axis.name] = k[1] ? i ^ 1 : (i + width / 2) % width;
    double angle = reference_at(r, in[1], index) * ref_frequency(v, k[2], pair, width);
    if (k[2] == ROPE_FACTORS) {
        REF_COPY(of_pair, index);
        of_pair[r->g->nodes[in[2]].axis[0].name] = pair;
        angle /= reference_at(r, in[2], of_pair);
    }
    const double x = reference_at(r, in[0], index), y = reference_at(r, in[0], at), s = k[3] ? -sin(angle) : sin(angle);
    return size * (first ? x * cos(angle) - y * s : x * cos(angle) + y * s);
}

/* ---- attention: a pair of query and key ---- */

struct ref_pair {
    double score, tanh; /* -inf where not allowed; tanh of the uncapped score over the cap */
    double p, dp, ds;   /* backward only */
};

/* at_q: query, with its batch, head and group; key j of the same batch and head. */
static inline struct ref_pair ref_scored(struct reference *r, const struct graph_node *n, const uint64_t *at_q, uint64_t j)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    const uint32_t *in = graph_inputs(r->g, n);
    const double *v = graph_numbers(r->g, n);
    const int64_t *flags = graph_integers(r->g, n);
    const uint64_t i = at_q[axes[0].name];
    struct ref_pair pair = { 0 };
    REF_COPY(at, at_q);
    for (uint64_t d = 0; d < axes[1].size; d++) {
        at[axes[1].name] = d;
        at[axes[0].name] = i;
        const double q = reference_at(r, in[0], at);
        at[axes[0].name] = j;
        pair.score += q * reference_at(r, in[1], at);
    }
    pair.score *= v[0];
    if (v[1] > 0) {
        pair.tanh = tanh(pair.score / v[1]);
        pair.score = v[1] * pair.tanh;
    }
    bool allowed = !flags[0] || j <= i;
    if (flags[1] && (i > j ? i - j : j - i) >= (uint64_t)flags[1])
        allowed = false;
    if (n->input_count == 4 || n->input_count == 7) {
        at[axes[0].name] = i;
        const double own = reference_at(r, in[3], at);
        at[axes[0].name] = j;
        allowed = allowed && own == reference_at(r, in[3], at);
    }
    pair.score = allowed ? pair.score : -INFINITY;
    return pair;
}

static inline double ref_attention(struct reference *r, const struct graph_node *n, unsigned which, const uint64_t *index)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    double score[256], y = 0;
    for (uint64_t j = 0; j < axes[0].size; j++)
        score[j] = ref_scored(r, n, index, j).score;
    const double z = ref_logsumexp(score, axes[0].size);
    REF_COPY(at, index);
    for (uint64_t j = 0; j < axes[0].size && which == 0; j++) {
        at[axes[0].name] = j;
        if (score[j] > -INFINITY)
            y += exp(score[j] - z) * reference_at(r, graph_inputs(r->g, n)[2], at);
    }
    return which ? z : y;
}

/* The pair with its probability and the gradients of probability and product. */
static inline struct ref_pair ref_pulled(struct reference *r, const struct graph_node *n, const uint64_t *at_q, uint64_t j)
{
    const struct graph_axis *axes = graph_axes(r->g, n);
    const uint32_t *in = graph_inputs(r->g, n), y = in[n->input_count - 3], lse = in[n->input_count - 2],
                   dy = in[n->input_count - 1];
    struct ref_pair pair = ref_scored(r, n, at_q, j);
    double delta = 0;
    REF_COPY(at, at_q);
    REF_COPY(at_k, at_q);
    at_k[axes[0].name] = j;
    if (pair.score == -INFINITY)
        return pair;
    pair.p = exp(pair.score - reference_at(r, lse, at));
    for (uint64_t d = 0; d < axes[1].size; d++) {
        at[axes[1].name] = at_k[axes[1].name] = d;
        delta += reference_at(r, dy, at) * reference_at(r, y, at);
        pair.dp += reference_at(r, dy, at) * reference_at(r, in[2], at_k);
    }
    pair.ds = pair.p * (pair.dp - delta) * (1 - pair.tanh * pair.tanh) * graph_numbers(r->g, n)[0];
    return pair;
}

/* dq: over keys. dk, dv: over the queries of all groups. */
static inline double ref_attention_grad(struct reference *r, const struct graph_node *n, unsigned which, const uint64_t *index)
{
    const struct graph *g = r->g;
    const struct graph_axis *axes = graph_axes(g, n);
    const uint32_t *in = graph_inputs(g, n);
    const struct graph_node *q = &g->nodes[in[0]], *k = &g->nodes[in[1]];
    struct graph_axis over[GRAPH_AXES] = { axes[0] };
    unsigned rank = 1;
    for (unsigned i = 0; i < q->rank && which > 0; i++)
        if (graph_axis_find(k, q->axis[i].name) < 0)
            over[rank++] = q->axis[i];
    REF_COPY(at, index);
    double sum = 0;
    for (uint64_t i = 0; i < reference_product(over, rank); i++) {
        reference_index(over, rank, i, at);
        const struct ref_pair pair = ref_pulled(r, n, which ? at : index, which ? index[axes[0].name] : at[axes[0].name]);
        sum +=
            which == 2 ? pair.p * reference_at(r, in[n->input_count - 1], at) : pair.ds * reference_at(r, in[which ? 0 : 1], at);
    }
    return sum;
}

/* ---- norms ---- */

/* The mean over the normed axes at `index` of a(x): x^2, or g h with g = dy times the weight, h = x rstd. */
static inline double ref_rms_mean(struct reference *r, const struct graph_node *n, const uint64_t *index, bool backward)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const uint64_t count = reference_product(graph_axes(r->g, n), n->axes_count);
    double sum = 0;
    REF_COPY(at, index);
    for (uint64_t i = 0; i < count; i++) {
        reference_index(graph_axes(r->g, n), n->axes_count, i, at);
        const double x = reference_at(r, in[0], at);
        sum += backward ? reference_at(r, in[3], at) * (reference_at(r, in[1], at) + graph_numbers(r->g, n)[1]) * x *
                              reference_at(r, in[2], at)
                        : x * x;
    }
    return sum / (double)count;
}

static inline double ref_rmsnorm(struct reference *r, const struct graph_node *n, unsigned which, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const double *v = graph_numbers(r->g, n), rstd = 1 / sqrt(ref_rms_mean(r, n, index, false) + v[0]);
    return which ? rstd : reference_at(r, in[0], index) * rstd * (reference_at(r, in[1], index) + v[1]);
}

static inline double ref_rmsnorm_grad(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const double x = reference_at(r, in[0], index), w = reference_at(r, in[1], index) + graph_numbers(r->g, n)[1];
    const double rstd = reference_at(r, in[2], index), g = reference_at(r, in[3], index) * w;
    return rstd * (g - x * rstd * ref_rms_mean(r, n, index, true));
}

/* Rows: the axes of x that are not normed. */
static inline double ref_rmsnorm_weight_grad(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const struct graph_node *rstd = &r->g->nodes[in[1]];
    double sum = 0;
    REF_COPY(at, index);
    for (uint64_t i = 0; i < rstd->values; i++) {
        reference_index(rstd->axis, rstd->rank, i, at);
        sum += reference_at(r, in[2], at) * reference_at(r, in[0], at) * reference_at(r, in[1], at);
    }
    return sum;
}

static inline double ref_layernorm(struct reference *r, const struct graph_node *n, unsigned which, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const uint64_t count = reference_product(graph_axes(r->g, n), n->axes_count);
    double mean = 0, squares = 0;
    REF_COPY(at, index);
    for (uint64_t i = 0; i < count; i++) {
        reference_index(graph_axes(r->g, n), n->axes_count, i, at);
        mean += reference_at(r, in[0], at) / (double)count;
    }
    for (uint64_t i = 0; i < count; i++) {
        reference_index(graph_axes(r->g, n), n->axes_count, i, at);
        squares += pow(reference_at(r, in[0], at) - mean, 2);
    }
    const double rstd = 1 / sqrt(squares / (double)count + graph_numbers(r->g, n)[0]);
    if (which)
        return which == 1 ? mean : rstd;
    return (reference_at(r, in[0], index) - mean) * rstd * reference_at(r, in[1], index) +
           (n->input_count == 3 ? reference_at(r, in[2], index) : 0);
}

static inline double ref_layernorm_grad(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const uint64_t count = reference_product(graph_axes(r->g, n), n->axes_count);
    const double mean = reference_at(r, in[2], index), rstd = reference_at(r, in[3], index);
    double sum = 0, inner = 0;
    REF_COPY(at, index);
    for (uint64_t i = 0; i < count; i++) {
        reference_index(graph_axes(r->g, n), n->axes_count, i, at);
        const double g = reference_at(r, in[4], at) * reference_at(r, in[1], at);
        sum += g / (double)count;
        inner += g * (reference_at(r, in[0], at) - mean) * rstd / (double)count;
    }
    const double h = (reference_at(r, in[0], index) - mean) * rstd;
    return rstd * (reference_at(r, in[4], index) * reference_at(r, in[1], index) - sum - h * inner);
}

static inline double ref_layernorm_weight_grad(struct reference *r, const struct graph_node *n, unsigned which,
                                               const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const struct graph_node *mean = &r->g->nodes[in[1]];
    double sum = 0;
    REF_COPY(at, index);
    for (uint64_t i = 0; i < mean->values; i++) {
        reference_index(mean->axis, mean->rank, i, at);
        const double h = (reference_at(r, in[0], at) - reference_at(r, in[1], at)) * reference_at(r, in[2], at);
        sum += reference_at(r, in[3], at) * (which ? 1 : h);
    }
    return sum;
}

/* ---- log-probabilities ---- */

static inline double ref_logprob(struct reference *r, const struct graph_node *n, unsigned which, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const struct graph_axis *axis = graph_axes(r->g, n);
    double x[4096];
    REF_COPY(at, index);
    for (uint64_t i = 0; i < axis->size; i++) {
        at[axis->name] = i;
        x[i] = reference_at(r, in[0], at);
    }
    const double z = ref_logsumexp(x, axis->size);
    return which ? z : x[(uint64_t)reference_at(r, in[1], index)] - z;
}

static inline double ref_logprob_grad(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    const uint32_t *in = graph_inputs(r->g, n);
    const bool hit = reference_at(r, in[1], index) == (double)index[graph_axes(r->g, n)->name];
    return reference_at(r, in[3], index) * (hit - exp(reference_at(r, in[0], index) - reference_at(r, in[2], index)));
}

/* ---- dropout: the stream of docs/numerics.md ---- */

static inline double ref_dropout(struct reference *r, const struct graph_node *n, const uint64_t *index)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/random";
    const double rate = graph_numbers(r->g, n)[0];
    const uint64_t at = reference_offset(n, index);
    uint8_t hash[32];
    uint32_t word[8], out[4];
    struct buffer b = { 0 };
    buffer_add(&b, r->random->seed, 32);
    buffer_add_u64(&b, r->random->round);
    buffer_add_u64(&b, r->random->step);
    buffer_add_u64(&b, (uint64_t)graph_integers(r->g, n)[0]);
    buffer_add_text(&b, graph_text(r->g, n->name));
    crypto_generichash_blake2b_salt_personal(hash, 32, b.bytes, b.size, NULL, 0, NULL, personal);
    buffer_free(&b);
    for (unsigned i = 0; i < 8; i++)
        word[i] = (uint32_t)hash[4 * i] | (uint32_t)hash[4 * i + 1] << 8 | (uint32_t)hash[4 * i + 2] << 16 |
                  (uint32_t)hash[4 * i + 3] << 24;
    philox_block((uint32_t[]){ (uint32_t)(at / 4), word[2], word[3], word[4] }, word, out);
    return (out[at % 4] >> 8) * 0x1p-24 >= rate ? reference_at(r, graph_inputs(r->g, n)[0], index) / (1 - rate) : 0;
}

static inline double ref_layer(struct reference *r, uint32_t node, unsigned which, const uint64_t *index)
{
    const struct graph_node *n = &r->g->nodes[node];
    switch (n->op) {
    case OPERATOR_ROPE:
        return ref_rope(r, n, index);
    case OPERATOR_ATTENTION:
        return ref_attention(r, n, which, index);
    case OPERATOR_ATTENTION_GRAD:
        return ref_attention_grad(r, n, which, index);
    case OPERATOR_RMSNORM:
        return ref_rmsnorm(r, n, which, index);
    case OPERATOR_RMSNORM_GRAD:
        return ref_rmsnorm_grad(r, n, index);
    case OPERATOR_RMSNORM_WEIGHT_GRAD:
        return ref_rmsnorm_weight_grad(r, n, index);
    case OPERATOR_LAYERNORM:
        return ref_layernorm(r, n, which, index);
    case OPERATOR_LAYERNORM_GRAD:
        return ref_layernorm_grad(r, n, index);
    case OPERATOR_LAYERNORM_WEIGHT_GRAD:
        return ref_layernorm_weight_grad(r, n, which, index);
    case OPERATOR_TOKEN_LOGPROB:
        return ref_logprob(r, n, which, index);
    case OPERATOR_TOKEN_LOGPROB_GRAD:
        return ref_logprob_grad(r, n, index);
    default:
        return ref_dropout(r, n, index);
    }
}

#endif
