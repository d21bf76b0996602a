#include "native/graph/step.h"

#include <string.h>

void *step_take(struct work *w, size_t bytes)
{
    void *at = w->measure ? NULL : w->scratch + w->used;
    w->used += (bytes + 63) / 64 * 64;
    return at;
}

enum stored_type step_stored_type(const struct work *w, unsigned k)
{
    switch (w->stored[w->places[graph_inputs(w->g, w->n)[k]].base]) {
    case TENSOR_F16:
        return STORED_F16;
    case TENSOR_BF16:
        return STORED_BF16;
    case TENSOR_Q8_0:
        return STORED_Q8_0;
    case TENSOR_Q4_0:
        return STORED_Q4_0;
    case TENSOR_Q4_1:
        return STORED_Q4_1;
    case TENSOR_NF4:
        return STORED_NF4;
    case TENSOR_NF4_DQ:
        return STORED_NF4_DQ;
    default:
        return STORED_TYPES;
    }
}

stored_read *step_stored(const struct work *w, unsigned k)
{
    const enum stored_type type = step_stored_type(w, k);
    return type == STORED_TYPES ? NULL : stored_reader(type);
}

static bool in_order(const struct graph_node *n, const struct place *p, const struct graph_axis *axes, unsigned rank)
{
    ptrdiff_t step = 1;
    for (unsigned i = rank; i-- > 0;) {
        const int at = graph_axis_find(n, axes[i].name);
        if (axes[i].size != 1 && (at < 0 || p->stride[at] != step))
            return false;
        step *= (ptrdiff_t)axes[i].size;
    }
    return true;
}

const void *step_operand(struct work *w, unsigned k, const struct graph_axis *axes, unsigned rank, enum tensor_type type)
{
    const uint32_t id = graph_inputs(w->g, w->n)[k];
    const struct graph_node *n = &w->g->nodes[id];
    const struct place *p = &w->places[id];
    struct walk walk = { .rank = rank };
    ptrdiff_t step = 1;
    stored_read *read = step_stored(w, k);
    const char *from = w->measure ? NULL : (const char *)w->data[p->base];
    if (read) {
        float *all = step_take(w, w->g->nodes[p->base].values * sizeof *all);
        if (!w->measure)
            read(from, 0, w->g->nodes[p->base].values, all);
        from = (const char *)all;
    }
    from = w->measure ? NULL : from + p->offset * (ptrdiff_t)type_bytes(n->type);
    if (n->type == type && in_order(n, p, axes, rank))
        return from;
    for (unsigned i = rank; i-- > 0;) {
        const int at = graph_axis_find(n, axes[i].name);
        walk.size[i] = axes[i].size;
        walk.from[i] = at < 0 ? 0 : p->stride[at];
        walk.to[i] = step;
        step *= (ptrdiff_t)axes[i].size;
    }
    void *to = step_take(w, (size_t)step * type_bytes(type));
    if (!w->measure)
        walk_copy(w->pool, walk, (enum tensor_type)n->type, from, type, to);
    return to;
}

const void *step_own(struct work *w, unsigned k)
{
    const struct graph_node *n = step_input(w, k);
    return step_operand(w, k, n->axis, n->rank, (enum tensor_type)n->type);
}

struct result step_result(struct work *w, uint32_t node, const struct graph_axis *axes, unsigned rank)
{
    struct result r = { .node = node };
    memcpy(r.axes, axes, rank * sizeof *axes);
    const struct graph_node *n = node == GRAPH_NONE ? NULL : &w->g->nodes[node];
    r.copied = n && !in_order(n, &w->places[node], axes, rank);
    if (!n || r.copied)
        r.at = step_take(w, axes_product(axes, rank) * type_bytes(n ? n->type : TENSOR_F32));
    else
        r.at = w->measure ? NULL : w->data[node];
    return r;
}

void step_settle(struct work *w, const struct result *r)
{
    if (!r->copied)
        return;
    const struct graph_node *n = &w->g->nodes[r->node];
    struct walk walk = { .rank = n->rank };
    ptrdiff_t step = 1;
    for (unsigned i = n->rank; i-- > 0;) {
        const int at = graph_axis_find(n, r->axes[i].name);
        walk.size[i] = r->axes[i].size;
        walk.from[i] = step;
        walk.to[i] = w->places[r->node].stride[at];
        step *= (ptrdiff_t)r->axes[i].size;
    }
    walk_copy(w->pool, walk, (enum tensor_type)n->type, r->at, (enum tensor_type)n->type, w->data[r->node]);
}

uint32_t step_extra(const struct work *w, unsigned which)
{
    return w->extra[w->id] ? w->extra[w->id][which - 1] : GRAPH_NONE;
}

static bool among(uint32_t name, const struct graph_axis *some, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (some[i].name == name)
            return true;
    return false;
}

unsigned axes_with(const struct graph_node *n, const struct graph_axis *some, unsigned count, struct graph_axis *out)
{
    unsigned found = 0;
    for (unsigned i = 0; i < n->rank; i++)
        if (among(n->axis[i].name, some, count))
            out[found++] = n->axis[i];
    return found;
}

unsigned axes_without(const struct graph_node *n, const struct graph_axis *some, unsigned count, struct graph_axis *out)
{
    unsigned found = 0;
    for (unsigned i = 0; i < n->rank; i++)
        if (!among(n->axis[i].name, some, count))
            out[found++] = n->axis[i];
    return found;
}

uint64_t axes_product(const struct graph_axis *axes, unsigned count)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < count; i++)
        product *= axes[i].size;
    return product;
}

step_function *step_of(enum operator_code op)
{
    static step_function *const functions[OPERATOR_CODES] = {
        [OPERATOR_UNIFORM] = step_random,
        [OPERATOR_NORMAL] = step_random,
        [OPERATOR_SUM] = step_reduce,
        [OPERATOR_MEAN] = step_reduce,
        [OPERATOR_MAX] = step_reduce,
        [OPERATOR_MIN] = step_reduce,
        [OPERATOR_NORM] = step_reduce,
        [OPERATOR_MEDIAN] = step_median,
        [OPERATOR_LOGSUMEXP] = step_reduce,
        [OPERATOR_SOFTMAX] = step_softmax,
        [OPERATOR_LOG_SOFTMAX] = step_softmax,
        [OPERATOR_ARGMAX] = step_argmax,
        [OPERATOR_SORT] = step_sort,
        [OPERATOR_RANK] = step_rank,
        [OPERATOR_TOPK] = step_topk,
        [OPERATOR_CUMSUM] = step_cumsum,
        [OPERATOR_SHIFT] = step_shift,
        [OPERATOR_PAD] = step_pad,
        [OPERATOR_GATHER] = step_gather,
        [OPERATOR_SCATTER] = step_scatter,
        [OPERATOR_ONE_HOT] = step_one_hot,
        [OPERATOR_CONCAT] = step_concat,
        [OPERATOR_DOT] = step_dot,
        [OPERATOR_DOT_ONTO] = step_dot,
        [OPERATOR_LOW_RANK] = step_dot,
        [OPERATOR_DIST2] = step_dist2,
        [OPERATOR_FACTOR] = step_factor,
        [OPERATOR_MERGE] = step_merge,
        [OPERATOR_RMSNORM] = step_rmsnorm,
        [OPERATOR_ROPE] = step_rope,
        [OPERATOR_ATTENTION] = step_attention,
        [OPERATOR_TOKEN_LOGPROB] = step_token_logprob,
        [OPERATOR_DROPOUT] = step_dropout,
        [OPERATOR_RMSNORM_GRAD] = step_rmsnorm_grad,
        [OPERATOR_RMSNORM_WEIGHT_GRAD] = step_rmsnorm_weight_grad,
        [OPERATOR_ATTENTION_GRAD] = step_attention_grad,
        [OPERATOR_TOKEN_LOGPROB_GRAD] = step_token_logprob_grad,
        [OPERATOR_LAYERNORM] = step_layernorm,
        [OPERATOR_LAYERNORM_GRAD] = step_layernorm_grad,
        [OPERATOR_LAYERNORM_WEIGHT_GRAD] = step_layernorm_weight_grad,
        [OPERATOR_HEAD] = step_head,
        [OPERATOR_TIED] = step_tied,
    };
    return functions[op];
}
