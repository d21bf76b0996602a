/* Packed rows: several examples in one, each as if it were alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/store/object.h"
#include "runtime/worker/packs.h"
#include "runtime/worker/step.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

static struct fixture f;

/* The examples of a packed batch, read from its segments; at most `most`. */
static size_t examples_of(const struct batch *b, struct example *out, size_t most)
{
    size_t count = 0;

    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t t = 0, end; t < b->time && b->segment[row * b->time + t]; t = end) {
            size_t at = (size_t)(row * b->time + t);
            struct example *e = &out[count++];

            assert_true(count <= most);
            for (end = t; end < b->time && b->segment[row * b->time + end] == b->segment[at]; end++)
                ;
            *e = (struct example){ .count = (size_t)(end - t) };
            e->ids = calloc(e->count, sizeof *e->ids);
            e->weights = calloc(e->count, sizeof *e->weights);
            for (size_t i = 0; i < e->count; i++) {
                assert_int_equal(b->position[at + i], i); /* positions start anew */
                assert_true(b->scored[at + i] == (i > 0));
                e->ids[i] = (uint32_t)b->ids[at + i];
                e->weights[i] = b->mask[at + i];
            }
            assert_true(b->mask[at] == 0); /* nothing is asked of the first token */
        }
    return count;
}

/* One plain step of rate 1: the gradient is what the values lose. */
static float *gradient(const struct batch *b, float *loss)
{
    size_t n = (size_t)f.session->layout.values;
    float *values = calloc(n, sizeof *values), *before = calloc(n, sizeof *before);
    struct error err = { 0 };
    struct training t;

    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    for (uint32_t i = 0; i < n; i++)
        before[i] = values[i] += fixture_weight("moved", i, 0.2f);
    FIXTURE_OK(training_new(&t, f.session, values, 0, &err), &err);
    FIXTURE_OK(training_step(&t, b, 1, 0, &err), &err);
    *loss = t.loss;
    for (size_t i = 0; i < n; i++)
        before[i] -= values[i];
    training_free(&t);
    free(values);
    return before;
}

static void the_gradient_is_that_of_the_same_examples_in_rows_of_their_own(void **state)
{
    enum { MOST = 64 };
    struct example examples[MOST];
    const struct example *list[MOST];
    struct batch packed = { 0 }, apart = { 0 };
    float packed_loss, apart_loss;
    double difference = 0, norm = 0;

    (void)state;
    fixture_batch(&f, &packed, 1);

    size_t count = examples_of(&packed, examples, MOST);

    assert_true(count > (size_t)packed.rows + 2); /* there is something to keep apart */
    for (size_t i = 0; i < count; i++)
        list[i] = &examples[i];
    batch_of(&apart, &f.session->rules, list, count);
    assert_int_equal(apart.tokens, packed.tokens);
    assert_int_equal(apart.trained, packed.trained);
    assert_true(packed.rows * packed.time < apart.rows * apart.time); /* and something to save */

    float *a = gradient(&packed, &packed_loss), *b = gradient(&apart, &apart_loss);

    for (uint64_t i = 0; i < f.session->layout.values; i++) {
        difference += pow((double)a[i] - (double)b[i], 2);
        norm += pow((double)b[i], 2);
    }
    assert_true(norm > 0);
    if (fabsf(packed_loss - apart_loss) > 1e-6f * apart_loss || sqrt(difference / norm) > 1e-5)
        fail_msg("loss %.9g and %.9g, gradients apart by %.3g of their norm", (double)packed_loss, (double)apart_loss,
                 sqrt(difference / norm));
    free(a);
    free(b);
    for (size_t i = 0; i < count; i++) {
        free(examples[i].ids);
        free(examples[i].weights);
    }
    batch_free(&packed);
    batch_free(&apart);
}

/* The other examples of a row are as if they were not there: to the bit, since each output is one sum in one order. */
static void another_example_in_the_row_changes_no_log_probability(void **state)
{
    struct batch b = { 0 };
    size_t n = (size_t)f.session->layout.values;
    float *values = calloc(n, sizeof *values);
    struct evaluation before = { 0 }, after = { 0 };
    struct error err = { 0 };

    (void)state;
    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    fixture_batch(&f, &b, 1);
    for (int64_t i = 0; i < b.rows * b.time; i++)
        if (b.segment[i] != 2)
            b.mask[i] = 0; /* the loss of the second examples alone */
    FIXTURE_OK(evaluate_batch(f.session, values, &b, &before, NULL, &err), &err);
    for (int64_t i = 0; i < b.rows * b.time; i++)
        if (b.segment[i] == 1 || b.segment[i] > 2)
            b.ids[i] = (b.ids[i] + 1) % (FIXTURE_VOCAB - 2);
    FIXTURE_OK(evaluate_batch(f.session, values, &b, &after, NULL, &err), &err);
    assert_true(before.weight > 0);
    assert_true(before.loss == after.loss);
    batch_free(&b);
    free(values);
}

static void an_objective_that_works_along_a_row_is_refused(void **state)
{
    struct script_bundle bundle = f.session->scripts[SESSION_OBJECTIVE].bundle;
    struct script_objective_request request = { .batch = 2, .time = 64, .vocab = FIXTURE_VOCAB, .embed = 16 };
    struct error err = { 0 };

    (void)state;
    for (int example = 0; example < 2; example++) {
        const struct session_step *step = session_step(f.session, 2, 64, SESSION_TRAIN, 0, &err);
        struct script_trace objective = { 0 };

        FIXTURE_OK(step != NULL, &err);
        bundle.options = json_pack("{s:s}", "per", example ? "example" : "token");
        FIXTURE_OK(script_trace_objective(&bundle, &request, &f.session->limits, &objective, &err), &err);
        assert_int_equal(packs_objective(&objective, "packing", &err), !example);
        script_trace_free(&objective);
        json_decref(bundle.options);
    }
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_true(err.hint[0]);
}

/* A graph of one operator over x [row time embed], as if a model script had made it. */
static void refuses(const char *want, bool (*add)(struct graph *g, uint32_t *x, struct error *err))
{
    struct graph *g = graph_new(NULL);
    struct script_trace trace = { .meta = json_pack("{s:i}", "graph", 0), .graphs = &g, .graph_count = 1 };
    struct error err = { 0 };
    uint32_t x;

    FIXTURE_OK(graph_input(g, "real", TENSOR_F32, "row=2 time=4 embed=3", &x, &err) && add(g, &x, &err) &&
                   graph_output(g, "logits", x, &err),
               &err);
    assert_int_equal(packs_model(&trace, &err), !want);
    if (want) {
        assert_int_equal(err.code, ERROR_UNSUPPORTED);
        if (!strstr(err.message, want) || !err.hint[0])
            fail_msg("\"%s\" does not speak of %s", err.message, want);
    }
    json_decref(trace.meta);
    graph_free(g);
}

static bool add_mean(struct graph *g, uint32_t *x, struct error *err)
{
    return graph_over(g, OPERATOR_MEAN, *x, GRAPH_NONE, GRAPH_NONE, "time", x, err);
}

static bool add_hidden_softmax(struct graph *g, uint32_t *x, struct error *err)
{
    return graph_over(g, OPERATOR_RENAME, *x, GRAPH_NONE, GRAPH_NONE, "time past", x, err) &&
           graph_over(g, OPERATOR_SOFTMAX, *x, GRAPH_NONE, GRAPH_NONE, "past", x, err);
}

static bool add_iota(struct graph *g, uint32_t *x, struct error *err)
{
    return graph_over(g, OPERATOR_IOTA, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, "time=4", x, err);
}

static bool add_softmax(struct graph *g, uint32_t *x, struct error *err)
{
    uint32_t unused;

    return graph_over(g, OPERATOR_MEAN, *x, GRAPH_NONE, GRAPH_NONE, "time", &unused, err) &&
           graph_output(g, "aux.0.sum", unused, err) &&
           graph_over(g, OPERATOR_SOFTMAX, *x, GRAPH_NONE, GRAPH_NONE, "embed", x, err);
}

static void a_model_that_mixes_tokens_otherwise_than_by_attention_is_refused(void **state)
{
    (void)state;
    refuses("(mean)", add_mean);
    refuses("(softmax)", add_hidden_softmax);
    refuses("(iota)", add_iota);
    refuses(NULL, add_softmax);
}

/* `coalesce` of the spec: for training; held-out turns are measured one by one. */
static void turns_of_a_conversation_are_put_together_for_training_alone(void **state)
{
    static const char row[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"w1\"},{\"role\":\"assistant\",\"content\":\"w2\"},"
                              "{\"role\":\"user\",\"content\":\"w3\"},{\"role\":\"assistant\",\"content\":\"w4\"}]}\n";
    const struct session_shard *trained, *measured;
    struct error err = { 0 };
    struct hash id;

    (void)state;
    FIXTURE_OK(object_put(&f.blocks, "application/vnd.rondo.shard+jsonl", row, sizeof row - 1, &id, &err), &err);
    json_object_set_new(f.session->spec, "coalesce", json_true());
    trained = session_shard(f.session, id, SESSION_TRAIN, &err);
    FIXTURE_OK(trained != NULL, &err);
    measured = session_shard(f.session, id, SESSION_EVALUATE, &err);
    FIXTURE_OK(measured != NULL, &err);
    assert_int_equal(trained->examples.count, 1);
    assert_int_equal(measured->examples.count, 2);
    assert_int_equal(trained->counts.trained, measured->counts.trained);
    assert_true(trained->counts.tokens < measured->counts.tokens);
    json_object_del(f.session->spec, "coalesce");
}

int main(int argc, char **argv)
{
    fixture_main(argc, argv);
    fixture_new(&f, &(struct fixture_options){ .inner = "sgd", .batch_tokens = 256 });
    f.session->rules.packed = true;
    f.session->rules.context = 128;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_the_same_examples_in_rows_of_their_own),
        cmocka_unit_test(an_objective_that_works_along_a_row_is_refused),
        cmocka_unit_test(a_model_that_mixes_tokens_otherwise_than_by_attention_is_refused),
        cmocka_unit_test(another_example_in_the_row_changes_no_log_probability),
        cmocka_unit_test(turns_of_a_conversation_are_put_together_for_training_alone),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    fixture_free(&f);
    return failed;
}
