#include "runtime/cli/decode_load.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/pool.h"
#include "runtime/cli/step_load.h"
#include "runtime/role/run_file.h"
#include "runtime/worker/batch.h"
#include "runtime/worker/step.h"

enum { LAYERS = 30 };

struct decode_load {
    struct script_set set;
    struct script_trace trace;
    struct batch batch;
    struct graph *graph;
    struct cache *cache;
    struct pool *pool;
    struct executor *executor;
    const void **inputs;
    void **owned; /* memory of bound node i, NULL where it is the batch's */
    uint8_t *stored;
    float *logits;
    uint64_t vocab;
};

static bool traced(struct decode_load *l, int64_t rows, struct error *err)
{
    static const struct script_limits patient = { .seconds = 60 };
    char folder[4096];
    json_t *config = step_load_config(LAYERS);
    struct script_model_request model = { .config = config, .rows = rows, .time = 1, .scale = 1 };
    bool ok = script_set_read(run_file_scripts(folder), "llama", NULL, &l->set, err) &&
              script_trace_model(&l->set.bundle, &model, &patient, &l->trace, err);

    json_decref(config);
    l->graph = ok ? step_sampling_graph(&l->trace, err) : NULL;
    l->cache = l->graph ? cache_new(l->graph, "time", err) : NULL;
    return l->cache != NULL;
}

static bool bound(struct decode_load *l, enum tensor_type base, struct error *err)
{
    const struct graph *g = l->graph;
    size_t rows = (size_t)l->batch.rows;

    l->batch.ids = calloc(rows, sizeof *l->batch.ids);
    l->batch.position = calloc(rows, sizeof *l->batch.position);
    l->batch.segment = calloc(rows, sizeof *l->batch.segment);
    l->inputs = calloc(g->bound_count + 1, sizeof *l->inputs);
    l->owned = calloc(g->bound_count + 1, sizeof *l->owned);
    l->stored = calloc(g->bound_count + 1, sizeof *l->stored);
    l->vocab = g->nodes[g->outputs[0].node].values / rows;
    l->logits = malloc(rows * l->vocab * sizeof *l->logits);
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        const char *name = graph_text(g, n->name), *field = strncmp(name, "b.", 2) == 0 ? name + 2 : name;

        l->inputs[i] = batch_field(&l->batch, field);
        l->stored[i] = n->type;
        if (l->inputs[i])
            continue;
        if (base != TENSOR_F32 && n->rank > 1 && executor_may_store(g, i, base)) {
            l->stored[i] = (uint8_t)base;
            l->owned[i] = step_load_blocks(n);
        } else {
            l->owned[i] = step_load_values(n, name);
        }
        l->inputs[i] = l->owned[i];
        if (!l->inputs[i])
            return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
    }
    return l->logits != NULL || error_set(err, ERROR_MEMORY, NULL, "no memory for logits");
}

struct decode_load *decode_load_new(int64_t rows, enum tensor_type base, unsigned threads, struct error *err)
{
    struct decode_load *l = calloc(1, sizeof *l);

    l->batch = (struct batch){ .rows = rows, .time = 1 };
    l->pool = pool_new(threads);
    if (traced(l, rows, err) && bound(l, base, err))
        l->executor =
            executor_new(l->graph, &(struct executor_options){ .pool = l->pool, .stored = l->stored, .cache = l->cache }, err);
    if (l->executor)
        return l;
    decode_load_free(l);
    return NULL;
}

void decode_load_free(struct decode_load *l)
{
    for (uint32_t i = 0; l->graph && l->owned && i < l->graph->bound_count; i++)
        free(l->owned[i]);
    free(l->inputs);
    free(l->owned);
    free(l->stored);
    free(l->logits);
    executor_free(l->executor);
    cache_free(l->cache);
    graph_free(l->graph);
    pool_free(l->pool);
    batch_free(&l->batch);
    script_trace_free(&l->trace);
    script_set_free(&l->set);
    free(l);
}

static int32_t likeliest(const float *logits, uint64_t count)
{
    uint64_t best = 0;

    for (uint64_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

bool decode_load_run(struct decode_load *l, size_t tokens, struct error *err)
{
    size_t rows = (size_t)l->batch.rows;
    struct cache_sequence **sequences = calloc(rows, sizeof *sequences);
    uint32_t *counts = calloc(rows, sizeof *counts);
    void *outputs[1] = { l->logits };
    struct cache_step step = { .sequences = sequences, .counts = counts, .rows = rows };
    bool ok = true;

    for (size_t r = 0; r < rows; r++) {
        sequences[r] = cache_sequence_new(l->cache);
        counts[r] = 1;
        l->batch.ids[r] = (int32_t)(100 + r);
        l->batch.segment[r] = 1;
    }
    for (size_t t = 0; ok && t < tokens; t++) {
        for (size_t r = 0; r < rows; r++)
            l->batch.position[r] = (int32_t)t;
        ok = executor_continue(l->executor, &step, err) && executor_run(l->executor, l->inputs, outputs, NULL, err);
        for (size_t r = 0; ok && r < rows; r++)
            l->batch.ids[r] = likeliest(l->logits + r * l->vocab, l->vocab);
    }
    for (size_t r = 0; r < rows; r++)
        cache_sequence_free(sequences[r]);
    free(sequences);
    free(counts);
    return ok;
}
