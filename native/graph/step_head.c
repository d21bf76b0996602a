/* step_head.c - log-probabilities of tokens and their gradient, logits in tiles of rows (arrange.h).
 *
 *     rows that matter ── tile of 256: h ── logits [256 vocab] ── logprob, lse ── dlogits in place ── dh
 *
 * Rows do not meet in logprob and dh, so which of them share a tile changes no bit. A row with g = 0 has dlogits of +0, hence dh = +0; a
 * row of which neither g nor demand asks for anything keeps logprob 0, which nobody reads.
 *
 * They meet in the gradient of E, dlogits^T h, whose sum over rows goes by chunks of 256 added in ascending order: with it tiles are those
 * chunks, and one that nothing asks for has its zeros added, too.
 */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/gemm.h"
#include "native/kernel/reduce.h"
#include "native/kernel/softmax.h"

enum { TILE = GEMM_CHUNK };

struct head {
    uint64_t rows, vocab, width;
    const float *h, *table, *g, *demand;
    stored_read *read; /* of a table that is stored otherwise */
    const void *stored;
    const int32_t *ids;
    float *logprob, *dh, *dtable; /* gradients: NULL when not wanted */
    int32_t *best;                /* likewise */
    /* of a tile */
    uint64_t *row; /* which rows, all of them that matter: those with a gradient first */
    float *x, *logits, *dx, *part, *lse, *slope;
    int32_t *target;
};

/* Logits of tile x, with their log-probabilities. */
static void tile_logits(struct pool *pool, const struct head *t, uint64_t count, const float *x, const int32_t *target)
{
    struct gemm forward = gemm_dense(count, t->vocab, t->width, x, 0, t->table, 1, t->logits);
    forward.b_read = t->read;
    forward.b_stored = t->stored;
    gemm_run(pool, &forward);
    softmax_logprob(pool, count, t->vocab, t->logits, target, t->part, t->lse);
}

/* dh of the first `count` rows of the tile. */
static void tile_hidden(struct pool *pool, const struct head *t, uint64_t count, float *dh)
{
    struct gemm backward = gemm_dense(count, t->width, t->vocab, t->logits, 0, t->table, 0, dh);
    backward.b_read = t->read;
    backward.b_stored = t->stored;
    gemm_run(pool, &backward);
}

/* ---- rows that matter, from anywhere ---- */

/* Fills row[]; returns how many matter, and how many of them have a gradient. */
static uint64_t rows_chosen(const struct head *t, uint64_t *sloped)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->rows; i++)
        if (t->g[i] != 0)
            t->row[count++] = i;
    *sloped = count;
    for (uint64_t i = 0; i < t->rows; i++)
        if (t->g[i] == 0 && (!t->demand || t->demand[i] != 0))
            t->row[count++] = i;
    return count;
}

/* Rows row[at] ... of which the first `sloped` have a gradient. */
static void tile_run(struct pool *pool, const struct head *t, uint64_t at, uint64_t count, uint64_t sloped)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t row = t->row[at + i];
        memcpy(t->x + i * t->width, t->h + row * t->width, t->width * sizeof *t->x);
        t->target[i] = t->ids[row];
        t->slope[i] = t->g[row];
    }
    tile_logits(pool, t, count, t->x, t->target);
    for (uint64_t i = 0; i < count; i++)
        t->logprob[t->row[at + i]] = t->part[i];
    if (sloped == 0)
        return;
    softmax_logprob_backward(pool, sloped, t->vocab, t->logits, t->target, t->lse, t->slope, t->logits);
    tile_hidden(pool, t, sloped, t->dx);
    for (uint64_t i = 0; i < sloped; i++)
        memcpy(t->dh + t->row[at + i] * t->width, t->dx + i * t->width, t->width * sizeof *t->dx);
}

static void rows_run(struct pool *pool, const struct head *t)
{
    uint64_t sloped, count = rows_chosen(t, &sloped);
    memset(t->logprob, 0, t->rows * sizeof *t->logprob);
    memset(t->dh, 0, t->rows * t->width * sizeof *t->dh);
    for (uint64_t at = 0; at < count; at += TILE) {
        const uint64_t here = count - at < TILE ? count - at : TILE, left = sloped > at ? sloped - at : 0;
        tile_run(pool, t, at, here, left < here ? left : here);
    }
}

/* ---- all rows in their order ---- */

static bool tile_wanted(const struct head *t, uint64_t at, uint64_t count)
{
    bool wanted = !t->demand;
    for (uint64_t i = at; i < at + count && !wanted; i++)
        wanted = t->g[i] != 0 || t->demand[i] != 0;
    return wanted;
}

static void chunk_run(struct pool *pool, const struct head *t, uint64_t at, uint64_t count)
{
    const float *x = t->h + at * t->width;
    memset(t->logprob + at, 0, count * sizeof *t->logprob);
    if (tile_wanted(t, at, count)) {
        tile_logits(pool, t, count, x, t->ids + at);
        memcpy(t->logprob + at, t->part, count * sizeof *t->part);
    }
    if (t->best)
        reduce_argmax(pool, count, t->vocab, 1, t->logits, t->best + at);
    if (!t->g)
        return;
    softmax_logprob_backward(pool, count, t->vocab, t->logits, t->ids + at, t->lse, t->g + at, t->logits);
    if (t->dh)
        tile_hidden(pool, t, count, t->dh + at * t->width);
    if (!t->dtable)
        return;
    struct gemm backward = gemm_dense(t->vocab, t->width, count, t->logits, 1, x, 0, t->dtable);
    backward.form = GEMM_ONTO;
    backward.onto = t->dtable;
    gemm_run(pool, &backward);
}

/* `onto`: where the gradient of the table starts; NULL: at +0. */
static void chunks_run(struct pool *pool, const struct head *t, const float *onto)
{
    const uint64_t bytes = t->vocab * t->width * sizeof(float);
    if (t->dtable && onto)
        memcpy(t->dtable, onto, bytes);
    else if (t->dtable)
        memset(t->dtable, 0, bytes);
    for (uint64_t at = 0; at < t->rows; at += TILE)
        chunk_run(pool, t, at, t->rows - at < TILE ? t->rows - at : TILE);
}

/* ---- the step ---- */

static bool result_wanted(const struct work *w, unsigned which)
{
    return step_extra(w, which) != GRAPH_NONE;
}

/* Working memory of a tile; that of chosen rows only where they are gathered. */
static void tile_room(struct work *w, struct head *t, bool chosen)
{
    const uint64_t most = t->rows < TILE ? t->rows : TILE;
    t->logits = step_take(w, most * t->vocab * sizeof *t->logits);
    t->part = step_take(w, most * sizeof *t->part);
    t->lse = step_take(w, most * sizeof *t->lse);
    if (!chosen)
        return;
    t->row = step_take(w, t->rows * sizeof *t->row);
    t->x = step_take(w, most * t->width * sizeof *t->x);
    t->dx = step_take(w, most * t->width * sizeof *t->dx);
    t->slope = step_take(w, most * sizeof *t->slope);
    t->target = step_take(w, most * sizeof *t->target);
}

bool step_head(struct work *w)
{
    const struct graph_axis *given = graph_axes(w->g, w->n);
    const struct graph_node *n = w->n, *table = step_input(w, 1);
    struct graph_axis order[GRAPH_AXES];
    memcpy(order, n->axis, n->rank * sizeof *order);
    memcpy(order + n->rank, table->axis + 1, (table->rank - 1) * sizeof *order);
    const unsigned rank = n->rank + table->rank - 1;
    struct head t = { .rows = n->values, .vocab = given[0].size, .width = table->values / given[0].size };
    const bool gradient = n->input_count > 3, chosen = gradient && !result_wanted(w, 2);
    t.h = step_operand(w, 0, order, rank, TENSOR_F32);
    t.read = step_stored(w, 1);
    t.table = t.read ? NULL : step_own(w, 1);
    t.stored = t.read && !w->measure ? w->data[w->places[graph_inputs(w->g, w->n)[1]].base] : NULL;
    t.ids = step_operand(w, 2, order, n->rank, TENSOR_I32);
    t.g = gradient ? step_operand(w, 3, order, n->rank, TENSOR_F32) : NULL;
    t.demand = n->input_count > 4 ? step_operand(w, 4, order, n->rank, TENSOR_F32) : NULL;
    const float *onto = n->input_count > 5 ? step_operand(w, 5, table->axis, table->rank, TENSOR_F32) : NULL;
    const struct result logprob = step_result(w, w->id, order, n->rank);
    struct result dh = { 0 }, dtable = { 0 }, best = { 0 };
    t.logprob = logprob.at;
    if (gradient && (chosen || result_wanted(w, 1))) {
        dh = step_result(w, step_extra(w, 1), order, rank);
        t.dh = dh.at;
    }
    if (gradient && result_wanted(w, 2)) {
        dtable = step_result(w, step_extra(w, 2), table->axis, table->rank);
        t.dtable = dtable.at;
    }
    if (!gradient && result_wanted(w, 1)) {
        best = step_result(w, step_extra(w, 1), order, n->rank);
        t.best = best.at;
    }
    tile_room(w, &t, chosen);
    if (w->measure)
        return true;
    if (!step_ids_good(w, t.ids, t.rows, t.vocab))
        return false;
    if (chosen)
        rows_run(w->pool, &t);
    else
        chunks_run(w->pool, &t, onto);
    step_settle(w, &logprob);
    if (t.dh)
        step_settle(w, &dh);
    if (t.dtable)
        step_settle(w, &dtable);
    if (t.best)
        step_settle(w, &best);
    return true;
}
