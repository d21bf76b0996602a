#include "runtime/worker/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/finite.h"
#include "runtime/worker/bound.h"

bool training_new(struct training *t, struct session *s, float *values, double clip, struct error *err)
{
    *t = (struct training){ .session = s, .values = values, .clip = clip };
    return states_new(&t->states, s, &s->inner, values, err);
}

static void bound_free(struct training_bound *b)
{
    free(b->inputs);
    free(b->fields);
    free(b->outputs);
    free(b->spare);
    *b = (struct training_bound){ 0 };
}

void training_free(struct training *t)
{
    for (size_t i = 0; i < t->bound_count; i++)
        bound_free(&t->bound[i]);
    free(t->bound);
    states_free(&t->states);
    *t = (struct training){ 0 };
}

bool training_input(struct session *s, const struct session_step *step, uint32_t i, const float *values, const void **data,
                    const char **field, struct error *err)
{
    static const char *const model_fields[] = { "ids", "position", "segment", "real", "image", "series", "observed" };
    const struct graph *g = step->graph;
    const char *name = graph_text(g, g->nodes[g->bound[i]].name);
    long place = layout_find(&s->layout, name);
    uint64_t count = (uint64_t)(step->rows * step->time);
    bool extra;

    *data = NULL;
    *field = NULL;
    for (size_t k = 0; k < sizeof model_fields / sizeof *model_fields; k++)
        if (strcmp(name, model_fields[k]) == 0)
            *field = model_fields[k];
    if (strncmp(name, "b.", 2) == 0)
        *field = batch_input(name);
    extra = *field && (s->rollout.samples > 0 || s->rules.pairs ||
                       s->rules.kind != BATCH_TOKENS); /* fill_fields compares sizes, which are not all [batch time] */
    if (place >= 0) {
        *data = values + s->layout.parameters[place].offset;
        count = s->layout.parameters[place].values;
    } else if (!*field) {
        *data = step->stored[i] == g->nodes[g->bound[i]].type ? session_weight(s, name, &count, err)
                                                              : session_stored_weight(s, name, &count, err);
    }
    return (*data || *field) && (extra || bound_fits(g, g->bound[i], count * sizeof(float), err));
}

static bool bind_output(struct training *t, const struct graph *g, uint32_t i, struct training_bound *b, struct error *err)
{
    const char *name = graph_text(g, g->outputs[i].name);
    const struct state_slot *slot = states_find(&t->states, name);
    long place = strncmp(name, "p.", 2) == 0 ? layout_find(&t->session->layout, name + 2) : -1;
    uint64_t size = sizeof(float);

    if (slot) {
        b->outputs[i] = slot->data;
        size = slot->size;
    } else if (place >= 0) {
        b->outputs[i] = t->values + t->session->layout.parameters[place].offset;
        size = t->session->layout.parameters[place].values * sizeof(float);
    } else {
        b->outputs[i] = strcmp(name, "loss") == 0 ? &t->loss : strcmp(name, "norm") == 0 ? &t->norm : &b->spare[i];
    }
    return bound_fits(g, g->outputs[i].node, size, err);
}

static bool bind_step(struct training *t, const struct session_step *step, struct training_bound *b, struct error *err)
{
    const struct graph *g = step->graph;

    *b = (struct training_bound){ .rows = step->rows, .time = step->time, .serial = step->serial, .step = step };
    b->inputs = calloc(g->bound_count + 1, sizeof *b->inputs);
    b->fields = calloc(g->bound_count + 1, sizeof *b->fields);
    b->outputs = calloc(g->output_count + 1, sizeof *b->outputs);
    b->spare = calloc(g->output_count + 1, sizeof *b->spare);
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);
        float *number = strcmp(name, "lr") == 0 ? &t->lr : strcmp(name, "b.progress") == 0 ? &t->progress : NULL;
        const struct state_slot *slot = states_find(&t->states, name);

        b->inputs[i] = slot ? slot->data : number;
        if (!(b->inputs[i] ? bound_fits(g, g->bound[i], slot ? slot->size : sizeof *number, err)
                           : training_input(t->session, step, i, t->values, &b->inputs[i], &b->fields[i], err)))
            return error_at(err, "%s", name);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        if (!bind_output(t, g, i, b, err))
            return error_at(err, "%s", graph_text(g, g->outputs[i].name));
    return true;
}

/* The binding of this shape's executor; made anew when the session has made that anew. */
static struct training_bound *find_bound(struct training *t, int64_t rows, int64_t time, struct error *err)
{
    const struct session_step *step = session_step(t->session, rows, time, SESSION_TRAIN, t->clip, err);
    struct training_bound *b = NULL;

    if (!step)
        return NULL;
    for (size_t i = 0; i < t->bound_count && !b; i++)
        if (t->bound[i].rows == rows && t->bound[i].time == time)
            b = &t->bound[i];
    if (b && b->serial == step->serial)
        return b;
    if (!b) {
        t->bound = realloc(t->bound, (t->bound_count + 1) * sizeof *t->bound);
        b = &t->bound[t->bound_count++];
        *b = (struct training_bound){ 0 };
    }
    bound_free(b);
    return bind_step(t, step, b, err) ? b : NULL;
}

static bool fill_fields(const struct training_bound *b, const struct batch *batch, struct error *err)
{
    const struct graph *g = b->step->graph;

    for (uint32_t i = 0; i < g->bound_count; i++)
        if (b->fields[i]) {
            b->inputs[i] = batch_field(batch, b->fields[i]);
            if (!bound_fits(g, g->bound[i], batch_field_count(batch, b->fields[i]) * sizeof(float), err))
                return error_at(err, "b.%s", b->fields[i]);
        }
    return true;
}

/* Which operator first gave what is not finite, and the parameter before it. Values and states are those before the step, since what is to be
 * finite is known before they are written. */
static void explain_fault(const struct training *t, const struct training_bound *b, const struct batch *batch, struct error *err)
{
    const struct graph *g = b->step->graph;
    uint32_t node = finite_first_fault(g, t->session->pool, b->step->stored, b->inputs, &t->random);
    uint32_t parameter = node == GRAPH_NONE ? GRAPH_NONE : finite_nearest_parameter(g, node);
    const char *hint = batch->trained ? "lower the learning rate" : "no token of the batch is trained: see rondo data preview";
    char shape[GRAPH_SHOW], told[sizeof err->message];

    snprintf(told, sizeof told, "%s", err->message);
    if (node == GRAPH_NONE) {
        error_set(err, ERROR_NON_FINITE, hint, "%s", told);
        return;
    }

    const struct graph_node *n = &g->nodes[node];

    error_set(err, ERROR_NON_FINITE, hint, "%s: %s %s%s%s is the first value that is not%s%s", told, operator_table[n->op].name,
              graph_show(g, node, shape, sizeof shape), n->note == GRAPH_NONE ? "" : " at ",
              n->note == GRAPH_NONE ? "" : graph_text(g, n->note), parameter == GRAPH_NONE ? "" : ", after ",
              parameter == GRAPH_NONE ? "" : graph_text(g, g->nodes[parameter].name));
}

/* With the step's own executor, or one that shows its values. */
static bool step_run(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see, void *context,
                     struct error *err)
{
    struct training_bound *b = find_bound(t, batch->rows, batch->time, err);
    uint64_t at;

    if (!b || !fill_fields(b, batch, err))
        return false;
    t->last = (size_t)(b - t->bound);
    t->lr = (float)lr;
    t->progress = (float)progress;

    struct executor *traced = see ? session_traced(t->session, b->step, see, context, err) : NULL;

    if (see && !traced)
        return false;

    bool ok = executor_run(traced ? traced : b->step->executor, b->inputs, b->outputs, &t->random, err);

    executor_free(traced);
    if (!ok && err->code != ERROR_NON_FINITE)
        return false;
    if (!ok)
        explain_fault(t, b, batch, err);
    else if (!tensor_finite_f32(&t->loss, 1, &at) || !tensor_finite_f32(&t->norm, 1, &at))
        ok = error_set(err, ERROR_NON_FINITE, NULL, "the loss or the gradient's norm is not finite");
    if (!ok)
        return error_at(err, "step %llu", (unsigned long long)t->random.step);
    t->random.step++;
    return true;
}

bool training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err)
{
    return step_run(t, batch, lr, progress, NULL, NULL, err);
}

bool training_step_seen(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see, void *context,
                        struct error *err)
{
    return step_run(t, batch, lr, progress, see, context, err);
}

json_t *training_metrics(const struct training *t)
{
    json_t *metrics = json_object();

    if (t->bound_count == 0)
        return metrics;

    const struct training_bound *b = &t->bound[t->last];
    const struct graph *g = b->step->graph;

    for (uint32_t i = 0; i < g->output_count; i++) {
        const char *name = graph_text(g, g->outputs[i].name);

        if (strncmp(name, "metric.", 7) == 0) /* json_real refuses what is not finite: such a metric is left out */
            json_object_set_new(metrics, name + 7, json_real((double)b->spare[i]));
    }
    return metrics;
}

struct hash training_root(const struct training *t)
{
    size_t count;
    struct named_tensor *tensors = states_tensors(&t->states, &t->session->layout, t->values, &count);
    struct error err = { 0 };
    struct hash root = { 0 };

    if (!root_of_state(tensors, count, &root, &err))
        abort(); /* names are distinct and sorted, sizes were measured */
    free(tensors);
    return root;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_tensor *)a)->name, ((const struct named_tensor *)b)->name);
}

struct hash batch_root(const struct batch *b)
{
    static const struct {
        const char *name;
        enum tensor_code code;
    } fields[] = { { "bytes", CODE_F32 }, { "ids", CODE_I32 },    { "mask", CODE_F32 },   { "position", CODE_I32 },
                   { "real", CODE_F32 },  { "scored", CODE_F32 }, { "segment", CODE_I32 } };
    enum { FIELDS = sizeof fields / sizeof *fields };
    struct named_tensor *tensors = calloc(FIELDS + b->extra_count, sizeof *tensors);
    struct error err = { 0 };
    struct hash root = { 0 };

    for (size_t i = 0; i < FIELDS; i++)
        tensors[i] = (struct named_tensor){ .name = fields[i].name,
                                            .code = fields[i].code,
                                            .rank = 2,
                                            .dims = { (uint64_t)b->rows, (uint64_t)b->time },
                                            .bytes = batch_field(b, fields[i].name) };
    for (size_t i = 0; i < b->extra_count; i++)
        tensors[FIELDS + i] = (struct named_tensor){
            .name = b->extra[i].name, .code = CODE_F32, .rank = 1, .dims = { b->extra[i].count }, .bytes = b->extra[i].data
        };
    qsort(tensors, FIELDS + b->extra_count, sizeof *tensors, by_name);
    if (!root_of_state(tensors, FIELDS + b->extra_count, &root, &err))
        abort();
    free(tensors);
    return root;
}

bool training_logprobs(struct session *s, const float *values, const struct batch *b, float *logprobs, float *best,
                       struct error *err)
{
    const struct session_step *step = session_step(s, b->rows, b->time, SESSION_EVALUATE, 0, err);

    if (!step)
        return false;

    const struct graph *g = step->graph;
    size_t count = (size_t)(b->rows * b->time);
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void *outputs[2] = { logprobs, best };
    bool ok = true;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *field;

        ok = training_input(s, step, i, values, &inputs[i], &field, err);
        if (ok && field)
            inputs[i] = batch_field(b, field);
    }
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        ok = bound_fits(g, g->outputs[i].node, count * sizeof(float), err);
    ok = ok && executor_run(step->executor, inputs, outputs, NULL, err);
    free(inputs);
    return ok;
}

bool evaluate_batch(struct session *s, const float *values, const struct batch *b, struct evaluation *sum, bool *row_exact,
                    struct error *err)
{
    size_t count = (size_t)(b->rows * b->time);
    float *logprobs = malloc(count * sizeof *logprobs), *best = malloc(count * sizeof *best);
    bool ok = training_logprobs(s, values, b, logprobs, best, err);

    for (int64_t row = 0; ok && row < b->rows; row++) {
        bool exact = true;

        for (size_t i = (size_t)(row * b->time); i < (size_t)((row + 1) * b->time); i++)
            if (b->mask[i] > 0) {
                sum->loss -= (double)b->mask[i] * (double)logprobs[i];
                sum->weight += (double)b->mask[i];
                exact = exact && best[i] == 1;
            }
        sum->rows++;
        sum->exact += exact;
        if (row_exact)
            row_exact[row] = exact;
    }
    free(logprobs);
    free(best);
    return ok;
}
