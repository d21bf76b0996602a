/* step_head.c - log-probabilities of tokens and their gradient, logits in tiles of rows (arrange.h).
 *
 *     rows that matter ── tile of 256: h ── logits [256 vocab] ── logprob, lse ── dlogits in place ── dh
 *
 * Rows do not meet, so which of them share a tile changes no bit. A row with g = 0 has dlogits of +0, hence dh = +0; a row of which
 * neither g nor demand asks for anything keeps logprob 0, which nobody reads.
 */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/gemm.h"
#include "native/kernel/softmax.h"

enum { TILE = 256 };

struct head {
    uint64_t rows, vocab, width;
    const float *h, *table, *g, *demand;
    stored_read *read; /* of a table that is stored otherwise */
    const void *stored;
    const int32_t *ids;
    float *logprob, *dh;
    /* of a tile */
    uint64_t *row; /* which rows, all of them that matter: those with a gradient first */
    float *x, *logits, *dx, *part, *lse, *slope;
    int32_t *target;
};

/* Fills row[]; returns how many matter, and how many of them have a gradient. */
static uint64_t rows_chosen(struct head *t, uint64_t *sloped)
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
    struct gemm forward = gemm_dense(count, t->vocab, t->width, t->x, 0, t->table, 1, t->logits);
    forward.b_read = t->read;
    forward.b_stored = t->stored;
    gemm_run(pool, &forward);
    softmax_logprob(pool, count, t->vocab, t->logits, t->target, t->part, t->lse);
    for (uint64_t i = 0; i < count; i++)
        t->logprob[t->row[at + i]] = t->part[i];
    if (sloped == 0)
        return;
    softmax_logprob_backward(pool, sloped, t->vocab, t->logits, t->target, t->lse, t->slope, t->logits);
    struct gemm backward = gemm_dense(sloped, t->width, t->vocab, t->logits, 0, t->table, 0, t->dx);
    backward.b_read = t->read;
    backward.b_stored = t->stored;
    gemm_run(pool, &backward);
    for (uint64_t i = 0; i < sloped; i++)
        memcpy(t->dh + t->row[at + i] * t->width, t->dx + i * t->width, t->width * sizeof *t->dx);
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
    const uint64_t most = t.rows < TILE ? t.rows : TILE;
    t.h = step_operand(w, 0, order, rank, TENSOR_F32);
    t.read = step_stored(w, 1);
    t.table = t.read ? NULL : step_own(w, 1);
    t.stored = t.read && !w->measure ? w->data[w->places[graph_inputs(w->g, w->n)[1]].base] : NULL;
    t.ids = step_operand(w, 2, order, n->rank, TENSOR_I32);
    t.g = step_operand(w, 3, order, n->rank, TENSOR_F32);
    t.demand = n->input_count == 5 ? step_operand(w, 4, order, n->rank, TENSOR_F32) : NULL;
    const struct result logprob = step_result(w, w->id, order, n->rank), dh = step_result(w, step_extra(w, 1), order, rank);
    t.logprob = logprob.at;
    t.dh = dh.at;
    t.row = step_take(w, t.rows * sizeof *t.row);
    t.x = step_take(w, most * t.width * sizeof *t.x);
    t.logits = step_take(w, most * t.vocab * sizeof *t.logits);
    t.dx = step_take(w, most * t.width * sizeof *t.dx);
    t.part = step_take(w, most * sizeof *t.part);
    t.lse = step_take(w, most * sizeof *t.lse);
    t.slope = step_take(w, most * sizeof *t.slope);
    t.target = step_take(w, most * sizeof *t.target);
    if (w->measure)
        return true;
    if (!step_ids_good(w, t.ids, t.rows, t.vocab))
        return false;
    uint64_t sloped, count = rows_chosen(&t, &sloped);
    memset(t.logprob, 0, t.rows * sizeof *t.logprob);
    memset(t.dh, 0, t.rows * t.width * sizeof *t.dh);
    for (uint64_t at = 0; at < count; at += TILE) {
        const uint64_t here = count - at < TILE ? count - at : TILE, left = sloped > at ? sloped - at : 0;
        tile_run(w->pool, &t, at, here, left < here ? left : here);
    }
    step_settle(w, &logprob);
    step_settle(w, &dh);
    return true;
}
