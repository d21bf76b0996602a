#include "runtime/cli/step_load.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/pool.h"
#include "runtime/role/run_file.h"
#include "runtime/worker/batch.h"
#include "runtime/worker/step.h"

enum { VOCAB = 49152, EMBED = 576, PARTS = 3 };

struct step_load {
    struct script_set sets[PARTS]; /* model, objective, optimiser */
    struct script_trace traces[PARTS];
    struct layout layout;
    struct batch batch;
    struct graph *graph;
    struct pool *pool;
    struct executor *executor;
    const void **inputs;
    void **outputs;
    uint8_t *stored;
    uint64_t hashed; /* tiles of a traced step */
    void **owned;    /* memory of bound node i, NULL where it is the batch's */
    float *spare;    /* one an output */
    float rate;
};

static const struct script_limits patient = { .seconds = 60 };

json_t *step_load_config(int64_t layers)
{
    return json_pack("{s:[s], s:i, s:i, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:b}", "architectures", "LlamaForCausalLM",
                     "vocab_size", (int)VOCAB, "hidden_size", (int)EMBED, "intermediate_size", 1536, "num_hidden_layers",
                     (json_int_t)layers, "num_attention_heads", 9, "num_key_value_heads", 3, "max_position_embeddings", 8192,
                     "rope_theta", 100000.0, "rms_norm_eps", 0.00001, "tie_word_embeddings", 1);
}

static bool traced(struct step_load *l, const struct step_load_options *o, struct error *err)
{
    static const char *const names[PARTS] = { "llama", "chat_sft", "adamw" };
    char folder[4096];
    json_t *config = step_load_config(o->layers), *metas;
    struct script_model_request model = { .config = config,
                                          .rows = o->rows,
                                          .time = o->time,
                                          .rank = o->rank,
                                          .scale = 2,
                                          .train_all = o->rank == 0,
                                          .training = true };
    struct script_objective_request objective = { .batch = o->rows, .time = o->time, .vocab = VOCAB, .embed = EMBED };
    bool ok = true;

    for (size_t i = 0; ok && i < PARTS; i++)
        ok = script_set_read(run_file_scripts(folder), names[i], NULL, &l->sets[i], err);
    ok = ok && script_trace_model(&l->sets[0].bundle, &model, &patient, &l->traces[0], err) &&
         script_trace_objective(&l->sets[1].bundle, &objective, &patient, &l->traces[1], err) &&
         layout_new(&l->layout, l->traces[0].meta, err);
    json_decref(config);
    if (!ok)
        return false;
    metas = layout_metas(&l->layout);
    ok = script_trace_optimiser(&l->sets[2].bundle, metas, false, &patient, &l->traces[2], err);
    json_decref(metas);
    return ok;
}

static uint32_t word(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static void batch_filled(struct batch *b, const struct step_load_options *o)
{
    size_t count = (size_t)(o->rows * o->time);
    uint64_t state = 1;

    *b = (struct batch){ .rows = o->rows, .time = o->time, .capacity = count };
    b->ids = calloc(count, sizeof *b->ids);
    b->position = calloc(count, sizeof *b->position);
    b->segment = calloc(count, sizeof *b->segment);
    b->real = calloc(count, sizeof *b->real);
    b->mask = calloc(count, sizeof *b->mask);
    b->scored = calloc(count, sizeof *b->scored);
    b->bytes = calloc(count, sizeof *b->bytes);
    for (size_t i = 0; i < count; i++) {
        const bool first = i % (size_t)o->time == 0;

        b->ids[i] = (int32_t)(word(&state) % VOCAB);
        b->position[i] = (int32_t)(i % (size_t)o->time);
        b->segment[i] = 1;
        b->real[i] = b->bytes[i] = 1;
        b->scored[i] = !first;
        b->mask[i] = !first && (double)word(&state) * 0x1p-32 < o->trained;
    }
}

float *step_load_values(const struct graph_node *n, const char *name)
{
    float *values = calloc(n->values, sizeof *values);
    uint64_t state = 7;

    if (values && strncmp(name, "s.", 2) != 0)
        for (uint64_t i = 0; i < n->values; i++)
            values[i] = n->rank == 1 ? 1.0f : (float)((double)word(&state) * 0x1p-32 - 0.5) * 0.07f;
    return values;
}

uint8_t *step_load_blocks(const struct graph_node *n)
{
    const size_t size = n->values / 32 * tensor_block_bytes(TENSOR_Q4_0);
    uint8_t *bytes = malloc(size);
    uint64_t state = 7;

    for (size_t i = 0; bytes && i < size; i++)
        bytes[i] = (uint8_t)word(&state);
    for (size_t i = 1; bytes && i < size; i += tensor_block_bytes(TENSOR_Q4_0))
        bytes[i] = 0x1c; /* the high half of a scale of about 0.004 */
    return bytes;
}

static bool bound(struct step_load *l, enum tensor_type base, struct error *err)
{
    const struct graph *g = l->graph;

    l->inputs = calloc(g->bound_count + 1, sizeof *l->inputs);
    l->owned = calloc(g->bound_count + 1, sizeof *l->owned);
    l->stored = calloc(g->bound_count + 1, sizeof *l->stored);
    l->outputs = calloc(g->output_count + 1, sizeof *l->outputs);
    l->spare = calloc(g->output_count + 1, sizeof *l->spare);
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        const char *name = graph_text(g, n->name), *field = strncmp(name, "b.", 2) == 0 ? name + 2 : name;

        l->inputs[i] = strcmp(name, "lr") == 0 ? &l->rate : batch_field(&l->batch, field);
        l->stored[i] = n->type;
        if (!l->inputs[i] && base != TENSOR_F32 && layout_find(&l->layout, name) < 0 && executor_may_store(g, i, base)) {
            l->stored[i] = (uint8_t)base;
            l->inputs[i] = l->owned[i] = step_load_blocks(n);
        } else if (!l->inputs[i]) {
            l->inputs[i] = l->owned[i] = step_load_values(n, name);
        }
        if (!l->inputs[i])
            return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
    }
    return true;
}

static void tiles_counted(void *context, uint32_t node, const struct graph_hash *tiles, uint64_t count)
{
    (void)node, (void)tiles;
    ((struct step_load *)context)->hashed += count;
}

static bool prepared(struct step_load *l, const struct step_load_options *o, struct error *err)
{
    const struct graph *g = l->graph;
    struct executor_alias *aliases = calloc(g->output_count + 1, sizeof *aliases);
    size_t count = 0;

    for (uint32_t i = 0; i < g->output_count; i++) {
        const char *name = graph_text(g, g->outputs[i].name);
        uint32_t place;

        l->outputs[i] = &l->spare[i];
        if (graph_bound_find(g, strncmp(name, "p.", 2) == 0 ? name + 2 : name, &place) == GRAPH_NONE)
            continue;
        aliases[count++] = (struct executor_alias){ i, place };
        l->outputs[i] = l->owned[place];
    }
    l->pool = pool_new(o->threads);
    l->executor = executor_new(g,
                               &(struct executor_options){ .pool = l->pool,
                                                           .aliases = aliases,
                                                           .alias_count = count,
                                                           .memory = o->memory,
                                                           .stored = l->stored,
                                                           .tiles = o->traced ? tiles_counted : NULL,
                                                           .tiles_context = l,
                                                           .profile = o->profile,
                                                           .profile_context = o->profile_context },
                               err);
    free(aliases);
    return l->executor != NULL;
}

struct step_load *step_load_new(const struct step_load_options *o, struct error *err)
{
    struct step_load *l = calloc(1, sizeof *l);

    l->rate = 1e-4f;
    batch_filled(&l->batch, o);
    if (traced(l, o, err)) {
        l->graph = step_graph(
            &(struct step_parts){
                .model = &l->traces[0], .objective = &l->traces[1], .optimiser = &l->traces[2], .layout = &l->layout, .clip = 1 },
            err);
        if (l->graph && bound(l, o->base, err) && prepared(l, o, err))
            return l;
    }
    step_load_free(l);
    return NULL;
}

void step_load_free(struct step_load *l)
{
    for (uint32_t i = 0; l->graph && l->owned && i < l->graph->bound_count; i++)
        free(l->owned[i]);
    free(l->inputs);
    free(l->owned);
    free(l->stored);
    free(l->outputs);
    free(l->spare);
    executor_free(l->executor);
    pool_free(l->pool);
    graph_free(l->graph);
    layout_free(&l->layout);
    batch_free(&l->batch);
    for (size_t i = 0; i < PARTS; i++) {
        script_trace_free(&l->traces[i]);
        script_set_free(&l->sets[i]);
    }
    free(l);
}

bool step_load_run(struct step_load *l, double *loss, struct error *err)
{
    if (!executor_run(l->executor, l->inputs, l->outputs, NULL, err))
        return false;
    *loss = l->spare[0];
    for (uint32_t i = 0; i < l->graph->output_count; i++)
        if (strcmp(graph_text(l->graph, l->graph->outputs[i].name), "loss") == 0)
            *loss = l->spare[i];
    return true;
}

const struct executor *step_load_executor(const struct step_load *l)
{
    return l->executor;
}
