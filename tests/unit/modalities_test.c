/* Models of images and of time series under their objectives: twenty steps of gradient descent against PyTorch in binary64
 * (tools/oracle/modalities.py, tests/golden/modalities.json). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"
#include "native/graph/execute.h"
#include "runtime/worker/step.h"
#include "tests/fixture/fixture.h"

enum { ROWS = 3, TIME = 15 };
#define RATE 0.05f
#define CLIP 1.0

/* A step of one model under one objective: its parts, its graph, and memory for what is bound and given out. */
struct descent {
    const json_t *c;
    struct script_trace model, objective, optimiser;
    struct layout layout;
    struct graph *g;
    struct executor *executor;
    void **inputs, **outputs;
};

static struct script_set read_script(const char *folder, const char *name)
{
    struct script_set set;
    struct error err = { 0 };
    char path[256];

    snprintf(path, sizeof path, "%s/scripts/%s/%s.lua", RONDO_SOURCE, folder, name);
    FIXTURE_OK(script_set_read(RONDO_SOURCE "/scripts", path, NULL, &set, &err), &err);
    return set;
}

static int64_t size_of(const struct descent *d, const char *axis)
{
    return json_integer_value(json_object_get(json_object_get(d->model.meta, "axes"), axis));
}

static void trace_all(struct descent *d, json_t *options)
{
    json_t *config = json_object_get(d->c, "config"), *sizes = json_pack("{s:i, s:i}", "height", 8, "width", 8), *metas;
    const bool series = json_object_get(config, "horizon") != NULL;
    struct script_set model = read_script("models", json_string_value(json_object_get(d->c, "script"))),
                      objective = read_script("objectives", json_string_value(json_object_get(d->c, "objective"))),
                      optimiser = read_script("optimisers", "sgd");
    struct script_model_request request = {
        .config = config, .rows = ROWS, .time = series ? TIME : 0, .sizes = series ? NULL : sizes, .train_all = true
    };
    struct error err = { 0 };

    FIXTURE_OK(script_trace_model(&model.bundle, &request, NULL, &d->model, &err), &err);
    FIXTURE_OK(layout_new(&d->layout, d->model.meta, &err), &err);
    metas = layout_metas(&d->layout);
    FIXTURE_OK(script_trace_optimiser(&optimiser.bundle, metas, false, NULL, &d->optimiser, &err), &err);
    objective.bundle.options = options;

    struct script_objective_request wanted = { .batch = ROWS,
                                               .embed = size_of(d, "embed"),
                                               .classes = size_of(d, "class"),
                                               .horizon = size_of(d, "horizon"),
                                               .quantile = size_of(d, "quantile") };

    FIXTURE_OK(script_trace_objective(&objective.bundle, &wanted, NULL, &d->objective, &err), &err);
    json_decref(metas);
    json_decref(sizes);
    script_set_free(&model);
    script_set_free(&objective);
    script_set_free(&optimiser);
}

static struct step_parts parts_of(const struct descent *d)
{
    return (struct step_parts){
        .model = &d->model, .objective = &d->objective, .optimiser = &d->optimiser, .layout = &d->layout, .clip = CLIP
    };
}

/* As the oracle draws them (tools/oracle/models.py). */
static void fill_weight(const char *name, uint64_t values, float *to)
{
    const size_t length = strlen(name);
    const bool bias = length > 4 && strcmp(name + length - 4, "bias") == 0, norm = !bias && strstr(name, "norm");

    for (uint64_t i = 0; i < values; i++)
        to[i] = fixture_weight(name, (uint32_t)i, norm || bias ? 0.5f : 0.75f) + (norm ? 1 : 0);
}

static void descent_new(struct descent *d, const json_t *c, json_t *options)
{
    struct error err = { 0 };

    *d = (struct descent){ .c = c };
    trace_all(d, options);
    const struct step_parts parts = parts_of(d);

    FIXTURE_OK((d->g = step_graph(&parts, &err)) != NULL, &err);
    FIXTURE_OK((d->executor = executor_new(d->g, &(struct executor_options){ 0 }, &err)) != NULL, &err);
    d->inputs = calloc(d->g->bound_count + 1, sizeof *d->inputs);
    d->outputs = calloc(d->g->output_count + 1, sizeof *d->outputs);
    for (uint32_t i = 0; i < d->g->bound_count; i++) {
        const struct graph_node *n = &d->g->nodes[d->g->bound[i]];

        d->inputs[i] = calloc(n->values + 16, 4);
        if (n->op == OPERATOR_PARAMETER)
            fill_weight(graph_text(d->g, n->name), n->values, d->inputs[i]);
    }
    for (uint32_t i = 0; i < d->g->output_count; i++)
        d->outputs[i] = calloc(d->g->nodes[d->g->outputs[i].node].values + 16, 4);
}

static void descent_free(struct descent *d)
{
    for (uint32_t i = 0; i < d->g->bound_count; i++)
        free(d->inputs[i]);
    for (uint32_t i = 0; i < d->g->output_count; i++)
        free(d->outputs[i]);
    free(d->inputs);
    free(d->outputs);
    executor_free(d->executor);
    graph_free(d->g);
    layout_free(&d->layout);
    script_trace_free(&d->model);
    script_trace_free(&d->objective);
    script_trace_free(&d->optimiser);
}

/* What step `step` reads as `name`. */
static void fill_input(const struct descent *d, const char *name, uint32_t step, uint64_t values, void *to)
{
    char drawn[40];

    snprintf(drawn, sizeof drawn, "%s.%u", name[1] == '.' ? name + 2 : name, step);
    for (uint32_t i = 0; i < values; i++)
        if (!strcmp(name, "b.label"))
            ((int32_t *)to)[i] =
                (int32_t)(((double)fixture_weight("label", step * ROWS + i, 2) + 1) / 2 * (double)size_of(d, "class"));
        else if (!strcmp(name, "observed"))
            ((float *)to)[i] = (i + step) % 5 != 3;
        else if (!strcmp(name, "b.observed"))
            ((float *)to)[i] = (i + step) % 4 != 1;
        else if (!strcmp(name, "lr"))
            ((float *)to)[i] = RATE;
        else
            ((float *)to)[i] = fixture_weight(drawn, i, 2);
}

static float result(const struct descent *d, const char *name)
{
    const uint32_t node = graph_output_find(d->g, name);

    for (uint32_t i = 0; i < d->g->output_count; i++)
        if (node != GRAPH_NONE && strcmp(graph_text(d->g, d->g->outputs[i].name), name) == 0)
            return *(float *)d->outputs[i];
    fail_msg("no output %s", name);
    return 0;
}

static void take_step(struct descent *d, uint32_t step)
{
    struct error err = { 0 };

    for (uint32_t i = 0; i < d->g->bound_count; i++) {
        const struct graph_node *n = &d->g->nodes[d->g->bound[i]];

        if (n->op != OPERATOR_PARAMETER)
            fill_input(d, graph_text(d->g, n->name), step, n->values, d->inputs[i]);
    }
    FIXTURE_OK(executor_run(d->executor, (const void *const *)d->inputs, d->outputs, NULL, &err), &err);
    for (uint32_t i = 0; i < d->g->output_count; i++) {
        const char *name = graph_text(d->g, d->g->outputs[i].name);
        uint32_t place;

        if (strncmp(name, "p.", 2) == 0 && graph_bound_find(d->g, name + 2, &place) != GRAPH_NONE)
            memcpy(d->inputs[place], d->outputs[i], d->g->nodes[d->g->outputs[i].node].values * sizeof(float));
    }
}

static void follow(const char *name, json_t *options)
{
    json_t *golden = json_read_file(RONDO_SOURCE "/tests/golden/modalities.json", 1 << 20, NULL), *want;
    struct descent d;
    size_t step;

    assert_non_null(golden);
    descent_new(&d, json_object_get(golden, name), options);
    json_array_foreach(json_object_get(d.c, "steps"), step, want)
    {
        const double loss = json_real_value(json_object_get(want, "loss")), norm = json_real_value(json_object_get(want, "norm"));

        take_step(&d, (uint32_t)step);
        if (!(fabs((double)result(&d, "loss") - loss) <= 1e-5 * loss && fabs((double)result(&d, "norm") - norm) <= 1e-4 * norm))
            fail_msg("%s, step %zu: loss %.7g, norm %.7g; PyTorch has %.7g, %.7g", name, step, (double)result(&d, "loss"),
                     (double)result(&d, "norm"), loss, norm);
    }
    assert_int_equal(step, 20);
    descent_free(&d);
    json_decref(options);
    json_decref(golden);
}

static void a_vision_transformer_that_classifies_follows_pytorch(void **state)
{
    (void)state;
    follow("vision", json_pack("{s:s}", "label_smoothing", "0.1"));
}

static void a_patch_series_model_that_forecasts_follows_pytorch(void **state)
{
    (void)state;
    follow("series", json_object());
}

static void models_and_objectives_of_other_data_are_refused(void **state)
{
    json_t *golden = json_read_file(RONDO_SOURCE "/tests/golden/modalities.json", 1 << 20, NULL);
    struct descent vision, series;
    struct error err = { 0 };
    struct step_parts parts;

    (void)state;
    descent_new(&vision, json_object_get(golden, "vision"), NULL);
    descent_new(&series, json_object_get(golden, "series"), NULL);
    parts = parts_of(&vision);
    parts.objective = &series.objective;
    assert_null(step_graph(&parts, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a model of images under an objective on series"));
    descent_free(&vision);
    descent_free(&series);
    json_decref(golden);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vision_transformer_that_classifies_follows_pytorch),
        cmocka_unit_test(a_patch_series_model_that_forecasts_follows_pytorch),
        cmocka_unit_test(models_and_objectives_of_other_data_are_refused),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
