/* arrange_heads.c - see arrange.h. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/arrange.h"

struct consumers consumers_of(const struct graph *g)
{
    struct consumers c = { calloc(g->node_count + 2, sizeof *c.first), calloc(g->input_total + 1, sizeof *c.at) };
    if (!c.first || !c.at)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
            c.first[graph_inputs(g, &g->nodes[i])[k] + 2]++;
    for (uint32_t i = 0; i < g->node_count; i++)
        c.first[i + 2] += c.first[i + 1];
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
            c.at[c.first[graph_inputs(g, &g->nodes[i])[k] + 1]++] = i;
    return c;
}

void consumers_free(struct consumers *c)
{
    free(c->first);
    free(c->at);
}

/* ---- what a head is made of ---- */

enum form {
    FORWARD, /* no gradient */
    AT_ONCE, /* one pass for all */
    AGAIN    /* the gradient waits for the log-probabilities */
};

struct head {
    enum form form;
    uint32_t logits, logprob;
    uint32_t best;                                           /* FORWARD: the argmax of the logits, or GRAPH_NONE */
    uint32_t lse, gradient, hidden_gradient, table_gradient; /* the last may be GRAPH_NONE */
    bool onto;                                               /* the table's goes on from another value */
};

struct heads {
    const struct graph *g;
    struct graph *to;
    struct error *err;
    bool tied;
    struct consumers readers;
    uint8_t *after; /* per node: depends on the log-probabilities of a head */
    uint8_t *role;  /* per node: enum below */
    uint32_t *head; /* per node of a head: which */
    struct head *all;
    uint32_t count;
    uint32_t *map;
    uint32_t *from;
    uint32_t from_room;
};

enum { PLAIN, GONE, LOGPROB, GRADIENT, TABLE };

static uint32_t reader_count(const struct heads *h, uint32_t i)
{
    return h->readers.first[i + 1] - h->readers.first[i];
}

static bool is_output(const struct graph *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        if (g->outputs[i].node == node)
            return true;
    return false;
}

/* The only reader of node i, of this operator; GRAPH_NONE otherwise. */
static uint32_t only_reader(const struct heads *h, uint32_t i, enum operator_code op)
{
    const uint32_t reader = reader_count(h, i) == 1 ? h->readers.at[h->readers.first[i]] : GRAPH_NONE;
    return reader != GRAPH_NONE && h->g->nodes[reader].op == op && !is_output(h->g, i) ? reader : GRAPH_NONE;
}

static uint32_t input_of(const struct heads *h, uint32_t node, uint32_t k)
{
    return graph_inputs(h->g, &h->g->nodes[node])[k];
}

static bool only_within(const struct heads *h, uint32_t i, const uint32_t *readers, uint32_t count)
{
    if (is_output(h->g, i))
        return false;
    for (uint32_t k = h->readers.first[i]; k < h->readers.first[i + 1]; k++) {
        bool among = false;
        for (uint32_t j = 0; j < count; j++)
            among = among || h->readers.at[k] == readers[j];
        if (!among)
            return false;
    }
    return true;
}

static uint32_t reader_of(const struct heads *h, uint32_t i, enum operator_code op)
{
    for (uint32_t k = h->readers.first[i]; k < h->readers.first[i + 1]; k++)
        if (h->g->nodes[h->readers.at[k]].op == op)
            return h->readers.at[k];
    return GRAPH_NONE;
}

/* Log-probabilities alone, or with the argmax of the logits. */
static bool head_forward(const struct heads *h, struct head *out)
{
    const uint32_t best = reader_of(h, out->logits, OPERATOR_ARGMAX);
    out->form = FORWARD;
    out->lse = reader_of(h, out->logprob, OPERATOR_RESULT);
    out->best = best;
    if (out->lse != GRAPH_NONE || !only_within(h, out->logits, (const uint32_t[]){ out->logprob, best }, 2))
        return false;
    return best == GRAPH_NONE || (best > out->logprob && graph_axes(h->g, &h->g->nodes[best])[0].name ==
                                                             graph_axes(h->g, &h->g->nodes[out->logprob])[0].name);
}

static bool same_axes(const struct graph_node *a, const struct graph_node *b)
{
    bool same = a->rank == b->rank;
    for (unsigned i = 0; same && i < a->rank; i++)
        same = a->axis[i].name == b->axis[i].name;
    return same;
}

/* Whether node i is dot(gradient, h) over the rows in their order, or that onto another value: the gradient of the table. */
static bool table_gradient_at(const struct heads *h, uint32_t i, struct head *out)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[i], *rows = &g->nodes[out->logprob];
    const unsigned first = n->op == OPERATOR_DOT_ONTO;
    if ((n->op != OPERATOR_DOT && n->op != OPERATOR_DOT_ONTO) || n->type != TENSOR_F32)
        return false;
    const uint32_t x = input_of(h, i, first), y = input_of(h, i, first + 1), hidden = input_of(h, out->logits, 0);
    if (!(x == out->gradient && y == hidden) && !(x == hidden && y == out->gradient))
        return false;
    if (n->axes_count != rows->rank || !same_axes(n, &g->nodes[input_of(h, out->logits, 1)]) ||
        (first && input_of(h, i, 0) == out->gradient))
        return false;
    for (unsigned k = 0; k < rows->rank; k++)
        if (graph_axes(g, n)[k].name != rows->axis[k].name)
            return false;
    out->table_gradient = i;
    out->onto = first;
    return true;
}

/* dot(gradient, E) over the vocabulary, E the very table of the logits. */
static bool hidden_gradient_at(const struct heads *h, uint32_t i, struct head *out)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[i];
    if (n->op != OPERATOR_DOT || input_of(h, i, 0) != out->gradient || input_of(h, i, 1) != input_of(h, out->logits, 1) ||
        n->axes_count != 1 || graph_axes(g, n)[0].name != graph_axes(g, &g->nodes[out->logprob])[0].name)
        return false;
    out->hidden_gradient = i;
    return true;
}

static bool head_backward(const struct heads *h, struct head *out)
{
    const struct graph *g = h->g;
    out->lse = reader_of(h, out->logprob, OPERATOR_RESULT);
    out->gradient = out->lse == GRAPH_NONE ? GRAPH_NONE : only_reader(h, out->lse, OPERATOR_TOKEN_LOGPROB_GRAD);
    if (out->gradient == GRAPH_NONE || input_of(h, out->gradient, 0) != out->logits ||
        input_of(h, out->gradient, 1) != input_of(h, out->logprob, 1) || is_output(g, out->gradient) ||
        !only_within(h, out->logits, (const uint32_t[]){ out->logprob, out->gradient }, 2))
        return false;
    for (uint32_t k = h->readers.first[out->gradient]; k < h->readers.first[out->gradient + 1]; k++) {
        const uint32_t reader = h->readers.at[k];
        if (!hidden_gradient_at(h, reader, out) && (out->table_gradient != GRAPH_NONE || !table_gradient_at(h, reader, out)))
            return false;
    }
    if (out->hidden_gradient == GRAPH_NONE || (out->onto && !h->tied))
        return false;
    out->form = h->after[input_of(h, out->gradient, 3)] || h->after[out->logits] ? AGAIN : AT_ONCE;
    return true;
}

/* The head whose log-probability is node i, when it has a form that can be fused. */
static bool head_at(const struct heads *h, uint32_t i, struct head *out)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[i];
    if (n->op != OPERATOR_TOKEN_LOGPROB)
        return false;
    *out = (struct head){ .logits = input_of(h, i, 0),
                          .logprob = i,
                          .best = GRAPH_NONE,
                          .gradient = GRAPH_NONE,
                          .hidden_gradient = GRAPH_NONE,
                          .table_gradient = GRAPH_NONE };
    const struct graph_node *dot = &g->nodes[out->logits];
    if (dot->op != OPERATOR_DOT || dot->axes_count == 0 || dot->type != TENSOR_F32)
        return false;
    /* E stored by rows of the vocabulary */
    const struct graph_node *table = &g->nodes[input_of(h, out->logits, 1)];
    return table->axis[0].name == graph_axes(g, n)[0].name && table->rank == dot->axes_count + 1u;
}

static void roles_given(struct heads *h, const struct head *one, uint32_t which)
{
    h->role[one->logits] = GONE;
    h->role[one->logprob] = LOGPROB;
    h->head[one->logprob] = which;
    if (one->best != GRAPH_NONE)
        h->role[one->best] = GONE;
    if (one->form == FORWARD)
        return;
    h->role[one->lse] = h->role[one->gradient] = h->role[one->hidden_gradient] = GONE;
    if (one->form == AGAIN) {
        h->role[one->gradient] = GRADIENT;
        h->head[one->gradient] = which;
    }
    if (one->table_gradient != GRAPH_NONE) {
        h->role[one->table_gradient] = one->onto ? TABLE : GONE;
        h->head[one->table_gradient] = which;
    }
}

static void heads_found(struct heads *h)
{
    const struct graph *g = h->g;
    struct head one;
    for (uint32_t i = 0; i < g->node_count; i++) {
        for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
            h->after[i] |= h->after[graph_inputs(g, &g->nodes[i])[k]];
        h->after[i] |= head_at(h, i, &one);
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        if (!head_at(h, i, &one) || (!head_forward(h, &one) && !head_backward(h, &one)))
            continue;
        h->all = realloc(h->all, (h->count + 1) * sizeof *h->all);
        if (!h->all)
            abort();
        roles_given(h, &one, h->count);
        h->all[h->count++] = one;
    }
}

/* ---- writing the new graph ---- */

static void came_from(struct heads *h, uint32_t node, uint32_t old)
{
    if (node >= h->from_room) {
        h->from_room = 2 * node + 64;
        h->from = realloc(h->from, h->from_room * sizeof *h->from);
        if (!h->from)
            abort();
    }
    h->from[node] = old;
}

static bool made(struct heads *h, const struct graph_request *r, uint32_t old, uint32_t *node)
{
    if (!graph_add(h->to, r, node, h->err))
        return false;
    came_from(h, *node, old);
    return true;
}

static const char *text_of(const struct heads *h, uint32_t name)
{
    return h->g->names[name];
}

/* A node of the new graph that is not 0 where node x (of the old one, on the way from the log-probabilities) is read: from what reads it.
 * GRAPH_NONE: everywhere, as far as can be told. */
static uint32_t demand_of(struct heads *h, uint32_t x, unsigned depth);

static uint32_t demand_moved(struct heads *h, uint32_t reader, uint32_t demand)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[reader];
    const struct graph_axis *axes = graph_axes(g, n);
    uint32_t moved;
    struct graph_word words[2] = { { text_of(h, axes[0].name), 0 } };
    struct graph_request r = {
        .op = (enum operator_code)n->op, .inputs = &demand, .input_count = 1, .axes = words, .axes_count = 1
    };
    if (demand == GRAPH_NONE)
        return GRAPH_NONE;
    if (n->op == OPERATOR_RENAME) {
        words[0].name = text_of(h, axes[1].name);
        words[1].name = text_of(h, axes[0].name);
        r.axes_count = 2;
        return made(h, &r, GRAPH_NONE, &moved) ? moved : GRAPH_NONE;
    }
    const int64_t back = -graph_integers(g, n)[0];
    r.integers = &back;
    r.integers_count = 1;
    return made(h, &r, GRAPH_NONE, &moved) ? moved : GRAPH_NONE;
}

/* A weighted sum reads only where its weight is not 0. */
static uint32_t demand_summed(const struct heads *h, uint32_t reader, uint32_t x)
{
    const struct graph_node *n = &h->g->nodes[reader], *v = &h->g->nodes[x];
    if (n->input_count != 2 || input_of(h, reader, 0) != x || input_of(h, reader, 1) == x)
        return GRAPH_NONE;
    const struct graph_node *weight = &h->g->nodes[input_of(h, reader, 1)];
    if (weight->rank != v->rank || h->map[input_of(h, reader, 1)] == GRAPH_NONE)
        return GRAPH_NONE;
    for (unsigned i = 0; i < v->rank; i++)
        if (weight->axis[i].name != v->axis[i].name)
            return GRAPH_NONE;
    return h->map[input_of(h, reader, 1)];
}

static uint32_t demand_by(struct heads *h, uint32_t reader, uint32_t x, unsigned depth)
{
    const struct graph_node *n = &h->g->nodes[reader];
    if (depth == 16)
        return GRAPH_NONE;
    switch (n->op) {
    case OPERATOR_NEG:
        return demand_of(h, reader, depth + 1);
    case OPERATOR_RENAME:
    case OPERATOR_SHIFT:
        return demand_moved(h, reader, demand_of(h, reader, depth + 1));
    case OPERATOR_SUM:
    case OPERATOR_MEAN:
        return demand_summed(h, reader, x);
    default:
        return GRAPH_NONE;
    }
}

static uint32_t demand_of(struct heads *h, uint32_t x, unsigned depth)
{
    uint32_t total = GRAPH_NONE;
    if (is_output(h->g, x))
        return GRAPH_NONE;
    for (uint32_t k = h->readers.first[x]; k < h->readers.first[x + 1]; k++) {
        const uint32_t reader = h->readers.at[k];
        if (h->role[reader] == GONE)
            continue;
        uint32_t part = demand_by(h, reader, x, depth);
        if (part == GRAPH_NONE)
            return GRAPH_NONE;
        if (total == GRAPH_NONE) {
            total = part;
            continue;
        }
        const uint32_t pair[2] = { total, part };
        uint32_t size[2];
        for (unsigned i = 0; i < 2; i++)
            if (!made(h, &(struct graph_request){ .op = OPERATOR_ABS, .inputs = &pair[i], .input_count = 1 }, GRAPH_NONE,
                      &size[i]))
                return GRAPH_NONE;
        if (!made(h, &(struct graph_request){ .op = OPERATOR_ADD, .inputs = size, .input_count = 2 }, GRAPH_NONE, &total))
            return GRAPH_NONE;
    }
    return total;
}

/* A head with the `count` further inputs given, which stands for the old node `old`. */
static bool head_added(struct heads *h, const struct head *one, const uint32_t *further, uint32_t count, uint32_t old,
                       uint32_t *node)
{
    const struct graph *g = h->g;
    const struct graph_node *dot = &g->nodes[one->logits];
    uint32_t inputs[6] = { h->map[input_of(h, one->logits, 0)], h->map[input_of(h, one->logits, 1)],
                           h->map[input_of(h, one->logprob, 1)] };
    struct graph_word words[GRAPH_AXES + 1] = { { text_of(h, graph_axes(g, &g->nodes[one->logprob])[0].name), 0 } };
    for (uint32_t k = 0; k < count; k++)
        inputs[3 + k] = further[k];
    for (uint32_t k = 0; k < dot->axes_count; k++)
        words[k + 1] = (struct graph_word){ text_of(h, graph_axes(g, dot)[k].name), 0 };
    return made(
        h,
        &(struct graph_request){
            .op = OPERATOR_HEAD, .inputs = inputs, .input_count = 3 + count, .axes = words, .axes_count = dot->axes_count + 1u },
        old, node);
}

/* Result `which` of a head in place of the old node `old`. */
static bool result_made(struct heads *h, uint32_t head, int64_t which, uint32_t old)
{
    return old == GRAPH_NONE ||
           made(h,
                &(struct graph_request){
                    .op = OPERATOR_RESULT, .inputs = &head, .input_count = 1, .integers = &which, .integers_count = 1 },
                old, &h->map[old]);
}

static bool gradients_made(struct heads *h, const struct head *one, uint32_t head)
{
    return result_made(h, head, 1, one->hidden_gradient) && (one->onto || result_made(h, head, 2, one->table_gradient));
}

/* Where the log-probabilities were. */
static bool head_made(struct heads *h, const struct head *one)
{
    uint32_t *head = &h->map[one->logprob];
    if (one->form != AT_ONCE)
        return head_added(h, one, NULL, 0, one->logprob, head) && result_made(h, *head, 1, one->best);
    const uint32_t further[2] = { h->map[input_of(h, one->gradient, 3)], demand_of(h, one->logprob, 0) };
    error_clear(h->err); /* a demand that would not fit is none */
    return head_added(h, one, further, further[1] == GRAPH_NONE ? 1 : 2, one->logprob, head) && gradients_made(h, one, *head);
}

/* Where the gradient of the logits was: nobody reads the log-probabilities of this head. */
static bool head_made_again(struct heads *h, const struct head *one)
{
    const uint32_t slope = h->map[input_of(h, one->gradient, 3)];
    uint32_t head;
    return head_added(h, one, (const uint32_t[]){ slope, slope }, 2, GRAPH_NONE, &head) && gradients_made(h, one, head);
}

/* Where the gradient of a tied table was. */
static bool head_made_table(struct heads *h, const struct head *one)
{
    const uint32_t slope = h->map[input_of(h, one->gradient, 3)], onto = h->map[input_of(h, one->table_gradient, 0)];
    uint32_t head;
    return head_added(h, one, (const uint32_t[]){ slope, slope, onto }, 3, GRAPH_NONE, &head) &&
           result_made(h, head, 2, one->table_gradient);
}

static bool node_made(struct heads *h, uint32_t i)
{
    const struct graph_node *n = &h->g->nodes[i];
    if (h->role[i] == GONE)
        return true;
    if (h->role[i] == LOGPROB)
        return head_made(h, &h->all[h->head[i]]);
    if (h->role[i] == GRADIENT)
        return head_made_again(h, &h->all[h->head[i]]);
    if (h->role[i] == TABLE)
        return head_made_table(h, &h->all[h->head[i]]);
    uint32_t few[8], *inputs = n->input_count > 8 ? malloc(n->input_count * sizeof *inputs) : few;
    if (!inputs)
        abort();
    for (uint32_t k = 0; k < n->input_count; k++)
        inputs[k] = h->map[graph_inputs(h->g, n)[k]];
    const bool ok = graph_copy_node(h->to, h->g, i, inputs, &h->map[i], h->err);
    if (ok)
        came_from(h, h->map[i], i);
    if (inputs != few)
        free(inputs);
    return ok;
}

/* A head can run once the gradient of its log-probabilities is there: what depends on heads waits until the last of those. */
static bool all_made(struct heads *h)
{
    const struct graph *g = h->g;
    uint32_t last = 0;
    bool ok = true;
    for (uint32_t k = 0; k < h->count; k++)
        last = h->all[k].form == AT_ONCE && h->all[k].gradient > last ? h->all[k].gradient : last;
    for (uint32_t i = 0; ok && i < last; i++)
        ok = h->after[i] || node_made(h, i);
    for (uint32_t i = 0; ok && i < last; i++)
        ok = !h->after[i] || node_made(h, i);
    for (uint32_t i = last; ok && i < g->node_count; i++)
        ok = node_made(h, i);
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        ok = graph_output(h->to, g->names[g->outputs[i].name], h->map[g->outputs[i].node], h->err);
    return ok;
}

struct graph *arrange_heads(const struct graph *g, bool tied, uint32_t **from, struct error *err)
{
    struct heads h = { .g = g,
                       .to = graph_new(&g->limits),
                       .err = err,
                       .tied = tied,
                       .readers = consumers_of(g),
                       .after = calloc(g->node_count + 1, 1),
                       .role = calloc(g->node_count + 1, 1),
                       .head = calloc(g->node_count + 1, sizeof *h.head),
                       .map = malloc((g->node_count + 1) * sizeof *h.map) };
    if (!h.after || !h.role || !h.head || !h.map)
        abort();
    memset(h.map, 0xff, (g->node_count + 1) * sizeof *h.map);
    heads_found(&h);
    const bool ok = all_made(&h);
    consumers_free(&h.readers);
    free(h.after);
    free(h.role);
    free(h.head);
    free(h.all);
    free(h.map);
    *from = h.from;
    if (ok)
        return h.to;
    graph_free(h.to);
    return NULL;
}
