/* Rounds that exchange a part of the tensors, on a model of two layers with a fragment each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/codec/payload.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/fragments.h"
#include "runtime/worker/jobs.h"
#include "tests/fixture/fixture.h"

#define PAYLOAD_MEDIA "application/vnd.rondo.payload"

static struct fixture f;

static json_t *plan_of_round(int round)
{
    json_t *asked = json_pack("{s:{s:i, s:i, s:n}}", "request", "round", round, "peers", 2, "last");
    struct error err = { 0 };
    json_t *answer = job_plan(f.session, asked, &err), *plan = json_incref(json_object_get(answer, "plan"));

    FIXTURE_OK(answer != NULL, &err);
    json_decref(answer);
    json_decref(asked);
    return plan;
}

/* What trainer `who` is told in a round that starts at the run's first state; `carry` of the round before, or NULL. */
static json_t *told(int round, char who, json_t *carry)
{
    json_t *context = fixture_context(&f, round, who);

    json_object_set_new(context, "plan", plan_of_round(round));
    json_object_set_new(context, "fragment", json_integer(document_integer(json_object_get(context, "plan"), "fragment")));
    if (carry)
        json_object_set_new(context, "carry", carry);
    return context;
}

static json_t *contribution(json_t *context)
{
    json_t *made = fixture_contribution(&f, context);

    json_object_set(made, "fragment", json_object_get(context, "fragment"));
    return made;
}

static const char *check(json_t *context, json_t *document)
{
    static char code[32];
    json_t *job = json_pack("{s:O, s:O}", "context", context, "document", document);
    struct error err = { 0 };
    json_t *answer = job_check(f.session, job, &err);

    FIXTURE_OK(answer != NULL, &err);
    snprintf(code, sizeof code, "%s", document_text(answer, "code"));
    json_decref(answer);
    json_decref(job);
    return code;
}

static json_t *carry_in_of(const json_t *made)
{
    return json_pack("{s:O, s:O}", "root", json_object_get(made, "carry_out"), "object", json_object_get(made, "carry"));
}

/* The object behind a carry, and one of its tensors. */
static void read_carry(const json_t *made, struct buffer *bytes, struct state_object *object)
{
    struct error err = { 0 };

    FIXTURE_OK(object_get(&f.blocks, document_cid(made, "carry"), STATE_MEDIA, 1 << 24, bytes, &err) &&
                   state_decode(bytes->bytes, bytes->size, object, &err),
               &err);
}

static const float *tensor_of(const struct state_object *object, char kind, const char *name)
{
    char full[300];

    snprintf(full, sizeof full, "%c.%s", kind, name);
    for (size_t i = 0; i < object->count; i++)
        if (strcmp(object->tensors[i].name, full) == 0)
            return object->tensors[i].bytes;
    return NULL;
}

static bool any_of(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != 0)
            return true;
    return false;
}

/* What a contribution's payload says, zeros elsewhere. */
static float *payload_of(const json_t *context, const json_t *made)
{
    struct error err = { 0 };
    struct payload_header header;
    struct buffer bytes = { 0 };
    float *values = layout_values(&f.session->layout, &err);
    const json_t *plan = json_object_get(context, "plan");
    size_t body, count;

    FIXTURE_OK(folding_header(f.session, plan, document_integer(context, "round"), document_text(made, "signer"), &header, &err),
               &err);

    struct tensor *tensors = folding_payload(f.session, plan, &header, values, &count);

    FIXTURE_OK(object_get(&f.blocks, document_cid(made, "payload"), PAYLOAD_MEDIA, 1 << 24, &bytes, &err) &&
                   payload_decode(bytes.bytes, bytes.size, &header, tensors, count, &body, &err),
               &err);
    assert_int_equal(count * 2, f.session->layout.count);
    free(tensors);
    buffer_free(&bytes);
    return values;
}

/* ---------------------------------------------------------------------------------------------------------------------------- */

static void each_round_sends_the_tensors_of_one_layer(void **state)
{
    (void)state;
    for (int round = 1; round <= 2; round++) {
        json_t *context = told(round, 'a', NULL), *made = contribution(context);
        float *values = payload_of(context, made);

        assert_int_equal(document_integer(context, "fragment"), round % 2);
        assert_string_equal(check(context, made), "ok");
        for (size_t i = 0; i < f.session->layout.count; i++) {
            const struct layout_parameter *p = &f.session->layout.parameters[i];

            assert_int_equal(p->fragment, strstr(p->name, "layers.1.") != NULL);
            assert_int_equal(any_of(values + p->offset, p->values), p->fragment == (uint32_t)round % 2);
        }
        json_object_set_new(made, "fragment", json_integer((round + 1) % 2));
        assert_string_equal(check(context, made), "fragment");
        free(values);
        json_decref(made);
        json_decref(context);
    }
}

static void a_payload_of_another_fragment_is_refused(void **state)
{
    json_t *one = told(1, 'a', NULL), *two = told(2, 'a', NULL), *first = contribution(one), *second = contribution(two);

    (void)state;
    json_object_set(first, "payload", json_object_get(second, "payload"));
    json_object_set(first, "payload_bytes", json_object_get(second, "payload_bytes"));
    assert_string_equal(check(one, first), "mismatch");
    json_decref(first);
    json_decref(second);
    json_decref(one);
    json_decref(two);
}

static void a_fold_moves_the_tensors_of_its_fragment_alone(void **state)
{
    json_t *contexts[2], *made[2], *payloads, *request, *result, *step;
    struct error err = { 0 };
    float *before = layout_values(&f.session->layout, &err), *after = layout_values(&f.session->layout, &err);

    (void)state;
    for (int i = 0; i < 2; i++) {
        contexts[i] = told(1, (char)('a' + i), NULL);
        made[i] = contribution(contexts[i]);
    }
    request = fixture_fold(&f, made, 2, &payloads);
    json_object_set(json_array_get(json_object_get(request, "rounds"), 0), "plan", json_object_get(contexts[0], "plan"));
    result = folding_run(f.session, request, payloads, &err);
    FIXTURE_OK(result != NULL, &err);
    step = json_array_get(json_object_get(result, "steps"), 0);
    FIXTURE_OK(folding_values(f.session, document_cid(f.genesis, "outer"), before, &err), &err);
    FIXTURE_OK(folding_values(f.session, document_cid(step, "outer"), after, &err), &err);
    for (size_t i = 0; i < f.session->layout.count; i++) {
        const struct layout_parameter *p = &f.session->layout.parameters[i];

        assert_int_equal(memcmp(before + p->offset, after + p->offset, p->values * sizeof *before) != 0, p->fragment == 1);
    }
    for (int i = 0; i < 2; i++) {
        json_decref(contexts[i]);
        json_decref(made[i]);
    }
    json_decref(request);
    json_decref(payloads);
    json_decref(result);
    free(before);
    free(after);
}

/* Layer 0 is sent in round 2: what it moved by in rounds 1 and 2 together, from the same start. */
static void what_is_not_sent_goes_on_until_its_turn(void **state)
{
    json_t *one = told(1, 'a', NULL), *first = contribution(one), *two = told(2, 'a', carry_in_of(first)),
           *second = contribution(two), *alone = told(2, 'a', NULL), *without = contribution(alone), *job;
    struct state_object kept = { 0 }, later = { 0 };
    struct buffer bytes = { 0 }, more = { 0 };
    struct error err = { 0 };
    float *sent = payload_of(two, second), *less = payload_of(alone, without), way = 0, along = 0, unrelated = 0;

    (void)state;
    read_carry(first, &bytes, &kept);
    read_carry(second, &more, &later);
    assert_string_equal(check(two, second), "ok");
    for (size_t i = 0; i < f.session->layout.count; i++) {
        const struct layout_parameter *p = &f.session->layout.parameters[i];
        const float *moved = tensor_of(&kept, 'l', p->name), *then = tensor_of(&later, 'l', p->name);

        assert_non_null(moved);
        assert_int_equal(any_of(moved, p->values), p->fragment == 0);
        assert_int_equal(any_of(then, p->values), p->fragment == 1);
        for (uint64_t k = 0; p->fragment == 0 && k < p->values; k++) { /* an update is start less end */
            way += moved[k] * moved[k];
            along -= moved[k] * sent[p->offset + k];
            unrelated -= moved[k] * less[p->offset + k];
        }
    }
    assert_true(way > 0 && along > unrelated + 0.9f * way);
    job = json_pack("{s:O, s:O, s:O}", "context", two, "document", second, "shards", f.shards);

    json_t *answer = job_replay(f.session, job, NULL, &err);

    FIXTURE_OK(answer != NULL, &err);
    assert_int_equal(document_integer(answer, "index"), -1);
    json_object_set_new(second, "carry_in", document_json_hash(root_empty()));
    assert_string_equal(check(two, second), "step_log"); /* it says that it took nothing along, and its log says what */
    json_decref(answer);
    json_decref(job);
    state_object_free(&kept);
    state_object_free(&later);
    buffer_free(&bytes);
    buffer_free(&more);
    free(sent);
    free(less);
    json_decref(one);
    json_decref(two);
    json_decref(alone);
    json_decref(first);
    json_decref(second);
    json_decref(without);
}

static void a_fragment_without_tensors_is_refused_with_its_plan(void **state)
{
    struct fixture other;
    struct error err = { 0 };

    (void)state;
    fixture_new(&other, &(struct fixture_options){ .fragments = 3 }); /* round 1 has layer 1 */

    json_t *asked = json_pack("{s:{s:i, s:i, s:n}}", "request", "round", 2, "peers", 2, "last");

    assert_null(job_plan(other.session, asked, &err));
    assert_int_equal(err.code, ERROR_RANGE);
    assert_non_null(strstr(err.message, "fragment 2 of 3"));
    json_decref(asked);
    fixture_free(&other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_sends_the_tensors_of_one_layer),
        cmocka_unit_test(a_payload_of_another_fragment_is_refused),
        cmocka_unit_test(a_fold_moves_the_tensors_of_its_fragment_alone),
        cmocka_unit_test(what_is_not_sent_goes_on_until_its_turn),
        cmocka_unit_test(a_fragment_without_tensors_is_refused_with_its_plan),
    };

    return FIXTURE_TESTS(argc, argv, &f, tests, .fragments = 2);
}
