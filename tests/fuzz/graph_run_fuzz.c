/* Any graph that decodes: its backward pass, rewriting, planning and running on zeros end well or with an error, within limits. */
#include <stdlib.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/graph/rewrite.h"
#include "native/graph/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct graph *g)
{
    struct error err = { 0 };
    const struct executor_random random = { .seed = { 1 } };
    struct executor *ex = executor_new(g, &(struct executor_options){ .memory = 1 << 26 }, &err);
    if (!ex)
        return;
    void **in = calloc(g->bound_count + 1, sizeof *in), **out = calloc(g->output_count + 1, sizeof *out);
    for (uint32_t i = 0; i < g->bound_count; i++)
        in[i] = calloc(g->nodes[g->bound[i]].values, 8);
    for (uint32_t i = 0; i < g->output_count; i++)
        out[i] = calloc(g->nodes[g->outputs[i].node].values, 8);
    executor_run(ex, (const void *const *)in, out, &random, &err);
    for (uint32_t i = 0; i < g->bound_count; i++)
        free(in[i]);
    for (uint32_t i = 0; i < g->output_count; i++)
        free(out[i]);
    free(in);
    free(out);
    executor_free(ex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = { 0 };
    struct graph_limits limits = graph_limits_default;
    uint32_t gradient;
    limits.nodes = 4096;
    limits.node_bytes = 1 << 14;
    struct graph *g = graph_decode(data, size, &limits, &err);
    if (!g)
        return 0;
    if (g->output_count && g->bound_count && graph_backward(g, g->outputs[0].node, g->bound, 1, &gradient, &err))
        graph_output(g, "gradient", gradient, &err);
    struct graph *h = graph_rewrite(g, NULL, &err);
    if (h)
        run(h);
    graph_free(h);
    graph_free(g);
    return 0;
}
