/* failure.h: whoever submits what nobody can compute is found at that leaf and convicted by a tile; what one machine cannot do says nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/kernel/pool.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/dispute.h"
#include "runtime/worker/failure.h"
#include "runtime/worker/jobs.h"
#include "tests/fixture/fixture.h"

/* A run in which a weight of the base is infinite, so that no loss is finite; and a contribution by a machine that held another weight. */
struct impossible {
    struct fixture f; /* its session is the honest one */
    struct session *liar;
    struct pool *pool;
    json_t *context, *document, *job;
};

static void spoil(struct session *s)
{
    json_t *params = json_object_get(s->layout.meta, "params"), *param;
    size_t index;

    json_array_foreach(params, index, param)
    {
        if (s->frozen[index] && strstr(document_text(param, "name"), "up_proj")) {
            s->frozen[index][5] = INFINITY;
            return;
        }
    }
    fail_msg("no frozen weight is held");
}

static void impossible_new(struct impossible *x)
{
    memset(x, 0, sizeof *x);
    fixture_new(&x->f, &(struct fixture_options){ 0 });
    x->context = fixture_context(&x->f, 1, 'a');
    x->document = fixture_contribution(&x->f, x->context); /* with every weight read */
    x->liar = fixture_session(&x->f, 1, &x->pool);
    spoil(x->f.session);
    x->job = json_pack("{s:O, s:O, s:O}", "context", x->context, "document", x->document, "shards", x->f.shards);
}

static void impossible_free(struct impossible *x)
{
    json_decref(x->job);
    json_decref(x->document);
    json_decref(x->context);
    session_free(x->liar);
    pool_free(x->pool);
    fixture_free(&x->f);
}

static void a_leaf_that_nobody_can_compute_is_wrong(void **state)
{
    struct impossible x;
    struct error err = { 0 };
    json_t *result, *failure;

    (void)state;
    impossible_new(&x);
    result = job_replay(x.f.session, x.job, NULL, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_int_equal(document_integer(result, "index"), 1);
    assert_string_equal(document_text(result, "where"), "failure");
    failure = json_object_get(result, "failure");
    assert_string_equal(document_text(failure, "code"), "non_finite");
    assert_int_equal(document_integer(failure, "leaf"), 1);
    assert_non_null(strstr(document_text(failure, "message"), "mlp")); /* the operator, and the weight before it */
    json_decref(result);
    impossible_free(&x);
}

/* Shards of which every row is left out: nobody can train on them, so whoever sends something made it up. */
static void work_on_no_example_is_made_up(void **state)
{
    struct impossible x;
    struct hash id;
    struct error err = { 0 };
    json_t *result;

    (void)state;
    impossible_new(&x);
    json_object_set_new(x.job, "shards", json_array());
    result = job_replay(x.f.session, x.job, NULL, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_int_equal(document_integer(result, "index"), 1);
    assert_string_equal(document_text(json_object_get(result, "failure"), "code"), "range");
    json_decref(result);
    FIXTURE_OK(object_put(&x.f.blocks, "application/vnd.rondo.shard+jsonl", "no rows", 7, &id, &err),
               &err); /* nor on what is no row */
    json_object_set_new(x.job, "shards", json_pack("[o]", document_json_cid(id)));
    result = job_replay(x.f.session, x.job, NULL, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_int_equal(document_integer(result, "index"), 1);
    json_decref(result);
    json_object_set_new(x.job, "move", json_string("challenge"));
    json_object_set_new(x.job, "index", json_integer(1));
    result = job_judge(x.f.session, x.job, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_string_equal(document_text(result, "code"), "upheld");
    json_decref(result);
    impossible_free(&x);
}

static void a_tile_convicts_who_says_that_it_was_computed(void **state)
{
    struct impossible x;
    struct buffer opening = { 0 }, pick = { 0 };
    struct step_log log = { 0 };
    struct dispute_verdict verdict;
    struct error err = { 0 };

    (void)state;
    impossible_new(&x);

    struct dispute_case c = { .context = x.context, .shards = x.f.shards, .index = 1 };

    FIXTURE_OK(dispute_open(x.liar, &c, NULL, &opening, &err), &err);
    FIXTURE_OK(job_step_log(x.f.session, x.document, &log, &err), &err);
    c.log = &log;
    FIXTURE_OK(dispute_opening(x.f.session, &c, opening.bytes, opening.size, &verdict, &err), &err);
    assert_string_equal(verdict.code, "ok");
    FIXTURE_OK(dispute_pick(x.f.session, &c, opening.bytes, opening.size, NULL, &pick, &verdict, &err), &err);
    assert_string_equal(verdict.code, "ok");
    FIXTURE_OK(dispute_judge(x.f.session, &c, opening.bytes, opening.size, pick.bytes, pick.size, &verdict, &err), &err);
    assert_string_equal(verdict.code, "upheld");
    assert_string_equal(verdict.operator_name, "dot");
    FIXTURE_OK(dispute_judge(x.liar, &c, opening.bytes, opening.size, pick.bytes, pick.size, &verdict, &err), &err);
    assert_string_equal(verdict.code, "rejected"); /* where that weight is as the liar has it */
    step_log_free(&log);
    buffer_free(&opening);
    buffer_free(&pick);
    impossible_free(&x);
}

static void what_this_machine_cannot_do_is_no_result(void **state)
{
    struct impossible x;
    struct error err = { 0 };

    (void)state;
    impossible_new(&x);
    x.liar->memory = 1000;
    assert_null(job_replay(x.liar, x.job, NULL, &err));
    assert_int_equal(err.code, ERROR_MEMORY);
    assert_false(failure_is_everywhere(&err));
    for (enum error_code code = ERROR_NONE; code < ERROR_CODES; code++)
        if (failure_is_everywhere(&(struct error){ .code = code }))
            assert_int_equal(error_status(code), 3);
    assert_true(failure_is_here(&(struct error){ .code = ERROR_ABSENT }));
    impossible_free(&x);
}

/* The file of the first chunk of that object, with its bytes. */
static void chunk_of(const struct fixture *f, const json_t *document, const char *name, char path[600], struct buffer *bytes)
{
    struct manifest m;
    struct error err = { 0 };
    struct hash id;
    char cid[CID_TEXT];

    FIXTURE_OK(cid_parse(document_text(document, name), &id, &err) &&
                   object_manifest(&f->blocks, id, NULL, UINT64_MAX, &m, &err) && block_get(&f->blocks, m.chunks[0], bytes, &err),
               &err);
    snprintf(path, 600, "%.500s/%s", f->blocks.folder, cid_text(m.chunks[0], cid));
    manifest_free(&m);
}

static void what_the_own_disk_spoiled_is_no_code_of_anybody(void **state)
{
    static const char *const objects[] = { "payload", "step_log" };
    struct impossible x;
    struct error err = { 0 };
    char path[600];

    (void)state;
    impossible_new(&x);
    for (size_t i = 0; i < 2; i++) {
        struct buffer bytes = { 0 };

        chunk_of(&x.f, x.document, objects[i], path, &bytes);
        FIXTURE_OK(file_write(path, "rot", 3, 0644, &err), &err);
        assert_null(job_check(x.f.session, x.job, &err));
        assert_int_equal(err.code, ERROR_DAMAGED);
        assert_true(failure_is_here(&err));
        if (i == 1)
            assert_null(job_replay(x.f.session, x.job, NULL, &err));
        FIXTURE_OK(file_write(path, bytes.bytes, bytes.size, 0644, &err), &err);
        buffer_free(&bytes);
    }
    impossible_free(&x);
}

/* The manifest is a liar's, the block is not. */
static void a_hostile_carry_convicts_and_a_spoiled_one_does_not(void **state)
{
    struct fixture f;
    struct hash chunk, carry;
    struct error err = { 0 };
    char path[600], cid[CID_TEXT], text[400];
    json_t *shown;

    (void)state;
    fixture_new(&f, &(struct fixture_options){ 0 });
    FIXTURE_OK(block_put(&f.blocks, "no state", 8, &chunk, &err), &err);
    snprintf(text, sizeof text, "{\"chunk\":1048576,\"chunks\":[\"%s\"],\"media\":\"%s\",\"size\":9,\"version\":1}",
             cid_text(chunk, cid), STATE_MEDIA);
    FIXTURE_OK(block_put(&f.blocks, text, strlen(text), &carry, &err), &err);
    shown = json_pack("{s:o, s:o}", "root", document_json_hash(hash_block("x", 1)), "object", document_json_cid(carry));
    assert_string_equal(carry_judge(f.session, shown, &err), "upheld");
    snprintf(path, sizeof path, "%.500s/%s", f.blocks.folder, cid_text(chunk, cid));
    FIXTURE_OK(file_write(path, "rot", 3, 0644, &err), &err);
    assert_null(carry_judge(f.session, shown, &err));
    assert_int_equal(err.code, ERROR_DAMAGED);
    json_decref(shown);
    fixture_free(&f);
}

/* A weight that the disk has changed makes everybody else's work look wrong. */
static void nobody_is_accused_by_a_spoiled_model(void **state)
{
    struct impossible x;
    struct error err = { 0 };
    struct hash id;
    char path[600];
    json_t *result;

    (void)state;
    impossible_new(&x);
    snprintf(path, sizeof path, "%.500s/weights", x.f.blocks.folder);
    FIXTURE_OK(file_write(path, "weights", 7, 0644, &err) && object_id(MODEL_MEDIA, "weights", 7, &id, &err), &err);
    json_object_set_new(x.f.session->job, "files", json_pack("[[s, o]]", path, document_json_cid(id)));
    result = job_replay(x.f.session, x.job, NULL, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_int_equal(document_integer(result, "index"), 1);
    json_decref(result);
    FIXTURE_OK(file_write(path, "weighty", 7, 0644, &err), &err);
    json_object_set_new(x.job, "document", json_deep_copy(x.document)); /* not the replay that is held */
    json_object_set_new(json_object_get(x.job, "document"), "tokens", json_integer(1));
    assert_null(job_replay(x.f.session, x.job, NULL, &err));
    assert_int_equal(err.code, ERROR_DAMAGED);
    json_object_del(x.f.session->job, "files");
    impossible_free(&x);
}

static void challenges_of_one_contribution_share_one_replay(void **state)
{
    struct impossible x;
    struct error err = { 0 };
    json_t *once, *again, *other;

    (void)state;
    impossible_new(&x);
    once = job_replay(x.liar, x.job, NULL, &err);
    FIXTURE_OK(once != NULL, &err);
    json_object_set_new(x.job, "index", json_integer(4)); /* which leaf is challenged plays no part */
    again = job_replay(x.liar, x.job, NULL, &err);
    assert_ptr_equal(once, again);
    json_object_set_new(x.job, "document", json_deep_copy(x.document));
    json_object_set_new(json_object_get(x.job, "document"), "tokens", json_integer(1));
    other = job_replay(x.liar, x.job, NULL, &err);
    FIXTURE_OK(other != NULL, &err);
    assert_ptr_not_equal(once, other);
    json_decref(once);
    json_decref(again);
    json_decref(other);
    impossible_free(&x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_that_nobody_can_compute_is_wrong),
        cmocka_unit_test(work_on_no_example_is_made_up),
        cmocka_unit_test(a_tile_convicts_who_says_that_it_was_computed),
        cmocka_unit_test(what_this_machine_cannot_do_is_no_result),
        cmocka_unit_test(what_the_own_disk_spoiled_is_no_code_of_anybody),
        cmocka_unit_test(a_hostile_carry_convicts_and_a_spoiled_one_does_not),
        cmocka_unit_test(nobody_is_accused_by_a_spoiled_model),
        cmocka_unit_test(challenges_of_one_contribution_share_one_replay),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
