/* Every model script against transformers on small random configurations (tools/oracle/models.py, tests/golden/models.json), and the patch series model against PyTorch (tools/oracle/modalities.py): logits, and
 * the gradient of every weight. Adapters against the weights that they stand beside. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"
#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "runtime/script/host.h"
#include "runtime/worker/packs.h"
#include "runtime/worker/step.h"
#include "tests/fixture/fixture.h"

enum { RANK = 2 };
#define SCALE 2.0

static json_t *golden;

/* A traced model with gradients of its trained parameters, and memory for all that is bound and given out. */
struct run {
    const char *name;
    struct script_trace trace;
    struct graph *g;
    void **inputs, **outputs;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), size = strlen(end);

    return length >= size && strcmp(text + length - size, end) == 0;
}

/* As the oracle names and draws them; of stacked experts one after the other. */
static void fill_weight(const char *name, const struct graph_node *n, float *to)
{
    const char *star = strchr(name, '*');
    const uint64_t experts = star ? n->axis[0].size : 1, each = n->values / experts;
    const bool bias = ends_with(name, "bias"), norm = !bias && (strstr(name, "norm") || strstr(name, ".ln_"));

    for (uint64_t e = 0; e < experts; e++) {
        char file[200];

        snprintf(file, sizeof file, star ? "%.*s%d%s" : "%.*s", star ? (int)(star - name) : (int)strlen(name), name, (int)e,
                 star ? star + 1 : "");
        for (uint64_t i = 0; i < each; i++)
            to[e * each + i] = fixture_weight(file, (uint32_t)i, norm || bias ? 0.5f : 0.75f) + (norm ? 1 : 0);
    }
}

static void fill_adapter(const char *name, const struct graph_node *n, float *to)
{
    for (uint64_t i = 0; i < n->values; i++)
        to[i] = ends_with(name, "lora_B.weight") ? 0 : fixture_weight(name, (uint32_t)i, 1.0f);
}

static void fill_input(const json_t *c, const char *name, const struct graph_node *n, void *to)
{
    const uint64_t time = n->rank > 1 ? n->axis[1].size : 1;

    for (uint64_t i = 0; i < n->values; i++)
        if (!strcmp(name, "ids"))
            ((int32_t *)to)[i] = (int32_t)json_integer_value(json_array_get(json_object_get(c, "ids"), i));
        else if (!strcmp(name, "position"))
            ((int32_t *)to)[i] = (int32_t)(i % time);
        else if (!strcmp(name, "segment"))
            ((int32_t *)to)[i] = 1;
        else if (!strcmp(name, "image"))
            ((float *)to)[i] = fixture_weight("image", (uint32_t)i, 2.0f);
        else if (!strcmp(name, "series"))
            ((float *)to)[i] = fixture_weight("series", (uint32_t)i, 2.0f);
        else if (!strcmp(name, "observed"))
            ((float *)to)[i] = i % 5 != 3;
        else if (!strcmp(name, "loss"))
            ((float *)to)[i] = fixture_weight("loss", (uint32_t)i, 1.0f);
        else
            ((float *)to)[i] = 1;
}

static const char *result_name(const json_t *c)
{
    return json_object_get(c, "series") ? "forecast" : "logits";
}

static void trace(struct run *r, const json_t *c, int64_t rank, int64_t length, int64_t tokens)
{
    struct script_set set;
    struct error err = { 0 };
    json_t *height = json_object_get(c, "height"), *time = json_object_get(c, "series");
    json_t *sizes = height ? json_pack("{s:O, s:O}", "height", height, "width", json_object_get(c, "width")) : NULL;
    struct script_model_request request = {
        .config = json_object_get(c, "config"),
        .rows = 1,
        .time = tokens ? tokens
                : time ? json_integer_value(time)
                       : (int64_t)json_array_size(json_object_get(c, "ids")),
        .length = length,
        .sizes = sizes,
        .rank = rank,
        .scale = SCALE,
        .train_all = rank == 0,
    };
    char path[256];

    snprintf(path, sizeof path, "%s/scripts/models/%s.lua", RONDO_SOURCE, json_string_value(json_object_get(c, "script")));
    FIXTURE_OK(script_set_read(RONDO_SOURCE "/scripts", path, NULL, &set, &err), &err);
    FIXTURE_OK(script_trace_model(&set.bundle, &request, NULL, &r->trace, &err), &err);
    if (json_object_get(c, "ids")) /* text models can share rows */
        FIXTURE_OK(packs_model(&r->trace, &err), &err);
    r->g = r->trace.graphs[0];
    script_set_free(&set);
    json_decref(sizes);
}

/* Adds outputs "gradient.NAME" of the trained parameters, by sum(logits * loss). */
static void add_gradients(struct run *r, const json_t *c)
{
    const uint32_t logits = graph_output_find(r->g, result_name(c));
    struct error err = { 0 };
    uint32_t seed, wanted[256], gradients[256];
    char axes[200], name[200];
    size_t count = 0, index;
    json_t *p;

    graph_show(r->g, logits, axes, sizeof axes);
    axes[strlen(axes) - 1] = 0;
    FIXTURE_OK(graph_input(r->g, "loss", TENSOR_F32, axes + 1, &seed, &err), &err);
    json_array_foreach(json_object_get(r->trace.meta, "params"), index, p)
    {
        if (json_is_true(json_object_get(p, "trained")))
            wanted[count++] = graph_bound_find(r->g, json_string_value(json_object_get(p, "name")), NULL);
    }
    FIXTURE_OK(graph_backward_from(r->g, logits, seed, wanted, count, gradients, &err), &err);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "gradient.%s", graph_text(r->g, r->g->nodes[wanted[i]].name));
        FIXTURE_OK(graph_output(r->g, name, gradients[i], &err), &err);
    }
}

/* Memory for all that is bound and given out, and what is bound. */
static void bind_all(struct run *r, const json_t *c)
{
    r->inputs = calloc(r->g->bound_count + 1, sizeof *r->inputs);
    r->outputs = calloc(r->g->output_count + 1, sizeof *r->outputs);
    for (uint32_t i = 0; i < r->g->bound_count; i++) {
        const struct graph_node *n = &r->g->nodes[r->g->bound[i]];
        const char *name = graph_text(r->g, n->name);

        r->inputs[i] = calloc(n->values + 16, 4);
        if (n->op != OPERATOR_PARAMETER)
            fill_input(c, name, n, r->inputs[i]);
        else if (strstr(name, ".lora_"))
            fill_adapter(name, n, r->inputs[i]);
        else
            fill_weight(name, n, r->inputs[i]);
    }
    for (uint32_t i = 0; i < r->g->output_count; i++)
        r->outputs[i] = calloc(r->g->nodes[r->g->outputs[i].node].values + 16, 4);
}

static void run_model(struct run *r, const json_t *c, int64_t rank)
{
    static const struct executor_random random;
    struct error err = { 0 };

    *r = (struct run){ .name = json_string_value(json_object_get(c, "name")) };
    trace(r, c, rank, 0, 0);
    add_gradients(r, c);
    bind_all(r, c);

    struct executor *ex = executor_new(r->g, &(struct executor_options){ 0 }, &err);

    FIXTURE_OK(ex != NULL, &err);
    FIXTURE_OK(executor_run(ex, (const void *const *)r->inputs, r->outputs, &random, &err), &err);
    executor_free(ex);
}

static void run_free(struct run *r)
{
    for (uint32_t i = 0; i < r->g->bound_count; i++)
        free(r->inputs[i]);
    for (uint32_t i = 0; i < r->g->output_count; i++)
        free(r->outputs[i]);
    free(r->inputs);
    free(r->outputs);
    script_trace_free(&r->trace);
}

static const float *output_of(const struct run *r, const char *name, const struct graph_node **n)
{
    for (uint32_t i = 0; i < r->g->output_count; i++)
        if (strcmp(graph_text(r->g, r->g->outputs[i].name), name) == 0) {
            *n = &r->g->nodes[r->g->outputs[i].node];
            return r->outputs[i];
        }
    fail_msg("%s: no output %s", r->name, name);
    return NULL;
}

static const float *weight_of(const struct run *r, const char *name, const struct graph_node **n)
{
    uint32_t place;
    const uint32_t node = graph_bound_find(r->g, name, &place);

    if (node == GRAPH_NONE)
        fail_msg("%s: no parameter %s", r->name, name);
    *n = &r->g->nodes[node];
    return r->inputs[place];
}

static void logits_are_those_of_transformers(void **state)
{
    size_t index, i;
    json_t *c, *want;
    (void)state;

    json_array_foreach(golden, index, c)
    {
        const struct graph_node *n;
        struct run r;

        run_model(&r, c, 0);
        const float *logits = output_of(&r, result_name(c), &n);

        assert_int_equal(n->values, json_array_size(json_object_get(c, "logits")));
        json_array_foreach(json_object_get(c, "logits"), i, want)
        {
            if (!(fabs((double)logits[i] - json_number_value(want)) <= 1e-4))
                fail_msg("%s: value %zu is %g, transformers has %g", r.name, i, (double)logits[i], json_number_value(want));
        }
        run_free(&r);
    }
}

/* sum(gradient * weight("gradient." + name)) of each tensor; its terms may cancel, so the error is measured by their size. */
static void compare_gradient(const struct run *r, const char *name, double want)
{
    const struct graph_node *n;
    char full[220];
    double sum = 0, size = 0;

    snprintf(full, sizeof full, "gradient.%s", name);
    const float *gradient = output_of(r, full, &n);

    for (uint64_t i = 0; i < n->values; i++) {
        const double term = (double)gradient[i] * (double)fixture_weight(full, (uint32_t)i, 1.0f);

        sum += term;
        size += fabs(term);
    }
    if (!(fabs(sum - want) <= 1e-4 * size + 1e-5))
        fail_msg("%s: the gradient of %s gives %g, transformers %g, terms of %g", r->name, name, sum, want, size);
}

static void gradients_are_those_of_transformers(void **state)
{
    size_t index;
    json_t *c, *want;
    const char *name;
    (void)state;

    json_array_foreach(golden, index, c)
    {
        struct run r;

        run_model(&r, c, 0);
        json_object_foreach(json_object_get(c, "gradients"), name, want)
        {
            compare_gradient(&r, name, json_number_value(want));
        }
        run_free(&r);
    }
}

/* Where B is 0, the gradient of B is scale * G * A', G that of the weight beside which the adapter stands. */
static void compare_adapter(const struct run *full, const struct run *lora, const char *module, bool transposed)
{
    const struct graph_node *gn, *an, *bn;
    char name[220];

    snprintf(name, sizeof name, "gradient.%s.weight", module);
    const float *g = output_of(full, name, &gn);

    snprintf(name, sizeof name, "%s.lora_A.weight", module);
    const float *a = weight_of(lora, name, &an);

    snprintf(name, sizeof name, "gradient.%s.lora_B.weight", module);
    const float *b = output_of(lora, name, &bn);
    const uint64_t out = bn->values / RANK, inp = an->values / RANK;

    assert_int_equal(gn->values, out * inp);
    for (uint64_t o = 0; o < out; o++)
        for (uint64_t k = 0; k < RANK; k++) {
            double sum = 0, size = 0;

            for (uint64_t i = 0; i < inp; i++) {
                const double term = SCALE * (double)g[transposed ? i * out + o : o * inp + i] * (double)a[k * inp + i];

                sum += term;
                size += fabs(term);
            }
            if (!(fabs(sum - (double)b[o * RANK + k]) <= 1e-4 * size + 1e-5))
                fail_msg("%s: %s: %g, wanted %g", lora->name, name, (double)b[o * RANK + k], sum);
        }
}

static void adapters_get_the_gradient_of_their_weights(void **state)
{
    size_t index, i;
    json_t *c, *p;
    (void)state;

    json_array_foreach(golden, index, c)
    {
        const char *role, *script = json_string_value(json_object_get(c, "script"));
        struct run full, lora;
        size_t count = 0;

        run_model(&full, c, 0);
        run_model(&lora, c, RANK);
        json_array_foreach(json_object_get(lora.trace.meta, "params"), i, p)
        {
            role = json_string_value(json_object_get(p, "role"));
            if (role && strcmp(role, "lora_b") == 0 && ++count)
                compare_adapter(&full, &lora, json_string_value(json_object_get(p, "module")), strcmp(script, "gpt2") == 0);
        }
        assert_true(count >= 4);
        run_free(&full);
        run_free(&lora);
    }
}

/* ---- token by token ---- */

enum { LONGEST = 70 }; /* beyond a page of the cache */

/* A pass over `time` tokens of a sequence of `length` in all; kept: over tokens that go on with a sequence. */
struct part {
    struct run run;
    struct executor *executor;
    int64_t time, vocab;
};

static void part_new(struct part *p, const json_t *c, int64_t time, int64_t length, struct cache **kept)
{
    struct error err = { 0 };
    struct graph *g;

    *p = (struct part){ .run.name = json_string_value(json_object_get(c, "name")), .time = time };
    trace(&p->run, c, 0, length, time);
    FIXTURE_OK((g = step_sampling_graph(&p->run.trace, &err)) != NULL, &err);
    p->run.g = g;
    bind_all(&p->run, c);
    p->vocab = (int64_t)(g->nodes[g->outputs[0].node].values / (uint64_t)time);
    if (kept && !*kept)
        FIXTURE_OK((*kept = cache_new(g, "time", &err)) != NULL, &err);
    p->executor = executor_new(g, &(struct executor_options){ .cache = kept ? *kept : NULL }, &err);
    FIXTURE_OK(p->executor != NULL, &err);
}

static void part_free(struct part *p)
{
    struct graph *g = p->run.g;

    executor_free(p->executor);
    run_free(&p->run);
    graph_free(g);
}

/* Tokens first .. first + count - 1, behind them padding; their logits. */
static const float *part_run(struct part *p, int64_t first, uint32_t count, struct cache_sequence *sequence)
{
    const struct graph *g = p->run.g;
    struct error err = { 0 };

    for (uint32_t i = 0; i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);
        int32_t *to = p->run.inputs[i];

        for (int64_t t = 0; t < p->time; t++)
            if (!strcmp(name, "ids"))
                to[t] = t < count ? (int32_t)((first + t) * (first + t) * 5 + first + t) % 16 : 3;
            else if (!strcmp(name, "position"))
                to[t] = (int32_t)(t < count ? first + t : 0);
    }
    if (sequence)
        FIXTURE_OK(executor_continue(p->executor, &(struct cache_step){ &sequence, &count, 1 }, &err), &err);
    FIXTURE_OK(executor_run(p->executor, (const void *const *)p->run.inputs, p->run.outputs, NULL, &err), &err);
    return p->run.outputs[0];
}

/* The first five at once, in a row with room for eight, the others one by one. */
static void decode(const json_t *c, int64_t length)
{
    struct part whole, ahead, one;
    struct cache *cache = NULL;
    struct cache_sequence *sequence;

    part_new(&whole, c, length, length, NULL);
    part_new(&ahead, c, 8, length, &cache);
    part_new(&one, c, 1, length, &cache);
    sequence = cache_sequence_new(cache);

    const float *want = part_run(&whole, 0, (uint32_t)length, NULL), *have = part_run(&ahead, 0, 5, sequence);
    const size_t row = (size_t)whole.vocab * sizeof *want;

    if (memcmp(want, have, 5 * row) != 0)
        fail_msg("%s: the first tokens by themselves give other bits than the whole", whole.run.name);
    for (int64_t t = 5; t < length; t++) {
        have = part_run(&one, t, 1, sequence);
        if (memcmp(want + t * whole.vocab, have, row) != 0)
            fail_msg("%s: token %d by itself gives other bits than the whole", whole.run.name, (int)t);
    }
    cache_sequence_free(sequence);
    part_free(&one);
    part_free(&ahead);
    cache_free(cache);
    part_free(&whole);
}

static void tokens_one_by_one_have_the_bits_of_the_whole(void **state)
{
    size_t index;
    json_t *c;
    (void)state;

    json_array_foreach(golden, index, c)
    {
        const json_t *config = json_object_get(c, "config"), *places = json_object_get(config, "n_positions");

        if (json_object_get(c, "ids"))
            decode(c, places && json_integer_value(places) < LONGEST ? json_integer_value(places) : LONGEST);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_transformers),
        cmocka_unit_test(gradients_are_those_of_transformers),
        cmocka_unit_test(adapters_get_the_gradient_of_their_weights),
        cmocka_unit_test(tokens_one_by_one_have_the_bits_of_the_whole),
    };
    int failed;

    fixture_main(argc, argv);
    golden = json_read_file(RONDO_SOURCE "/tests/golden/models.json", 1 << 22, NULL);
    json_t *others = json_read_file(RONDO_SOURCE "/tests/golden/modalities.json", 1 << 20, NULL);

    json_array_append(golden, json_object_get(others, "forecast"));
    json_decref(others);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(golden);
    return failed;
}
