/* gradient_check.h - the gradient of a node, evaluated in binary64, against central differences of its meaning in binary64; and what the
 * executor makes of it against that. */
#ifndef RONDO_TESTS_GRADIENT_CHECK_H
#define RONDO_TESTS_GRADIENT_CHECK_H

#include "tests/unit/graph_fixture.h"

/* What is differentiated: y by the nodes of `by` (the rest GRAPH_NONE). */
struct site {
    uint32_t y, by[4];
};

static enum tensor_type real; /* of the inputs */

static inline uint32_t in(const char *name, const char *axes)
{
    uint32_t node;
    return checked(graph_input(g, name, real, axes, &node, &err), &node);
}

static inline struct site of(uint32_t y, uint32_t a, uint32_t b, uint32_t c)
{
    return (struct site){ y, { a, b, c, GRAPH_NONE } };
}

static inline unsigned wanted(const struct site *s)
{
    unsigned count = 0;
    while (s->by[count] != GRAPH_NONE)
        count++;
    return count;
}

/* A tensor of the axes of y, to weigh its elements with: the gradient of the loss sum of c y. */
static inline uint32_t cotangent(uint32_t y)
{
    char axes[GRAPH_SHOW];
    uint32_t node;
    graph_show(g, y, axes, sizeof axes);
    axes[strlen(axes) - 1] = 0;
    return checked(graph_input(g, "cotangent", (enum tensor_type)g->nodes[y].type, axes + 1, &node, &err), &node);
}

static inline double weighed(struct reference *r, uint32_t y, uint32_t c)
{
    double sum = 0;
    reference_forget(r);
    const double *all = reference_node(r, y);
    for (uint64_t i = 0; i < g->nodes[y].values; i++)
        if (isfinite(all[i])) /* the greatest of nothing has no slope */
            sum += all[i] * r->bound[c][i];
    return sum;
}

/* By differences of fourth order. */
static inline double difference(struct reference *r, uint32_t y, uint32_t c, double *at)
{
    const double keep = *at, h = 1e-4;
    double sum = 0;
    static const double factor[4] = { 1, -8, 8, -1 }, place[4] = { -2, -1, 1, 2 };
    for (unsigned i = 0; i < 4; i++) {
        *at = keep + place[i] * h;
        sum += factor[i] * weighed(r, y, c);
    }
    *at = keep;
    return sum / (12 * h);
}

/* The gradients that the graph builds: in binary64 the slopes of the meaning, in the executor's arithmetic the same but for rounding. */
static inline void check_site(const char *what, const struct site *s)
{
    uint32_t gradient[4];
    char name[96];
    const unsigned count = wanted(s);
    const uint32_t c = cotangent(s->y), before = g->output_count;
    if (!graph_backward_from(g, s->y, c, s->by, count, gradient, &err))
        fail_msg("%s: %s", what, err.message);
    for (unsigned i = 0; i < count; i++) {
        sprintf(name, "d%u", i);
        output(name, gradient[i]);
    }
    struct data d = data_new();
    struct reference r = { g, d.exact, calloc(g->node_count + 1, sizeof(double *)), &no_seed };
    run(NULL, &d);
    for (unsigned i = 0; i < count; i++) {
        const struct graph_node *n = &g->nodes[s->by[i]], *dn = &g->nodes[gradient[i]];
        double *exact = malloc(n->values * sizeof *exact);
        assert_int_equal(dn->values, n->values);
        reference_forget(&r); /* what differences left behind */
        memcpy(exact, reference_node(&r, gradient[i]), n->values * sizeof *exact);
        sprintf(name, "%s, operand %u", what, i);
        for (uint64_t k = 0; k < n->values; k++) {
            assert_close(exact[k], difference(&r, s->y, c, &d.exact[s->by[i]][k]), 1e-7, name, k);
            assert_close(value(dn, d.outputs[before + i], k), exact[k], dn->type == TENSOR_F64 ? 1e-12 : 2e-5, name, k);
        }
        free(exact);
    }
    reference_forget(&r);
    free(r.memo);
    data_free(&d);
}

#endif
