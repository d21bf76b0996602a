/* The graph of a training step, on a model of two layers: what it computes, against plain binary64 and finite differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/graph/wire.h"
#include "runtime/worker/step.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

static struct fixture f;

/* The first trained values, moved off the start so that no adapter is zero. */
static float *values_make(void)
{
    float *values = calloc((size_t)f.session->layout.values, sizeof *values);
    struct error err = { 0 };

    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    for (uint32_t i = 0; i < f.session->layout.values; i++)
        values[i] += fixture_weight("moved", i, 0.2f);
    return values;
}

/* Runs the model alone: logits [row time vocab]. */
static float *logits_of(const struct batch *b, const float *values)
{
    const struct session_step *step;
    struct error err = { 0 };
    float *logits = calloc((size_t)(b->rows * b->time) * FIXTURE_VOCAB, sizeof *logits);

    step = session_step(f.session, b->rows, b->time, SESSION_TRAIN, 0, &err);
    FIXTURE_OK(step != NULL, &err);

    const struct graph *g = step->model.graphs[0];
    const void **inputs = calloc(g->bound_count, sizeof *inputs);
    void **outputs = calloc(g->output_count, sizeof *outputs);
    float *rest = calloc((size_t)(b->rows * b->time) * 16, sizeof *rest);

    for (uint32_t i = 0; i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);
        long place = layout_find(&f.session->layout, name);

        inputs[i] = batch_field(b, name);
        if (place >= 0)
            inputs[i] = values + f.session->layout.parameters[place].offset;
        else if (!inputs[i])
            inputs[i] = session_weight(f.session, name, &(uint64_t){ 0 }, &err);
        FIXTURE_OK(inputs[i] != NULL, &err);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        outputs[i] = strcmp(graph_text(g, g->outputs[i].name), "logits") == 0 ? logits : rest;

    struct executor *ex = executor_new(g, &(struct executor_options){ 0 }, &err);

    FIXTURE_OK(ex && executor_run(ex, inputs, outputs, NULL, &err), &err);
    executor_free(ex);
    free(inputs);
    free(outputs);
    free(rest);
    return logits;
}

/* Log-probability of token t of a row by the logits at t - 1, in binary64. */
static double logprob(const struct batch *b, const float *logits, int64_t row, int64_t t, bool *best)
{
    const float *x = logits + (row * b->time + t - 1) * FIXTURE_VOCAB;
    double sum = 0;
    int32_t id = b->ids[row * b->time + t];

    *best = true;
    for (int i = 0; i < FIXTURE_VOCAB; i++) {
        sum += exp((double)x[i]);
        *best = *best && (x[i] < x[id] || i == id);
    }
    return (double)x[id] - log(sum);
}

static double loss_of(const struct batch *b, const float *values)
{
    float *logits = logits_of(b, values);
    double sum = 0, weight = 0;
    bool best;

    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t t = 1; t < b->time; t++)
            if (b->mask[row * b->time + t] > 0) {
                sum -= (double)b->mask[row * b->time + t] * logprob(b, logits, row, t, &best);
                weight += (double)b->mask[row * b->time + t];
            }
    free(logits);
    return sum / weight;
}

static void the_loss_is_the_mean_over_what_the_assistant_wrote(void **state)
{
    struct batch b = { 0 };
    struct training t;
    struct error err = { 0 };
    float *values = values_make();

    (void)state;
    for (int steps = 1; steps < 4; steps++) {
        fixture_batch(&f, &b, steps);

        double want = loss_of(&b, values);
        float *moved = malloc((size_t)f.session->layout.values * sizeof *moved);

        memcpy(moved, values, (size_t)f.session->layout.values * sizeof *moved);
        FIXTURE_OK(training_new(&t, f.session, moved, 1, &err), &err);
        FIXTURE_OK(training_step(&t, &b, 0.001, 0, &err), &err);
        assert_true(fabs((double)t.loss - want) < 1e-5 * want);
        training_free(&t);
        free(moved);
    }
    free(values);
    batch_free(&b);
}

static void a_tokens_log_probability_comes_from_the_position_before_it(void **state)
{
    struct batch b = { 0 };
    struct error err = { 0 };
    struct evaluation sum = { 0 };
    float *values = values_make();
    double loss = 0, weight = 0;
    uint64_t exact = 0;
    bool rows[32];

    (void)state;
    fixture_batch(&f, &b, 1);

    float *logits = logits_of(&b, values);

    FIXTURE_OK(evaluate_batch(f.session, values, &b, &sum, rows, &err), &err);
    for (int64_t row = 0; row < b.rows; row++) {
        bool all = true, best;

        for (int64_t t = 1; t < b.time; t++)
            if (b.mask[row * b.time + t] > 0) {
                loss -= logprob(&b, logits, row, t, &best);
                weight++;
                all = all && best;
            }
        exact += all;
        assert_int_equal(rows[row], all);
    }
    assert_true(sum.weight == weight && weight > 0);
    assert_true(fabs(sum.loss - loss) < 1e-5 * loss);
    assert_int_equal(sum.rows, b.rows);
    assert_int_equal(sum.exact, exact);
    free(logits);
    free(values);
    batch_free(&b);
}

/* sgd with rate 1 and no clipping moves each value by its gradient. */
static float *gradient_of(const struct batch *b, const float *values, double clip, float *norm)
{
    size_t n = (size_t)f.session->layout.values;
    float *moved = malloc(n * sizeof *moved);
    struct training t;
    struct error err = { 0 };

    memcpy(moved, values, n * sizeof *moved);
    FIXTURE_OK(training_new(&t, f.session, moved, clip, &err), &err);
    FIXTURE_OK(training_step(&t, b, 1, 0, &err), &err);
    *norm = t.norm;
    training_free(&t);
    for (size_t i = 0; i < n; i++)
        moved[i] = values[i] - moved[i];
    return moved;
}

static void the_gradient_of_the_adapters_is_that_of_finite_differences(void **state)
{
    struct batch b = { 0 };
    float *values = values_make(), norm;
    double squares = 0, wrong = 0;

    (void)state;
    fixture_batch(&f, &b, 1);

    float *g = gradient_of(&b, values, 0, &norm);

    for (uint64_t i = 0; i < f.session->layout.values; i++)
        squares += (double)g[i] * (double)g[i];
    assert_true(fabs(sqrt(squares) - (double)norm) < 1e-3 * (double)norm);
    for (uint64_t i = 3; i < f.session->layout.values; i += 13) {
        const double h = 0x1p-8;
        float kept = values[i];

        values[i] = kept + (float)h;
        double above = loss_of(&b, values);
        values[i] = kept - (float)h;
        double below = loss_of(&b, values);
        values[i] = kept;

        double difference = (above - below) / (2 * h) - (double)g[i];

        wrong = fmax(wrong, fabs(difference));
    }
    assert_true(wrong < 2e-4);
    free(g);
    free(values);
    batch_free(&b);
}

/* Two turns of a conversation, the second with half the weight: tokens of the first begin those of the second. */
static void two_turns(struct examples *list)
{
    static const size_t counts[] = { 11, 20 }, first[] = { 7, 15 };

    *list = (struct examples){ calloc(2, sizeof *list->items), 2, 2 };
    for (size_t k = 0; k < 2; k++) {
        struct example *e = &list->items[k];

        *e = (struct example){ .ids = calloc(counts[k], 4), .weights = calloc(counts[k], 4), .count = counts[k] };
        for (size_t i = 0; i < e->count; i++) {
            e->ids[i] = (uint32_t)(i * 7 + 3) % FIXTURE_END;
            e->weights[i] = i < first[k] ? 0 : k ? 0.5f : 1;
        }
    }
}

static void examples_that_are_coalesced_have_the_same_loss_and_gradient(void **state)
{
    struct batch turns = { 0 }, one = { 0 };
    struct examples list;
    float *values = values_make(), norm, other, most = 0;

    (void)state;
    two_turns(&list);
    batch_of(&turns, &f.session->rules, (const struct example *const[]){ &list.items[0], &list.items[1] }, 2);
    examples_coalesce(&list, 0);
    assert_int_equal(list.count, 1);
    batch_of(&one, &f.session->rules, (const struct example *const[]){ &list.items[0] }, 1);
    assert_int_equal(one.trained, turns.trained);
    assert_true(one.tokens == 20 && turns.tokens == 31);

    double want = loss_of(&turns, values);

    assert_true(fabs(loss_of(&one, values) - want) < 1e-6 * want);

    float *g = gradient_of(&turns, values, 0, &norm), *h = gradient_of(&one, values, 0, &other);

    for (uint64_t i = 0; i < f.session->layout.values; i++)
        most = fmaxf(most, fabsf(g[i] - h[i]));
    assert_true(most < 1e-6f * norm && fabsf(norm - other) < 1e-5f * norm); /* sums in another order */
    free(g);
    free(h);
    free(values);
    examples_free(&list);
    batch_free(&turns);
    batch_free(&one);
}

static void clipping_scales_the_whole_gradient_to_the_limit(void **state)
{
    struct batch b = { 0 };
    float *values = values_make(), norm, clipped_norm;

    (void)state;
    fixture_batch(&f, &b, 1);

    float *g = gradient_of(&b, values, 0, &norm);
    float *half = gradient_of(&b, values, (double)norm / 2, &clipped_norm),
          *same = gradient_of(&b, values, (double)norm * 2, &clipped_norm);

    assert_true(clipped_norm == norm); /* the norm that is told is that before clipping */
    for (uint64_t i = 0; i < f.session->layout.values; i++) {
        assert_true(fabsf(half[i] - g[i] / 2) <= 2e-7f + 1e-4f * fabsf(g[i]));
        assert_true(same[i] == g[i]);
    }
    free(g);
    free(half);
    free(same);
    free(values);
    batch_free(&b);
}

static void two_sessions_make_the_same_graph(void **state)
{
    struct pool *pool;
    struct session *other = fixture_session(&f, 2, &pool);
    struct error err = { 0 };

    (void)state;
    for (int64_t rows = 1; rows < 4; rows++) {
        const struct session_step *one = session_step(f.session, rows, 32, SESSION_TRAIN, 1, &err),
                                  *two = session_step(other, rows, 32, SESSION_TRAIN, 1, &err);

        FIXTURE_OK(one && two, &err);

        const struct graph_hash a = graph_hash(one->graph), b = graph_hash(two->graph);

        assert_memory_equal(&a, &b, sizeof a);
    }
    session_free(other);
    pool_free(pool);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_the_mean_over_what_the_assistant_wrote),
        cmocka_unit_test(a_tokens_log_probability_comes_from_the_position_before_it),
        cmocka_unit_test(the_gradient_of_the_adapters_is_that_of_finite_differences),
        cmocka_unit_test(examples_that_are_coalesced_have_the_same_loss_and_gradient),
        cmocka_unit_test(clipping_scales_the_whole_gradient_to_the_limit),
        cmocka_unit_test(two_sessions_make_the_same_graph),
    };

    return FIXTURE_TESTS(argc, argv, &f, tests, .inner = "sgd");
}
