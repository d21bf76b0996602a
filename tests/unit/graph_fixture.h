/* graph_fixture.h - one graph under test: short words to build it, drawn inputs, a run. */
#ifndef RONDO_TESTS_GRAPH_FIXTURE_H
#define RONDO_TESTS_GRAPH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/kernel/pool.h"
#include "tests/unit/graph_reference.h"

static struct graph *g;
static struct error err;
static uint64_t seed;

static inline int fresh(void **state)
{
    (void)state;
    g = graph_new(NULL);
    memset(&err, 0, sizeof err);
    seed = 1;
    return 0;
}

static inline int done(void **state)
{
    (void)state;
    graph_free(g);
    return 0;
}

static inline double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 40) / (double)(1 << 24);
}

/* ---- building ---- */

static inline uint32_t checked(bool ok, const uint32_t *node)
{
    if (!ok)
        fail_msg("%s: %s", err.place, err.message);
    return *node;
}

static inline uint32_t input(const char *name, const char *axes)
{
    uint32_t node;
    return checked(graph_input(g, name, TENSOR_F32, axes, &node, &err), &node);
}

static inline uint32_t whole(const char *name, const char *axes)
{
    uint32_t node;
    return checked(graph_input(g, name, TENSOR_I32, axes, &node, &err), &node);
}

static inline uint32_t number(double v)
{
    uint32_t node;
    return checked(graph_constant(g, TENSOR_F32, v, &node, &err), &node);
}

static inline uint32_t op1(enum operator_code op, uint32_t x)
{
    uint32_t node;
    return checked(graph_unary(g, op, x, &node, &err), &node);
}

static inline uint32_t op2(enum operator_code op, uint32_t x, uint32_t y)
{
    uint32_t node;
    return checked(graph_binary(g, op, x, y, &node, &err), &node);
}

static inline uint32_t over(enum operator_code op, uint32_t x, uint32_t y, uint32_t z, const char *axes)
{
    uint32_t node;
    return checked(graph_over(g, op, x, y, z, axes, &node, &err), &node);
}

struct extra {
    const double *numbers;
    size_t numbers_count;
    const int64_t *integers;
    size_t integers_count;
};

static inline uint32_t full(enum operator_code op, const uint32_t *inputs, size_t count, const struct graph_word *axes,
                            size_t axes_count, struct extra e)
{
    uint32_t node;
    return checked(graph_add(g,
                             &(struct graph_request){ .op = op,
                                                      .inputs = inputs,
                                                      .input_count = count,
                                                      .axes = axes,
                                                      .axes_count = axes_count,
                                                      .numbers = e.numbers,
                                                      .numbers_count = e.numbers_count,
                                                      .integers = e.integers,
                                                      .integers_count = e.integers_count },
                             &node, &err),
                   &node);
}

#define NUMBERS(...) .numbers = (double[]){ __VA_ARGS__ }, .numbers_count = sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)
#define INTEGERS(...)                                                                                                            \
    .integers = (int64_t[]){ __VA_ARGS__ }, .integers_count = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)
#define FULL(op, axis, e, ...)                                                                                                   \
    full(op, (uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t),                                \
         (struct graph_word[]){ { axis, 0 } }, 1, e)

static inline void output(const char *name, uint32_t node)
{
    checked(graph_output(g, name, node, &err), &node);
}

static inline uint32_t along(enum operator_code op, uint32_t x, const char *axis, int64_t a, int64_t b, size_t count)
{
    const int64_t k[2] = { a, b };
    return FULL(op, axis, ((struct extra){ .integers = k, .integers_count = count }), x);
}

static inline uint32_t attention(uint32_t q, uint32_t k, uint32_t v, uint32_t segment, double softcap, int64_t causal,
                                 int64_t window)
{
    const uint32_t in[4] = { q, k, v, segment };
    const struct graph_word axes[2] = { { "time", 0 }, { "dim", 0 } };
    return full(OPERATOR_ATTENTION, in, segment == GRAPH_NONE ? 3 : 4, axes, 2,
                (struct extra){ NUMBERS(0.7, softcap), INTEGERS(causal, window) });
}

static inline uint32_t rope(uint32_t x, uint32_t position, int64_t width, int64_t interleaved)
{
    return FULL(OPERATOR_ROPE, "dim", ((struct extra){ NUMBERS(10000, 0, 0, 0, 0), INTEGERS(width, interleaved, 0, 0) }), x,
                position);
}

static inline uint32_t factors_of_pairs(const double *values, size_t count)
{
    uint32_t node;
    return checked(graph_add(g,
                             &(struct graph_request){ .op = OPERATOR_TABLE,
                                                      .type = TENSOR_F32,
                                                      .axes = (struct graph_word[]){ { "pair", count } },
                                                      .axes_count = 1,
                                                      .numbers = values,
                                                      .numbers_count = count },
                             &node, &err),
                   &node);
}

static inline uint32_t rmsnorm(uint32_t x, uint32_t w, const char *axis)
{
    return FULL(OPERATOR_RMSNORM, axis, ((struct extra){ NUMBERS(1e-5, 0) }), x, w);
}

/* ---- running ---- */

/* Inputs drawn once: reals between -1 and 1, integers between 0 and 3; doubles of the same values for the reference. Names that start with
 * "mask" are 0 or 1, with "positive" 0.3 to 1.3, with "negative" the opposite. */
struct data {
    void **bound;
    double **exact;
    void **outputs;
};

static inline size_t bytes_of(const struct graph_node *n)
{
    return n->values * (n->type == TENSOR_F64 ? 8 : 4);
}

static inline double value(const struct graph_node *n, const void *data, uint64_t k)
{
    return n->type == TENSOR_I32   ? ((const int32_t *)data)[k]
           : n->type == TENSOR_F32 ? (double)((const float *)data)[k]
                                   : ((const double *)data)[k];
}

static inline double drawn(const struct graph_node *n)
{
    const char *name = graph_text(g, n->name);
    const double u = uniform();
    return n->type == TENSOR_I32               ? trunc(u * 3)
           : strncmp(name, "mask", 4) == 0     ? u > 0.4
           : strncmp(name, "positive", 8) == 0 ? 0.3 + u
           : strncmp(name, "negative", 8) == 0 ? -0.3 - u
                                               : 2 * u - 1;
}

static inline struct data data_new(void)
{
    struct data d = { calloc(g->bound_count + 1, sizeof(void *)), calloc(g->node_count + 1, sizeof(double *)),
                      calloc(g->output_count + 1, sizeof(void *)) };
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        d.bound[i] = calloc(1, bytes_of(n) + 8);
        d.exact[g->bound[i]] = calloc(n->values + 1, sizeof(double));
        for (uint64_t k = 0; k < n->values; k++) {
            const double u = drawn(n);
            if (n->type == TENSOR_I32)
                ((int32_t *)d.bound[i])[k] = (int32_t)u;
            else if (n->type == TENSOR_F32)
                ((float *)d.bound[i])[k] = (float)u;
            else
                ((double *)d.bound[i])[k] = u;
            d.exact[g->bound[i]][k] = value(n, d.bound[i], k);
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        d.outputs[i] = calloc(1, bytes_of(&g->nodes[g->outputs[i].node]) + 8);
    return d;
}

static inline void data_free(struct data *d)
{
    for (uint32_t i = 0; i < g->bound_count; i++) {
        free(d->bound[i]);
        free(d->exact[g->bound[i]]);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        free(d->outputs[i]);
    free(d->bound);
    free(d->exact);
    free(d->outputs);
}

static const struct executor_random no_seed = { .seed = { 7 }, .round = 1, .step = 2 };

static inline void run(const struct executor_options *o, struct data *d)
{
    struct executor *ex = executor_new(g, o, &err);
    if (!ex)
        fail_msg("%s: %s", err.place, err.message);
    for (int again = 0; again < 2; again++)
        if (!executor_run(ex, (const void *const *)d->bound, d->outputs, &no_seed, &err))
            fail_msg("%s: %s", err.place, err.message);
    executor_free(ex);
}

static inline void assert_close(double got, double want, double tolerance, const char *what, uint64_t k)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))) && !(isinf(want) && got == want))
        fail_msg("%s[%llu] is %.9g, not %.9g", what, (unsigned long long)k, got, want);
}

#endif
