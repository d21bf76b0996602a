/* shape_layer.c - shapes of layers, and of further results. */
#include "native/graph/shape_parts.h"

/* ---- layers ---- */

/* The reciprocal root mean square has the axes of x but for those that are normed. */
static bool rstd_good(struct shape_request *s, const struct graph_node *rstd)
{
    if (rstd->type != TENSOR_F32 || rstd->rank + s->axes_count != s->x->rank || !shape_within(s, "the scale", rstd, s->x))
        return shape_fail(s, ERROR_SHAPE, NULL, "%s is not the scale of %s", SHOW(s, rstd), SHOW(s, s->x));
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(rstd, s->axes[i].name) >= 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "the scale %s has an axis that is normed", SHOW(s, rstd));
    return true;
}

/* The weight (or bias) has the axes that are normed, no other. */
static bool weight_good(struct shape_request *s, const char *what, const struct graph_node *w)
{
    if (!shape_is_type(s, what, w, TENSOR_F32))
        return false;
    for (unsigned i = 0; i < w->rank; i++)
        if (!shape_wanted(s, w->axis[i].name, s->axes_count))
            return shape_fail(s, ERROR_SHAPE, NULL, "the %s %s has axes beside those that are normed", what, SHOW(s, w));
    if (w->rank != s->axes_count)
        return shape_fail(s, ERROR_SHAPE, NULL, "the %s %s lacks axes that are normed in %s", what, SHOW(s, w), SHOW(s, s->x));
    return shape_agree(s, s->x, w);
}

static bool gradient_good(struct shape_request *s, const struct graph_node *g)
{
    return shape_same_axes(s, "gradient", s->x, g) && shape_is_type(s, "gradient", g, TENSOR_F32);
}

static bool put_normed(struct shape_request *s)
{
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!shape_put(s, s->axes[i].name, s->axes[i].size))
            return false;
    return true;
}

bool shape_infer_rmsnorm(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    if (!shape_axes_in(s, s->x) || !shape_is_type(s, "the tensor", s->x, TENSOR_F32) ||
        !shape_finite_in(s, "eps", s->r->numbers[0], 0) || !shape_finite_in(s, "offset", s->r->numbers[1], -1e30))
        return false;
    if (s->r->op == OPERATOR_RMSNORM_WEIGHT_GRAD)
        return put_normed(s) && rstd_good(s, s->y) && gradient_good(s, s->z);
    return weight_good(s, "weight", s->y) && (!s->t || (rstd_good(s, s->z) && gradient_good(s, s->t))) && shape_put_all(s, s->x);
}

bool shape_infer_layernorm(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    if (!shape_axes_in(s, s->x) || !shape_is_type(s, "the tensor", s->x, TENSOR_F32) ||
        !shape_finite_in(s, "eps", s->r->numbers[0], 0))
        return false;
    if (s->r->op == OPERATOR_LAYERNORM_WEIGHT_GRAD)
        return put_normed(s) && rstd_good(s, s->y) && rstd_good(s, s->z) && gradient_good(s, s->t);
    if (!weight_good(s, "weight", s->y))
        return false;
    if (s->r->op == OPERATOR_LAYERNORM)
        return (!s->z || weight_good(s, "bias", s->z)) && shape_put_all(s, s->x);
    return rstd_good(s, s->z) && rstd_good(s, s->t) && gradient_good(s, &s->g->nodes[s->r->inputs[4]]) && shape_put_all(s, s->x);
}

/* One factor for each rotated pair, where the scaling is by factors and there alone. */
static bool factors_good(struct shape_request *s, uint64_t width)
{
    if (s->r->integers[2] != ROPE_FACTORS)
        return s->r->input_count == 2 || shape_fail(s, ERROR_SHAPE, NULL, "factors belong to the scaling by factors");
    if (s->r->input_count != 3)
        return shape_fail(s, ERROR_SHAPE, NULL, "the scaling by factors takes them as its third operand");
    if (!shape_is_type(s, "factors", s->z, TENSOR_F32))
        return false;
    return (s->z->rank == 1 && s->z->values == width / 2) ||
           shape_fail(s, ERROR_SHAPE, NULL, "%llu factors are needed, not %s", (unsigned long long)(width / 2), SHOW(s, s->z));
}

bool shape_infer_rope(struct shape_request *s)
{
    const int64_t *k = s->r->integers;
    const double *v = s->r->numbers;
    s->out->type = TENSOR_F32;
    if (!shape_axis_in(s, 0, s->x) || !shape_is_type(s, "the tensor", s->x, TENSOR_F32) ||
        !shape_is_type(s, "position", s->y, TENSOR_I32) || !shape_within(s, "position", s->y, s->x) || !shape_put_all(s, s->x))
        return false;
    if (graph_axis_find(s->y, s->axes[0].name) >= 0)
        return shape_fail(s, ERROR_SHAPE, NULL, "position %s holds the rotated axis", SHOW(s, s->y));
    const int64_t width = k[0] ? k[0] : (int64_t)s->axes[0].size;
    if (width < 0 || width % 2 || width > ROPE_WIDTH_MAX || (uint64_t)width > s->axes[0].size)
        return shape_fail(s, ERROR_RANGE, NULL, "a width of %lld in %s", (long long)width, SHOW(s, s->x));
    if (!shape_flag_in(s, "interleaved", k[1]) || !shape_integer_in(s, "scaling", k[2], ROPE_NONE, ROPE_FACTORS) ||
        !shape_flag_in(s, "inverse", k[3]) || !shape_finite_in(s, "base", v[0], 1))
        return false;
    if (!factors_good(s, (uint64_t)width) || (k[2] != ROPE_NONE && !shape_finite_in(s, "factor", v[1], 1e-6)))
        return false;
    if (k[2] == ROPE_FACTORS)
        return shape_finite_in(s, "attention factor", v[4], 1e-6);
    if (k[2] == ROPE_YARN)
        return shape_finite_in(s, "low", v[2], 0) && shape_finite_in(s, "high", v[3], 0) &&
               shape_finite_in(s, "attention factor", v[4], 1e-6) &&
               ((float)v[3] > (float)v[2] || shape_fail(s, ERROR_RANGE, NULL, "the ramp must end above where it starts"));
    return k[2] != ROPE_LLAMA3 ||
           (shape_finite_in(s, "low_freq_factor", v[2], 1e-6) && shape_finite_in(s, "high_freq_factor", v[3], 1e-6) &&
            shape_finite_in(s, "original_max_position_embeddings", v[4], 1) &&
            (v[3] > v[2] || shape_fail(s, ERROR_RANGE, NULL, "high_freq_factor must be above low_freq_factor")));
}

bool shape_infer_attention(struct shape_request *s)
{
    const bool backward = s->r->op == OPERATOR_ATTENTION_GRAD;
    const struct graph_node *q = s->x, *k = s->y, *v = s->z;
    const struct graph_node *segment = backward ? (s->r->input_count == 7 ? s->t : NULL) : s->t;
    s->out->type = TENSOR_F32;
    if (!shape_is_type(s, "q", q, TENSOR_F32) || !shape_is_type(s, "k", k, TENSOR_F32) || !shape_is_type(s, "v", v, TENSOR_F32))
        return false;
    if (s->axes[0].name == s->axes[1].name || !shape_axis_in(s, 0, q) || !shape_axis_in(s, 1, q) || !shape_axis_in(s, 0, k) ||
        !shape_axis_in(s, 1, k))
        return shape_fail(s, ERROR_SHAPE, NULL, "%s and %s must be two axes of q %s and k %s", shape_name_of(s, s->axes[0].name),
                          shape_name_of(s, s->axes[1].name), SHOW(s, q), SHOW(s, k));
    if (!shape_within(s, "k", k, q) || !shape_same_axes(s, "v", k, v))
        return false;
    if (segment) {
        if (!shape_is_type(s, "segment", segment, TENSOR_I32) || !shape_within(s, "segment", segment, k))
            return false;
        if (graph_axis_find(segment, s->axes[0].name) < 0 || graph_axis_find(segment, s->axes[1].name) >= 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "segment %s must have %s, not %s", SHOW(s, segment),
                              shape_name_of(s, s->axes[0].name), shape_name_of(s, s->axes[1].name));
    }
    if (backward) {
        const size_t at = s->r->input_count - 3;
        const struct graph_node *y = &s->g->nodes[s->r->inputs[at]], *g = &s->g->nodes[s->r->inputs[at + 2]];
        if (!shape_same_axes(s, "result", q, y) || !shape_same_axes(s, "gradient", q, g))
            return false;
        const struct graph_node *lse = &s->g->nodes[s->r->inputs[at + 1]];
        if (lse->type != TENSOR_F32 || lse->rank + 1 != q->rank || !shape_within(s, "log-sum-exp", lse, q) ||
            graph_axis_find(lse, s->axes[1].name) >= 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "%s is not the log-sum-exp of %s", SHOW(s, lse), SHOW(s, q));
    }
    const double scale = s->r->numbers[0], softcap = s->r->numbers[1];
    return shape_finite_in(s, "scale", scale, -1e30) && shape_finite_in(s, "softcap", softcap, 0) &&
           shape_flag_in(s, "causal", s->r->integers[0]) && shape_integer_in(s, "window", s->r->integers[1], 0, INT32_MAX) &&
           shape_put_all(s, q);
}

bool shape_infer_token_logprob(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    if (!shape_axis_in(s, 0, s->x) || !shape_is_type(s, "logits", s->x, TENSOR_F32) || !shape_is_type(s, "ids", s->y, TENSOR_I32))
        return false;
    if (s->y->rank + 1 != s->x->rank || !shape_within(s, "ids", s->y, s->x) || graph_axis_find(s->y, s->axes[0].name) >= 0)
        return shape_fail(s, ERROR_SHAPE, NULL, "ids %s must have the axes of %s less %s", SHOW(s, s->y), SHOW(s, s->x),
                          shape_name_of(s, s->axes[0].name));
    if (s->r->op == OPERATOR_TOKEN_LOGPROB)
        return shape_put_others(s, s->x, 1);
    return shape_same_axes(s, "logsumexp", s->y, s->z) && shape_same_axes(s, "gradient", s->y, s->t) &&
           shape_is_type(s, "logsumexp", s->z, TENSOR_F32) && shape_is_type(s, "gradient", s->t, TENSOR_F32) &&
           shape_put_all(s, s->x);
}

/* What a body gives was worked out when the graph had it node by node. */
bool shape_infer_part(struct shape_request *s)
{
    s->out->type = (uint8_t)s->r->integers[1];
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!shape_put(s, s->axes[i].name, s->axes[i].size))
            return false;
    return true;
}

bool shape_infer_dropout(struct shape_request *s)
{
    const double rate = s->r->numbers[0];
    s->out->type = TENSOR_F32;
    if (!(rate >= 0 && rate < 1))
        return shape_fail(s, ERROR_RANGE, NULL, "a rate of %g is not within 0 to 1", rate);
    return shape_integer_in(s, "layer", s->r->integers[0], -1, INT32_MAX) && shape_flag_in(s, "again", s->r->integers[1]) &&
           shape_put_all(s, s->x);
}

/* ---- further results ---- */

static bool without(struct shape_request *s, const struct graph_node *n, const struct graph_axis *axes, unsigned count)
{
    for (unsigned i = 0; i < n->rank; i++) {
        bool dropped = false;
        for (unsigned k = 0; k < count; k++)
            dropped = dropped || axes[k].name == n->axis[i].name;
        if (!dropped && !shape_put(s, n->axis[i].name, n->axis[i].size))
            return false;
    }
    return true;
}

bool shape_infer_result(struct shape_request *s)
{
    const struct graph_node *n = s->x;
    const struct graph *g = s->g;
    const int64_t which = s->r->integers[0];
    const struct graph_axis *axes = graph_axes(g, n);
    s->out->type = TENSOR_F32;
    if (n->op == OPERATOR_TOPK && which == 1) {
        s->out->type = TENSOR_I32;
        return shape_put_all(s, n);
    }
    if (n->op == OPERATOR_FACTOR && which == 1) {
        const struct graph_node *a = &g->nodes[graph_inputs(g, n)[1]];
        return shape_put_all(s, a) && ((s->out->axis[graph_axis_find(a, axes[0].name)].size = axes[0].size) > 0);
    }
    if (n->op == OPERATOR_ATTENTION && which == 1)
        return without(s, n, axes, 2) && shape_put(s, axes[0].name, axes[0].size);
    if ((n->op == OPERATOR_RMSNORM && which == 1) || (n->op == OPERATOR_LAYERNORM && (which == 1 || which == 2)))
        return without(s, n, axes, n->axes_count);
    if ((n->op == OPERATOR_TOKEN_LOGPROB || n->op == OPERATOR_LAYERNORM_WEIGHT_GRAD) && which == 1)
        return shape_put_all(s, n);
    if (n->op == OPERATOR_ATTENTION_GRAD && (which == 1 || which == 2))
        return shape_put_all(s, &g->nodes[graph_inputs(g, n)[which]]);
    return shape_fail(s, ERROR_RANGE, NULL, "%s has no result %lld", operator_table[n->op].name, (long long)which);
}
