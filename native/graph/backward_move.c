/* backward_move.c - gradients of operators along an axis, products, shapes and layers. */
#include "native/graph/backward_parts.h"

#include <string.h>

/* ---- along one axis ---- */

/* The node of one operand, one axis and integers. */
static uint32_t along(struct backward *b, enum operator_code op, uint32_t x, struct graph_word axis, int64_t first,
                      int64_t second, size_t count)
{
    return backward_add(b, &(struct graph_request){ .op = op,
                                                    .inputs = &x,
                                                    .input_count = 1,
                                                    .axes = &(struct graph_word){ axis.name, 0 },
                                                    .axes_count = 1,
                                                    .integers = (int64_t[]){ first, second },
                                                    .integers_count = count });
}

static uint32_t indexed(struct backward *b, enum operator_code op, uint32_t x, uint32_t index, const struct graph_word *axes,
                        size_t count)
{
    return backward_add(b,
                        &(struct graph_request){
                            .op = op, .inputs = (uint32_t[]){ x, index }, .input_count = 2, .axes = axes, .axes_count = count });
}

static void rule_cumsum(struct backward *b, const struct backward_site *r)
{
    struct backward_site turned = *r;
    if (r->need[1]) {
        backward_refused(b, r, "detach the decay", "a decay carries no gradient");
        return;
    }
    turned.integers[0] = !r->integers[0];
    uint32_t inputs[2] = { r->g, r->in[1] };
    if (r->n.input_count == 2 && graph_axis_of(b->g, r->in[1], r->axes[0].name) >= 0)
        inputs[1] = along(b, OPERATOR_SHIFT, r->in[1], r->axes[0], r->integers[0] ? 1 : -1, 0, 1);
    backward_give(b, r->in[0], backward_again(b, &turned, OPERATOR_CUMSUM, inputs, r->n.input_count));
}

static void rule_at(struct backward *b, const struct backward_site *r)
{
    const struct graph_word one = { r->axes[0].name, 1 };
    const uint32_t g = backward_over(b, OPERATOR_EXPAND, r->g, &one, 1);
    backward_give(b, r->in[0], along(b, OPERATOR_PAD, g, one, r->integers[0], (int64_t)r->axes[0].size - 1 - r->integers[0], 2));
}

static void rule_gather(struct backward *b, const struct backward_site *r)
{
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    size_t count = 0;
    const struct graph_node x = b->g->nodes[r->in[0]], index = b->g->nodes[r->in[1]];
    for (unsigned i = 0; i < index.rank; i++) {
        const char *name = b->g->names[index.axis[i].name];
        if (strcmp(name, r->axes[0].name) == 0 || graph_axis_find(&x, index.axis[i].name) < 0)
            words[count++] = (struct graph_word){ name, 0 };
    }
    words[count++] = r->axes[0];
    backward_give(b, r->in[0], indexed(b, OPERATOR_SCATTER, r->g, r->in[1], words, count));
}

void backward_rule_concat(struct backward *b, uint32_t id, const struct backward_site *r)
{
    const uint32_t count = r->n.input_count;
    int64_t after = 0;
    const int64_t whole = (int64_t)b->g->nodes[id].axis[graph_axis_of(b->g, id, r->axes[0].name)].size;
    for (uint32_t k = count; k-- > 0 && !b->failed;) {
        const uint32_t x = graph_inputs(b->g, &r->n)[k];
        const int64_t size = (int64_t)b->g->nodes[x].axis[graph_axis_of(b->g, x, r->axes[0].name)].size;
        if (b->live[x])
            backward_give(b, x, along(b, OPERATOR_TRIM, r->g, r->axes[0], whole - after - size, after, 2));
        after += size;
    }
}

void backward_rule_along(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0];
    switch (r->n.op) {
    case OPERATOR_SORT:
        backward_give(b, x, indexed(b, OPERATOR_GATHER, r->g, backward_over(b, OPERATOR_RANK, x, r->axes, 1), r->axes, 1));
        return;
    case OPERATOR_TOPK: {
        const uint32_t index = backward_add(
            b,
            &(struct graph_request){
                .op = OPERATOR_RESULT, .inputs = &r->id, .input_count = 1, .integers = (int64_t[]){ 1 }, .integers_count = 1 });
        const struct graph_word words[2] = { { r->axes[1].name, 0 }, r->axes[0] };
        backward_give(b, x, indexed(b, OPERATOR_SCATTER, r->g, index, words, 2));
        return;
    }
    case OPERATOR_CUMSUM:
        rule_cumsum(b, r);
        return;
    case OPERATOR_SHIFT:
        backward_give(b, x, along(b, OPERATOR_SHIFT, r->g, r->axes[0], -r->integers[0], 0, 1));
        return;
    case OPERATOR_TRIM:
    case OPERATOR_PAD:
        backward_give(b, x,
                      along(b, r->n.op == OPERATOR_TRIM ? OPERATOR_PAD : OPERATOR_TRIM, r->g, r->axes[0], r->integers[0],
                            r->integers[1], 2));
        return;
    case OPERATOR_AT:
        rule_at(b, r);
        return;
    case OPERATOR_GATHER:
        rule_gather(b, r);
        return;
    default: /* scatter */
        backward_give(b, x, backward_spread(b, indexed(b, OPERATOR_GATHER, r->g, r->in[1], &r->axes[r->n.axes_count - 1], 1), x));
    }
}

/* ---- products ---- */

/* The gradient of one operand of a product: g times the other operand, summed over the axes that only the other one has. */
static uint32_t product_part(struct backward *b, uint32_t g, uint32_t other, uint32_t operand)
{
    struct graph_word words[GRAPH_AXES];
    size_t count = 0;
    if (g == GRAPH_NONE)
        return GRAPH_NONE;
    const struct graph_node n = b->g->nodes[other], m = b->g->nodes[operand], d = b->g->nodes[g];
    bool inside = true; /* g lies within the other operand: then the product is elementwise */
    for (unsigned i = 0; i < n.rank; i++)
        if (graph_axis_find(&m, n.axis[i].name) < 0)
            words[count++] = (struct graph_word){ b->g->names[n.axis[i].name], 0 };
    for (unsigned i = 0; i < d.rank; i++)
        inside = inside && graph_axis_find(&n, d.axis[i].name) >= 0;
    if (count == 0 && inside)
        return backward_binary(b, OPERATOR_MUL, g, other);
    return backward_add(
        b, &(struct graph_request){
               .op = OPERATOR_DOT, .inputs = (uint32_t[]){ g, other }, .input_count = 2, .axes = words, .axes_count = count });
}

void backward_rule_product(struct backward *b, const struct backward_site *r)
{
    const unsigned at = r->n.op == OPERATOR_DOT ? 0 : 1;
    const uint32_t x = r->in[at], y = r->in[at + 1];
    const bool scale = r->n.op == OPERATOR_LOW_RANK;
    if (r->need[at + 1]) {
        const uint32_t part = product_part(b, r->g, x, y);
        backward_give(b, y, scale ? backward_scaled(b, part, r->numbers[0]) : part);
    }
    if (r->need[at]) {
        const uint32_t part = product_part(b, r->g, y, x);
        backward_give(b, x, scale ? backward_scaled(b, part, r->numbers[0]) : part);
    }
    if (at == 1 && r->need[0])
        backward_give(b, r->in[0], r->g);
}

/* ---- shape ---- */

void backward_rule_shape(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0];
    const size_t parts = r->n.axes_count - 1;
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    switch (r->n.op) {
    case OPERATOR_RENAME:
        words[0] = r->axes[1];
        words[1] = r->axes[0];
        backward_give(b, x, backward_over(b, OPERATOR_RENAME, r->g, words, 2));
        return;
    case OPERATOR_SPLIT:
        backward_give(b, x, backward_over(b, OPERATOR_MERGE, r->g, r->axes, r->n.axes_count));
        return;
    case OPERATOR_MERGE:
        if (parts == 0)
            backward_give(b, x, along(b, OPERATOR_AT, r->g, r->axes[0], 0, 0, 1));
        else
            backward_give(b, x, backward_over(b, OPERATOR_SPLIT, r->g, r->axes, r->n.axes_count));
        return;
    default: /* expand, transpose: summing and ordering are done for every contribution */
        backward_give(b, x, r->g);
    }
}

/* ---- layers ---- */

uint32_t backward_result_of(struct backward *b, uint32_t x, int64_t which)
{
    return backward_add(b, &(struct graph_request){
                               .op = OPERATOR_RESULT, .inputs = &x, .input_count = 1, .integers = &which, .integers_count = 1 });
}

static void rule_attention(struct backward *b, const struct backward_site *r)
{
    uint32_t inputs[7];
    size_t count = 0;
    const uint32_t lse = backward_result_of(b, r->id, 1);
    for (; count < r->n.input_count; count++)
        inputs[count] = r->in[count];
    inputs[count++] = r->id;
    inputs[count++] = lse;
    inputs[count++] = r->g;
    const uint32_t all = backward_again(b, r, OPERATOR_ATTENTION_GRAD, inputs, count);
    for (unsigned k = 3; k-- > 0;)
        if (r->need[k])
            backward_give(b, r->in[k], k == 0 ? all : backward_result_of(b, all, k));
}

static void rule_layernorm(struct backward *b, const struct backward_site *r)
{
    const uint32_t x = r->in[0], mean = backward_result_of(b, r->id, 1), scale = backward_result_of(b, r->id, 2);
    if (r->need[1] || r->need[2]) {
        const uint32_t weight = backward_again(b, r, OPERATOR_LAYERNORM_WEIGHT_GRAD, (uint32_t[]){ x, mean, scale, r->g }, 4);
        if (r->need[2])
            backward_give(b, r->in[2], backward_result_of(b, weight, 1));
        if (r->need[1])
            backward_give(b, r->in[1], weight);
    }
    if (r->need[0])
        backward_give(b, x, backward_again(b, r, OPERATOR_LAYERNORM_GRAD, (uint32_t[]){ x, r->in[1], mean, scale, r->g }, 5));
}

void backward_rule_layer(struct backward *b, const struct backward_site *r)
{
    struct backward_site turned = *r;
    const uint32_t x = r->in[0];
    uint32_t rstd;
    switch (r->n.op) {
    case OPERATOR_RMSNORM:
        rstd = backward_result_of(b, r->id, 1);
        if (r->need[1])
            backward_give(b, r->in[1], backward_again(b, r, OPERATOR_RMSNORM_WEIGHT_GRAD, (uint32_t[]){ x, rstd, r->g }, 3));
        if (r->need[0])
            backward_give(b, x, backward_again(b, r, OPERATOR_RMSNORM_GRAD, (uint32_t[]){ x, r->in[1], rstd, r->g }, 4));
        return;
    case OPERATOR_LAYERNORM:
        rule_layernorm(b, r);
        return;
    case OPERATOR_ROPE:
        turned.integers[3] = !r->integers[3];
        if (r->n.input_count == 3 && r->need[2])
            backward_refused(b, r, "detach them", "has no gradient of its factors");
        else
            backward_give(b, x,
                          backward_again(b, &turned, OPERATOR_ROPE, (uint32_t[]){ r->g, r->in[1], r->in[2] }, r->n.input_count));
        return;
    case OPERATOR_ATTENTION:
        rule_attention(b, r);
        return;
    case OPERATOR_TOKEN_LOGPROB:
        backward_give(b, x,
                      backward_again(b, r, OPERATOR_TOKEN_LOGPROB_GRAD,
                                     (uint32_t[]){ x, r->in[1], backward_result_of(b, r->id, 1), r->g }, 4));
        return;
    default: /* dropout */
        turned.integers[1] = 1;
        backward_give(b, x, backward_again(b, &turned, OPERATOR_DROPOUT, &r->g, 1));
    }
}
