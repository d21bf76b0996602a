/* Tokens by kept keys and values: the bits of the whole sequence at once, whatever runs beside it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/graph/cache.h"
#include "native/kernel/pool.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/generate.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

enum { PROMPTS = 7, MOST = 20, LONGEST = 290, CONTEXT = 320 };

static struct fixture f;
static float *values;
static const struct generate_rule plain = { .temperature = 1, .top_p = 1, .repetition = 1 };

static int set_up(void **state)
{
    struct error err = { 0 };

    (void)state;
    fixture_new(&f, &(struct fixture_options){ .threads = 1 });
    f.session->rules.context = CONTEXT;
    values = calloc((size_t)f.session->layout.values, sizeof *values);
    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    for (size_t i = 0; i < (size_t)f.session->layout.values; i++)
        values[i] += fixture_weight("generate", (uint32_t)i, 0.5f);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(values);
    fixture_free(&f);
    return 0;
}

/* Prompts of 1 to 290 tokens: over the edges of pages and of prefill's shapes. */
static void prompts(uint32_t ids[PROMPTS][LONGEST], struct generation list[PROMPTS])
{
    static const uint32_t lengths[PROMPTS] = { 1, 15, 16, 17, 64, 65, LONGEST };

    for (uint32_t p = 0; p < PROMPTS; p++) {
        for (uint32_t t = 0; t < lengths[p]; t++)
            ids[p][t] = (7 * t + 3 * p + t * t) % FIXTURE_END;
        list[p] = (struct generation){ .prompt = ids[p], .prompt_count = lengths[p], .most = MOST, .seed = 100 + p };
    }
}

static void run(struct session *s, struct generation *list, size_t count, uint32_t rows)
{
    static const uint32_t ends[1] = { FIXTURE_END };
    struct generate_options options = { .rule = plain, .ends = ends, .end_count = 1, .rows = rows };
    struct error err = { 0 };

    FIXTURE_OK(generate(s, values, &options, list, count, &err), &err);
}

static void same(const struct generation *a, const struct generation *b)
{
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->drawn, b->drawn);
    assert_memory_equal(a->tokens, b->tokens, a->count * sizeof *a->tokens);
    assert_memory_equal(a->logprobs, b->logprobs, a->drawn * sizeof *a->logprobs);
}

/* Log-probabilities of a whole sequence in one pass, [time], by the graph of evaluation. */
static float *whole(const struct generation *g, int64_t time)
{
    const struct session_step *step;
    struct batch b = { .rows = 1, .time = time };
    struct error err = { 0 };
    float *logprobs = calloc((size_t)time, sizeof *logprobs), *best = calloc((size_t)time, sizeof *best);
    void *outputs[2] = { logprobs, best };
    const void **inputs;

    b.ids = calloc((size_t)time, sizeof *b.ids);
    b.position = calloc((size_t)time, sizeof *b.position);
    b.segment = calloc((size_t)time, sizeof *b.segment);
    b.real = calloc((size_t)time, sizeof *b.real);
    b.mask = calloc((size_t)time, sizeof *b.mask);
    b.scored = calloc((size_t)time, sizeof *b.scored);
    b.bytes = calloc((size_t)time, sizeof *b.bytes);
    for (uint32_t t = 0; t < g->prompt_count + g->count + (g->drawn > g->count); t++) {
        b.ids[t] = (int32_t)(t < g->prompt_count              ? g->prompt[t]
                             : t < g->prompt_count + g->count ? g->tokens[t - g->prompt_count]
                                                              : g->ended_by);
        b.position[t] = (int32_t)t;
        b.segment[t] = 1;
        b.real[t] = b.scored[t] = 1;
    }
    step = session_step(f.session, 1, time, SESSION_EVALUATE, 0, &err);
    FIXTURE_OK(step != NULL, &err);
    inputs = calloc(step->graph->bound_count + 1, sizeof *inputs);
    for (uint32_t i = 0; i < step->graph->bound_count; i++) {
        const char *field;

        FIXTURE_OK(training_input(f.session, step, i, values, &inputs[i], &field, &err), &err);
        if (field)
            inputs[i] = batch_field(&b, field);
    }
    FIXTURE_OK(executor_run(step->executor, inputs, outputs, NULL, &err), &err);
    batch_free(&b);
    free(inputs);
    free(best);
    return logprobs;
}

static void log_probabilities_are_those_of_the_whole_sequence_to_the_bit(void **state)
{
    uint32_t ids[PROMPTS][LONGEST];
    struct generation list[PROMPTS];

    (void)state;
    prompts(ids, list);
    run(f.session, list, PROMPTS, 3);
    for (size_t p = 0; p < PROMPTS; p++) {
        float *all = whole(&list[p], CONTEXT);

        assert_true(list[p].drawn > 0);
        assert_memory_equal(all + list[p].prompt_count, list[p].logprobs, list[p].drawn * sizeof *all);
        free(all);
        generation_free(&list[p]);
    }
}

static void neither_neighbours_nor_threads_change_a_sequence(void **state)
{
    uint32_t ids[PROMPTS][LONGEST];
    struct generation one[PROMPTS], other[PROMPTS], turned[PROMPTS];
    struct pool *pool;
    struct session *second = fixture_session(&f, 3, &pool);

    (void)state;
    second->rules.context = CONTEXT;
    prompts(ids, one);
    prompts(ids, other);
    run(f.session, one, PROMPTS, 1);
    run(second, other, PROMPTS, 4);
    prompts(ids, turned);
    for (size_t p = 0; p < PROMPTS / 2; p++) {
        struct generation held = turned[p];

        turned[p] = turned[PROMPTS - 1 - p];
        turned[PROMPTS - 1 - p] = held;
    }
    run(f.session, turned, PROMPTS, 8);
    for (size_t p = 0; p < PROMPTS; p++) {
        same(&one[p], &other[p]);
        same(&one[p], &turned[PROMPTS - 1 - p]);
        generation_free(&one[p]);
        generation_free(&other[p]);
    }
    for (size_t p = 0; p < PROMPTS; p++)
        generation_free(&turned[p]);
    session_free(second);
    pool_free(pool);
}

static void a_shared_prompt_gives_what_each_would_alone(void **state)
{
    uint32_t ids[PROMPTS][LONGEST];
    struct generation list[PROMPTS], group[4], alone[4];

    (void)state;
    prompts(ids, list);
    for (uint32_t i = 0; i < 4; i++) {
        group[i] = alone[i] = list[PROMPTS - 1];
        group[i].seed = alone[i].seed = i;
        run(f.session, &alone[i], 1, 1);
    }
    run(f.session, group, 4, 4);
    for (uint32_t i = 0; i < 4; i++) {
        same(&group[i], &alone[i]);
        generation_free(&group[i]);
        generation_free(&alone[i]);
    }
}

/* Prompts that leave the one before them early, at a page's edge, late, or not at all, as a whole or a part of it. */
static void a_shared_beginning_gives_what_each_would_alone(void **state)
{
    enum { COUNT = 9 };
    static const uint32_t leave[COUNT] = { 0, 1, 63, 64, 65, 130, 200, 200, 150 },
                          lengths[COUNT] = { 200, 200, 100, 200, 66, 290, 290, 200, 150 };
    uint32_t ids[COUNT][LONGEST];
    struct generation together[COUNT], alone[COUNT];

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t t = 0; t < lengths[i]; t++)
            ids[i][t] = i > 0 && t < leave[i] && t < lengths[i - 1] ? ids[i - 1][t] : (11 * t + 5 * i + t * t) % FIXTURE_END;
        together[i] = alone[i] =
            (struct generation){ .prompt = ids[i], .prompt_count = lengths[i], .most = MOST, .seed = 40 + i };
        run(f.session, &alone[i], 1, 1);
    }
    run(f.session, together, COUNT, 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        same(&together[i], &alone[i]);
        generation_free(&together[i]);
        generation_free(&alone[i]);
    }
}

static void a_sequence_ends_at_the_context(void **state)
{
    uint32_t ids[PROMPTS][LONGEST];
    struct generation list[PROMPTS];

    (void)state;
    prompts(ids, list);
    list[PROMPTS - 1].most = 1000;
    list[PROMPTS - 1].seed = 3;
    struct generate_options options = { .rule = plain, .rows = 1 }; /* no token ends it */
    struct error err = { 0 };

    FIXTURE_OK(generate(f.session, values, &options, &list[PROMPTS - 1], 1, &err), &err);
    assert_int_equal(list[PROMPTS - 1].end, GENERATE_CONTEXT);
    assert_int_equal(list[PROMPTS - 1].prompt_count + list[PROMPTS - 1].count, f.session->rules.context);
    generation_free(&list[PROMPTS - 1]);
    list[0].prompt_count = 0;
    assert_false(generate(f.session, values, &options, &list[0], 1, &err));
    assert_int_equal(err.code, ERROR_MISSING);
}

/* ---- the rule --------------------------------------------------------------------------------------------------------------- */

static uint32_t pick(struct generate_rule rule, const uint32_t *seen, size_t count, double uniform)
{
    float logits[5] = { 1, 3, 2, 3, -1 };

    return generate_pick(logits, 5, &rule, seen, count, uniform);
}

static void the_rule_keeps_what_it_says(void **state)
{
    const uint32_t seen[2] = { 1, 1 };

    (void)state;
    for (double u = 0; u < 1; u += 0.01) {
        struct generate_rule rule = plain;

        rule.top_k = 1; /* of equal ones the lower id */
        assert_int_equal(pick(rule, NULL, 0, u), 1);
        rule.top_k = 2;
        assert_int_equal(pick(rule, NULL, 0, u), u < 0.5 ? 1 : 3);
        rule = plain;
        rule.top_p = 0.3; /* w: 1 1 e^-1 e^-2 e^-4, sum 2.5215: the first has 0.3966 */
        assert_int_equal(pick(rule, NULL, 0, u), 1);
        rule.top_p = 0.5;
        assert_int_equal(pick(rule, NULL, 0, u), u < 0.5 ? 1 : 3);
        rule = plain;
        rule.min_p = 0.5;
        assert_int_equal(pick(rule, NULL, 0, u), u < 0.5 ? 1 : 3);
        rule = plain;
        rule.min_p = 0.3; /* e^-1 = 0.3679 stays */
        assert_in_range(pick(rule, NULL, 0, u), 1, 3);
        rule = plain;
        rule.temperature = 0;
        assert_int_equal(pick(rule, NULL, 0, u), 1);
        rule.repetition = 2; /* 3 / 2, once */
        assert_int_equal(pick(rule, seen, 2, u), 3);
    }
}

static void a_penalty_lowers_what_is_below_zero_too(void **state)
{
    float logits[2] = { -1, -1.5f };
    const uint32_t seen[1] = { 0 };

    (void)state;
    assert_int_equal(generate_pick(logits, 2, &(struct generate_rule){ .top_p = 1, .repetition = 2 }, seen, 1, 0), 1);
    assert_true(logits[0] == -2.0f);
}

/* ---- graphs that cannot go on ------------------------------------------------------------------------------------------------- */

static void a_graph_that_mixes_tokens_otherwise_is_refused(void **state)
{
    struct graph *g = graph_new(NULL);
    struct error err = { 0 };
    uint32_t x, y;

    (void)state;
    FIXTURE_OK(graph_input(g, "x", TENSOR_F32, "row=1 time=4 dim=2", &x, &err), &err);
    FIXTURE_OK(graph_over(g, OPERATOR_MEAN, x, GRAPH_NONE, GRAPH_NONE, "time", &y, &err), &err);
    assert_null(cache_new(g, "time", &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "mean over time"));
    graph_free(g);
}

int main(int argc, char **argv)
{
    fixture_main(argc, argv);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_probabilities_are_those_of_the_whole_sequence_to_the_bit),
        cmocka_unit_test(neither_neighbours_nor_threads_change_a_sequence),
        cmocka_unit_test(a_shared_prompt_gives_what_each_would_alone),
        cmocka_unit_test(a_shared_beginning_gives_what_each_would_alone),
        cmocka_unit_test(a_sequence_ends_at_the_context),
        cmocka_unit_test(the_rule_keeps_what_it_says),
        cmocka_unit_test(a_penalty_lowers_what_is_below_zero_too),
        cmocka_unit_test(a_graph_that_mixes_tokens_otherwise_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
