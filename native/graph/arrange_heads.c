/* arrange_heads.c - see arrange.h and heads.h. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/heads.h"

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

bool heads_is_output(const struct heads *h, uint32_t node)
{
    for (uint32_t i = 0; i < h->g->output_count; i++)
        if (h->g->outputs[i].node == node)
            return true;
    return false;
}

bool heads_end_read(const struct heads *h, uint32_t end)
{
    for (uint32_t k = h->readers.first[end]; k < h->readers.first[end + 1]; k++) {
        const uint32_t reader = h->readers.at[k];
        if (h->kind[reader] == NODE_PLAIN || h->of[reader] != h->of[end])
            return true;
    }
    return heads_is_output(h, end);
}

/* ---- finding regions ---- */

enum width width_of(const struct region *r, const struct graph_node *n)
{
    const struct graph_node *like = r->like;
    unsigned rows = 0;
    for (unsigned i = 0; i + 1 < like->rank; i++)
        rows += graph_axis_find(n, like->axis[i].name) >= 0;
    if (rows == 0)
        return WIDTH_SHARED;
    if (rows + 1u != like->rank)
        return WIDTH_OTHER;
    if (graph_axis_find(n, like->axis[like->rank - 1].name) < 0)
        return WIDTH_ROWS;
    bool same = n->rank == like->rank;
    for (unsigned i = 0; same && i < n->rank; i++)
        same = n->axis[i].name == like->axis[i].name;
    return same ? WIDTH_WIDE : WIDTH_OTHER;
}

struct growing {
    struct heads *h;
    uint32_t region;
    uint32_t *open; /* wide nodes whose neighbours were not looked at */
    uint32_t open_count;
};

static enum width width_at(const struct growing *w, uint32_t node)
{
    return width_of(&w->h->all[w->region], &w->h->g->nodes[node]);
}

static bool wide_taken(struct growing *w, uint32_t i)
{
    struct heads *h = w->h;
    if (h->kind[i] != NODE_PLAIN)
        return h->kind[i] == NODE_WIDE && h->of[i] == w->region;
    if (width_at(w, i) != WIDTH_WIDE || h->g->nodes[i].type != TENSOR_F32 || heads_is_output(h, i))
        return false;
    h->kind[i] = NODE_WIDE;
    h->of[i] = w->region;
    w->open[w->open_count++] = i;
    return true;
}

static bool end_taken(struct growing *w, uint32_t i, enum body_kind kind)
{
    struct heads *h = w->h;
    if (h->kind[i] != NODE_PLAIN)
        return h->kind[i] == NODE_END && h->of[i] == w->region;
    h->kind[i] = NODE_END;
    h->of[i] = w->region;
    h->ends[i] = (uint8_t)kind;
    return true;
}

/* Whether wide node i is a product of rows and something shared, or goes on from one. */
static bool product_taken(struct growing *w, uint32_t i)
{
    const struct graph_node *n = &w->h->g->nodes[i];
    const unsigned first = n->op != OPERATOR_DOT;
    const enum width x = width_at(w, heads_input(w->h, i, first)), y = width_at(w, heads_input(w->h, i, first + 1));
    return ((x == WIDTH_ROWS && y == WIDTH_SHARED) || (x == WIDTH_SHARED && y == WIDTH_ROWS)) &&
           (first == 0 || wide_taken(w, heads_input(w->h, i, 0)));
}

static bool operands_taken(struct growing *w, uint32_t i)
{
    const struct graph_node *n = &w->h->g->nodes[i];
    if (n->op == OPERATOR_DOT || n->op == OPERATOR_DOT_ONTO || n->op == OPERATOR_LOW_RANK)
        return product_taken(w, i);
    if (n->op != OPERATOR_TOKEN_LOGPROB_GRAD && !(operator_table[n->op].flags & OPERATOR_ELEMENTWISE))
        return false;
    for (uint32_t k = 0; k < n->input_count; k++) {
        const uint32_t x = heads_input(w->h, i, k);
        const enum width width = width_at(w, x);
        if (width == WIDTH_OTHER || (width == WIDTH_WIDE && !wide_taken(w, x)))
            return false;
    }
    return true;
}

/* Whether the axes that node c sums are those of the rows, in their order. */
static bool over_rows(const struct growing *w, const struct graph_node *c)
{
    const struct graph_node *like = w->h->all[w->region].like;
    bool same = c->axes_count + 1u == like->rank;
    for (unsigned k = 0; same && k < c->axes_count; k++)
        same = graph_axes(w->h->g, c)[k].name == like->axis[k].name;
    return same;
}

static bool over_vocabulary(const struct growing *w, const struct graph_node *c)
{
    const struct graph_node *like = w->h->all[w->region].like;
    return c->axes_count == 1 && graph_axes(w->h->g, c)[0].name == like->axis[like->rank - 1].name;
}

/* A product of which wide node i is a factor: for each row, or summed over rows. */
static bool product_ends(struct growing *w, uint32_t c, uint32_t i)
{
    const struct graph_node *n = &w->h->g->nodes[c];
    const unsigned first = n->op != OPERATOR_DOT;
    const uint32_t x = heads_input(w->h, c, first), y = heads_input(w->h, c, first + 1);
    const enum width other = width_at(w, x == i ? y : x), base = first ? width_at(w, heads_input(w->h, c, 0)) : WIDTH_SHARED;
    if (x == y || n->type != TENSOR_F32)
        return false;
    if (over_vocabulary(w, n))
        return other == WIDTH_SHARED && (!first || base == WIDTH_ROWS) && end_taken(w, c, BODY_ROW);
    return over_rows(w, n) && n->op != OPERATOR_LOW_RANK && other == WIDTH_ROWS && base == WIDTH_SHARED &&
           end_taken(w, c, BODY_SUM);
}

static bool logprob_ends(struct growing *w, uint32_t c)
{
    const struct heads *h = w->h;
    bool ok = over_vocabulary(w, &h->g->nodes[c]) && width_at(w, heads_input(h, c, 1)) == WIDTH_ROWS && end_taken(w, c, BODY_ROW);
    for (uint32_t k = h->readers.first[c]; ok && k < h->readers.first[c + 1]; k++)
        if (h->g->nodes[h->readers.at[k]].op == OPERATOR_RESULT)
            ok = end_taken(w, h->readers.at[k], BODY_ROW);
    return ok;
}

static bool reader_taken(struct growing *w, uint32_t c, uint32_t i)
{
    const struct graph_node *n = &w->h->g->nodes[c];
    switch (n->op) {
    case OPERATOR_TOKEN_LOGPROB:
        return logprob_ends(w, c);
    case OPERATOR_ARGMAX:
        return over_vocabulary(w, n) && end_taken(w, c, BODY_ROW);
    case OPERATOR_SUM:
        return n->input_count == 1 && over_rows(w, n) && end_taken(w, c, BODY_LANE);
    case OPERATOR_TOKEN_LOGPROB_GRAD:
        return over_vocabulary(w, n) && heads_input(w->h, c, 0) == i && wide_taken(w, c);
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        return heads_input(w->h, c, 0) == i ? wide_taken(w, c) : product_ends(w, c, i);
    case OPERATOR_DOT:
        return product_ends(w, c, i);
    default:
        return wide_taken(w, c);
    }
}

/* The region around the logits of a log-probability; false: it has what cannot run by tiles. */
static bool region_grown(struct growing *w, uint32_t logits)
{
    const struct heads *h = w->h;
    if (!wide_taken(w, logits))
        return false;
    while (w->open_count > 0) {
        const uint32_t i = w->open[--w->open_count];
        if (!operands_taken(w, i))
            return false;
        for (uint32_t k = h->readers.first[i]; k < h->readers.first[i + 1]; k++)
            if (!reader_taken(w, h->readers.at[k], i))
                return false;
    }
    return true;
}

static void region_dropped(struct heads *h, uint32_t region)
{
    for (uint32_t i = 0; i < h->g->node_count; i++)
        if (h->kind[i] != NODE_PLAIN && h->of[i] == region)
            h->kind[i] = NODE_PLAIN;
}

static void regions_found(struct heads *h)
{
    const struct graph *g = h->g;
    uint32_t *open = malloc((g->node_count + 1) * sizeof *open);
    if (!open)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i].op != OPERATOR_TOKEN_LOGPROB || h->kind[i] != NODE_PLAIN)
            continue;
        const uint32_t logits = heads_input(h, i, 0);
        const struct graph_node *like = &g->nodes[logits];
        if (like->rank < 2 || like->axis[like->rank - 1].name != graph_axes(g, &g->nodes[i])[0].name)
            continue;
        h->all = realloc(h->all, (h->count + 1) * sizeof *h->all);
        if (!h->all)
            abort();
        h->all[h->count] = (struct region){ .like = like };
        struct growing w = { .h = h, .region = h->count, .open = open };
        if (region_grown(&w, logits))
            h->count++;
        else
            region_dropped(h, h->count);
    }
    free(open);
}

/* ---- when each part can run ---- */

/* Whether end i goes on from the gradient of the lookup that the same table serves, and rows are few beside the words: then that is
 * added in the end. */
static bool is_tied(const struct heads *h, uint32_t i)
{
    const struct graph *g = h->g;
    const struct graph_node *n = &g->nodes[i];
    if (h->kind[i] != NODE_END || h->ends[i] != BODY_SUM || n->op != OPERATOR_DOT_ONTO)
        return false;
    const uint32_t base = heads_input(h, i, 0);
    const struct graph_node *scatter = &g->nodes[base], *like = h->all[h->of[i]].like;
    if (scatter->op != OPERATOR_SCATTER || h->readers.first[base + 1] - h->readers.first[base] != 1 || heads_is_output(h, base) ||
        n->axis[0].name != like->axis[like->rank - 1].name || scatter->axes_count == 0 ||
        scatter->axis[0].name != n->axis[0].name)
        return false;
    const struct graph_node *y = &g->nodes[heads_input(h, base, 0)], *ids = &g->nodes[heads_input(h, base, 1)];
    bool plain =
        ids->rank + 1u == scatter->axes_count && y->rank == ids->rank + n->rank - 1u && 4 * ids->values <= n->axis[0].size;
    for (unsigned k = 0; plain && k < ids->rank; k++)
        plain = y->axis[k].name == ids->axis[k].name && graph_axis_find(n, ids->axis[k].name) < 0;
    for (uint32_t k = 0; plain && k < i; k++) /* one for a region */
        plain = !h->tied[k] || h->of[k] != h->of[i] || h->kind[k] == NODE_PLAIN;
    return plain;
}

static void levels_found(struct heads *h)
{
    for (uint32_t i = 0; i < h->g->node_count; i++) {
        unsigned level = 0, late = 0;
        h->tied[i] = is_tied(h, i);
        for (uint32_t k = 0; k < h->g->nodes[i].input_count; k++) {
            const uint32_t x = heads_input(h, i, k);
            const bool inside = h->kind[i] != NODE_PLAIN && h->kind[x] != NODE_PLAIN && h->of[x] == h->of[i];
            const unsigned at = inside ? h->level[x] : h->after[x];
            if (h->tied[i] && k == 0)
                late = at;
            else
                level = at > level ? at : level;
        }
        h->level[i] = (uint8_t)(level < 255 ? level : 255);
        level += h->kind[i] != NODE_PLAIN;
        level = late > level ? late : level;
        h->after[i] = (uint8_t)(level < 255 ? level : 255);
    }
}

static void anchors_found(struct heads *h)
{
    for (uint32_t r = 0; r < h->count; r++)
        memset(h->all[r].anchor, 0xff, sizeof h->all[r].anchor);
    for (uint32_t i = h->g->node_count; i-- > 0;)
        if (h->kind[i] != NODE_PLAIN && h->level[i] < HEAD_LEVELS)
            h->all[h->of[i]].anchor[h->level[i]] = i;
}

/* The node before which what does not wait for a head is computed ahead of the heads. */
static uint32_t hoisted_before(const struct heads *h)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < h->g->node_count; i++)
        if (h->kind[i] == NODE_WIDE && h->level[i] == 0)
            last = i + 1;
    return last;
}

/* Whether what a body takes is there where it is written. */
static bool inputs_there(const struct heads *h, uint32_t r, unsigned level, const struct body_plan *p, uint32_t last)
{
    const uint32_t before = level == 0 && h->all[r].anchor[0] < last ? last : h->all[r].anchor[level];
    bool there = true;
    for (uint32_t k = 0; there && k < p->input_count; k++)
        there = p->inputs[k] < before && h->after[p->inputs[k]] <= level;
    if (p->columns_of != GRAPH_NONE) {
        const uint32_t ids = heads_input(h, heads_input(h, p->columns_of, 0), 1);
        there = there && ids < before && h->after[ids] <= level;
    }
    return there;
}

static bool region_good(const struct heads *h, uint32_t r, uint32_t last)
{
    bool good = true;
    for (uint32_t i = 0; good && i < h->g->node_count; i++)
        good = h->kind[i] == NODE_PLAIN || h->of[i] != r || h->level[i] < HEAD_LEVELS;
    for (unsigned level = 0; good && level < HEAD_LEVELS; level++) {
        struct body_plan p;
        uint32_t ends = 0;
        for (uint32_t i = 0; i < h->g->node_count; i++)
            ends += h->kind[i] == NODE_END && h->of[i] == r && h->level[i] == level && heads_end_read(h, i);
        if (ends == 0)
            continue;
        good = body_gathered(h, r, level, &p) && inputs_there(h, r, level, &p, last) && body_built(h, r, &p);
        body_plan_free(&p);
    }
    return good;
}

/* Drops regions until all that are left can run. */
static void regions_settled(struct heads *h)
{
    for (bool changed = true; changed;) {
        changed = false;
        levels_found(h);
        anchors_found(h);
        const uint32_t last = hoisted_before(h);
        for (uint32_t r = 0; r < h->count && !changed; r++)
            if (h->all[r].like && !region_good(h, r, last)) {
                region_dropped(h, r);
                h->all[r].like = NULL;
                changed = true;
            }
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

bool heads_made(struct heads *h, const struct graph_request *r, uint32_t old, uint32_t *node)
{
    if (!graph_add(h->to, r, node, h->err))
        return false;
    came_from(h, *node, old);
    return true;
}

/* Out k of a head: of the axes given. */
static bool part_made(struct heads *h, uint32_t head, int64_t k, unsigned type, const struct graph_word *axes, size_t count,
                      uint32_t old, uint32_t *node)
{
    return heads_made(h,
                      &(struct graph_request){ .op = OPERATOR_PART,
                                               .inputs = &head,
                                               .input_count = 1,
                                               .axes = axes,
                                               .axes_count = count,
                                               .integers = (int64_t[]){ k, (int64_t)type },
                                               .integers_count = 2 },
                      old, node);
}

static size_t words_of(const struct heads *h, const struct graph_node *n, unsigned count, struct graph_word *words)
{
    for (unsigned i = 0; i < count; i++)
        words[i] = (struct graph_word){ h->g->names[n->axis[i].name], n->axis[i].size };
    return count;
}

/* The words of the lookup as one axis. */
static bool words_made(struct heads *h, uint32_t end, uint32_t *node)
{
    const uint32_t ids = heads_input(h, heads_input(h, end, 0), 1);
    struct graph_word words[GRAPH_AXES + 1] = { { "tile_word", 0 } };
    const size_t count = 1 + words_of(h, &h->g->nodes[ids], h->g->nodes[ids].rank, words + 1);
    return heads_made(h,
                      &(struct graph_request){
                          .op = OPERATOR_MERGE, .inputs = &h->map[ids], .input_count = 1, .axes = words, .axes_count = count },
                      GRAPH_NONE, node);
}

/* For a tied end what its sum, its columns and the words are, until its own place comes. */
static bool parts_made(struct heads *h, const struct body_plan *p, uint32_t head, uint32_t ids)
{
    struct graph_word words[GRAPH_AXES + 1];
    for (uint32_t e = 0; e < p->end_count; e++) {
        const uint32_t i = p->ends[e];
        const struct graph_node *n = &h->g->nodes[i];
        if (!part_made(h, head, e, n->type, words, words_of(h, n, n->rank, words), h->tied[i] ? GRAPH_NONE : i, &h->map[i]))
            return false;
    }
    if (p->columns_of == GRAPH_NONE)
        return true;
    struct region *r = &h->all[h->of[p->columns_of]];
    const struct graph_node *like = r->like;
    size_t count = words_of(h, like, like->rank - 1u, words);
    words[count++] = (struct graph_word){ "tile_word", h->to->nodes[ids].values };
    const uint32_t x = heads_input(h, p->columns_of, 1), y = heads_input(h, p->columns_of, 2);
    r->words = ids;
    r->factor = h->map[h->kind[x] == NODE_WIDE ? y : x];
    return part_made(h, head, p->end_count, TENSOR_F32, words, count, GRAPH_NONE, &r->columns);
}

/* The head of a level of region r. */
static bool body_written(struct heads *h, uint32_t r, unsigned level)
{
    struct body_plan p;
    uint32_t inputs[BODY_INPUTS], head, ids = GRAPH_NONE;
    bool ok = body_gathered(h, r, level, &p);
    if (!ok) {
        body_plan_free(&p);
        return true; /* nothing of this level is read */
    }
    for (uint32_t k = 0; k < p.input_count; k++)
        inputs[k] = h->map[p.inputs[k]];
    uint32_t count = p.input_count;
    if (p.columns_of != GRAPH_NONE) {
        ok = words_made(h, p.columns_of, &ids);
        inputs[count++] = ids;
    }
    for (uint32_t e = 0; ok && p.body->skips && e < p.end_count; e++)
        if (h->g->nodes[p.ends[e]].op == OPERATOR_TOKEN_LOGPROB) {
            const uint32_t demand = heads_demand(h, p.ends[e]);
            p.body->skips = demand != GRAPH_NONE;
            p.body->demand = demand == GRAPH_NONE ? GRAPH_NONE : count;
            if (demand != GRAPH_NONE)
                inputs[count++] = demand;
        }
    h->bodies = realloc(h->bodies, (h->body_count + 1) * sizeof *h->bodies);
    if (!h->bodies)
        abort();
    ok = ok && body_built(h, r, &p) &&
         heads_made(h,
                    &(struct graph_request){ .op = OPERATOR_HEAD,
                                             .inputs = inputs,
                                             .input_count = count,
                                             .integers = &(int64_t){ h->body_count },
                                             .integers_count = 1 },
                    GRAPH_NONE, &head) &&
         parts_made(h, &p, head, ids);
    if (ok) {
        h->bodies[h->body_count++] = *p.body;
        free(p.body);
        p.body = NULL;
    }
    body_plan_free(&p);
    return ok;
}

/* Where a tied table's gradient was: the lookup's is there now. */
static bool tied_written(struct heads *h, uint32_t i)
{
    const struct region *r = &h->all[h->of[i]];
    const uint32_t base = heads_input(h, i, 0);
    const uint32_t inputs[5] = { h->map[i], r->columns, r->factor, h->map[heads_input(h, base, 0)], r->words };
    return heads_made(h, &(struct graph_request){ .op = OPERATOR_TIED, .inputs = inputs, .input_count = 5 }, i, &h->map[i]);
}

static bool node_written(struct heads *h, uint32_t i)
{
    const struct graph_node *n = &h->g->nodes[i];
    if (h->kind[i] != NODE_PLAIN) {
        const struct region *r = &h->all[h->of[i]];
        bool ok = r->anchor[h->level[i]] != i || body_written(h, h->of[i], h->level[i]);
        return ok && (!h->tied[i] || tied_written(h, i));
    }
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

/* A scatter that went into the gradient of a tied table is not computed. */
static bool is_gone(const struct heads *h, uint32_t i)
{
    const uint32_t first = h->readers.first[i];
    return h->g->nodes[i].op == OPERATOR_SCATTER && h->readers.first[i + 1] == first + 1 && h->tied[h->readers.at[first]] &&
           heads_input(h, h->readers.at[first], 0) == i;
}

/* A head can run once the gradient of its log-probabilities is there: what depends on heads waits until the last of those. */
static bool all_written(struct heads *h)
{
    const struct graph *g = h->g;
    const uint32_t last = hoisted_before(h);
    bool ok = true;
    for (uint32_t i = 0; ok && i < last; i++)
        ok = h->kind[i] != NODE_PLAIN || h->after[i] || node_written(h, i);
    for (uint32_t i = 0; ok && i < last; i++)
        ok = (h->kind[i] == NODE_PLAIN && !h->after[i]) || is_gone(h, i) || node_written(h, i);
    for (uint32_t i = last; ok && i < g->node_count; i++)
        ok = is_gone(h, i) || node_written(h, i);
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        ok = graph_output(h->to, g->names[g->outputs[i].name], h->map[g->outputs[i].node], h->err);
    return ok;
}

struct graph *arrange_heads(const struct graph *g, uint32_t **from, struct body **bodies, uint32_t *body_count, struct error *err)
{
    const size_t count = g->node_count + 1;
    struct heads h = { .g = g,
                       .to = graph_new(&g->limits),
                       .err = err,
                       .readers = consumers_of(g),
                       .kind = calloc(count, 1),
                       .ends = calloc(count, 1),
                       .level = calloc(count, 1),
                       .after = calloc(count, 1),
                       .tied = calloc(count, 1),
                       .of = calloc(count, sizeof *h.of),
                       .map = malloc(count * sizeof *h.map) };
    if (!h.kind || !h.ends || !h.level || !h.after || !h.tied || !h.of || !h.map)
        abort();
    memset(h.map, 0xff, count * sizeof *h.map);
    regions_found(&h);
    regions_settled(&h);
    const bool ok = all_written(&h);
    consumers_free(&h.readers);
    free(h.kind);
    free(h.ends);
    free(h.level);
    free(h.after);
    free(h.tied);
    free(h.of);
    free(h.all);
    free(h.map);
    *from = h.from;
    *bodies = h.bodies;
    *body_count = h.body_count;
    if (ok)
        return h.to;
    graph_free(h.to);
    return NULL;
}
