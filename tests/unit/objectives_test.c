/* Every objective that a run or a script may use, against PyTorch (tools/oracle/objectives.py, tests/golden/objectives.json): the loss, and
 * its gradient by what the model gives. */
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
#include "runtime/worker/bound.h"
#include "tests/fixture/fixture.h"

#define CLOSE 1e-5

static json_t *golden;

/* A case: its trace, and the fields it reads by name. */
struct check {
    const json_t *golden;
    struct script_trace trace;
    json_t *fields; /* owned: the golden's inputs, then what `prepare` gave */
};

static int64_t size_of(const json_t *sizes, const char *name)
{
    return json_integer_value(json_object_get(sizes, name));
}

static void trace(struct check *c)
{
    const json_t *sizes =
        json_object_get(json_object_get(golden, "sizes"), json_string_value(json_object_get(c->golden, "inputs")));
    struct script_objective_request request = { .batch = size_of(sizes, "batch"),
                                                .time = size_of(sizes, "time"),
                                                .vocab = size_of(sizes, "vocab"),
                                                .pair = size_of(sizes, "pair"),
                                                .prompt = size_of(sizes, "prompt"),
                                                .sample = size_of(sizes, "sample"),
                                                .rejected_time = size_of(sizes, "rejected_time"),
                                                .k = size_of(sizes, "k") };
    struct script_set set;
    struct error err = { 0 };
    char path[512];

    snprintf(path, sizeof path, RONDO_SOURCE "/scripts/objectives/%s.lua",
             json_string_value(json_object_get(c->golden, "script")));
    FIXTURE_OK(script_set_read(RONDO_SOURCE "/scripts", path, json_object_get(c->golden, "options"), &set, &err), &err);
    FIXTURE_OK(script_trace_objective(&set.bundle, &request, NULL, &c->trace, &err), &err);
    script_set_free(&set);
}

/* Runs a graph on the fields; the values of each output by name. New reference. */
static json_t *run(const struct check *c, const struct graph *g)
{
    struct error err = { 0 };
    struct executor *ex = executor_new(g, &(struct executor_options){ 0 }, &err);
    void **inputs = calloc(g->bound_count + 1, sizeof *inputs), **outputs = calloc(g->output_count + 1, sizeof *outputs);
    json_t *all = json_object();

    FIXTURE_OK(ex != NULL, &err);
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        const json_t *list = json_object_get(c->fields, graph_text(g, n->name));

        if (json_array_size(list) != n->values)
            fail_msg("%s has %zu values, wanted %llu", graph_text(g, n->name), json_array_size(list),
                     (unsigned long long)n->values);
        inputs[i] = calloc(n->values, 4);
        for (uint64_t k = 0; k < n->values; k++)
            if (n->type == TENSOR_I32)
                ((int32_t *)inputs[i])[k] = (int32_t)json_integer_value(json_array_get(list, k));
            else
                ((float *)inputs[i])[k] = (float)json_number_value(json_array_get(list, k));
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        outputs[i] = calloc(g->nodes[g->outputs[i].node].values, sizeof(float));
    FIXTURE_OK(executor_run(ex, (const void *const *)inputs, outputs, NULL, &err), &err);
    for (uint32_t i = 0; i < g->output_count; i++) {
        json_t *list = json_array();

        for (uint64_t k = 0; k < g->nodes[g->outputs[i].node].values; k++)
            json_array_append_new(list, json_real((double)((float *)outputs[i])[k]));
        json_object_set_new(all, graph_text(g, g->outputs[i].name), list);
        free(outputs[i]);
    }
    for (uint32_t i = 0; i < g->bound_count; i++)
        free(inputs[i]);
    free(inputs);
    free(outputs);
    executor_free(ex);
    return all;
}

static const struct graph *graph_of(const struct check *c, const char *part)
{
    struct error err = { 0 };
    const struct graph *g = bound_graph(&c->trace, json_object_get(json_object_get(c->trace.meta, part), "graph"), &err);

    FIXTURE_OK(g != NULL, &err);
    return g;
}

static void prepare(struct check *c)
{
    json_t *made;

    if (!json_is_object(json_object_get(c->trace.meta, "prepare")))
        return;
    made = run(c, graph_of(c, "prepare"));
    json_object_update(c->fields, made);
    json_decref(made);
}

/* The loss as a node: the sum of coef * sum / count over its terms. */
static uint32_t add_loss(const struct check *c, struct graph *g, const struct graph *src, const uint32_t *nodes)
{
    json_t *terms = json_object_get(json_object_get(c->trace.meta, "loss"), "terms"), *term;
    struct error err = { 0 };
    uint32_t total = GRAPH_NONE;
    size_t index;

    json_array_foreach(terms, index, term)
    {
        const char *count = json_string_value(json_object_get(term, "count"));
        uint32_t value = nodes[graph_output_find(src, json_string_value(json_object_get(term, "sum")))], k;

        if (count)
            FIXTURE_OK(graph_binary(g, OPERATOR_DIV, value, nodes[graph_output_find(src, count)], &value, &err), &err);
        FIXTURE_OK(graph_constant(g, TENSOR_F32, json_decimal(json_object_get(term, "coef"), 1), &k, &err) &&
                       graph_binary(g, OPERATOR_MUL, value, k, &value, &err) &&
                       (total == GRAPH_NONE || graph_binary(g, OPERATOR_ADD, total, value, &value, &err)),
                   &err);
        total = value;
    }
    return total;
}

static void compare(const struct check *c, const char *what, double want, double got)
{
    if (!(fabs(want - got) <= CLOSE * (1 + fabs(want)))) {
        char *options = json_dumps(json_object_get(c->golden, "options"), JSON_COMPACT);

        fail_msg("%s %s: %s is %.9g, PyTorch gives %.9g", json_string_value(json_object_get(c->golden, "script")), options, what,
                 got, want);
    }
}

static void check(const json_t *one)
{
    struct check c = { .golden = one };
    json_t *gradients = json_object_get(one, "gradients"), *wanted, *values, *value;
    struct graph *g = graph_new(NULL);
    struct error err = { 0 };
    uint32_t nodes[4], made[4];
    const char *name;
    size_t count = 0, index;

    c.fields = json_copy(json_object_get(json_object_get(golden, "inputs"), json_string_value(json_object_get(one, "inputs"))));
    trace(&c);
    prepare(&c);

    const struct graph *src = graph_of(&c, "loss");
    uint32_t *placed = calloc(src->node_count + 1, sizeof *placed), loss;

    FIXTURE_OK(graph_splice(g, src, NULL, 0, placed, &err), &err);
    loss = add_loss(&c, g, src, placed);
    FIXTURE_OK(graph_output(g, "loss", loss, &err), &err);
    json_object_foreach(gradients, name, wanted)
    {
        nodes[count] = graph_bound_find(g, name, NULL);
        assert_true(nodes[count++] != GRAPH_NONE);
    }
    FIXTURE_OK(graph_backward(g, loss, nodes, count, made, &err), &err);
    count = 0;
    json_object_foreach(gradients, name, wanted) FIXTURE_OK(graph_output(g, name, made[count++], &err), &err);
    values = run(&c, g);
    compare(&c, "loss", json_number_value(json_object_get(one, "loss")),
            json_real_value(json_array_get(json_object_get(values, "loss"), 0)));
    json_object_foreach(gradients, name, wanted)
    {
        assert_int_equal(json_array_size(wanted), json_array_size(json_object_get(values, name)));
        json_array_foreach(wanted, index, value)
        {
            char what[80];

            snprintf(what, sizeof what, "the gradient by %s[%zu]", name, index);
            compare(&c, what, json_number_value(value), json_real_value(json_array_get(json_object_get(values, name), index)));
        }
    }
    json_decref(values);
    json_decref(c.fields);
    free(placed);
    graph_free(g);
    script_trace_free(&c.trace);
}

static void losses_and_gradients_are_those_of_pytorch(void **state)
{
    json_t *one;
    size_t index;

    (void)state;
    json_array_foreach(json_object_get(golden, "cases"), index, one) check(one);
    assert_true(index > 30);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(losses_and_gradients_are_those_of_pytorch) };
    int failed;

    fixture_main(argc, argv);
    golden = json_read_file(RONDO_SOURCE "/tests/golden/objectives.json", 1 << 20, NULL);
    assert_non_null(golden);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(golden);
    return failed;
}
