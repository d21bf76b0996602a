/* inside_scatter.c - a scatter of outer products that are not made; see inside.h. */
#include "native/graph/inside.h"
#include "native/kernel/gather.h"

/* out[index, p, q] += a[i, p] b[i, q] for positions i ascending. */
struct outer {
    const struct graph_node *d, *a, *b;
    const struct place *pa, *pb;
    struct graph_axis position[GRAPH_AXES];
    unsigned positions; /* axes of it */
    struct inside_axes p, q;
    uint64_t count;
};

/* Axes of n that are not of the position. */
static unsigned own_axes(const struct graph_node *n, const struct outer *o, struct graph_axis *out)
{
    return axes_without(n, o->position, o->positions, out);
}

static bool outer_of(const struct graph *g, const struct place *places, const struct graph_node *n, struct outer *o)
{
    const struct graph_axis *given = graph_axes(g, n);
    struct graph_axis own[GRAPH_AXES];
    const uint32_t *in = graph_inputs(g, n);
    o->d = &g->nodes[in[0]];
    const uint32_t a = graph_inputs(g, o->d)[0], b = graph_inputs(g, o->d)[1];
    o->a = &g->nodes[a];
    o->b = &g->nodes[b];
    o->pa = &places[a];
    o->pb = &places[b];
    o->positions = axes_with(o->d, given, n->axes_count - 1, o->position);
    o->count = axes_product(o->position, o->positions);
    return inside_joined(own, own_axes(o->a, o, own), o->a, o->pa, NULL, NULL, &o->p) &&
           inside_joined(own, own_axes(o->b, o, own), o->b, o->pb, NULL, NULL, &o->q) && (o->q.size == 1 || o->q.a == 1);
}

bool inside_scatter_fits(const struct graph *g, const struct place *places, const uint8_t *stored, uint32_t id)
{
    const struct graph_node *n = &g->nodes[id], *d = &g->nodes[graph_inputs(g, n)[0]], *index = &g->nodes[graph_inputs(g, n)[1]];
    struct graph_axis own[GRAPH_AXES];
    struct outer o;
    if (d->op != OPERATOR_DOT || d->axes_count > 0 || d->type != TENSOR_F32 || d->values == 0 || n->axes_count < 2 ||
        axes_without(index, graph_axes(g, n), n->axes_count - 1, own) > 0 || !outer_of(g, places, n, &o))
        return false;
    for (unsigned i = 0, count = own_axes(o.a, &o, own); i < count; i++) /* none is shared, and the new axis comes first */
        if (graph_axis_find(o.b, own[i].name) >= 0 || d->axis[0].name == own[i].name)
            return false;
    const bool new_first = n->axis[0].name == graph_axes(g, n)[n->axes_count - 1].name;
    return new_first && o.count <= UINT32_MAX && stored[o.pa->base] == TENSOR_F32 && stored[o.pb->base] == TENSOR_F32;
}

/* Elements from the first of x to that of position i. */
static ptrdiff_t position_at(const struct outer *o, const struct graph_node *n, const struct place *place, uint64_t i)
{
    ptrdiff_t at = place->offset;
    for (unsigned k = o->positions; k-- > 0; i /= o->position[k].size) {
        const int axis = graph_axis_find(n, o->position[k].name);
        at += axis < 0 ? 0 : (ptrdiff_t)(i % o->position[k].size) * place->stride[axis];
    }
    return at;
}

bool inside_scatter(struct work *w)
{
    struct outer o;
    outer_of(w->g, w->places, w->n, &o);
    const struct graph_axis *table = &graph_axes(w->g, w->n)[w->n->axes_count - 1];
    const int32_t *ids = step_operand(w, 1, o.position, o.positions, TENSOR_I32);
    uint32_t *order = step_take(w, o.count * sizeof *order), *starts = step_take(w, (table->size + 1) * sizeof *starts);
    const float **a = step_take(w, o.count * sizeof *a), **b = step_take(w, o.count * sizeof *b);
    if (w->measure)
        return true;
    if (!step_index_good(w, w->n, ids, o.count, table))
        return false;
    gather_sorted(o.count, ids, table->size, order, starts);
    for (uint64_t i = 0; i < o.count; i++) {
        a[i] = (const float *)w->data[o.pa->base] + position_at(&o, o.a, o.pa, order[i]);
        b[i] = (const float *)w->data[o.pb->base] + position_at(&o, o.b, o.pb, order[i]);
    }
    gather_outer_sums(w->pool, table->size, starts, a, o.p.a, o.p.size, b, o.q.size, w->data[w->id]);
    return true;
}
