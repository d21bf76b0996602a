/* arranged.h - a graph, built and run plainly or in the executor's own form; for the tests of both. */
#ifndef ARRANGED_H
#define ARRANGED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/graph/execute.h"
#include "native/kernel/pool.h"

static struct graph *g;
static struct error err;

static inline int fresh(void **state)
{
    (void)state;
    g = graph_new(NULL);
    err = (struct error){ 0 };
    return 0;
}

static inline int done(void **state)
{
    (void)state;
    graph_free(g);
    return 0;
}

static inline void ok(bool good)
{
    if (!good)
        fail_msg("%s: %s", err.place, err.message);
}

static inline uint32_t input(const char *name, enum tensor_type type, const char *axes)
{
    uint32_t node;
    ok(graph_input(g, name, type, axes, &node, &err));
    return node;
}

static inline uint32_t over(enum operator_code op, uint32_t x, uint32_t y, const char *axes)
{
    uint32_t node;
    ok(graph_over(g, op, x, y, GRAPH_NONE, axes, &node, &err));
    return node;
}

static inline uint32_t shifted(uint32_t x, int64_t by)
{
    uint32_t node;
    ok(graph_add(g,
                 &(struct graph_request){ .op = OPERATOR_SHIFT,
                                          .inputs = &x,
                                          .input_count = 1,
                                          .axes = &(struct graph_word){ "time", 0 },
                                          .axes_count = 1,
                                          .integers = &by,
                                          .integers_count = 1 },
                 &node, &err));
    return node;
}

static inline void ignored(void *context, uint32_t node, const void *bytes, size_t size)
{
    (void)context, (void)node, (void)bytes, (void)size;
}

/* Runs g over `inputs`, plainly (traced) or arranged; outputs are owned by the caller. */
static inline float **run(const void *const *inputs, bool plain, unsigned threads, uint64_t *bytes)
{
    struct pool *pool = pool_new(threads);
    struct executor *ex = executor_new(g, &(struct executor_options){ .pool = pool, .trace = plain ? ignored : NULL }, &err);
    float **outputs = calloc(g->output_count, sizeof *outputs);
    ok(ex != NULL);
    for (uint32_t i = 0; i < g->output_count; i++)
        outputs[i] = calloc(g->nodes[g->outputs[i].node].values, sizeof(float));
    ok(executor_run(ex, inputs, (void *const *)outputs, NULL, &err));
    *bytes = executor_bytes(ex);
    executor_free(ex);
    pool_free(pool);
    return outputs;
}

static inline void same_bits(const void *const *inputs, bool less)
{
    uint64_t plain_bytes, bytes;
    float **plain = run(inputs, true, 1, &plain_bytes);
    for (unsigned threads = 1; threads <= 2; threads++) {
        float **arranged = run(inputs, false, threads, &bytes);
        for (uint32_t i = 0; i < g->output_count; i++) {
            assert_memory_equal(plain[i], arranged[i], g->nodes[g->outputs[i].node].values * sizeof(float));
            free(arranged[i]);
        }
        free(arranged);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        free(plain[i]);
    free(plain);
    if (less)
        assert_true(bytes < plain_bytes);
}

static inline float number(uint32_t i)
{
    i = (i ^ 61) ^ i >> 16;
    i *= 9;
    i ^= i >> 4;
    i *= 0x27d4eb2d;
    return (float)(int32_t)(i ^ i >> 15) * 0x1p-31f;
}

static inline float *numbers(size_t count, uint32_t seed)
{
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = number(seed + (uint32_t)i);
    return x;
}

static inline bool has(const struct graph *in, unsigned op)
{
    for (uint32_t i = 0; i < in->node_count; i++)
        if (in->nodes[i].op == op)
            return true;
    return false;
}

#endif
