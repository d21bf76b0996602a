/* arrange_body.c - what of a region runs by tiles; see heads.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/heads.h"

#define TILE "tile_rows"

/* ---- what belongs to it ---- */

static bool own_member(const struct heads *h, uint32_t r, uint32_t i)
{
    return h->kind[i] != NODE_PLAIN && h->of[i] == r;
}

/* Input k of an end that the body does not take: the lookup's gradient. */
static bool left_out(const struct heads *h, uint32_t i, uint32_t k)
{
    return h->tied[i] && k == 0;
}

static bool members_gathered(const struct heads *h, uint32_t r, struct body_plan *p)
{
    uint8_t *needed = calloc(h->g->node_count + 1, 1);
    bool fits = true;
    p->members = malloc((h->g->node_count + 1) * sizeof *p->members);
    if (!needed || !p->members)
        abort();
    for (uint32_t e = 0; e < p->end_count; e++)
        needed[p->ends[e]] = 1;
    for (uint32_t i = h->g->node_count; i-- > 0;)
        for (uint32_t k = 0; needed[i] && own_member(h, r, i) && k < h->g->nodes[i].input_count; k++)
            needed[heads_input(h, i, k)] |= !left_out(h, i, k);
    for (uint32_t i = 0; i < h->g->node_count; i++) {
        if (needed[i] && own_member(h, r, i))
            p->members[p->member_count++] = i;
        else if (needed[i] && p->input_count == BODY_INPUTS - BODY_OUTS - 2)
            fits = false;
        else if (needed[i])
            p->inputs[p->input_count++] = i;
    }
    free(needed);
    return fits;
}

static uint32_t input_place(const struct body_plan *p, uint32_t node)
{
    for (uint32_t k = 0; k < p->input_count; k++)
        if (p->inputs[k] == node)
            return k;
    return GRAPH_NONE;
}

/* Whether the value of a row is zeros where the gradient of its log-probability is. */
static bool zero_with(const struct heads *h, uint32_t i, const uint8_t *zero)
{
    const struct graph_node *n = &h->g->nodes[i];
    switch (n->op) {
    case OPERATOR_TOKEN_LOGPROB_GRAD:
        return true;
    case OPERATOR_NEG:
    case OPERATOR_DIV:
        return zero[heads_input(h, i, 0)];
    case OPERATOR_MUL:
        return zero[heads_input(h, i, 0)] || zero[heads_input(h, i, 1)];
    case OPERATOR_ADD:
    case OPERATOR_SUB:
        return zero[heads_input(h, i, 0)] && zero[heads_input(h, i, 1)];
    case OPERATOR_DOT: /* an end: of the gradient and what is shared, or summed over rows */
        return zero[heads_input(h, i, 0)] || zero[heads_input(h, i, 1)];
    case OPERATOR_DOT_ONTO:
        return zero[heads_input(h, i, 1)] || zero[heads_input(h, i, 2)];
    case OPERATOR_SUM:
        return zero[heads_input(h, i, 0)];
    default:
        return false;
    }
}

/* Whether a row needs nothing where its gradient is 0 and its log-probability is not asked for. */
static void skips_found(const struct heads *h, struct body_plan *p)
{
    uint8_t *zero = calloc(h->g->node_count + 1, 1);
    uint32_t gradients = 0, logprobs = 0;
    if (!zero)
        abort();
    p->body->skips = true;
    for (uint32_t k = 0; k < p->member_count; k++) {
        const uint32_t i = p->members[k];
        zero[i] = zero_with(h, i, zero);
        if (h->g->nodes[i].op == OPERATOR_TOKEN_LOGPROB_GRAD) {
            gradients++;
            p->body->slope = input_place(p, heads_input(h, i, 3));
        }
    }
    for (uint32_t e = 0; e < p->end_count; e++) {
        const uint32_t i = p->ends[e];
        const bool logprob = h->g->nodes[i].op == OPERATOR_TOKEN_LOGPROB;
        logprobs += logprob;
        if (!logprob && (!zero[i] || (h->ends[i] == BODY_ROW && h->g->nodes[i].op == OPERATOR_DOT_ONTO)))
            p->body->skips = false;
    }
    if (gradients > 1 || logprobs > 1 || (gradients == 1 && p->body->slope == GRAPH_NONE))
        p->body->skips = false;
    free(zero);
}

bool body_gathered(const struct heads *h, uint32_t r, unsigned level, struct body_plan *p)
{
    const struct graph_node *like = h->all[r].like;
    *p = (struct body_plan){ .columns_of = GRAPH_NONE, .body = calloc(1, sizeof *p->body) };
    if (!p->body)
        abort();
    p->body->slope = p->body->demand = GRAPH_NONE;
    for (uint32_t i = 0; i < h->g->node_count; i++) {
        if (h->kind[i] != NODE_END || h->of[i] != r || h->level[i] != level || !heads_end_read(h, i))
            continue;
        if (p->end_count + 1 >= BODY_OUTS || (h->tied[i] && p->columns_of != GRAPH_NONE))
            return false;
        p->columns_of = h->tied[i] ? i : p->columns_of;
        p->ends[p->end_count++] = i;
    }
    if (p->end_count == 0 || !members_gathered(h, r, p))
        return false;
    p->body->rows = 1;
    p->body->rank = like->rank - 1u;
    for (unsigned i = 0; i + 1 < like->rank; i++) {
        p->body->rows *= like->axis[i].size;
        p->body->axis[i].size = like->axis[i].size;
        snprintf(p->body->axis[i].name, sizeof p->body->axis[i].name, "%s", h->g->names[like->axis[i].name]);
    }
    for (uint32_t e = 0; e < p->end_count; e++) {
        const uint32_t i = p->ends[e];
        const bool starts = h->ends[i] == BODY_SUM && h->g->nodes[i].op == OPERATOR_DOT_ONTO && !h->tied[i];
        p->body->outs[e] =
            (struct body_out){ (enum body_kind)h->ends[i], starts ? input_place(p, heads_input(h, i, 0)) : GRAPH_NONE };
    }
    p->body->out_count = p->end_count;
    if (p->columns_of != GRAPH_NONE)
        p->body->outs[p->body->out_count++] = (struct body_out){ BODY_ROW, GRAPH_NONE };
    skips_found(h, p);
    return true;
}

void body_plan_free(struct body_plan *p)
{
    if (p->body)
        bodies_free(p->body, 1);
    free(p->members);
}

/* ---- its graphs ---- */

struct building {
    const struct heads *h;
    const struct region *r;
    struct body_plan *p;
    struct graph *g;
    uint64_t tile;
    uint32_t *map; /* old node: node of g */
    struct body_input inputs[BODY_INPUTS];
    uint32_t input_count;
    struct error err;
};

static bool added(struct building *b, enum operator_code op, const uint32_t *inputs, size_t count, const struct graph_word *axes,
                  size_t axes_count, const int64_t *integers, size_t integers_count, uint32_t *node)
{
    return graph_add(b->g,
                     &(struct graph_request){ .op = op,
                                              .inputs = inputs,
                                              .input_count = count,
                                              .axes = axes,
                                              .axes_count = axes_count,
                                              .integers = integers,
                                              .integers_count = integers_count },
                     node, &b->err);
}

static bool input_made(struct building *b, struct body_input in, enum tensor_type type, const struct graph_word *axes,
                       size_t count, uint32_t *node)
{
    char name[16];
    snprintf(name, sizeof name, "i%u", b->input_count);
    if (b->input_count == BODY_INPUTS)
        return false;
    b->inputs[b->input_count++] = in;
    return graph_add(
        b->g, &(struct graph_request){ .op = OPERATOR_INPUT, .name = name, .type = type, .axes = axes, .axes_count = count },
        node, &b->err);
}

static bool is_row_axis(const struct region *r, uint32_t name)
{
    const int at = graph_axis_find(r->like, name);
    return at >= 0 && at + 1 < r->like->rank;
}

/* The axes of n with those of the rows as one, in front. */
static size_t tile_axes(const struct building *b, const struct graph_node *n, bool rows, struct graph_word *words)
{
    size_t count = 0;
    if (rows)
        words[count++] = (struct graph_word){ TILE, b->tile };
    for (unsigned i = 0; i < n->rank; i++)
        if (!rows || !is_row_axis(b->r, n->axis[i].name))
            words[count++] = (struct graph_word){ b->h->g->names[n->axis[i].name], n->axis[i].size };
    return count;
}

static bool operand_made(struct building *b, uint32_t k)
{
    struct graph_word words[GRAPH_AXES + 1];
    const uint32_t old = b->p->inputs[k];
    const struct graph_node *n = &b->h->g->nodes[old];
    const bool rows = width_of(b->r, n) == WIDTH_ROWS;
    return input_made(b, (struct body_input){ rows ? BODY_ROWS : BODY_SHARED, k }, (enum tensor_type)n->type, words,
                      tile_axes(b, n, rows, words), &b->map[old]);
}

/* A product summed over rows, onto what the tiles before gave. */
static bool sum_made(struct building *b, uint32_t i, uint32_t out)
{
    const struct graph_node *n = &b->h->g->nodes[i];
    const unsigned first = n->op == OPERATOR_DOT_ONTO;
    struct graph_word words[GRAPH_AXES + 1];
    uint32_t inputs[3] = { 0, b->map[heads_input(b->h, i, first)], b->map[heads_input(b->h, i, first + 1)] };
    return input_made(b, (struct body_input){ BODY_START, out }, TENSOR_F32, words, tile_axes(b, n, false, words), &inputs[0]) &&
           added(b, OPERATOR_DOT_ONTO, inputs, 3, &(struct graph_word){ TILE, 0 }, 1, NULL, 0, &b->map[i]);
}

/* A sum over rows: row j of the tile to lane j mod 32. Rows that the last group lacks add +0, which changes no lane. */
static bool lanes_made(struct building *b, uint32_t i, uint32_t out)
{
    const uint64_t groups = (b->tile + BODY_LANES - 1) / BODY_LANES;
    const int64_t pad[2] = { 0, (int64_t)(groups * BODY_LANES - b->tile) };
    const struct graph_word parts[3] = { { TILE, 0 }, { "tile_group", groups }, { "tile_lane", BODY_LANES } };
    struct graph_word words[GRAPH_AXES + 1] = { parts[2] };
    uint32_t x = b->map[heads_input(b->h, i, 0)], pair[2];
    const size_t rank = 1 + tile_axes(b, &b->h->g->nodes[i], false, words + 1);
    if (!input_made(b, (struct body_input){ BODY_START, out }, TENSOR_F32, words, rank, &pair[0]) ||
        (pad[1] && !added(b, OPERATOR_PAD, &x, 1, parts, 1, pad, 2, &x)) ||
        !added(b, OPERATOR_SPLIT, &x, 1, parts, 3, NULL, 0, &x))
        return false;
    for (int64_t k = 0; k < (int64_t)groups; k++)
        if (!added(b, OPERATOR_AT, &x, 1, &parts[1], 1, &k, 1, &pair[1]) ||
            !added(b, OPERATOR_ADD, pair, 2, NULL, 0, NULL, 0, &pair[0]))
            return false;
    b->map[i] = pair[0];
    return true;
}

static uint32_t out_of(const struct body_plan *p, uint32_t i)
{
    for (uint32_t e = 0; e < p->end_count; e++)
        if (p->ends[e] == i)
            return e;
    return GRAPH_NONE;
}

static bool member_made(struct building *b, uint32_t i)
{
    const struct graph_node *n = &b->h->g->nodes[i];
    uint32_t inputs[4];
    if (b->h->kind[i] == NODE_END && b->h->ends[i] == BODY_SUM)
        return sum_made(b, i, out_of(b->p, i));
    if (b->h->kind[i] == NODE_END && b->h->ends[i] == BODY_LANE)
        return lanes_made(b, i, out_of(b->p, i));
    for (uint32_t k = 0; k < n->input_count; k++)
        inputs[k] = b->map[heads_input(b->h, i, k)];
    return graph_copy_node(b->g, b->h->g, i, inputs, &b->map[i], &b->err);
}

/* The values of the gradient under the words of the lookup, which are the last input of the head. */
static bool columns_made(struct building *b)
{
    const uint32_t end = b->p->columns_of;
    const struct graph_node *ids = &b->h->g->nodes[heads_input(b->h, heads_input(b->h, end, 0), 1)];
    const uint32_t x = heads_input(b->h, end, 1), y = heads_input(b->h, end, 2), d = b->h->kind[x] == NODE_WIDE ? x : y;
    const struct graph_word vocab = { b->h->g->names[b->r->like->axis[b->r->like->rank - 1].name], 0 };
    uint32_t inputs[2] = { b->map[d], 0 }, node;
    return input_made(b, (struct body_input){ BODY_SHARED, b->p->input_count }, TENSOR_I32,
                      &(struct graph_word){ "tile_word", ids->values }, 1, &inputs[1]) &&
           added(b, OPERATOR_GATHER, inputs, 2, &vocab, 1, NULL, 0, &node) && graph_output(b->g, "columns", node, &b->err);
}

/* Whether an out lies as its node does: rows as one in front. */
static bool out_fits(const struct building *b, uint32_t i)
{
    struct graph_word words[GRAPH_AXES + 1];
    const struct graph_node *n = &b->h->g->nodes[i], *m = &b->g->nodes[b->map[i]];
    const size_t count = tile_axes(b, n, b->h->ends[i] == BODY_ROW, words);
    for (unsigned k = 0; b->h->ends[i] == BODY_ROW && k + 1 < b->r->like->rank; k++)
        if (n->axis[k].name != b->r->like->axis[k].name)
            return false;
    if (b->h->ends[i] == BODY_LANE)
        return true;
    for (size_t k = 0; k < count; k++)
        if (m->rank != count || graph_axis_of(b->g, b->map[i], words[k].name) != (int)k)
            return false;
    return true;
}

static bool graph_built(struct building *b)
{
    char name[16];
    bool ok = true;
    for (uint32_t k = 0; ok && k < b->p->input_count; k++)
        ok = operand_made(b, k);
    for (uint32_t k = 0; ok && k < b->p->member_count; k++)
        ok = member_made(b, b->p->members[k]);
    for (uint32_t e = 0; ok && e < b->p->end_count; e++) {
        snprintf(name, sizeof name, "o%u", e);
        ok = out_fits(b, b->p->ends[e]) && graph_output(b->g, name, b->map[b->p->ends[e]], &b->err);
    }
    return ok && (b->p->columns_of == GRAPH_NONE || columns_made(b));
}

/* Two chunks at once read a large table half as often. */
static void tiles_chosen(struct body *body, uint64_t words)
{
    const uint64_t most = words >= BODY_FEW && words <= BODY_MANY ? 2 * BODY_CHUNK : BODY_CHUNK;
    body->chosen = body->skips;
    for (uint32_t k = 0; k < body->out_count; k++)
        body->chosen = body->chosen && body->outs[k].kind == BODY_ROW;
    body->tile[0] = body->rows < most ? body->rows : most;
    body->tile[1] = body->chosen ? BODY_PART : body->rows % body->tile[0];
    if (body->tile[1] >= body->tile[0])
        body->tile[1] = 0;
}

bool body_built(const struct heads *h, uint32_t r, struct body_plan *p)
{
    struct building b = { .h = h, .r = &h->all[r], .p = p, .map = malloc((h->g->node_count + 1) * sizeof *b.map) };
    bool ok = true;
    if (!b.map)
        abort();
    tiles_chosen(p->body, b.r->like->axis[b.r->like->rank - 1].size);
    for (unsigned s = 0; ok && s < BODY_SIZES && p->body->tile[s]; s++) {
        b.g = p->body->g[s] = graph_new(&h->g->limits);
        b.tile = p->body->tile[s];
        b.input_count = 0;
        ok = graph_built(&b);
    }
    memcpy(p->body->inputs, b.inputs, sizeof b.inputs);
    p->body->input_count = b.input_count;
    free(b.map);
    return ok;
}
