/* step_product.c - dot in its forms on the matrix product kernel, and distances.
 *
 * The axes of a product fall in four groups: k (summed), n (only in y), and of x's others m (not in y) and b (in both). The kernel
 * takes strides, so nothing is copied as long as each of m, n, k steps as one through every operand that has it; further groups of
 * b and m become batches, and what remains is copied together first.
 */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/gemm.h"
#include "native/kernel/order.h"
#include "native/kernel/reduce.h"

/* A group of axes that all operands step through as one. */
struct stretch {
    uint64_t size;
    ptrdiff_t a, b, c; /* strides; 0 where the operand has not got it */
};

struct side {
    const float *data;
    stored_read *read; /* of data that is stored otherwise: from value `first` on */
    enum stored_type type;
    const void *stored;
    size_t first;
    struct graph_axis axes[GRAPH_AXES];
    ptrdiff_t stride[GRAPH_AXES];
    unsigned rank;
};

static ptrdiff_t stride_of(const struct side *s, uint32_t name)
{
    for (unsigned i = 0; i < s->rank; i++)
        if (s->axes[i].name == name)
            return s->stride[i];
    return 0;
}

/* Joins the axes of a list into stretches, in their order. Returns how many. */
static unsigned stretches(const struct graph_axis *axes, unsigned count, const struct side *a, const struct side *b,
                          const struct side *c, struct stretch *out)
{
    unsigned made = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct stretch s = { axes[i].size, stride_of(a, axes[i].name), stride_of(b, axes[i].name),
                                   stride_of(c, axes[i].name) };
        const ptrdiff_t size = (ptrdiff_t)s.size;
        if (size == 1)
            continue;
        struct stretch *last = made ? &out[made - 1] : NULL;
        if (last && last->a == s.a * size && last->b == s.b * size && last->c == s.c * size)
            *last = (struct stretch){ last->size * s.size, s.a, s.b, s.c };
        else
            out[made++] = s;
    }
    return made;
}

/* Operand k as it lies. */
static struct side side_of(const struct work *w, unsigned k)
{
    const uint32_t id = graph_inputs(w->g, w->n)[k];
    const struct graph_node *n = &w->g->nodes[id];
    const struct place *p = &w->places[id];
    struct side s = { .rank = n->rank };
    memcpy(s.axes, n->axis, sizeof s.axes);
    memcpy(s.stride, p->stride, sizeof s.stride);
    s.read = step_stored(w, k);
    s.type = step_stored_type(w, k);
    s.first = (size_t)p->offset;
    if (!w->measure && s.read)
        s.stored = w->data[p->base];
    else if (!w->measure)
        s.data = (const float *)w->data[p->base] + p->offset;
    return s;
}

static void contiguous(struct side *s)
{
    ptrdiff_t step = 1;
    for (unsigned i = s->rank; i-- > 0;) {
        s->stride[i] = step;
        step *= (ptrdiff_t)s->axes[i].size;
    }
}

/* Operand k copied to the order of three lists. */
static struct side side_copied(struct work *w, unsigned k, const struct graph_axis *lists[3], const unsigned counts[3])
{
    struct side s = { 0 };
    for (unsigned l = 0; l < 3; l++)
        for (unsigned i = 0; i < counts[l]; i++)
            s.axes[s.rank++] = lists[l][i];
    contiguous(&s);
    s.data = step_operand(w, k, s.axes, s.rank, TENSOR_F32);
    return s;
}

struct groups {
    struct graph_axis b[GRAPH_AXES], m[GRAPH_AXES], n[GRAPH_AXES], k[GRAPH_AXES];
    unsigned bs, ms, ns, ks;
};

static struct groups groups_of(const struct work *w, unsigned first)
{
    const struct graph_node *x = step_input(w, first), *y = step_input(w, first + 1);
    struct groups g = { .ks = w->n->axes_count };
    memcpy(g.k, graph_axes(w->g, w->n), g.ks * sizeof *g.k);
    for (unsigned i = 0; i < x->rank; i++) {
        bool summed = false;
        for (unsigned k = 0; k < g.ks; k++)
            summed = summed || g.k[k].name == x->axis[i].name;
        if (summed)
            continue;
        if (graph_axis_find(y, x->axis[i].name) >= 0)
            g.b[g.bs++] = x->axis[i];
        else
            g.m[g.ms++] = x->axis[i];
    }
    for (unsigned i = 0; i < y->rank; i++)
        if (graph_axis_find(x, y->axis[i].name) < 0)
            g.n[g.ns++] = y->axis[i];
    return g;
}

/* A product as the kernel takes it, and the stretches it is repeated over. */
struct product {
    struct gemm gemm;
    struct stretch batch[2 * GRAPH_AXES];
    unsigned batches;
};

/* Moves all of a chain to place i of stretch `at`. */
static void chain_moved(struct gemm *gemm, const struct product *parts, size_t count, unsigned at, uint64_t i)
{
    for (size_t k = 0; k < count; k++) {
        const struct stretch *s = &parts[k].batch[at];
        gemm[k].a += (ptrdiff_t)i * s->a;
        if (gemm[k].b)
            gemm[k].b += (ptrdiff_t)i * s->b;
        gemm[k].b_first += gemm[k].b_read ? (size_t)((ptrdiff_t)i * s->b) : 0;
        gemm[k].c += (ptrdiff_t)i * s->c;
        if (gemm[k].onto)
            gemm[k].onto += (ptrdiff_t)i * s->c;
    }
}

/* Runs the products over all batch stretches beyond the two that the kernel knows, from stretch `at` on. */
static void chain_run_from(struct pool *pool, const struct gemm *gemm, const struct product *parts, size_t count, unsigned at)
{
    struct gemm all[GEMM_CHAIN];
    const unsigned left = parts[0].batches - at;
    memcpy(all, gemm, count * sizeof *all);
    if (left > 2) {
        for (uint64_t i = 0; i < parts[0].batch[at].size; i++) {
            memcpy(all, gemm, count * sizeof *all);
            chain_moved(all, parts, count, at, i);
            chain_run_from(pool, all, parts, count, at + 1);
        }
        return;
    }
    for (size_t k = 0; k < count; k++)
        for (unsigned i = 0; i < 2; i++) {
            const struct stretch *t = i + left >= 2 ? &parts[k].batch[at + i + left - 2] : NULL;
            all[k].batch[i] = t ? t->size : 1;
            all[k].a_batch[i] = t ? t->a : 0;
            all[k].b_batch[i] = t ? t->b : 0;
            all[k].c_batch[i] = t ? t->c : 0;
        }
    gemm_run_chain(pool, all, count);
}

static void products_run(struct pool *pool, const struct product *parts, size_t count)
{
    struct gemm gemm[GEMM_CHAIN];
    for (size_t k = 0; k < count; k++)
        gemm[k] = parts[k].gemm;
    chain_run_from(pool, gemm, parts, count, 0);
}

/* Whether two products walk over C in the same way. */
static bool same_walk(const struct product *x, const struct product *y)
{
    if (x->gemm.m != y->gemm.m || x->gemm.n != y->gemm.n || x->gemm.c_row != y->gemm.c_row || x->batches != y->batches)
        return false;
    for (unsigned i = 0; i < x->batches; i++)
        if (x->batch[i].size != y->batch[i].size || x->batch[i].c != y->batch[i].c)
            return false;
    return true;
}

static bool dot_f64(struct work *w);

/* The product of node w->id, its result at `c`; `further`: it goes on from what is there. */
static void product_of(struct work *w, bool further, float *result, struct product *p)
{
    const unsigned first = w->n->op == OPERATOR_DOT ? 0 : 1;
    const struct groups g = groups_of(w, first);
    struct stretch k[GRAPH_AXES], n[GRAPH_AXES];
    struct side a = side_of(w, first), b = side_of(w, first + 1), c = { .rank = w->n->rank };
    memcpy(c.axes, w->n->axis, sizeof c.axes);
    contiguous(&c);
    if (a.read) /* only y is read as it is stored */
        a = side_copied(w, first, (const struct graph_axis *[]){ g.b, g.m, g.k }, (unsigned[]){ g.bs, g.ms, g.ks });
    const float *onto = first && !further ? step_operand(w, 0, c.axes, c.rank, TENSOR_F32) : result;
    if (stretches(g.k, g.ks, &a, &b, &c, k) > 1) {
        /* The order of the summed axes in memory: as x has them, so that mostly y alone is copied. */
        b = side_copied(w, first + 1, (const struct graph_axis *[]){ g.b, g.n, g.k }, (unsigned[]){ g.bs, g.ns, g.ks });
        if (stretches(g.k, g.ks, &a, &b, &c, k) > 1)
            a = side_copied(w, first, (const struct graph_axis *[]){ g.b, g.m, g.k }, (unsigned[]){ g.bs, g.ms, g.ks });
    }
    if (stretches(g.n, g.ns, &a, &b, &c, n) > 1)
        b = side_copied(w, first + 1, (const struct graph_axis *[]){ g.b, g.n, g.k }, (unsigned[]){ g.bs, g.ns, g.ks });
    if (w->measure)
        return;
    const unsigned ks = stretches(g.k, g.ks, &a, &b, &c, k), ns = stretches(g.n, g.ns, &a, &b, &c, n);
    struct stretch m[GRAPH_AXES];
    unsigned ms = stretches(g.m, g.ms, &a, &b, &c, m);
    p->batches = stretches(g.b, g.bs, &a, &b, &c, p->batch);
    for (unsigned i = 0; i + 1 < ms; i++)
        p->batch[p->batches++] = m[i];
    p->gemm = (struct gemm){ .m = ms ? m[ms - 1].size : 1,
                             .n = ns ? n[0].size : 1,
                             .k = ks ? k[0].size : 1,
                             .form = w->n->op == OPERATOR_DOT        ? GEMM_PLAIN
                                     : w->n->op == OPERATOR_DOT_ONTO ? GEMM_ONTO
                                                                     : GEMM_LOW_RANK,
                             .scale = w->n->op == OPERATOR_LOW_RANK ? (float)graph_numbers(w->g, w->n)[0] : 0,
                             .a = a.data,
                             .b = b.data,
                             .b_read = b.read,
                             .b_type = b.type,
                             .b_stored = b.stored,
                             .b_first = b.first,
                             .onto = onto,
                             .c = result,
                             .a_row = ms ? m[ms - 1].a : 0,
                             .c_row = ms ? m[ms - 1].c : 1,
                             .a_col = ks ? k[0].a : 1,
                             .b_row = ks ? k[0].b : 1,
                             .b_col = ns ? n[0].b : 1 };
}

bool step_dot(struct work *w)
{
    struct product p;
    if (w->n->type == TENSOR_F64)
        return dot_f64(w);
    product_of(w, false, w->measure ? NULL : w->data[w->id], &p);
    if (!w->measure)
        products_run(w->pool, &p, 1);
    return true;
}

bool step_products(struct work *w, const uint32_t *nodes, uint32_t count)
{
    struct product parts[GEMM_CHAIN];
    bool together = true;
    float *result = w->measure ? NULL : w->data[nodes[count - 1]];
    for (uint32_t i = 0; i < count; i++) {
        w->id = nodes[i];
        w->n = &w->g->nodes[w->id];
        product_of(w, i > 0, result, &parts[i]);
        together = w->measure || (together && same_walk(&parts[0], &parts[i]));
    }
    if (w->measure)
        return true;
    if (together)
        products_run(w->pool, parts, count);
    else
        for (uint32_t i = 0; i < count; i++)
            products_run(w->pool, &parts[i], 1);
    return true;
}

/* binary64: each sum by rule 4 with the product rounded. For small things: weights of peers, scores. */
static bool dot_f64(struct work *w)
{
    const struct groups g = groups_of(w, 0);
    struct graph_axis ax[GRAPH_AXES], bx[GRAPH_AXES];
    unsigned as = 0, bs = 0;
    for (unsigned i = 0; i < g.bs; i++)
        ax[as++] = bx[bs++] = g.b[i];
    for (unsigned i = 0; i < g.ms; i++)
        ax[as++] = g.m[i];
    for (unsigned i = 0; i < g.ns; i++)
        bx[bs++] = g.n[i];
    struct graph_axis out[GRAPH_AXES];
    memcpy(out, ax, as * sizeof *out);
    memcpy(out + as, g.n, g.ns * sizeof *out);
    for (unsigned i = 0; i < g.ks; i++)
        ax[as++] = bx[bs++] = g.k[i];
    const uint64_t b = axes_product(g.b, g.bs), m = axes_product(g.m, g.ms), n = axes_product(g.n, g.ns),
                   k = axes_product(g.k, g.ks);
    const double *x = step_operand(w, 0, ax, as, TENSOR_F64), *y = step_operand(w, 1, bx, bs, TENSOR_F64);
    const struct result r = step_result(w, w->id, out, w->n->rank);
    double *products = step_take(w, k * sizeof *products);
    if (w->measure)
        return true;
    for (uint64_t i = 0; i < b * m; i++)
        for (uint64_t j = 0; j < n; j++) {
            const double *p = x + i * k, *q = y + (i / m * n + j) * k;
            for (uint64_t t = 0; t < k; t++)
                products[t] = p[t] * q[t];
            reduce_sum_f64(NULL, 1, k, products, (double *)r.at + i * n + j);
        }
    step_settle(w, &r);
    return true;
}

bool step_dist2(struct work *w)
{
    const struct graph_node *x = step_input(w, 0);
    struct graph_axis order[GRAPH_AXES];
    order[0] = graph_axes(w->g, w->n)[0];
    axes_without(x, order, 1, order + 1);
    const uint64_t n = order[0].size, width = x->values / n;
    const bool wide = x->type == TENSOR_F64;
    const void *values = step_operand(w, 0, order, x->rank, (enum tensor_type)x->type);
    double *squares = step_take(w, wide ? width * sizeof *squares : 0);
    if (w->measure)
        return true;
    double *out = w->data[w->id];
    if (!wide) {
        order_dist2(w->pool, n, n, width, values, values, out);
        return true;
    }
    for (uint64_t i = 0; i < n * n; i++) {
        const double *p = (const double *)values + i / n * width, *q = (const double *)values + i % n * width;
        for (uint64_t k = 0; k < width; k++)
            squares[k] = (p[k] - q[k]) * (p[k] - q[k]);
        reduce_sum_f64(NULL, 1, width, squares, &out[i]);
    }
    return true;
}
