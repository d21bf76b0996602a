/* inside_product.c - products with matrices that an index picks, without the picked ones; see inside.h.
 *
 *     rows    what the result has beside the matrix's own axes: its row of x, its place in the result, its matrix
 *     sums    axes of the index that are summed over: a row has a matrix for each
 */
#include <string.h>

#include "native/graph/inside.h"
#include "native/kernel/gather.h"
#include "native/kernel/gemm.h"

enum { ROWS = 256 /* at once */, COLUMNS = 16 /* at once, at least */ };

/* Working memory of a task, beside what a product takes. */
#define ROOM ((POOL_SCRATCH - GEMM_SCRATCH) / sizeof(float))

/* Axes with their steps through x, through the index and through the result. */
struct stepped {
    unsigned rank;
    uint64_t size[GRAPH_AXES], values;
    ptrdiff_t x[GRAPH_AXES], index[GRAPH_AXES], c[GRAPH_AXES];
};

struct picked {
    const struct graph_node *x, *table, *index, *gather;
    const struct place *px, *pt;
    struct stepped rows, sums;
    struct inside_axes k, n; /* a: steps in the table; b: in x, in the result */
    uint64_t tables;
    ptrdiff_t table_step;
    bool together; /* rows of one matrix run as one product */
};

static ptrdiff_t step_in(const struct graph_node *n, const struct place *p, uint32_t name)
{
    const int at = graph_axis_find(n, name);
    return at < 0 ? 0 : p->stride[at];
}

static ptrdiff_t step_dense(const struct graph_node *n, uint32_t name)
{
    ptrdiff_t step = 1;
    for (unsigned i = n->rank; i-- > 0; step *= (ptrdiff_t)n->axis[i].size)
        if (n->axis[i].name == name)
            return step;
    return 0;
}

static void stepped_put(struct stepped *s, const struct picked *p, const struct graph_node *n, const struct graph_axis *axis)
{
    s->size[s->rank] = axis->size;
    s->x[s->rank] = step_in(p->x, p->px, axis->name);
    s->index[s->rank] = step_dense(p->index, axis->name);
    s->c[s->rank++] = step_dense(n, axis->name);
    s->values *= axis->size;
}

static ptrdiff_t stepped_at(const struct stepped *s, const ptrdiff_t *steps, uint64_t i)
{
    ptrdiff_t at = 0;
    for (unsigned k = s->rank; k-- > 0; i /= s->size[k])
        at += (ptrdiff_t)(i % s->size[k]) * steps[k];
    return at;
}

/* Whether an axis is one of the matrices that are picked from. */
static bool of_matrix(const struct graph *g, const struct picked *p, uint32_t name)
{
    return name != graph_axes(g, p->gather)[0].name && graph_axis_find(p->table, name) >= 0;
}

/* False where the product is not of this form. */
static bool picked_of(const struct graph *g, const struct place *places, const struct graph_node *n, unsigned at,
                      struct picked *p)
{
    const unsigned first = n->op == OPERATOR_DOT ? 0 : 1;
    const uint32_t x = graph_inputs(g, n)[at == first ? first + 1 : first];
    struct graph_axis k[GRAPH_AXES], own[GRAPH_AXES];
    unsigned ks = 0, owns = 0;
    *p = (struct picked){ .rows.values = 1, .sums.values = 1, .gather = &g->nodes[graph_inputs(g, n)[at]] };
    const uint32_t *in = graph_inputs(g, p->gather);
    p->x = &g->nodes[x];
    p->px = &places[x];
    p->table = &g->nodes[in[0]];
    p->pt = &places[in[0]];
    p->index = &g->nodes[in[1]];
    p->tables = graph_axes(g, p->gather)[0].size;
    p->table_step = step_in(p->table, p->pt, graph_axes(g, p->gather)[0].name);
    for (unsigned i = 0; i < p->index->rank; i++)
        if (graph_axis_find(p->table, p->index->axis[i].name) >= 0)
            return false;
    for (unsigned i = 0; i < n->axes_count; i++) { /* slots first: each is then a stretch of the sum */
        const struct graph_axis *axis = &graph_axes(g, n)[i];
        if (of_matrix(g, p, axis->name))
            k[ks++] = *axis;
        else if (ks > 0)
            return false;
        else
            stepped_put(&p->sums, p, n, axis);
    }
    for (unsigned i = 0; i < n->rank; i++) {
        const bool matrix = of_matrix(g, p, n->axis[i].name);
        if ((matrix && graph_axis_find(p->x, n->axis[i].name) >= 0) || (!matrix && owns > 0))
            return false;
        if (matrix)
            own[owns++] = n->axis[i];
        else
            stepped_put(&p->rows, p, n, &n->axis[i]);
    }
    return ks > 0 && inside_joined(k, ks, p->table, p->pt, p->x, p->px, &p->k) &&
           inside_joined(own, owns, p->table, p->pt, NULL, NULL, &p->n);
}

/* Columns of a row's matrices that have room beside each other. */
static uint64_t columns_at_once(const struct picked *p)
{
    const uint64_t k = p->sums.values * p->k.size, room = ROOM / k;
    const uint64_t most = room > 2 ? room - 2 : 0; /* x, and a column as it is read */
    return most < p->n.size ? most : p->n.size;
}

/* Rows that have room. */
static uint64_t rows_at_once(const struct picked *p)
{
    const uint64_t room = ROOM / (p->k.size + p->n.size);
    return room < ROWS ? room : ROWS;
}

static bool runs_together(const struct picked *p, const struct graph_node *n)
{
    return rows_at_once(p) > 0 && (p->sums.rank == 0 || (p->k.size % GEMM_CHUNK == 0 && n->op != OPERATOR_LOW_RANK));
}

bool inside_product_fits(const struct graph *g, const struct place *places, const uint8_t *stored, uint32_t id, unsigned at)
{
    const struct graph_node *n = &g->nodes[id];
    struct picked p;
    return n->values > 0 && picked_of(g, places, n, at, &p) && p.k.size > 0 && p.sums.values > 0 && p.gather->values > 0 &&
           p.rows.values <= UINT32_MAX && stored[p.px->base] == TENSOR_F32 &&
           (runs_together(&p, n) || columns_at_once(&p) >= COLUMNS || columns_at_once(&p) == p.n.size);
}

/* ---- running it ---- */

/* Rows first .. first + count - 1 in the order of their matrices. */
struct rows {
    uint32_t table, first, count;
};

struct running {
    struct picked p;
    enum gemm_form form;
    float scale;
    const float *x, *table, *onto;
    stored_read *read; /* of a table stored otherwise, from value `stored_first` on */
    enum stored_type type;
    const void *stored;
    size_t stored_first;
    float *c;
    const int32_t *ids;
    const uint32_t *order;
    const struct rows *parts;
    ptrdiff_t slot; /* of x */
    uint64_t columns;
};

static float *room(void)
{
    return (float *)((char *)pool_scratch() + GEMM_SCRATCH);
}

/* The matrix as B of a product, from column `column` on. */
static void table_taken(const struct running *r, uint64_t table, struct gemm *gemm)
{
    const ptrdiff_t at = (ptrdiff_t)table * r->p.table_step;
    gemm->b = r->read ? NULL : r->table + at;
    gemm->b_read = r->read;
    gemm->b_type = r->type;
    gemm->b_stored = r->stored;
    gemm->b_first = r->read ? (size_t)((ptrdiff_t)r->stored_first + at) : 0;
    gemm->b_row = r->p.k.size > 1 ? r->p.k.a : 1;
    gemm->b_col = r->p.n.size > 1 ? r->p.n.a : 1;
}

static void row_copied(uint64_t count, const float *from, ptrdiff_t step, float *to)
{
    if (step == 1)
        memcpy(to, from, count * sizeof *to);
    else
        for (uint64_t i = 0; i < count; i++)
            to[i] = from[(ptrdiff_t)i * step];
}

static void share_together(void *context, size_t task)
{
    const struct running *r = context;
    const struct rows *part = &r->parts[task];
    const uint64_t k = r->p.k.size, n = r->p.n.size;
    float *a = room(), *c = a + part->count * k;
    struct gemm gemm = gemm_dense(part->count, n, k, a, 0, NULL, 0, c);
    for (uint32_t i = 0; i < part->count; i++) {
        const uint32_t row = r->order[part->first + i];
        row_copied(k, r->x + r->slot + stepped_at(&r->p.rows, r->p.rows.x, row), r->p.k.b, a + i * k);
        if (r->form != GEMM_PLAIN)
            memcpy(c + i * n, r->onto + stepped_at(&r->p.rows, r->p.rows.c, row), n * sizeof *c);
    }
    table_taken(r, part->table, &gemm);
    gemm.form = r->form;
    gemm.scale = r->scale;
    gemm.onto = c;
    gemm_run(NULL, &gemm);
    for (uint32_t i = 0; i < part->count; i++)
        memcpy(r->c + stepped_at(&r->p.rows, r->p.rows.c, r->order[part->first + i]), c + i * n, n * sizeof *c);
}

/* One slot of all rows: those of one matrix after the other. */
static void slot_run(struct work *w, struct running *r, uint64_t slot, int32_t *chosen, uint32_t *order, uint32_t *starts,
                     struct rows *parts)
{
    const struct picked *p = &r->p;
    const uint32_t most = (uint32_t)rows_at_once(p);
    const ptrdiff_t at = stepped_at(&p->sums, p->sums.index, slot);
    size_t count = 0;
    for (uint64_t i = 0; i < p->rows.values; i++)
        chosen[i] = r->ids[at + stepped_at(&p->rows, p->rows.index, i)];
    gather_sorted(p->rows.values, chosen, p->tables, order, starts);
    for (uint32_t t = 0; t < p->tables; t++)
        for (uint32_t first = starts[t]; first < starts[t + 1]; first += most)
            parts[count++] = (struct rows){ t, first, starts[t + 1] - first < most ? starts[t + 1] - first : most };
    r->order = order;
    r->parts = parts;
    r->slot = stepped_at(&p->sums, p->sums.x, slot);
    pool_run(w->pool, count, share_together, r);
}

/* `columns` of matrix `table` from `column` on, rows beside each other. `spare` has room for a column. */
static void matrix_copied(const struct running *r, uint64_t table, uint64_t column, uint64_t columns, float *to, float *spare)
{
    struct gemm b = { 0 };
    table_taken(r, table, &b);
    const uint64_t k = r->p.k.size;
    const ptrdiff_t from = (ptrdiff_t)column * b.b_col;
    if (b.b_col == 1)
        for (uint64_t i = 0; i < k; i++) {
            const ptrdiff_t at = from + (ptrdiff_t)i * b.b_row;
            if (r->read)
                r->read(r->stored, (size_t)((ptrdiff_t)b.b_first + at), columns, to + i * columns);
            else
                memcpy(to + i * columns, b.b + at, columns * sizeof *to);
        }
    else
        for (uint64_t j = 0; j < columns; j++) {
            const ptrdiff_t at = from + (ptrdiff_t)j * b.b_col;
            for (uint64_t i = 0; r->read && i < k; i += b.b_row == 1 ? k : 1)
                r->read(r->stored, (size_t)((ptrdiff_t)b.b_first + at + (ptrdiff_t)i * b.b_row), b.b_row == 1 ? k : 1, spare + i);
            for (uint64_t i = 0; i < k; i++)
                to[i * columns + j] = r->read ? spare[i] : b.b[at + (ptrdiff_t)i * b.b_row];
        }
}

/* A block of columns of one row: all of its matrices, one below the other. */
static void share_alone(void *context, size_t task)
{
    const struct running *r = context;
    const struct picked *p = &r->p;
    const uint64_t blocks = (p->n.size + r->columns - 1) / r->columns, row = task / blocks, column = task % blocks * r->columns,
                   columns = p->n.size - column < r->columns ? p->n.size - column : r->columns, k = p->k.size;
    const ptrdiff_t to = stepped_at(&p->rows, p->rows.c, row) + (ptrdiff_t)column;
    float *a = room(), *spare = a + p->sums.values * k, *b = spare + k;
    for (uint64_t s = 0; s < p->sums.values; s++) {
        const int32_t table = r->ids[stepped_at(&p->rows, p->rows.index, row) + stepped_at(&p->sums, p->sums.index, s)];
        row_copied(k, r->x + stepped_at(&p->rows, p->rows.x, row) + stepped_at(&p->sums, p->sums.x, s), p->k.b, a + s * k);
        matrix_copied(r, (uint64_t)table, column, columns, b + s * k * columns, spare);
    }
    struct gemm gemm = gemm_dense(1, columns, p->sums.values * k, a, 0, b, 0, r->c + to);
    gemm.form = r->form;
    gemm.scale = r->scale;
    gemm.onto = r->onto ? r->onto + to : NULL;
    gemm_run(NULL, &gemm);
}

/* What the gather at operand `at` reads: its index, and how its table lies. */
static void gather_read(struct work *w, unsigned at, struct running *r)
{
    struct work inner = *w;
    inner.n = r->p.gather;
    inner.id = graph_inputs(w->g, w->n)[at];
    r->ids = step_own(&inner, 1);
    r->read = step_stored(&inner, 0);
    r->type = step_stored_type(&inner, 0);
    r->stored_first = (size_t)r->p.pt->offset;
    w->used = inner.used;
    if (w->measure)
        return;
    r->stored = w->data[r->p.pt->base];
    r->table = r->read ? NULL : (const float *)r->stored + r->p.pt->offset;
    r->x = (const float *)w->data[r->p.px->base] + r->p.px->offset;
    r->c = w->data[w->id];
}

bool inside_product(struct work *w, unsigned at)
{
    struct running r = { .form = w->n->op == OPERATOR_DOT        ? GEMM_PLAIN
                                 : w->n->op == OPERATOR_DOT_ONTO ? GEMM_ONTO
                                                                 : GEMM_LOW_RANK,
                         .scale = w->n->op == OPERATOR_LOW_RANK ? (float)graph_numbers(w->g, w->n)[0] : 0 };
    picked_of(w->g, w->places, w->n, at, &r.p);
    const struct picked *p = &r.p;
    const bool together = runs_together(p, w->n);
    const uint64_t rows = together ? p->rows.values : 0, tables = together ? p->tables : 0;
    gather_read(w, at, &r);
    r.onto = w->n->op == OPERATOR_DOT ? NULL : step_operand(w, 0, w->n->axis, w->n->rank, TENSOR_F32);
    int32_t *chosen = step_take(w, rows * sizeof *chosen);
    uint32_t *order = step_take(w, rows * sizeof *order), *starts = step_take(w, (tables + 1) * sizeof *starts);
    struct rows *parts = step_take(w, (together ? tables + rows / rows_at_once(p) : 0) * sizeof *parts);
    if (w->measure)
        return true;
    if (!step_index_good(w, p->gather, r.ids, p->index->values, graph_axes(w->g, p->gather)))
        return false;
    r.columns = columns_at_once(p);
    if (!together)
        pool_run(w->pool, p->rows.values * ((p->n.size + r.columns - 1) / r.columns), share_alone, &r);
    for (uint64_t s = 0; together && s < p->sums.values; s++) {
        slot_run(w, &r, s, chosen, order, starts, parts);
        r.form = r.form == GEMM_LOW_RANK ? GEMM_LOW_RANK : GEMM_ONTO;
        r.onto = r.c;
    }
    return true;
}
