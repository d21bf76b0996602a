#include "runtime/worker/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/graph/backward.h"
#include "native/graph/rewrite.h"
#include "runtime/worker/bound.h"

struct build {
    struct graph *g;
    const struct step_parts *parts;
    uint32_t logits; /* [batch time vocab], of the next token */
    uint32_t *model; /* node of g for each node of the model's graph */
    uint32_t *objective;
    uint32_t loss;
    struct {
        char name[GRAPH_NAME];
        uint32_t node;
    } wholes[4]; /* fields of both sides of pairs */
    size_t whole_count;
    struct error *err;
};

static uint32_t *splice(struct build *b, const struct graph *src, const struct graph_binding *bindings, size_t count)
{
    uint32_t *nodes = calloc(src->node_count + 1, sizeof *nodes);

    if (!nodes || !graph_splice(b->g, src, bindings, count, nodes, b->err)) {
        free(nodes);
        return NULL;
    }
    return nodes;
}

static bool shift(struct build *b, uint32_t x, int64_t by, uint32_t *y)
{
    return graph_add(b->g,
                     &(struct graph_request){ .op = OPERATOR_SHIFT,
                                              .inputs = &x,
                                              .input_count = 1,
                                              .axes = &(struct graph_word){ "time", 0 },
                                              .axes_count = 1,
                                              .integers = &by,
                                              .integers_count = 1 },
                     y, b->err);
}

static bool rename_axis(struct build *b, uint32_t x, const char *from, const char *to, uint32_t *y)
{
    const struct graph_word axes[2] = { { from, 0 }, { to, 0 } };

    return graph_add(
        b->g, &(struct graph_request){ .op = OPERATOR_RENAME, .inputs = &x, .input_count = 1, .axes = axes, .axes_count = 2 }, y,
        b->err);
}

static bool find_output(struct build *b, const struct graph *src, const uint32_t *nodes, const char *name, uint32_t *node)
{
    uint32_t at = graph_output_find(src, name);

    if (at == GRAPH_NONE)
        return error_set(b->err, ERROR_MISSING, NULL, "the trace has no output %s", name);
    *node = nodes[at];
    return true;
}

static bool reads(const struct script_trace *trace, const char *data)
{
    const char *own = json_string_value(json_object_get(trace->meta, "data"));

    return own && strcmp(own, data) == 0;
}

/* Splices the model; its logits (of series its forecast) and ids by name. */
static bool add_model(struct build *b, const struct script_trace *model, uint32_t *logits, uint32_t *ids)
{
    const struct graph *src = bound_graph(model, json_object_get(model->meta, "graph"), b->err);

    b->model = src ? splice(b, src, NULL, 0) : NULL;
    if (!b->model || !find_output(b, src, b->model, reads(model, "series") ? "forecast" : "logits", logits))
        return false;
    *ids = graph_bound_find(b->g, "ids", NULL);
    if (b->parts && (reads(model, "images") || reads(model, "series")))
        return true;
    return *ids != GRAPH_NONE ||
           error_set(b->err, ERROR_UNSUPPORTED, NULL, "a model that reads no ids has no token log-probabilities");
}

/* logits / temperature. */
static bool cool(struct build *b, double temperature, uint32_t *logits)
{
    uint32_t t;

    return temperature == 0 || temperature == 1 ||
           (graph_constant(b->g, TENSOR_F32, temperature, &t, b->err) &&
            graph_binary(b->g, OPERATOR_DIV, *logits, t, logits, b->err));
}

/* log p(token t | tokens before it) [batch time], 0 at t = 0. */
static bool add_logprobs(struct build *b, uint32_t logits, uint32_t ids, uint32_t *logprobs)
{
    uint32_t next, scored, moved;

    return shift(b, ids, -1, &next) &&
           graph_over(b->g, OPERATOR_TOKEN_LOGPROB, logits, next, GRAPH_NONE, "vocab", &scored, b->err) &&
           shift(b, scored, 1, &moved) && rename_axis(b, moved, "row", "batch", logprobs);
}

/* Of images and series: what the model gives, and data of the batch. */
static bool add_whole_field(struct build *b, const char *field, uint32_t result, uint32_t *node)
{
    const bool series = reads(b->parts->model, "series");

    return strcmp(field, series ? "b.forecast" : "b.logits") == 0 && rename_axis(b, result, "row", "batch", node);
}

/* Of pairs the first half of the rows is chosen, the second rejected: x [batch ...] to [pair ...] of one side. */
static bool take_side(struct build *b, uint32_t x, bool rejected, uint32_t *y)
{
    const struct graph_word halves[3] = { { "batch", 0 }, { "side", 2 }, { "pair", 0 } }, side = { "side", 0 };
    const int64_t which = rejected;
    uint32_t split;

    return graph_add(
               b->g,
               &(struct graph_request){ .op = OPERATOR_SPLIT, .inputs = &x, .input_count = 1, .axes = halves, .axes_count = 3 },
               &split, b->err) &&
           graph_add(b->g,
                     &(struct graph_request){ .op = OPERATOR_AT,
                                              .inputs = &split,
                                              .input_count = 1,
                                              .axes = &side,
                                              .axes_count = 1,
                                              .integers = &which,
                                              .integers_count = 1 },
                     y, b->err);
}

/* "b.chosen.mask" -> "b.mask", and which side; false for a field of the whole batch. */
static bool side_field(const char *field, char whole[GRAPH_NAME], bool *rejected)
{
    *rejected = strncmp(field, "b.rejected.", 11) == 0;
    if (!*rejected && strncmp(field, "b.chosen.", 9) != 0)
        return false;
    snprintf(whole, GRAPH_NAME, "b.%s", field + (*rejected ? 11 : 9));
    return true;
}

static bool add_field(struct build *b, const char *field, uint32_t logits, uint32_t ids, uint32_t *node);

/* Both sides are taken from one node, so that its gradient is worked out once. */
static bool whole_field(struct build *b, const char *field, uint32_t logits, uint32_t ids, uint32_t *node)
{
    for (size_t i = 0; i < b->whole_count; i++)
        if (strcmp(b->wholes[i].name, field) == 0) {
            *node = b->wholes[i].node;
            return true;
        }
    if (!add_field(b, field, logits, ids, node))
        return false;
    if (b->whole_count < sizeof b->wholes / sizeof *b->wholes) {
        snprintf(b->wholes[b->whole_count].name, sizeof b->wholes->name, "%s", field);
        b->wholes[b->whole_count++].node = *node;
    }
    return true;
}

/* A field of the objective that is worked out from the model; false with code none when it is an input instead. */
static bool add_field(struct build *b, const char *field, uint32_t logits, uint32_t ids, uint32_t *node)
{
    char whole[GRAPH_NAME];
    bool rejected;
    uint32_t moved;

    if (side_field(field, whole, &rejected))
        return whole_field(b, whole, logits, ids, &moved) && take_side(b, moved, rejected, node);
    if (ids == GRAPH_NONE)
        return add_whole_field(b, field, logits, node);
    if (strcmp(field, "b.logprobs") == 0)
        return add_logprobs(b, logits, ids, node);
    if (strcmp(field, "b.logits") == 0)
        return shift(b, logits, 1, &moved) && rename_axis(b, moved, "row", "batch", node);
    if (strcmp(field, "b.entropy") == 0) {
        uint32_t logp, p, product, sum, minus;

        return graph_over(b->g, OPERATOR_LOG_SOFTMAX, logits, GRAPH_NONE, GRAPH_NONE, "vocab", &logp, b->err) &&
               graph_unary(b->g, OPERATOR_EXP, logp, &p, b->err) && graph_binary(b->g, OPERATOR_MUL, p, logp, &product, b->err) &&
               graph_over(b->g, OPERATOR_SUM, product, GRAPH_NONE, GRAPH_NONE, "vocab", &sum, b->err) &&
               graph_unary(b->g, OPERATOR_NEG, sum, &minus, b->err) && shift(b, minus, 1, &moved) &&
               rename_axis(b, moved, "row", "batch", node);
    }
    return false;
}

/* Whether a field comes with the batch, as what `prepare` returned does. */
static bool is_data(const struct script_trace *objective, const char *field)
{
    static const char *const known[] = { "b.ids",         "b.mask",  "b.scored",    "b.bytes",        "b.progress",
                                         "b.reward",      "b.valid", "b.truncated", "b.old_logprobs", "b.sampler_logprobs",
                                         "b.ref_logprobs" };
    static const char *const of_images[] = { "b.label", "b.progress", NULL }, *const of_series[] = { "b.target", "b.observed",
                                                                                                     "b.progress", NULL };
    const char *const *whole = reads(objective, "images") ? of_images : reads(objective, "series") ? of_series : NULL;
    char of_side[GRAPH_NAME];
    json_t *output;
    size_t index;
    bool rejected;

    if (side_field(field, of_side, &rejected))
        field = of_side;
    for (; whole && *whole; whole++)
        if (strcmp(*whole, field) == 0)
            return true;
    if (reads(objective, "images") || reads(objective, "series"))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], field) == 0)
            return true;
    json_array_foreach(json_object_get(json_object_get(objective->meta, "prepare"), "outputs"), index, output)
    {
        const char *name = json_string_value(json_object_get(output, "name"));

        if (name && strcmp(name, field) == 0)
            return true;
    }
    return false;
}

/* A batch of rollouts is prepared before its first step (rollouts.h), from what comes with it alone. */
static bool may_prepare(const struct script_trace *objective, struct error *err)
{
    json_t *prepare = json_object_get(objective->meta, "prepare"), *input;
    const char *data = json_string_value(json_object_get(objective->meta, "data"));
    size_t index;

    if (!json_is_object(prepare))
        return true;
    if (!data || strcmp(data, "rollouts") != 0)
        return error_set(err, ERROR_UNSUPPORTED, "objectives on rollouts may have one", "`prepare` of an objective on %s",
                         data ? data : "nothing");
    json_array_foreach(json_object_get(prepare, "inputs"), index, input)
    {
        const char *name = json_string_value(json_object_get(input, "name"));

        if (!name || !is_data(objective, name))
            return error_set(err, ERROR_UNSUPPORTED, "rewards, masks, ids and kept log-probabilities can be read there",
                             "`prepare` reads %s", name ? name : "nothing");
    }
    return true;
}

static bool add_objective(struct build *b, uint32_t logits, uint32_t ids)
{
    const struct script_trace *objective = b->parts->objective;
    json_t *loss = json_object_get(objective->meta, "loss");
    const struct graph *src = bound_graph(objective, json_object_get(loss, "graph"), b->err);
    struct graph_binding bindings[16];
    size_t count = 0;

    if (!src)
        return false;
    if (!may_prepare(objective, b->err))
        return false;
    for (uint32_t i = 0; i < src->bound_count; i++) {
        const char *name = graph_text(src, src->nodes[src->bound[i]].name);

        if (is_data(objective, name))
            continue;
        error_clear(b->err);
        if (count == 16 || !add_field(b, name, logits, ids, &bindings[count].node)) {
            if (b->err->code != ERROR_NONE)
                return false;
            return error_set(
                b->err, ERROR_UNSUPPORTED,
                "logprobs, logits, entropy, ids, mask, scored, bytes and progress can be read; of images logits and label, "
                "of series forecast, target and observed",
                "the objective reads %s", name);
        }
        bindings[count++].name = name;
    }
    b->objective = splice(b, src, bindings, count);
    return b->objective != NULL;
}

/* Adds coef * sum / count of each term to *total (GRAPH_NONE at first). `count` may be absent: then the sum alone. */
static bool add_terms(struct build *b, json_t *terms, const struct graph *src, const uint32_t *nodes, uint32_t *total)
{
    json_t *term;
    size_t index;

    json_array_foreach(terms, index, term)
    {
        const char *sum_name = json_string_value(json_object_get(term, "sum")),
                   *count_name = json_string_value(json_object_get(term, "count"));
        json_t *coef = json_object_get(term, "coef");
        double factor = json_decimal(coef, coef ? 0 : 1);
        uint32_t sum = GRAPH_NONE, count = GRAPH_NONE, value, k;

        if (!find_output(b, src, nodes, sum_name ? sum_name : "of a term", &sum))
            return false;
        value = sum;
        if (count_name &&
            (!find_output(b, src, nodes, count_name, &count) || !graph_binary(b->g, OPERATOR_DIV, sum, count, &value, b->err)))
            return false;
        if (factor != 1 && (!graph_constant(b->g, TENSOR_F32, factor, &k, b->err) ||
                            !graph_binary(b->g, OPERATOR_MUL, value, k, &value, b->err)))
            return false;
        if (*total != GRAPH_NONE && !graph_binary(b->g, OPERATOR_ADD, *total, value, &value, b->err))
            return false;
        *total = value;
    }
    return true;
}

static bool add_loss(struct build *b)
{
    const struct script_trace *objective = b->parts->objective, *model = b->parts->model;
    json_t *loss = json_object_get(objective->meta, "loss"), *metric;
    const struct graph *src = objective->graphs[json_integer_value(json_object_get(loss, "graph"))];
    size_t index;

    b->loss = GRAPH_NONE;
    if (!add_terms(b, json_object_get(loss, "terms"), src, b->objective, &b->loss) ||
        !add_terms(b, json_object_get(model->meta, "aux"), model->graphs[0], b->model, &b->loss))
        return false;
    if (b->loss == GRAPH_NONE)
        return error_set(b->err, ERROR_SCRIPT, NULL, "the objective's loss has no term");
    if (!graph_output(b->g, "loss", b->loss, b->err))
        return false;
    json_array_foreach(json_object_get(loss, "metrics"), index, metric)
    {
        uint32_t value = GRAPH_NONE;
        char name[GRAPH_NAME];

        snprintf(name, sizeof name, "metric.%s", json_string_value(json_object_get(metric, "name")));
        if (!add_terms(b, json_object_get(metric, "terms"), src, b->objective, &value) ||
            (value != GRAPH_NONE && !graph_output(b->g, name, value, b->err)))
            return false;
    }
    return true;
}

/* The sum of every element. */
static bool sum_all(struct build *b, uint32_t x, uint32_t *sum)
{
    const struct graph_node *n = &b->g->nodes[x];
    struct graph_word axes[GRAPH_AXES];

    for (unsigned i = 0; i < n->rank; i++)
        axes[i] = (struct graph_word){ graph_text(b->g, n->axis[i].name), 0 };
    return graph_add(
        b->g, &(struct graph_request){ .op = OPERATOR_SUM, .inputs = &x, .input_count = 1, .axes = axes, .axes_count = n->rank },
        sum, b->err);
}

/* norm = √ Σ over parameters of Σ g²; g ← g · clip / max(norm, clip). */
static bool add_clip(struct build *b, uint32_t *gradients)
{
    uint32_t total = GRAPH_NONE, norm, limit, most, factor;

    for (size_t i = 0; i < b->parts->layout->count; i++) {
        uint32_t square, sum;

        if (!graph_unary(b->g, OPERATOR_SQUARE, gradients[i], &square, b->err) || !sum_all(b, square, &sum) ||
            (total != GRAPH_NONE && !graph_binary(b->g, OPERATOR_ADD, total, sum, &sum, b->err)))
            return false;
        total = sum;
    }
    if (!graph_unary(b->g, OPERATOR_SQRT, total, &norm, b->err) || !graph_output(b->g, "norm", norm, b->err))
        return false;
    if (b->parts->clip <= 0)
        return true;
    if (!graph_constant(b->g, TENSOR_F32, b->parts->clip, &limit, b->err) ||
        !graph_binary(b->g, OPERATOR_MAXIMUM, norm, limit, &most, b->err) ||
        !graph_binary(b->g, OPERATOR_DIV, limit, most, &factor, b->err))
        return false;
    for (size_t i = 0; i < b->parts->layout->count; i++)
        if (!graph_binary(b->g, OPERATOR_MUL, gradients[i], factor, &gradients[i], b->err))
            return false;
    return true;
}

/* The input `s.PARAMETER.NAME` of a state. */
static bool add_state(struct build *b, const char *parameter, json_t *state, uint32_t *node)
{
    char name[GRAPH_NAME];
    const char *type = json_string_value(json_object_get(state, "type"));
    enum tensor_type t = TENSOR_F32;

    if (type && !tensor_type_find(type, &t))
        return error_set(b->err, ERROR_TYPE, NULL, "a state of unknown type %s", type);
    snprintf(name, sizeof name, "s.%s.%s", parameter, json_string_value(json_object_get(state, "name")));
    return graph_input(b->g, name, t, json_string_value(json_object_get(state, "axes")), node, b->err);
}

static bool add_update(struct build *b, json_t *entry, const char *parameter, uint32_t p, uint32_t g, uint32_t lr)
{
    const struct script_trace *optimiser = b->parts->optimiser;
    json_t *states = json_object_get(entry, "state"), *state;
    const struct graph *src = bound_graph(optimiser, json_object_get(entry, "step"), b->err);
    struct graph_binding bindings[35];
    char names[32][GRAPH_NAME], out[GRAPH_NAME];
    size_t count = 0, index;

    if (!src)
        return false;
    if (json_array_size(states) > 32)
        return error_set(b->err, ERROR_LIMIT, NULL, "an optimiser with %zu states", json_array_size(states));
    bindings[count++] = (struct graph_binding){ "p", p };
    bindings[count++] = (struct graph_binding){ "g", g };
    bindings[count++] = (struct graph_binding){ "lr", lr };
    json_array_foreach(states, index, state)
    {
        snprintf(names[index], sizeof names[index], "s.%s", json_string_value(json_object_get(state, "name")));
        if (!add_state(b, parameter, state, &bindings[count].node))
            return false;
        bindings[count++].name = names[index];
    }
    for (size_t i = 0; i < count;) /* a script may leave inputs unread: those are not bound */
        if (graph_bound_find(src, bindings[i].name, NULL) == GRAPH_NONE)
            bindings[i] = bindings[--count];
        else
            i++;

    uint32_t *nodes = splice(b, src, bindings, count), node = GRAPH_NONE;
    bool ok = nodes != NULL;

    snprintf(out, sizeof out, "p.%s", parameter);
    ok = ok && find_output(b, src, nodes, "p", &node) && graph_output(b->g, out, node, b->err);
    json_array_foreach(states, index, state)
    {
        char name[GRAPH_NAME];

        snprintf(name, sizeof name, "s.%s", json_string_value(json_object_get(state, "name")));
        snprintf(out, sizeof out, "s.%s.%s", parameter, json_string_value(json_object_get(state, "name")));
        ok = ok && find_output(b, src, nodes, name, &node) && graph_output(b->g, out, node, b->err);
    }
    free(nodes);
    return ok;
}

static json_t *find_entry(json_t *list, const char *name)
{
    json_t *entry;
    size_t index;

    json_array_foreach(list, index, entry) if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return entry;
    return NULL;
}

/* LoRA+ (arXiv 2402.12354): B learns faster than A, whatever the optimiser. */
static bool plus_rate(struct build *b, uint32_t lr, uint32_t *plus)
{
    uint32_t ratio;

    *plus = lr;
    return b->parts->lora_plus == 0 || b->parts->lora_plus == 1 ||
           (graph_constant(b->g, TENSOR_F32, b->parts->lora_plus, &ratio, b->err) &&
            graph_binary(b->g, OPERATOR_MUL, lr, ratio, plus, b->err));
}

static bool is_lora_b(const struct layout_parameter *parameter)
{
    const char *role = json_string_value(json_object_get(parameter->meta, "role"));

    return role && strcmp(role, "lora_b") == 0;
}

static bool add_training(struct build *b)
{
    const struct layout *l = b->parts->layout;
    uint32_t *parameters = calloc(l->count, sizeof *parameters), *gradients = calloc(l->count, sizeof *gradients), lr, plus;
    json_t *entries = json_object_get(b->parts->optimiser->meta, "params");
    bool ok = true;

    for (size_t i = 0; ok && i < l->count; i++) {
        parameters[i] = graph_bound_find(b->g, l->parameters[i].name, NULL);
        ok = parameters[i] != GRAPH_NONE ||
             error_set(b->err, ERROR_MISSING, NULL, "the model's graph does not read %s", l->parameters[i].name);
    }
    ok = ok && graph_backward(b->g, b->loss, parameters, l->count, gradients, b->err) && add_clip(b, gradients) &&
         graph_input(b->g, "lr", TENSOR_F32, "", &lr, b->err) && plus_rate(b, lr, &plus);
    for (size_t i = 0; ok && i < l->count; i++) {
        json_t *entry = find_entry(entries, l->parameters[i].name);

        ok = (entry || error_set(b->err, ERROR_MISSING, NULL, "the optimiser has no step for %s", l->parameters[i].name)) &&
             add_update(b, entry, l->parameters[i].name, parameters[i], gradients[i], is_lora_b(&l->parameters[i]) ? plus : lr);
    }
    free(parameters);
    free(gradients);
    return ok;
}

static struct graph *finish(struct build *b, bool ok)
{
    struct graph *canonical = ok ? graph_rewrite(b->g, NULL, b->err) : NULL;

    graph_free(b->g);
    free(b->model);
    free(b->objective);
    return canonical;
}

/* Text by text; images by images, series by series. */
static bool same_data(const struct step_parts *parts, struct error *err)
{
    const char *model = json_string_value(json_object_get(parts->model->meta, "data"));
    const char *objective = json_string_value(json_object_get(parts->objective->meta, "data"));
    const bool whole = reads(parts->model, "images") || reads(parts->model, "series") || reads(parts->objective, "images") ||
                       reads(parts->objective, "series");

    return !whole || (model && objective && strcmp(model, objective) == 0) ||
           error_set(err, ERROR_UNSUPPORTED, "classify goes with a model of images, forecast with one of series",
                     "a model of %s under an objective on %s", model ? model : "nothing", objective ? objective : "nothing");
}

struct graph *step_graph(const struct step_parts *parts, struct error *err)
{
    struct build b = { .g = graph_new(NULL), .parts = parts, .err = err };
    uint32_t logits, ids;
    bool ok = same_data(parts, err) && add_model(&b, parts->model, &logits, &ids) && cool(&b, parts->temperature, &logits) &&
              add_objective(&b, logits, ids) && add_loss(&b) && (!parts->optimiser || add_training(&b));

    return finish(&b, ok);
}

struct graph *step_evaluation_graph(const struct script_trace *model, double temperature, struct error *err)
{
    struct build b = { .g = graph_new(NULL), .err = err };
    uint32_t logits, ids, logprobs, best, next, equal, moved, named;
    bool ok = add_model(&b, model, &logits, &ids) && cool(&b, temperature, &logits) && add_logprobs(&b, logits, ids, &logprobs) &&
              graph_over(b.g, OPERATOR_ARGMAX, logits, GRAPH_NONE, GRAPH_NONE, "vocab", &best, err) &&
              shift(&b, ids, -1, &next) && graph_binary(b.g, OPERATOR_EQ, best, next, &equal, err) &&
              shift(&b, equal, 1, &moved) && rename_axis(&b, moved, "row", "batch", &named) &&
              graph_output(b.g, "logprobs", logprobs, err) && graph_output(b.g, "best", named, err);

    return finish(&b, ok);
}

struct graph *step_sampling_graph(const struct script_trace *model, struct error *err)
{
    struct build b = { .g = graph_new(NULL), .err = err };
    uint32_t logits, ids;
    bool ok = add_model(&b, model, &logits, &ids) && graph_output(b.g, "logits", logits, err);

    return finish(&b, ok);
}
