/* Pairs in a batch, and a step of DPO on them against plain binary64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/text/conversation_row.h"
#include "runtime/worker/reference.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

enum { PAIRS = 3 };

static struct fixture f;

/* Pair i: a prompt of two tokens, then i + 2 tokens that are preferred and one more that is not. */
static void make_pairs(struct examples *list)
{
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
        struct example *e = examples_add(list);

        e->side = i % 2 ? EXAMPLE_REJECTED : EXAMPLE_CHOSEN;
        e->count = 4 + i / 2 + i % 2;
        e->ids = calloc(e->count, sizeof *e->ids);
        e->weights = calloc(e->count, sizeof *e->weights);
        for (uint32_t t = 0; t < e->count; t++) {
            e->ids[t] = t < 2 ? i / 2 + t : (7 * i + 3 * t + 1) % FIXTURE_END;
            e->weights[t] = t >= 2;
        }
    }
}

static void next_batch(const struct examples *list, int64_t batch_tokens, struct batch *b)
{
    struct batch_rules rules = f.session->rules;
    struct sampler s;
    struct error err = { 0 };

    rules.batch_tokens = batch_tokens;
    FIXTURE_OK(sampler_new(&s, &rules, (const struct examples *const[]){ list }, 1, hash_typed("rondo/seed", "x", 1), &err),
               &err);
    sampler_next(&s, b);
    sampler_free(&s);
}

static void the_first_half_of_a_batch_is_chosen_and_the_second_refused(void **state)
{
    struct examples list = { 0 };
    struct batch b = { 0 };

    (void)state;
    make_pairs(&list);
    next_batch(&list, 4 * BATCH_BUCKET, &b);
    assert_int_equal(b.rows, 4); /* two pairs fit */
    assert_int_equal(b.time, BATCH_BUCKET);
    for (int64_t pair = 0; pair < 2; pair++) {
        const int32_t *chosen = (const int32_t *)batch_field(&b, "chosen.ids") + pair * b.time,
                      *rejected = (const int32_t *)batch_field(&b, "rejected.ids") + pair * b.time;
        const struct example *e = &list.items[2 * chosen[0]]; /* the prompt's first token is the pair's number */

        for (size_t t = 0; t < e[0].count; t++)
            assert_int_equal(chosen[t], e[0].ids[t]);
        for (size_t t = 0; t < e[1].count; t++)
            assert_int_equal(rejected[t], e[1].ids[t]);
    }
    assert_ptr_equal(batch_field(&b, "rejected.mask"), b.mask + 2 * b.time);
    assert_int_equal(batch_field_count(&b, "chosen.mask"), 2 * b.time);
    assert_null(batch_field(&b, "chosen.reward"));
    batch_free(&b);
    examples_free(&list);
}

/* Sums of log-probabilities of what is trained in each row. */
static void sums(const float *values, const struct batch *b, double *out)
{
    size_t count = (size_t)(b->rows * b->time);
    float *logprobs = calloc(count, sizeof *logprobs), *best = calloc(count, sizeof *best);
    struct error err = { 0 };

    FIXTURE_OK(training_logprobs(f.session, values, b, logprobs, best, &err), &err);
    for (int64_t row = 0; row < b->rows; row++) {
        out[row] = 0;
        for (int64_t t = 0; t < b->time; t++)
            out[row] += (double)b->mask[row * b->time + t] * (double)logprobs[row * b->time + t];
    }
    free(logprobs);
    free(best);
}

static double dpo(const float *values, const struct batch *b, const double *reference)
{
    double own[2 * PAIRS], loss = 0;
    const int64_t pairs = b->rows / 2;

    sums(values, b, own);
    for (int64_t i = 0; i < pairs; i++)
        loss += log1p(exp(-0.1 * (own[i] - reference[i] - (own[i + pairs] - reference[i + pairs])))) / (double)pairs;
    return loss;
}

static void a_step_follows_the_loss_of_dpo_and_its_differences(void **state)
{
    const size_t n = (size_t)f.session->layout.values;
    float *values = calloc(n, sizeof *values), *start = calloc(n, sizeof *start), *moved = calloc(n, sizeof *moved);
    struct examples list = { 0 };
    struct batch b = { 0 };
    struct training t;
    struct error err = { 0 };
    double reference[2 * PAIRS], along = 0, square = 0;

    (void)state;
    make_pairs(&list);
    next_batch(&list, 2 * PAIRS * BATCH_BUCKET, &b);
    assert_int_equal(b.rows, 2 * PAIRS);
    FIXTURE_OK(session_genesis(f.session, start, &err), &err);
    sums(start, &b, reference);
    FIXTURE_OK(reference_add(f.session, &b, SESSION_TRAIN, 0, &err), &err);
    for (uint32_t i = 0; i < n; i++)
        values[i] = moved[i] = start[i] + fixture_weight("moved", i, 0.2f);

    FIXTURE_OK(training_new(&t, f.session, moved, 0, &err), &err);
    FIXTURE_OK(training_step(&t, &b, 1, 0, &err), &err); /* plain descent of rate 1: the gradient is what the values lose */
    assert_true(fabs((double)t.loss - dpo(values, &b, reference)) < 1e-5);
    for (size_t i = 0; i < n; i++) {
        moved[i] = values[i] - moved[i];
        square += (double)moved[i] * (double)moved[i];
    }
    for (int side = -1; side <= 1; side += 2) {
        for (size_t i = 0; i < n; i++)
            start[i] = values[i] + (float)side * 0.01f / (float)sqrt(square) * moved[i];
        along += side * dpo(start, &b, reference) / 0.02;
    }
    assert_true(fabs(along - sqrt(square)) < 0.01 * sqrt(square));
    training_free(&t);
    batch_free(&b);
    examples_free(&list);
    free(values);
    free(start);
    free(moved);
}

/* Another session of a fixture's run, with a reference. */
static struct session *referred(const struct fixture *of, const char *path, struct error *err)
{
    json_t *job = json_copy(of->job);
    struct session *s;

    json_object_set_new(job, "reference", json_string(path));
    s = session_new(job, &of->blocks, of->pool, err);
    json_decref(job);
    return s;
}

static void a_named_reference_is_what_pairs_are_measured_from(void **state)
{
    struct examples list = { 0 };
    struct batch b = { 0 };
    struct error err = { 0 };
    char path[128];
    float *values = fixture_adapter(&f, path);

    (void)state;

    struct session *s = referred(&f, path, &err);

    FIXTURE_OK(s != NULL, &err);
    make_pairs(&list);
    next_batch(&list, 2 * PAIRS * BATCH_BUCKET, &b);
    FIXTURE_OK(reference_add(s, &b, SESSION_TRAIN, 0, &err), &err);

    const size_t count = (size_t)(b.rows * b.time);
    float *wanted = calloc(count, sizeof *wanted), *best = calloc(count, sizeof *best);
    const float *got = batch_field(&b, "chosen.ref_logprobs");

    FIXTURE_OK(training_logprobs(f.session, values, &b, wanted, best, &err), &err);
    for (size_t i = 0; i < count; i++)
        assert_true(b.mask[i] > 0 ? got[i] == wanted[i] : got[i] == 0);
    session_free(s);
    batch_free(&b);
    examples_free(&list);
    free(values);
    free(wanted);
    free(best);
}

static void a_reference_that_nothing_reads_is_refused(void **state)
{
    struct fixture chat;
    struct error err = { 0 };
    char path[128];

    (void)state;
    fixture_new(&chat, &(struct fixture_options){ 0 });
    snprintf(path, sizeof path, "%s/model", chat.folder);
    assert_null(referred(&chat, path, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "reads no reference"));
    fixture_free(&chat);
}

/* The run of the fixture with another objective. */
static struct fixture with_objective(const char *name)
{
    struct fixture of = { .blocks = f.blocks, .pool = f.pool, .job = json_deep_copy(f.job) };
    struct buffer text = { 0 };
    struct error err = { 0 };
    char path[512];

    snprintf(path, sizeof path, RONDO_SOURCE "/scripts/objectives/%s.lua", name);
    FIXTURE_OK(file_read(path, 1 << 20, &text, &err), &err);
    json_object_set_new(json_object_get(of.job, "scripts"), name,
                        json_pack("{s:s, s:s}", "name", name, "source", buffer_text(&text)));
    json_object_set_new(json_object_get(of.job, "spec"), "objective", json_pack("{s:s, s:{}}", "script", name, "options"));
    buffer_free(&text);
    return of;
}

static void refuses(struct fixture *of, const char *model)
{
    struct error err = { 0 };

    assert_null(referred(of, model, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "reads no reference"));
}

/* Found when the run is opened, not in its first step. */
static void objectives_that_could_read_a_reference_and_do_not_are_refused_one(void **state)
{
    static const char *const without[] = { "simpo", "orpo" };
    struct fixture drawn, ipo = with_objective("ipo");
    struct error err = { 0 };
    struct session *s;
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/model", f.folder);
    for (size_t i = 0; i < 2; i++) {
        struct fixture of = with_objective(without[i]);

        refuses(&of, path);
        json_decref(of.job);
    }
    s = referred(&ipo, path, &err);
    FIXTURE_OK(s != NULL, &err);
    session_free(s);
    json_decref(ipo.job);

    fixture_new(&drawn, &(struct fixture_options){ .reward = "return { kind = \"reward\", score = function() return 1 end }" });
    s = referred(&drawn, path, &err);
    FIXTURE_OK(s != NULL, &err);
    session_free(s);
    json_object_set_new(json_object_get(json_object_get(json_object_get(drawn.job, "spec"), "objective"), "options"), "kl",
                        json_string("0"));
    refuses(&drawn, path);
    fixture_free(&drawn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objectives_that_could_read_a_reference_and_do_not_are_refused_one),
        cmocka_unit_test(the_first_half_of_a_batch_is_chosen_and_the_second_refused),
        cmocka_unit_test(a_step_follows_the_loss_of_dpo_and_its_differences),
        cmocka_unit_test(a_named_reference_is_what_pairs_are_measured_from),
        cmocka_unit_test(a_reference_that_nothing_reads_is_refused),
    };

    return FIXTURE_TESTS(argc, argv, &f, tests, .pairs = true, .inner = "sgd");
}
