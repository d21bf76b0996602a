/* step_move.c - operators that move values: copies, shifts, indices. */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/gather.h"

/* A walk over operand k in the order of the result, the target contiguous; axes absent in the operand repeat. */
static struct walk walk_onto(const struct work *w, unsigned k)
{
    const uint32_t id = graph_inputs(w->g, w->n)[k];
    const struct graph_node *n = &w->g->nodes[id];
    struct walk walk = { .rank = w->n->rank };
    for (unsigned i = 0; i < w->n->rank; i++) {
        const int at = graph_axis_find(n, w->n->axis[i].name);
        walk.size[i] = w->n->axis[i].size;
        walk.from[i] = at < 0 ? 0 : w->places[id].stride[at];
        walk.to[i] = w->places[w->id].stride[i];
    }
    return walk;
}

static const char *memory_of(const struct work *w, unsigned k)
{
    const uint32_t id = graph_inputs(w->g, w->n)[k];
    return (const char *)w->data[w->places[id].base] + w->places[id].offset * (ptrdiff_t)type_bytes(w->g->nodes[id].type);
}

/* Copies `size` positions of the attribute axis from position `from` of operand k to position `to` of the result. */
static void copy_part(struct work *w, unsigned k, int64_t from, int64_t to, uint64_t size)
{
    struct walk walk = walk_onto(w, k);
    const uint32_t axis = graph_axes(w->g, w->n)[0].name;
    const int i = graph_axis_find(w->n, axis);
    const size_t bytes = type_bytes(w->n->type);
    const enum tensor_type type = (enum tensor_type)w->n->type;
    walk.size[i] = size;
    walk_copy(w->pool, walk, type, memory_of(w, k) + from * walk.from[i] * (ptrdiff_t)bytes, type,
              (char *)w->data[w->id] + to * walk.to[i] * (ptrdiff_t)bytes);
}

/* A merge that is no view. */
bool step_merge(struct work *w)
{
    const enum tensor_type type = (enum tensor_type)w->n->type;
    /* In the order of the result, with the merged axis taken apart again. */
    struct graph_axis axes[GRAPH_ATTRIBUTE_AXES + GRAPH_AXES];
    unsigned rank = 0;
    const struct graph_axis *merged = graph_axes(w->g, w->n);
    for (unsigned i = 0; i < w->n->rank; i++) {
        if (w->n->axis[i].name != merged[0].name) {
            axes[rank++] = w->n->axis[i];
            continue;
        }
        for (unsigned k = 1; k < w->n->axes_count; k++)
            axes[rank++] = merged[k];
    }
    if (w->measure)
        return true;
    const uint32_t id = graph_inputs(w->g, w->n)[0];
    struct walk walk = { .rank = rank };
    ptrdiff_t step = 1;
    for (unsigned i = rank; i-- > 0;) {
        walk.size[i] = axes[i].size;
        walk.from[i] = w->places[id].stride[graph_axis_find(&w->g->nodes[id], axes[i].name)];
        walk.to[i] = step;
        step *= (ptrdiff_t)axes[i].size;
    }
    walk_copy(w->pool, walk, type, memory_of(w, 0), type, w->data[w->id]);
    return true;
}

bool step_shift(struct work *w)
{
    const int64_t size = (int64_t)graph_axes(w->g, w->n)[0].size, k = graph_integers(w->g, w->n)[0];
    if (w->measure)
        return true;
    memset(w->data[w->id], 0, w->n->values * type_bytes(w->n->type));
    if (k >= 0 && k < size)
        copy_part(w, 0, 0, k, (uint64_t)(size - k));
    else if (k < 0 && -k < size)
        copy_part(w, 0, -k, 0, (uint64_t)(size + k));
    return true;
}

bool step_pad(struct work *w)
{
    if (w->measure)
        return true;
    memset(w->data[w->id], 0, w->n->values * type_bytes(w->n->type));
    copy_part(w, 0, 0, graph_integers(w->g, w->n)[0], graph_axes(w->g, w->n)[0].size);
    return true;
}

bool step_concat(struct work *w)
{
    int64_t at = 0;
    if (w->measure)
        return true;
    for (unsigned k = 0; k < w->n->input_count; k++) {
        const struct graph_node *x = step_input(w, k);
        const uint64_t size = x->axis[graph_axis_find(x, graph_axes(w->g, w->n)[0].name)].size;
        copy_part(w, k, 0, at, size);
        at += (int64_t)size;
    }
    return true;
}

/* ---- indices ---- */

bool step_index_good(struct work *w, const struct graph_node *n, const int32_t *index, uint64_t count,
                     const struct graph_axis *axis)
{
    const size_t bad = gather_check(count, index, axis->size);
    if (bad == count)
        return true;
    error_set(w->err, ERROR_RANGE, NULL, "%s: index %d is outside %s=%llu", operator_table[n->op].name, index[bad],
              w->g->names[axis->name], (unsigned long long)axis->size);
    return n->note == GRAPH_NONE ? false : error_at(w->err, "%s", w->g->names[n->note]);
}

struct picking {
    struct walk walk; /* from: strides of x, 0 along the axes of the index that x has not */
    ptrdiff_t index_stride[GRAPH_AXES], axis_stride;
    const char *x;
    stored_read *read; /* of an x that is stored otherwise, whose first value is then number `first` */
    ptrdiff_t first;
    const int32_t *index;
    char *out;
    size_t bytes;
    uint64_t rows, row; /* row: values that follow each other in x and in the result, with one index */
};

static void pick_share(void *context, size_t task)
{
    const struct picking *p = context;
    const uint64_t begin = task * 256, end = begin + 256 < p->rows ? begin + 256 : p->rows;
    for (uint64_t i = begin; i < end; i++) {
        uint64_t rest = i;
        ptrdiff_t at = 0, where = 0;
        for (unsigned d = p->walk.rank; d-- > 0;) {
            const ptrdiff_t position = (ptrdiff_t)(rest % p->walk.size[d]);
            rest /= p->walk.size[d];
            at += position * p->walk.from[d];
            where += position * p->index_stride[d];
        }
        at += p->index[where] * p->axis_stride;
        if (p->read)
            p->read(p->x, (size_t)(p->first + at), p->row, (float *)p->out + i * p->row);
        else
            memcpy(p->out + i * p->row * p->bytes, p->x + at * (ptrdiff_t)p->bytes, p->row * p->bytes);
    }
}

bool step_gather(struct work *w)
{
    const struct graph_node *x = step_input(w, 0), *index = step_input(w, 1);
    const struct graph_axis *axis = graph_axes(w->g, w->n);
    const struct place *px = &w->places[graph_inputs(w->g, w->n)[0]];
    const int32_t *ids = step_own(w, 1);
    if (w->measure)
        return true;
    if (!step_index_good(w, w->n, ids, index->values, axis))
        return false;
    struct picking p = { .walk = { .rank = w->n->rank }, .index = ids, .bytes = type_bytes(w->n->type), .rows = 1, .row = 1 };
    p.axis_stride = px->stride[graph_axis_find(x, axis->name)];
    p.read = step_stored(w, 0);
    p.first = px->offset;
    p.x = p.read ? w->data[px->base] : memory_of(w, 0);
    p.out = w->data[w->id];
    ptrdiff_t own[GRAPH_AXES], step = 1;
    for (unsigned i = index->rank; i-- > 0;) {
        own[i] = step;
        step *= (ptrdiff_t)index->axis[i].size;
    }
    for (unsigned i = 0; i < w->n->rank; i++) {
        const uint32_t name = w->n->axis[i].name;
        const int in_x = graph_axis_find(x, name), in_index = graph_axis_find(index, name);
        p.walk.size[i] = w->n->axis[i].size;
        p.walk.from[i] = in_x < 0 || name == axis->name ? 0 : px->stride[in_x];
        p.index_stride[i] = in_index < 0 ? 0 : own[in_index];
    }
    while (p.walk.rank && p.index_stride[p.walk.rank - 1] == 0 && p.walk.from[p.walk.rank - 1] == (ptrdiff_t)p.row)
        p.row *= p.walk.size[--p.walk.rank];
    p.rows = w->n->values / p.row;
    pool_run(w->pool, (p.rows + 255) / 256, pick_share, &p);
    return true;
}

/* out[new, rest] += x[summed, rest] in ascending order of the summed positions; axes that the index shares with the result come
 * first in both, so that a position of the table is (shared, index). */
bool step_scatter(struct work *w)
{
    const struct graph_node *x = step_input(w, 0), *index = step_input(w, 1);
    const struct graph_axis *given = graph_axes(w->g, w->n);
    const unsigned summed = w->n->axes_count - 1;
    struct graph_axis shared[GRAPH_AXES], sum[GRAPH_AXES], order[GRAPH_AXES], out[GRAPH_AXES], rows_of[GRAPH_AXES];
    const unsigned shares = axes_without(index, given, summed, shared), sums = axes_with(x, given, summed, sum);
    unsigned rank = 0, out_rank = 0;
    for (unsigned i = 0; i < shares; i++)
        out[out_rank++] = rows_of[rank] = order[rank] = shared[i], rank++;
    out[out_rank++] = given[summed];
    for (unsigned i = 0; i < sums; i++)
        rows_of[rank] = order[rank] = sum[i], rank++;
    const unsigned lead = rank;
    for (unsigned i = 0; i < x->rank; i++) {
        bool there = false;
        for (unsigned k = 0; k < lead; k++)
            there = there || order[k].name == x->axis[i].name;
        if (!there)
            out[out_rank++] = order[rank++] = x->axis[i];
    }
    const enum tensor_type type = (enum tensor_type)w->n->type;
    const uint64_t table = given[summed].size, count = axes_product(rows_of, lead), sharing = axes_product(shared, shares);
    const uint64_t width = axes_product(order + lead, rank - lead);
    const void *values = step_operand(w, 0, order, rank, type);
    const int32_t *ids = step_operand(w, 1, rows_of, lead, TENSOR_I32);
    int32_t *rows = step_take(w, count * sizeof *rows);
    struct result r = step_result(w, w->id, out, out_rank);
    if (w->measure)
        return true;
    if (!step_index_good(w, w->n, ids, count, &given[summed]))
        return false;
    if (sharing * table > INT32_MAX)
        return error_set(w->err, ERROR_LIMIT, NULL, "scatter: more than 2^31 rows");
    for (uint64_t i = 0; i < count; i++)
        rows[i] = (int32_t)(i / (count / sharing) * table) + ids[i];
    memset(r.at, 0, w->n->values * type_bytes(type));
    if (type == TENSOR_F32) {
        gather_scatter_add(w->pool, count, width, values, rows, r.at);
    } else {
        for (uint64_t i = 0; i < count; i++)
            for (uint64_t k = 0; k < width; k++)
                ((double *)r.at)[(uint64_t)rows[i] * width + k] += ((const double *)values)[i * width + k];
    }
    step_settle(w, &r);
    return true;
}

bool step_one_hot(struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    const int32_t *ids = step_own(w, 0);
    const uint64_t size = graph_axes(w->g, w->n)[0].size;
    if (w->measure)
        return true;
    float *out = w->data[w->id];
    memset(out, 0, w->n->values * sizeof *out);
    for (uint64_t i = 0; i < x->values; i++)
        if (ids[i] >= 0 && (uint64_t)ids[i] < size)
            out[i * size + (uint64_t)ids[i]] = 1;
    return true;
}
