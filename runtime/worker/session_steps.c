#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/dispute_shape.h"
#include "runtime/worker/packs.h"
#include "runtime/worker/session_internal.h"
#include "runtime/worker/step.h"

void session_step_free(struct session_step *step)
{
    executor_free(step->executor);
    dispute_shape_free(step->dispute);
    executor_free(step->prepare);
    graph_free(step->graph);
    free(step->stored);
    script_trace_free(&step->model);
    script_trace_free(&step->objective);
    free(step);
}

/* Frozen weights stay as the file holds them where the graph can read them so. */
static uint8_t *stored_types(const struct session *s, const struct graph *g)
{
    uint8_t *stored = calloc(g->bound_count + 1, sizeof *stored);

    for (uint32_t i = 0; stored && i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        enum tensor_type type = n->type == TENSOR_F32 ? session_stored_type(s, graph_text(g, n->name), n->values) : TENSOR_F32;

        stored[i] = type != TENSOR_F32 && executor_may_store(g, i, type) ? (uint8_t)type : n->type;
    }
    return stored;
}

static uint64_t bound_bytes(const struct graph *g, const uint8_t *stored)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        uint64_t values;
        size_t bytes = 0;

        if (tensor_measure((enum tensor_type)stored[i], 1, &n->values, SIZE_MAX, &values, &bytes, NULL))
            total += bytes;
    }
    return total;
}

/* Outputs `p.X` and `s.X.Y` take the place of the inputs they update. */
static struct executor *make_executor(struct session *s, const struct graph *g, const uint8_t *stored, const struct cache *cache,
                                      graph_trace trace, void *trace_context, struct error *err)
{
    struct executor_alias *aliases = calloc(g->output_count + 1, sizeof *aliases);
    uint32_t finite[2];
    size_t count = 0, checked = 0;

    for (uint32_t i = 0; i < g->output_count; i++) {
        const char *name = graph_text(g, g->outputs[i].name);
        uint32_t place;

        if (checked < 2 && (strcmp(name, "loss") == 0 || strcmp(name, "norm") == 0))
            finite[checked++] = i;

        if (strncmp(name, "p.", 2) == 0)
            name += 2;
        else if (strncmp(name, "s.", 2) != 0)
            continue;
        if (graph_bound_find(g, name, &place) != GRAPH_NONE)
            aliases[count++] = (struct executor_alias){ i, place };
    }

    struct executor *ex = executor_new(g,
                                       &(struct executor_options){ .pool = s->pool,
                                                                   .memory = s->memory,
                                                                   .beside = bound_bytes(g, stored),
                                                                   .aliases = aliases,
                                                                   .alias_count = count,
                                                                   .finite = finite,
                                                                   .finite_count = checked,
                                                                   .stored = stored,
                                                                   .cache = cache,
                                                                   .trace = trace,
                                                                   .trace_context = trace_context },
                                       err);

    free(aliases);
    if (!ex && err->code == ERROR_LIMIT) { /* of this machine: it says nothing about the work */
        err->code = ERROR_MEMORY;
        error_at(err, "memory");
    }
    return ex;
}

/* Whole batches of rollouts are prepared by a graph of their own. */
static bool make_prepare(struct session *s, struct session_step *step, struct error *err)
{
    json_t *prepare = json_object_get(step->objective.meta, "prepare");

    if (!json_is_object(prepare))
        return true;

    const struct graph *g = bound_graph(&step->objective, json_object_get(prepare, "graph"), err);

    step->prepare = g ? executor_new(g, &(struct executor_options){ .pool = s->pool }, err) : NULL;
    return step->prepare != NULL;
}

static bool make_step(struct session *s, struct session_step *step, struct error *err)
{
    struct step_parts parts = { .model = &step->model,
                                .objective = &step->objective,
                                .optimiser = step->use == SESSION_MEASURE ? NULL : &s->inner,
                                .layout = &s->layout,
                                .lora_plus = s->adapter.plus,
                                .clip = step->clip,
                                .temperature = s->rollout.samples ? s->rollout.temperature : 1 };
    json_t *axes;

    if (!session_trace_model(s, step->rows, step->time, step->use == SESSION_TRAIN, &step->model, err))
        return error_at(err, "model");
    if (step->use == SESSION_EVALUATE) {
        step->graph = step_evaluation_graph(&step->model, parts.temperature, err);
    } else if (step->use == SESSION_CONTINUE) {
        step->graph = step_sampling_graph(&step->model, err);
        s->cache = step->graph && !s->cache ? cache_new(step->graph, "time", err) : s->cache;
        step->cache = s->cache;
        if (!step->cache)
            return error_at(err, "model");
    } else {
        axes = json_object_get(step->model.meta, "axes");

        struct script_objective_request request = {
            .batch = step->rows,
            .pair = step->rows / 2,
            .time = step->time,
            .vocab = json_integer_value(json_object_get(axes, "vocab")),
            .embed = json_integer_value(json_object_get(axes, "embed")),
            .prompt = s->rollout.samples ? step->rows / s->rollout.samples : 0,
            .sample = s->rollout.samples,
            .classes = json_integer_value(json_object_get(axes, "class")),
            .horizon = json_integer_value(json_object_get(axes, "horizon")),
            .quantile = json_integer_value(json_object_get(axes, "quantile")),
        };

        if (!script_trace_objective(&s->scripts[SESSION_OBJECTIVE].bundle, &request, &s->limits, &step->objective, err))
            return error_at(err, "objective");
        if (s->rules.packed && !(packs_model(&step->model, err) && packs_objective(&step->objective, "packing", err)))
            return error_at(err, "packing");
        if (json_is_true(json_object_get(s->spec, "coalesce")) && !packs_objective(&step->objective, "coalesce", err))
            return error_at(err, "coalesce");
        step->graph = step_graph(&parts, err);
        if (step->graph && !make_prepare(s, step, err))
            return error_at(err, "objective");
    }
    step->stored = step->graph ? stored_types(s, step->graph) : NULL;
    return step->stored != NULL;
}

struct executor *session_traced(struct session *s, const struct session_step *step, graph_trace see, void *context,
                                struct error *err)
{
    return make_executor(s, step->graph, step->stored, NULL, see, context, err);
}

static void unseen(void *context, uint32_t node, const void *bytes, size_t size)
{
    (void)context;
    (void)node;
    (void)bytes;
    (void)size;
}

bool session_step_bytes(struct session *s, int64_t rows, int64_t time, double clip, uint64_t *plain, uint64_t *traced,
                        struct error *err)
{
    const struct session_step *step = session_step(s, rows, time, SESSION_TRAIN, clip, err);
    const uint64_t most = s->memory;
    struct executor *ex;

    if (!step)
        return false;
    *plain = bound_bytes(step->graph, step->stored) + executor_bytes(step->executor);
    s->memory = 0; /* how much, not whether */
    ex = session_traced(s, step, unseen, NULL, err);
    s->memory = most;
    if (!ex)
        return false;
    *traced = bound_bytes(step->graph, step->stored) + executor_bytes(ex);
    executor_free(ex);
    return true;
}

/* What keeping a shape takes: its arena, and about what its graph and traces do. */
static uint64_t kept_bytes(const struct session_step *step)
{
    return (step->executor ? executor_bytes(step->executor) : 0) + (uint64_t)step->graph->node_count * 1024;
}

/* Makes room: shapes used longest ago go first; the one used now (the last) stays whatever it needs. */
static void forget_steps(struct session *s)
{
    uint64_t bytes = 0;
    size_t from = s->step_count;

    while (from > 0 && (from == s->step_count || bytes + kept_bytes(s->steps[from - 1]) <= s->arenas))
        bytes += kept_bytes(s->steps[--from]);
    for (size_t i = 0; i < from; i++)
        session_step_free(s->steps[i]);
    memmove(s->steps, s->steps + from, (s->step_count - from) * sizeof *s->steps);
    s->step_count -= from;
}

struct session_step *session_shape_kept(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                        struct error *err)
{
    struct session_step *step = NULL;

    for (size_t i = 0; i < s->step_count && !step; i++) {
        struct session_step *have = s->steps[i];

        if (have->rows != rows || have->time != time || have->use != use || have->clip != clip)
            continue;
        step = have;
        memmove(s->steps + i, s->steps + i + 1, (s->step_count - i - 1) * sizeof *s->steps);
        s->steps[s->step_count - 1] = step;
    }
    if (step)
        return step;
    step = calloc(1, sizeof *step);
    step->rows = rows;
    step->time = time;
    step->use = use;
    step->clip = clip;
    step->serial = ++s->serial;
    if (!make_step(s, step, err)) {
        session_step_free(step);
        return NULL;
    }
    s->steps = realloc(s->steps, (s->step_count + 1) * sizeof *s->steps);
    s->steps[s->step_count++] = step;
    forget_steps(s);
    return step;
}

const struct session_step *session_shape(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                         struct error *err)
{
    return session_shape_kept(s, rows, time, use, clip, err);
}

const struct session_step *session_step(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                        struct error *err)
{
    struct session_step *step = session_shape_kept(s, rows, time, use, clip, err);

    if (step && !step->executor) {
        step->executor = make_executor(s, step->graph, step->stored, step->cache, NULL, NULL, err);
        if (!step->executor)
            return NULL;
        forget_steps(s);
    }
    return step;
}
