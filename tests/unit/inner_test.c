/* A trainer's part of a round, its replay, and the checks of a contribution, on a model of two layers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/codec/payload.h"
#include "native/kernel/pool.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/jobs.h"
#include "tests/fixture/fixture.h"

#define PAYLOAD_MEDIA "application/vnd.rondo.payload"
#define LOG_MEDIA     "application/vnd.rondo.step-log"

static struct fixture f;
static json_t *context, *made; /* of trainer a in round 1 */

static json_t *train(struct session *s, const json_t *ctx, const json_t *shards)
{
    json_t *job = json_pack("{s:O, s:O}", "context", ctx, "shards", shards);
    struct error err = { 0 };
    json_t *result = job_train(s, job, NULL, &err);

    FIXTURE_OK(result != NULL, &err);
    json_decref(job);
    return result;
}

static void the_same_bits_come_out_at_any_number_of_threads(void **state)
{
    json_t *first = train(f.session, context, f.shards);

    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool;
        struct session *other = fixture_session(&f, threads, &pool);
        json_t *again = train(other, context, f.shards);

        assert_true(json_equal(first, again)); /* payload, log and roots by their hashes */
        json_decref(again);
        session_free(other);
        pool_free(pool);
    }
    json_decref(first);
}

static void forgetting_executors_changes_no_bit(void **state)
{
    json_t *first = train(f.session, context, f.shards), *again, *once_more;
    struct pool *pool;
    struct session *other = fixture_session(&f, 1, &pool);

    (void)state;
    other->arenas = 1; /* every new shape drops the one before */
    again = train(other, context, f.shards);
    assert_int_equal(other->step_count, 1);
    once_more = train(other, context, f.shards);
    assert_true(json_equal(first, again));
    assert_true(json_equal(first, once_more));
    json_decref(first);
    json_decref(again);
    json_decref(once_more);
    session_free(other);
    pool_free(pool);
}

/* Memory halved until it is too little: the last that suffices made the same bytes, and the refusal names need and limit. */
static void a_limit_of_memory_changes_no_bit_and_is_refused_with_both_numbers(void **state)
{
    json_t *first = train(f.session, context, f.shards), *job = json_pack("{s:O, s:O}", "context", context, "shards", f.shards);
    struct error err = { 0 };
    struct pool *pool;
    uint64_t most = UINT64_C(1) << 30;
    json_t *again;

    (void)state;
    for (;;) {
        struct session *other = fixture_session(&f, 1, &pool);

        other->memory = most;
        again = job_train(other, job, NULL, &err);
        session_free(other);
        pool_free(pool);
        if (!again)
            break;
        assert_true(json_equal(first, again));
        json_decref(again);
        most -= most / 4;
    }
    assert_int_equal(err.code, ERROR_MEMORY);
    assert_non_null(strstr(err.message, "the graph needs"));
    assert_non_null(strstr(err.message, "of them weights and state; the limit is"));
    json_decref(first);
    json_decref(job);
}

static void another_seed_or_round_gives_other_bytes(void **state)
{
    json_t *other_seed = fixture_context(&f, 1, 'b'), *other_round = fixture_context(&f, 2, 'a');
    json_t *b = train(f.session, other_seed, f.shards), *later = train(f.session, other_round, f.shards);

    (void)state;
    assert_false(json_equal(json_object_get(made, "payload"), json_object_get(b, "payload")));
    assert_false(json_equal(json_object_get(made, "body"), json_object_get(b, "body")));
    assert_false(json_equal(json_object_get(made, "end"), json_object_get(later, "end")));
    json_decref(other_seed);
    json_decref(other_round);
    json_decref(b);
    json_decref(later);
}

static json_t *run_job(json_t *(*job)(struct session *, const json_t *, struct error *), json_t *ctx, json_t *document,
                       struct error *err)
{
    json_t *asked = json_pack("{s:O, s:O}", "context", ctx, "document", document), *answer = job(f.session, asked, err);

    json_decref(asked);
    return answer;
}

/* --- replay --------------------------------------------------------------------------------------------------------------- */

static void check_replay(json_t *document, const json_t *shards, int64_t index, const char *where)
{
    json_t *job = json_pack("{s:O, s:O, s:O}", "context", context, "document", document, "shards", shards);
    struct error err = { 0 };
    json_t *answer = job_replay(f.session, job, NULL, &err);

    FIXTURE_OK(answer != NULL, &err);
    assert_int_equal(document_integer(answer, "index"), index);
    assert_string_equal(document_text(answer, "where"), where);
    json_decref(job);
    json_decref(answer);
}

static void read_log(const json_t *document, struct step_log *log)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };

    FIXTURE_OK(object_get(&f.blocks, document_cid(document, "step_log"), LOG_MEDIA, 1 << 20, &bytes, &err), &err);
    FIXTURE_OK(step_log_decode(bytes.bytes, bytes.size, log, &err), &err);
    buffer_free(&bytes);
}

/* The contribution with another log. New reference. */
static json_t *with_log(const struct step_log *log)
{
    json_t *document = json_copy(made);
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;

    step_log_encode(log, &bytes);
    FIXTURE_OK(object_put(&f.blocks, LOG_MEDIA, bytes.bytes, bytes.size, &id, &err), &err);
    json_object_set_new(document, "step_log", document_json_cid(id));
    buffer_free(&bytes);
    return document;
}

static void check_changed(struct step_log *log, uint8_t *byte, int64_t index, const char *where)
{
    json_t *document;

    *byte ^= 1;
    document = with_log(log);
    check_replay(document, f.shards, index, where);
    json_decref(document);
    *byte ^= 1;
}

static void a_replay_finds_the_first_leaf_that_differs(void **state)
{
    struct step_log log;

    (void)state;
    check_replay(made, f.shards, -1, "equal");
    read_log(made, &log);
    check_changed(&log, &log.start.bytes[7], 0, "start");
    check_changed(&log, &log.leaves[0].batch.bytes[0], 1, "batch");
    check_changed(&log, &log.leaves[1].batch.bytes[31], 2, "batch");
    check_changed(&log, (uint8_t *)&log.leaves[1].loss, 2, "loss");
    check_changed(&log, &log.leaves[2].state.bytes[9], 3, "state");
    check_changed(&log, &log.body.bytes[3], 4, "payload");
    log.leaves[2].state.bytes[0] ^= 1; /* two lies: the first is told */
    check_changed(&log, &log.leaves[0].state.bytes[0], 1, "state");
    log.steps = 2; /* a log that is too short ends where it ends */
    check_changed(&log, &log.carry_out.bytes[0], 3, "payload");
    step_log_free(&log);
}

static void other_data_shows_in_the_first_batch(void **state)
{
    json_t *one = json_pack("[O]", json_array_get(f.shards, 1));

    (void)state;
    check_replay(made, one, 1, "batch");
    json_decref(one);
}

static void a_start_state_that_the_record_does_not_name_is_refused(void **state)
{
    json_t *wrong = json_copy(context), *job;
    struct error err = { 0 };

    (void)state;
    json_object_set_new(wrong, "state", document_json_hash(hash_block("x", 1)));
    job = json_pack("{s:O, s:O}", "context", wrong, "shards", f.shards);
    assert_null(job_train(f.session, job, NULL, &err));
    assert_int_equal(err.code, ERROR_MISMATCH);
    json_decref(job);
    json_decref(wrong);
}

static void probes_show_the_values_of_their_step(void **state)
{
    json_t *probes = json_object_get(made, "probes"), *values;
    struct step_log log;

    (void)state;
    read_log(made, &log);
    assert_int_equal(json_array_size(probes), 1);
    assert_int_equal(document_integer(json_array_get(probes, 0), "step"), 2);
    assert_true(document_float(json_object_get(json_array_get(probes, 0), "loss")) == log.leaves[2].loss);
    values = json_object_get(json_array_get(probes, 0), "values");
    assert_int_equal(json_array_size(values), PROBE_VALUES);
    step_log_free(&log);
}

/* --- check ---------------------------------------------------------------------------------------------------------------- */

static void check_code(json_t *document, const char *code)
{
    struct error err = { 0 };
    json_t *answer = run_job(job_check, context, document, &err);

    FIXTURE_OK(answer != NULL, &err);
    assert_string_equal(document_text(answer, "code"), code);
    json_decref(answer);
    json_decref(document);
}

static json_t *with(const char *name, json_t *value)
{
    json_t *document = json_copy(made);

    json_object_set_new(document, name, value);
    return document;
}

static void read_payload(struct buffer *bytes)
{
    struct error err = { 0 };

    FIXTURE_OK(object_get(&f.blocks, document_cid(made, "payload"), PAYLOAD_MEDIA, 1 << 22, bytes, &err), &err);
}

static json_t *with_payload(const struct buffer *bytes)
{
    json_t *document = json_copy(made);
    struct error err = { 0 };
    struct hash id;

    FIXTURE_OK(object_put(&f.blocks, PAYLOAD_MEDIA, bytes->bytes, bytes->size, &id, &err), &err);
    json_object_set_new(document, "payload", document_json_cid(id));
    json_object_set_new(document, "payload_bytes", json_integer((json_int_t)bytes->size));
    return document;
}

/* The same values under another header. */
static json_t *with_header(void (*change)(struct payload_header *header))
{
    size_t n = (size_t)f.session->layout.values, body;
    float *values = calloc(n, sizeof *values);
    struct tensor *tensors = folding_tensors(&f.session->layout, values);
    struct payload_header header;
    struct buffer bytes = { 0 }, other = { 0 };
    struct error err = { 0 };
    json_t *document;

    read_payload(&bytes);
    FIXTURE_OK(payload_read_header(bytes.bytes, bytes.size, &header, &body, &err), &err);
    FIXTURE_OK(payload_decode(bytes.bytes, bytes.size, &header, tensors, f.session->layout.count, &body, &err), &err);
    change(&header);
    FIXTURE_OK(payload_encode(&header, tensors, f.session->layout.count, &other, &body, &err), &err);
    document = with_payload(&other);
    buffer_free(&bytes);
    buffer_free(&other);
    free(tensors);
    free(values);
    return document;
}

static void other_bits(struct payload_header *header)
{
    header->bits = 8;
}
static void other_round(struct payload_header *header)
{
    header->round++;
}
static void other_run(struct payload_header *header)
{
    header->run[0] ^= 1;
}
static void other_did(struct payload_header *header)
{
    header->did[strlen(header->did) - 1]++;
}

static void a_contribution_as_it_was_made_is_ok(void **state)
{
    (void)state;
    check_code(json_incref(made), "ok");
}

static void payloads_that_are_not_this_trainers_of_this_round_have_a_code(void **state)
{
    struct buffer bytes = { 0 };
    struct payload_header header;
    struct error err = { 0 };
    size_t body;

    (void)state;
    check_code(with_header(other_bits), "mismatch");
    check_code(with_header(other_round), "mismatch");
    check_code(with_header(other_run), "mismatch");
    check_code(with_header(other_did), "mismatch");
    read_payload(&bytes);
    FIXTURE_OK(payload_read_header(bytes.bytes, bytes.size, &header, &body, &err), &err);
    bytes.size--;
    check_code(with_payload(&bytes), "truncated");
    bytes.size++;
    buffer_add_u8(&bytes, 0);
    check_code(with_payload(&bytes), "limit");
    bytes.size--;
    bytes.bytes[body + 4] ^= 0x10; /* a value: another body than the log's */
    check_code(with_payload(&bytes), "body");
    bytes.bytes[body + 4] ^= 0x10;
    memset(bytes.bytes + body, 0xff, 4); /* the first scale is not a number */
    check_code(with_payload(&bytes), "non_finite");
    bytes.bytes[0] = 'X';
    check_code(with_payload(&bytes), "syntax");
    buffer_free(&bytes);
}

static void fields_that_do_not_fit_the_log_or_the_round_have_a_code(void **state)
{
    struct step_log log;
    json_t *probes = json_deep_copy(json_object_get(made, "probes")), *fewer = json_deep_copy(probes);

    (void)state;
    check_code(with("start", document_json_hash(hash_block("x", 1))), "start");
    check_code(with("end", document_json_hash(hash_block("x", 1))), "end");
    check_code(with("body", document_json_hash(hash_block("x", 1))), "body");
    check_code(with("carry_in", document_json_hash(hash_block("x", 1))), "carry");
    check_code(with("steps", json_integer(2)), "steps");
    check_code(with("loss", document_json_float(1)), "loss");
    check_code(with("codec", json_pack("{s:i, s:i}", "bits", 8, "block", 256)), "codec");
    check_code(with("payload_bytes", json_integer(1)), "payload_bytes");
    check_code(with("probes", json_array()), "probes");
    json_object_set_new(json_array_get(probes, 0), "loss", document_json_float(1));
    check_code(with("probes", probes), "probes");
    json_array_remove(json_object_get(json_array_get(fewer, 0), "values"), 7);
    check_code(with("probes", fewer), "probes");
    read_log(made, &log);
    log.steps = 2;
    check_code(with_log(&log), "steps");
    log.steps = 3;
    log.leaves[1].loss = NAN;
    check_code(with_log(&log), "step_log");
    step_log_free(&log);
}

/* --- evaluation ----------------------------------------------------------------------------------------------------------- */

static void evaluating_takes_as_many_rows_as_are_asked_for(void **state)
{
    struct error err = { 0 };
    json_t *job = json_pack("{s:O, s:O, s:i}", "outer", json_object_get(f.genesis, "outer"), "shards", f.shards, "rows", 5);
    json_t *some = job_evaluate(f.session, job, NULL, &err);

    (void)state;
    FIXTURE_OK(some != NULL, &err);
    assert_int_equal(document_integer(some, "rows"), 5);
    assert_true(json_is_null(json_object_get(some, "tool_call_accuracy")));
    assert_true(json_real_value(json_object_get(some, "loss")) > 0);
    json_object_set_new(job, "rows", json_integer(0));
    json_t *all = job_evaluate(f.session, job, NULL, &err);

    assert_int_equal(document_integer(all, "rows"), 24);
    json_decref(all);
    json_decref(some);
    json_decref(job);
}

static int open_run(void **state)
{
    (void)state;
    fixture_new(&f, &(struct fixture_options){ 0 });
    context = fixture_context(&f, 1, 'a');
    made = fixture_contribution(&f, context);
    return 0;
}

static int close_run(void **state)
{
    (void)state;
    json_decref(context);
    json_decref(made);
    fixture_free(&f);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits_come_out_at_any_number_of_threads),
        cmocka_unit_test(forgetting_executors_changes_no_bit),
        cmocka_unit_test(a_limit_of_memory_changes_no_bit_and_is_refused_with_both_numbers),
        cmocka_unit_test(another_seed_or_round_gives_other_bytes),
        cmocka_unit_test(a_replay_finds_the_first_leaf_that_differs),
        cmocka_unit_test(other_data_shows_in_the_first_batch),
        cmocka_unit_test(a_start_state_that_the_record_does_not_name_is_refused),
        cmocka_unit_test(probes_show_the_values_of_their_step),
        cmocka_unit_test(a_contribution_as_it_was_made_is_ok),
        cmocka_unit_test(payloads_that_are_not_this_trainers_of_this_round_have_a_code),
        cmocka_unit_test(fields_that_do_not_fit_the_log_or_the_round_have_a_code),
        cmocka_unit_test(evaluating_takes_as_many_rows_as_are_asked_for),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, open_run, close_run);
}
