/* step_head.c - the body of a head (body.h), some rows at a time.
 *
 *     no sum over rows     rows that matter, from anywhere, a tile at a time and the last ones 64 at a time: what a tile lacks is zeros
 *     a sum over rows      all rows in their order; a tile of which nothing matters is left out: it would add +0
 *
 * A row that does not matter has zeros in every out.
 */
#include <string.h>

#include "native/graph/body.h"
#include "native/kernel/reduce.h"

struct tiled {
    const struct body *b;
    const char *in[BODY_INPUTS];   /* data of each bound node of the body */
    uint64_t in_row[BODY_INPUTS];  /* bytes of a row; 0: shared */
    char *gathered[BODY_INPUTS];   /* of chosen rows */
    const float *start[BODY_OUTS]; /* of a sum; NULL: +0 */
    char *out[BODY_OUTS];
    uint64_t out_bytes[BODY_OUTS]; /* of a row, or of all of a sum */
    char *out_gathered[BODY_OUTS];
    float *lanes[BODY_OUTS]; /* of a BODY_LANE */
    const float *slope, *demand;
    uint64_t *row; /* of chosen rows: which */
    void **data[BODY_SIZES];
    char *arena;
};

/* ---- one tile ---- */

static bool tile_run(struct work *w, struct tiled *t, unsigned size, char *const *in, char *const *out)
{
    const struct plan *p = &t->b->plan[size];
    const struct plan_run run = { .pool = w->pool, .data = t->data[size], .arena = t->arena };
    for (uint32_t k = 0; k < t->b->input_count; k++)
        run.data[p->g->bound[k]] = in[k];
    for (uint32_t k = 0; k < t->b->out_count; k++) {
        const uint32_t node = p->g->outputs[k].node;
        if (p->storage[node] == STORAGE_OUTPUT && p->written[node] == k)
            run.data[node] = out[k];
    }
    for (uint32_t s = 0; s < p->step_count; s++)
        if (!plan_step_at(p, &p->steps[s], &run, w->err))
            return false;
    for (uint32_t k = 0; k < p->copy_count; k++)
        plan_copied(p, &p->copies[k], &run, out[p->copies[k].output]);
    return true;
}

static bool row_matters(const struct tiled *t, uint64_t row)
{
    return !t->b->skips || (t->slope && t->slope[row] != 0) || (t->demand && t->demand[row] != 0);
}

/* ---- rows from anywhere ---- */

/* Rows row[at] to row[at + count - 1]. */
static bool chosen_tile(struct work *w, struct tiled *t, unsigned size, uint64_t at, uint64_t count)
{
    char *in[BODY_INPUTS];
    for (uint32_t k = 0; k < t->b->input_count; k++) {
        const uint64_t bytes = t->in_row[k];
        in[k] = bytes ? t->gathered[k] : (char *)(uintptr_t)t->in[k];
        for (uint64_t i = 0; bytes && i < count; i++)
            memcpy(in[k] + i * bytes, t->in[k] + t->row[at + i] * bytes, bytes);
        if (bytes)
            memset(in[k] + count * bytes, 0, (t->b->tile[size] - count) * bytes);
    }
    if (!tile_run(w, t, size, in, t->out_gathered))
        return false;
    for (uint32_t k = 0; k < t->b->out_count; k++)
        for (uint64_t i = 0; i < count; i++)
            memcpy(t->out[k] + t->row[at + i] * t->out_bytes[k], t->out_gathered[k] + i * t->out_bytes[k], t->out_bytes[k]);
    return true;
}

static bool chosen_run(struct work *w, struct tiled *t)
{
    const struct body *b = t->b;
    uint64_t count = 0, at = 0;
    for (uint64_t i = 0; i < b->rows; i++)
        if (row_matters(t, i))
            t->row[count++] = i;
    for (uint32_t k = 0; k < b->out_count; k++)
        memset(t->out[k], 0, b->rows * t->out_bytes[k]);
    for (bool ok = true; at < count && ok;) {
        const uint64_t left = count - at;
        const unsigned size = b->tile[1] && left + b->tile[1] <= b->tile[0];
        const uint64_t here = left < b->tile[size] ? left : b->tile[size];
        ok = chosen_tile(w, t, size, at, here);
        at += here;
        if (!ok)
            return false;
    }
    return true;
}

/* ---- all rows in their order ---- */

/* Adds the lanes of a block to the sum and clears them: lane[i] + lane[i + w] for w = 16, 8, 4, 2, 1. */
static void lanes_added(float *lanes, uint64_t width, float *sum)
{
    for (uint64_t half = BODY_LANES / 2; half > 0; half /= 2)
        for (uint64_t i = 0; i < half * width; i++)
            lanes[i] = lanes[i] + lanes[half * width + i];
    for (uint64_t i = 0; i < width; i++)
        sum[i] = sum[i] + lanes[i];
    memset(lanes, 0, BODY_LANES * width * sizeof *lanes);
}

static void sums_begun(struct tiled *t)
{
    for (uint32_t k = 0; k < t->b->out_count; k++) {
        if (t->b->outs[k].kind == BODY_ROW)
            continue;
        if (t->start[k])
            memcpy(t->out[k], t->start[k], t->out_bytes[k]);
        else
            memset(t->out[k], 0, t->out_bytes[k]);
        if (t->lanes[k])
            memset(t->lanes[k], 0, BODY_LANES * t->out_bytes[k]);
    }
}

static bool tile_matters(const struct tiled *t, uint64_t at, uint64_t count)
{
    bool matters = false;
    for (uint64_t i = at; i < at + count && !matters; i++)
        matters = row_matters(t, i);
    for (uint32_t k = 0; k < t->b->out_count; k++) /* a start of -0 is +0 after a zero was added */
        matters = matters || (t->b->outs[k].kind == BODY_SUM && t->b->outs[k].start != GRAPH_NONE);
    return matters;
}

static bool ordered_tile(struct work *w, struct tiled *t, unsigned size, uint64_t at, uint64_t count)
{
    const struct body *b = t->b;
    char *in[BODY_INPUTS], *out[BODY_OUTS];
    for (uint32_t k = 0; k < b->out_count; k++) {
        out[k] = b->outs[k].kind == BODY_ROW ? t->out[k] + at * t->out_bytes[k] : t->out[k];
        out[k] = t->lanes[k] ? (char *)t->lanes[k] : out[k];
    }
    if (!tile_matters(t, at, count)) {
        for (uint32_t k = 0; k < b->out_count; k++)
            if (b->outs[k].kind == BODY_ROW)
                memset(out[k], 0, count * t->out_bytes[k]);
        return true;
    }
    for (uint32_t k = 0; k < b->input_count; k++)
        in[k] = b->inputs[k].side == BODY_START ? out[b->inputs[k].from] : (char *)(uintptr_t)t->in[k] + at * t->in_row[k];
    return tile_run(w, t, size, in, out);
}

static bool ordered_run(struct work *w, struct tiled *t)
{
    const struct body *b = t->b;
    sums_begun(t);
    for (uint64_t at = 0; at < b->rows;) {
        const unsigned size = b->rows - at < b->tile[0];
        if (!ordered_tile(w, t, size, at, b->tile[size]))
            return false;
        at += b->tile[size];
        for (uint32_t k = 0; k < b->out_count; k++)
            if (t->lanes[k] && (at % BODY_BLOCK == 0 || at == b->rows))
                lanes_added(t->lanes[k], t->out_bytes[k] / sizeof(float), (float *)t->out[k]);
    }
    return true;
}

/* ---- the step ---- */

/* Input `from` of the head as the body's bound node k takes it. */
static void input_given(struct work *w, struct tiled *t, uint32_t k)
{
    const struct body *b = t->b;
    const struct graph *inner = b->plan[0].g;
    const struct graph_node *n = &inner->nodes[inner->bound[k]];
    const uint32_t from = b->inputs[k].from, stored = b->plan[0].stored[inner->bound[k]];
    struct graph_axis order[GRAPH_AXES];
    unsigned rank = 0;
    if (b->inputs[k].side == BODY_SHARED && stored != n->type) {
        t->in[k] = w->measure ? NULL : w->data[graph_inputs(w->g, w->n)[from]];
        return;
    }
    for (unsigned i = 0; b->inputs[k].side == BODY_ROWS && i < b->rank; i++)
        order[rank++] = (struct graph_axis){ graph_name_find(w->g, b->axis[i].name), b->axis[i].size };
    for (unsigned i = b->inputs[k].side == BODY_ROWS; i < n->rank; i++)
        order[rank++] = (struct graph_axis){ graph_name_find(w->g, inner->names[n->axis[i].name]), n->axis[i].size };
    t->in[k] = step_operand(w, from, order, rank, (enum tensor_type)n->type);
    if (b->inputs[k].side == BODY_ROWS)
        t->in_row[k] = n->values / b->tile[0] * type_bytes(n->type);
    if (from == b->slope)
        t->slope = (const float *)t->in[k];
    if (b->chosen && t->in_row[k])
        t->gathered[k] = step_take(w, b->tile[0] * t->in_row[k]);
}

static void out_given(struct work *w, struct tiled *t, uint32_t k)
{
    const struct body *b = t->b;
    const struct body_out *o = &b->outs[k];
    const uint32_t node = w->extra[w->id][k];
    const struct graph_node *n = &w->g->nodes[node];
    t->out[k] = w->measure ? NULL : w->data[node];
    t->out_bytes[k] = n->values / (o->kind == BODY_ROW ? b->rows : 1) * type_bytes(n->type);
    if (o->kind == BODY_SUM && o->start != GRAPH_NONE)
        t->start[k] = step_operand(w, o->start, n->axis, n->rank, TENSOR_F32);
    if (o->kind == BODY_LANE)
        t->lanes[k] = step_take(w, BODY_LANES * t->out_bytes[k]);
    if (b->chosen)
        t->out_gathered[k] = step_take(w, b->tile[0] * t->out_bytes[k]);
}

/* Working memory of the plans: one arena for both. */
static void plans_given(struct work *w, struct tiled *t)
{
    const struct body *b = t->b;
    uint64_t arena = 0;
    for (unsigned s = 0; s < BODY_SIZES && b->tile[s]; s++) {
        const struct plan *p = &b->plan[s];
        char *fixed = step_take(w, p->fixed);
        arena = p->arena > arena ? p->arena : arena;
        t->data[s] = step_take(w, p->g->node_count * sizeof(void *));
        if (!w->measure)
            plan_fixed_filled(p, fixed, t->data[s]);
    }
    t->arena = step_take(w, arena);
    for (unsigned s = 0; s < BODY_SIZES && b->tile[s] && !w->measure; s++)
        plan_arena_given(&b->plan[s], t->arena, t->data[s]);
}

bool step_head(struct work *w)
{
    const struct body *b = &w->bodies[graph_integers(w->g, w->n)[0]];
    struct tiled t = { .b = b };
    for (uint32_t k = 0; k < b->input_count; k++)
        if (b->inputs[k].side != BODY_START)
            input_given(w, &t, k);
    for (uint32_t k = 0; k < b->out_count; k++)
        out_given(w, &t, k);
    if (b->demand != GRAPH_NONE) {
        struct graph_axis order[GRAPH_AXES];
        for (unsigned i = 0; i < b->rank; i++)
            order[i] = (struct graph_axis){ graph_name_find(w->g, b->axis[i].name), b->axis[i].size };
        t.demand = step_operand(w, b->demand, order, b->rank, TENSOR_F32);
    }
    if (b->chosen)
        t.row = step_take(w, b->rows * sizeof *t.row);
    plans_given(w, &t);
    if (w->measure)
        return true;
    return b->chosen ? chosen_run(w, &t) : ordered_run(w, &t);
}
