/* logits.c - logits of a model as it is stored, for the scripts beside this file.
 *
 *     build/tests/rondo_logits SCRIPT MODEL [--ahead N] ID...      SCRIPT: a file of scripts/models; MODEL: a folder or .gguf file
 *
 * Writes [ids vocab] binary32, little-endian, to standard output. With --ahead the first N ids go in at once and the others one by one, with
 * keys and values kept (native/graph/cache.h). Frozen weights stay as the file has them where the graph can read them so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/execute.h"
#include "native/kernel/pool.h"
#include "native/model/match.h"
#include "native/model/source.h"
#include "runtime/script/host.h"
#include "runtime/worker/step.h"
#include "tests/fixture/fixture.h"

struct pass {
    struct script_trace trace;
    struct graph *g;
    struct executor *executor;
    const void **inputs;
    int32_t *ids, *position, *segment;
    float *logits; /* [time vocab] */
    int64_t time, vocab;
};

struct run {
    struct model_source *model;
    struct script_set set;
    struct pool *pool;
    struct cache *cache;
};

static void need(bool good, const struct error *err)
{
    char text[1024];

    if (good)
        return;
    fprintf(stderr, "%s\n", error_text(err, text, sizeof text));
    exit(1);
}

static const void *weight(struct run *r, const char *name, uint8_t *type)
{
    const void *bytes;
    void *owned;
    enum tensor_type stored;
    struct error err = { 0 };

    need(model_read_stored(r->model, name, &bytes, &owned, &stored, &err), &err);
    *type = (uint8_t)stored;
    return bytes;
}

/* As a session does: a type that the graph cannot read is made f32. */
static const void *bind(struct run *r, const struct graph *g, uint32_t i, uint8_t *type)
{
    const struct graph_node *n = &g->nodes[g->bound[i]];
    const char *name = graph_text(g, n->name);
    const void *bytes = weight(r, name, type);
    struct error err = { 0 };

    if (*type == TENSOR_F32 || executor_may_store(g, i, (enum tensor_type) * type))
        return bytes;

    float *values = malloc((size_t)n->values * sizeof *values);

    need(model_read_tensor(r->model, name, values, &err), &err);
    *type = TENSOR_F32;
    return values;
}

static void trace(struct run *r, struct pass *p, int64_t length)
{
    struct script_model_request request = {
        .config = (json_t *)(uintptr_t)model_config(r->model), .rows = 1, .time = p->time, .length = length
    };
    struct error err = { 0 };

    need(script_trace_model(&r->set.bundle, &request, NULL, &p->trace, &err), &err);
    need(model_match(r->model, json_object_get(p->trace.meta, "params"), &err), &err);
    p->g = step_sampling_graph(&p->trace, &err);
    need(p->g != NULL, &err);
    p->vocab = json_integer_value(json_object_get(json_object_get(p->trace.meta, "axes"), "vocab"));
}

/* `kept`: the pass goes on with a sequence. */
static void pass_new(struct run *r, struct pass *p, int64_t time, int64_t length, bool kept)
{
    struct error err = { 0 };

    *p = (struct pass){ .time = time };
    trace(r, p, length);
    p->inputs = calloc(p->g->bound_count + 1, sizeof *p->inputs);
    p->ids = calloc((size_t)time, sizeof *p->ids);
    p->position = calloc((size_t)time, sizeof *p->position);
    p->segment = calloc((size_t)time, sizeof *p->segment);
    p->logits = malloc((size_t)(time * p->vocab) * sizeof *p->logits);

    uint8_t *stored = calloc(p->g->bound_count + 1, sizeof *stored);
    float *real = malloc((size_t)time * sizeof *real);

    for (int64_t t = 0; t < time; t++)
        real[t] = (float)(p->segment[t] = 1);
    for (uint32_t i = 0; i < p->g->bound_count; i++) {
        const struct graph_node *n = &p->g->nodes[p->g->bound[i]];
        const char *name = graph_text(p->g, n->name);

        stored[i] = n->type;
        p->inputs[i] = n->op == OPERATOR_PARAMETER ? bind(r, p->g, i, &stored[i])
                       : !strcmp(name, "ids")      ? (const void *)p->ids
                       : !strcmp(name, "position") ? p->position
                       : !strcmp(name, "segment")  ? (const void *)p->segment
                                                   : real;
    }
    if (kept && !r->cache)
        need((r->cache = cache_new(p->g, "time", &err)) != NULL, &err);
    p->executor = executor_new(
        p->g, &(struct executor_options){ .pool = r->pool, .stored = stored, .cache = kept ? r->cache : NULL }, &err);
    need(p->executor != NULL, &err);
}

/* Ids from `first` on; their logits go out. */
static void pass_run(struct pass *p, const int32_t *ids, int64_t first, struct cache_sequence *sequence)
{
    uint32_t count = (uint32_t)p->time;
    void *outputs[1] = { p->logits };
    struct error err = { 0 };

    for (int64_t t = 0; t < p->time; t++) {
        p->ids[t] = ids[first + t];
        p->position[t] = (int32_t)(first + t);
    }
    if (sequence)
        need(executor_continue(p->executor, &(struct cache_step){ &sequence, &count, 1 }, &err), &err);
    need(executor_run(p->executor, p->inputs, outputs, NULL, &err), &err);
    fwrite(p->logits, sizeof *p->logits, (size_t)(p->time * p->vocab), stdout);
}

int main(int argc, char **argv)
{
    struct run r = { 0 };
    struct error err = { 0 };
    struct pass p;
    int64_t ahead = 0, count = 0;

    fixture_main(argc, argv);
    if (argc < 4) {
        fprintf(stderr, "usage: rondo_logits SCRIPT MODEL [--ahead N] ID...\n");
        return 2;
    }

    int32_t *ids = calloc((size_t)argc, sizeof *ids);

    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], "--ahead") && i + 1 < argc)
            ahead = atoi(argv[++i]);
        else
            ids[count++] = atoi(argv[i]);
    r.pool = pool_new(2);
    need((r.model = model_open(argv[2], &err)) != NULL, &err);
    need(script_set_read(RONDO_SOURCE "/scripts", argv[1], NULL, &r.set, &err), &err);
    if (ahead == 0 || ahead >= count) {
        pass_new(&r, &p, count, count, false);
        pass_run(&p, ids, 0, NULL);
        return 0;
    }
    pass_new(&r, &p, ahead, count, true);

    struct cache_sequence *sequence = cache_sequence_new(r.cache);

    pass_run(&p, ids, 0, sequence);
    pass_new(&r, &p, 1, count, true);
    for (int64_t t = ahead; t < count; t++)
        pass_run(&p, ids, t, sequence);
    return 0;
}
