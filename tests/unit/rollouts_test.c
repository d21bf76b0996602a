/* Runs on rollouts: drawn by the seed, rewarded, prepared; replayed to the bit; and a trainer whose rollouts are not what the seed gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/kernel/pool.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/worker/drawn.h"
#include "runtime/worker/jobs.h"
#include "runtime/worker/rollouts.h"
#include "tests/fixture/fixture.h"

#define LOG_MEDIA "application/vnd.rondo.step-log"

/* Vowels are good; what begins with "q" is no text to score; with "z" the script fails, with "y" it gives NaN. */
static const char source[] = "return reward { score = function(r)\n"
                             "  local first = string.sub(r.text, 1, 1)\n"
                             "  if first == 'q' then return nil end\n"
                             "  if first == 'z' then return r.tokens.none end\n"
                             "  if first == 'y' then return 0 / 0 end\n"
                             "  return #(text.match(r.text, '[aeiou]*')[0]) / #r.text + r.tokens / 100\n"
                             "end }\n";

static struct fixture f;
static json_t *context, *made;

static int set_up(void **state)
{
    (void)state;
    fixture_new(&f, &(struct fixture_options){ .reward = source, .steps = 4, .batch_tokens = 768 });
    context = fixture_context(&f, 1, 'a');
    made = fixture_contribution(&f, context);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(context);
    json_decref(made);
    fixture_free(&f);
    return 0;
}

static void first_batch(char who, struct batch *b, struct rollouts *r)
{
    struct error err = { 0 };
    float *values = layout_values(&f.session->layout, &err);

    FIXTURE_OK(values && session_genesis(f.session, values, &err), &err);
    FIXTURE_OK(rollouts_new(r, f.session, f.shards, document_hash(context, "seed"), (char[]){ who, 0 }, 1, 1, &err), &err);
    FIXTURE_OK(rollouts_next(r, values, b, &err), &err);
    free(values);
}

static void a_batch_holds_groups_with_rewards_advantages_and_log_probabilities(void **state)
{
    struct batch b = { 0 };
    struct rollouts r;
    const float *reward, *valid, *advantage, *old, *sampler, *reference;

    (void)state;
    first_batch('a', &b, &r);
    reward = batch_field(&b, "reward");
    valid = batch_field(&b, "valid");
    advantage = batch_field(&b, "advantage");
    old = batch_field(&b, "old_logprobs");
    sampler = batch_field(&b, "sampler_logprobs");
    reference = batch_field(&b, "ref_logprobs");
    assert_true(b.rows >= 8 && b.rows % 4 == 0);
    for (int64_t g = 0; g < b.rows; g += 4) {
        double mean = 0, square = 0, count = 0;

        for (int64_t i = g; i < g + 4; i++) {
            assert_memory_equal(b.ids + g * b.time, b.ids + i * b.time, 8 * sizeof *b.ids); /* one prompt */
            mean += (double)(reward[i] * valid[i]);
            count += (double)valid[i];
        }
        mean /= count > 0 ? count : 1;
        for (int64_t i = g; i < g + 4; i++)
            square += (double)valid[i] * pow((double)reward[i] - mean, 2);
        for (int64_t i = g; i < g + 4; i++)
            assert_true(fabs((double)advantage[i] - (double)valid[i] * ((double)reward[i] - mean) /
                                                        (sqrt(square / (count > 0 ? count : 1)) + 1e-6)) < 1e-3);
    }
    for (int64_t i = 0; i < b.rows * b.time; i++) {
        if (b.mask[i] > 0)
            assert_true(old[i] < 0 && sampler[i] < 0);
        assert_memory_equal(&old[i], &reference[i], sizeof *old); /* the run's first values are these */
    }
    batch_free(&b);
    rollouts_free(&r);
}

static void the_seed_and_the_trainer_say_what_is_drawn(void **state)
{
    struct batch b[3] = { { 0 } };
    struct rollouts r[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        first_batch(i == 2 ? 'c' : 'a', &b[i], &r[i]);
    assert_true(hash_equal(batch_root(&b[0]), batch_root(&b[1])));
    assert_false(hash_equal(batch_root(&b[0]), batch_root(&b[2])));
    for (int i = 0; i < 3; i++) {
        batch_free(&b[i]);
        rollouts_free(&r[i]);
    }
}

/* The first batch of a session whose reference is that folder. */
static bool first_reference(const char *path, struct batch *b, struct error *err)
{
    json_t *job = json_copy(f.job);
    struct pool *pool = pool_new(1);
    struct rollouts r = { 0 };

    json_object_set_new(job, "reference", json_string(path));

    struct session *s = session_new(job, &f.blocks, pool, err);
    float *values = s ? layout_values(&s->layout, err) : NULL;
    bool ok = values && session_genesis(s, values, err) &&
              rollouts_new(&r, s, f.shards, document_hash(context, "seed"), "a", 1, 1, err) && rollouts_next(&r, values, b, err);

    rollouts_free(&r);
    free(values);
    session_free(s);
    pool_free(pool);
    json_decref(job);
    return ok;
}

static void a_reference_that_is_the_base_model_is_the_run_s_start(void **state)
{
    struct batch b = { 0 };
    struct error err = { 0 };
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/model", f.folder);
    FIXTURE_OK(first_reference(path, &b, &err), &err);
    assert_memory_equal(batch_field(&b, "ref_logprobs"), batch_field(&b, "old_logprobs"),
                        (size_t)(b.rows * b.time) * sizeof(float));
    batch_free(&b);
}

static void a_reference_may_be_an_adapter_over_the_base_model(void **state)
{
    struct batch b = { 0 };
    struct error err = { 0 };
    char path[128];
    float *values = fixture_adapter(&f, path);

    (void)state;
    FIXTURE_OK(first_reference(path, &b, &err), &err);

    size_t count = (size_t)(b.rows * b.time);
    float *wanted = calloc(count, sizeof *wanted), *best = calloc(count, sizeof *best);
    const float *got = batch_field(&b, "ref_logprobs"), *old = batch_field(&b, "old_logprobs");
    size_t apart = 0;

    FIXTURE_OK(training_logprobs(f.session, values, &b, wanted, best, &err), &err);
    for (size_t i = 0; i < count; i++) {
        assert_true(b.mask[i] > 0 ? got[i] == wanted[i] : got[i] == 0);
        apart += b.mask[i] > 0 && fabsf(got[i] - old[i]) > 1e-3f;
    }
    assert_true(apart > 8);
    free(wanted);
    free(best);
    free(values);
    batch_free(&b);
}

static void a_reference_of_another_vocabulary_is_refused(void **state)
{
    struct batch b = { 0 };
    struct error err = { 0 };

    (void)state;
    assert_false(first_reference(RONDO_SOURCE "/models/pocket", &b, &err));
    assert_int_equal(err.code, ERROR_MISMATCH);
    assert_string_equal(err.message, "the reference's vocabulary is another one");
    batch_free(&b);
}

static void check_replay(json_t *document, int64_t index, const char *where)
{
    json_t *job = json_pack("{s:O, s:O, s:O}", "context", context, "document", document, "shards", f.shards);
    struct error err = { 0 };
    struct pool *pool;
    struct session *other = fixture_session(&f, 2, &pool);
    json_t *answer = job_replay(other, job, NULL, &err);

    FIXTURE_OK(answer != NULL, &err);
    assert_int_equal(document_integer(answer, "index"), index);
    assert_string_equal(document_text(answer, "where"), where);
    json_decref(job);
    json_decref(answer);
    session_free(other);
    pool_free(pool);
}

static void a_round_is_replayed_to_the_bit(void **state)
{
    (void)state;
    check_replay(made, -1, "equal");
}

/* A trainer who draws until it likes what came: everything else is honest work on those rollouts. */
static void rollouts_that_the_seed_does_not_give_are_found_at_their_step(void **state)
{
    json_t *lie = json_deep_copy(context), *document;

    (void)state;
    json_object_set_new(lie, "did", json_string("did:key:zliar"));
    document = fixture_contribution(&f, lie);
    check_replay(document, 1, "batch");
    json_decref(document);
    json_decref(lie);
}

/* Groups of the first batch, as people read them; whether they are what the document committed to. */
static json_t *read_first(const json_t *document, bool *match)
{
    json_t *job = json_pack("{s:O, s:O, s:O, s:i}", "context", context, "document", document, "shards", f.shards, "batches", 1);
    struct error err = { 0 };
    json_t *answer = job_rollouts(f.session, job, &err), *batch, *groups;

    FIXTURE_OK(answer != NULL, &err);
    assert_int_equal(json_array_size(json_object_get(answer, "batches")), 1);
    batch = json_array_get(json_object_get(answer, "batches"), 0);
    *match = json_is_true(json_object_get(batch, "match"));
    groups = json_incref(json_object_get(batch, "groups"));
    json_decref(answer);
    json_decref(job);
    return groups;
}

static void what_was_drawn_can_be_read_and_is_compared_with_what_was_committed_to(void **state)
{
    json_t *lie = json_deep_copy(context), *document, *groups, *again, *one, *text;
    struct batch b = { 0 };
    struct rollouts r;
    bool match;

    (void)state;
    first_batch('a', &b, &r);
    json_object_set_new(lie, "did", json_string("a")); /* the trainer of that batch */
    document = fixture_contribution(&f, lie);
    groups = read_first(made, &match);
    assert_true(match);
    assert_int_equal(json_array_size(groups) * 4, b.rows);
    one = json_array_get(json_object_get(json_array_get(groups, 0), "completions"), 3);
    text = json_object_get(one, "text");
    assert_true(json_is_string(text) && json_array_size(json_object_get(one, "tokens")) > 0);
    assert_int_equal(json_array_size(json_object_get(one, "tokens")), json_array_size(json_object_get(one, "logprobs")));
    assert_true(json_is_real(json_object_get(one, "advantage")));
    again = read_first(document, &match);
    assert_false(match);
    assert_true(json_equal(groups, again)); /* what the context gives, whatever the document says */
    json_decref(groups);
    json_decref(again);
    json_decref(document);
    json_decref(lie);
    batch_free(&b);
    rollouts_free(&r);
}

static json_t *completion(const char *text)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:b, s:i}", "prompt", "\"p\"", "reference", "null", "text", text, "tokens", 3,
                     "truncated", 0, "round", 1);
}

static void a_completion_without_a_finite_reward_is_declined_alone(void **state)
{
    static const char *const texts[] = { "aeb", "quiet", "zoo", "bad", "yes", "ooo" };
    float reward[6], valid[6];
    struct scores scores = { .reward = reward, .valid = valid };
    json_t *list = json_array();
    struct error err = { 0 };

    (void)state;
    for (int i = 0; i < 6; i++)
        json_array_append_new(list, completion(texts[i]));
    FIXTURE_OK(scoring_run(f.session, list, &scores, &err), &err);
    for (int i = 0; i < 6; i++)
        assert_true(valid[i] == (i == 1 || i == 2 || i == 4 ? 0 : 1));
    assert_int_equal(scores.failed, 2);
    assert_true(reward[0] == (float)(2.0 / 3 + 0.03) && reward[1] == 0 && reward[3] == 0.03f && reward[5] == (float)1.03);
    json_decref(list);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_holds_groups_with_rewards_advantages_and_log_probabilities),
        cmocka_unit_test(the_seed_and_the_trainer_say_what_is_drawn),
        cmocka_unit_test(a_reference_that_is_the_base_model_is_the_run_s_start),
        cmocka_unit_test(a_reference_may_be_an_adapter_over_the_base_model),
        cmocka_unit_test(a_reference_of_another_vocabulary_is_refused),
        cmocka_unit_test(a_round_is_replayed_to_the_bit),
        cmocka_unit_test(rollouts_that_the_seed_does_not_give_are_found_at_their_step),
        cmocka_unit_test(what_was_drawn_can_be_read_and_is_compared_with_what_was_committed_to),
        cmocka_unit_test(a_completion_without_a_finite_reward_is_declined_alone),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
