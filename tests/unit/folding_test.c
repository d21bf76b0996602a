/* The outer step: payloads in, outer state out, against plain binary64 on a model of two layers. */
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
#include "tests/fixture/fixture.h"

#define PAYLOAD_MEDIA "application/vnd.rondo.payload"
enum { MOST = 5 };

static struct fixture f;

struct fold {
    size_t n, peers;
    json_t *contributions[MOST];
    float *updates; /* [peer n], as decoded */
    float *before, *after;
};

/* A payload of trainer number `peer`, different from the others in size and direction. */
static json_t *put_update(size_t peer, unsigned bits, float *decoded)
{
    size_t n = (size_t)f.session->layout.values, body;
    struct payload_header header = { .bits = bits, .round = 1 };
    struct tensor *tensors = folding_tensors(&f.session->layout, decoded);
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id, run;
    char did[] = "did:key:zA", name[16];

    did[sizeof did - 2] = (char)('A' + peer);
    strcpy(header.did, did);
    FIXTURE_OK(cid_parse(f.session->run, &run, &err), &err);
    memcpy(header.run, run.bytes, sizeof header.run);
    strcpy(name, did + 8);
    for (uint32_t i = 0; i < n; i++)
        decoded[i] = fixture_weight(name, i, 0.1f * (float)(peer + 1)) + 0.01f;
    FIXTURE_OK(payload_encode(&header, tensors, f.session->layout.count, &bytes, &body, &err), &err);
    FIXTURE_OK(payload_decode(bytes.bytes, bytes.size, &header, tensors, f.session->layout.count, &body, &err), &err);
    FIXTURE_OK(object_put(&f.blocks, PAYLOAD_MEDIA, bytes.bytes, bytes.size, &id, &err), &err);
    buffer_free(&bytes);
    free(tensors);
    return json_pack("{s:s, s:o, s:o}", "signer", did, "payload", document_json_cid(id), "step_log",
                     document_json_cid(hash_block(did, sizeof did)));
}

static json_t *fold_peers(json_t *const *list, size_t count, struct error *err)
{
    json_t *payloads, *request = fixture_fold(&f, list, count, &payloads),
                      *result = folding_run(f.session, request, payloads, err);

    json_decref(request);
    json_decref(payloads);
    return result;
}

static void fold_open(struct fold *x, const char *const *rules, size_t peers)
{
    struct fixture_options options = { .threads = 2 };
    struct error err = { 0 };

    for (size_t i = 0; rules[i]; i++)
        options.aggregators[i] = rules[i];
    fixture_new(&f, &options);
    *x = (struct fold){ .n = (size_t)f.session->layout.values, .peers = peers };
    x->updates = calloc(x->n * peers, sizeof(float));
    x->before = calloc(x->n, sizeof(float));
    x->after = calloc(x->n, sizeof(float));
    for (size_t i = 0; i < peers; i++)
        x->contributions[i] = put_update(i, 4, x->updates + i * x->n);
    FIXTURE_OK(folding_values(f.session, document_cid(f.genesis, "outer"), x->before, &err), &err);
}

static void fold_close(struct fold *x)
{
    for (size_t i = 0; i < x->peers; i++)
        json_decref(x->contributions[i]);
    free(x->updates);
    free(x->before);
    free(x->after);
    fixture_free(&f);
}

/* The first round of Nesterov from a zero slot: b = d, theta <- theta - eta (d + mu b) = theta - 0.7 * 1.9 d. */
static void check_fold(struct fold *x, const double *update)
{
    struct error err = { 0 };
    json_t *result = fold_peers(x->contributions, x->peers, &err), *step;
    double norm = 0;

    FIXTURE_OK(result != NULL, &err);
    step = json_array_get(json_object_get(result, "steps"), 0);
    FIXTURE_OK(folding_values(f.session, document_cid(step, "outer"), x->after, &err), &err);
    assert_true(hash_equal(layout_root(&f.session->layout, x->after), document_hash(step, "state")));
    for (size_t i = 0; i < x->n; i++) {
        double want = (double)x->before[i] - 0.7 * (update[i] + 0.9 * update[i]);

        norm += update[i] * update[i];
        if (fabs((double)x->after[i] - want) > 1e-6)
            fail_msg("value %zu is %.9g, not %.9g", i, (double)x->after[i], want);
    }
    norm = sqrt(norm);
    assert_true(fabs((double)document_float(json_object_get(json_object_get(result, "telemetry"), "norm")) - norm) < 1e-4 * norm);
    json_decref(result);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The mean of the sorted values of a coordinate, `cut` left out on each side. */
static void trimmed(const struct fold *x, const double *u, size_t cut, double *out)
{
    for (size_t i = 0; i < x->n; i++) {
        double column[MOST], sum = 0;

        for (size_t p = 0; p < x->peers; p++)
            column[p] = u[p * x->n + i];
        qsort(column, x->peers, sizeof *column, by_value);
        for (size_t p = cut; p < x->peers - cut; p++)
            sum += column[p];
        out[i] = sum / (double)(x->peers - 2 * cut);
    }
}

static double *wide(const struct fold *x)
{
    double *u = calloc(x->n * x->peers, sizeof *u);

    for (size_t i = 0; i < x->n * x->peers; i++)
        u[i] = (double)x->updates[i];
    return u;
}

static void check_trimmed(const char *rule, size_t peers, size_t cut)
{
    struct fold x;
    double *u, *update;

    fold_open(&x, (const char *const[]){ rule, NULL }, peers);
    u = wide(&x);
    update = calloc(x.n, sizeof *update);
    trimmed(&x, u, cut, update);
    check_fold(&x, update);
    free(u);
    free(update);
    fold_close(&x);
}

static void mean_median_and_trimmed_mean_fold_as_their_formulas_say(void **state)
{
    (void)state;
    check_trimmed("mean", 1, 0);
    check_trimmed("mean", 4, 0);
    check_trimmed("median", 5, 2);
    check_trimmed("median", 4, 1);
    check_trimmed("trimmed_mean", 5, 1);
}

/* Each tensor of each peer is scaled down to the peers' median norm of that tensor. */
static void a_chain_of_norm_clip_and_mean_folds_as_its_formulas_say(void **state)
{
    struct fold x;
    double *u, *update;

    (void)state;
    fold_open(&x, (const char *const[]){ "norm_clip", "mean", NULL }, 3);
    u = wide(&x);
    update = calloc(x.n, sizeof *update);
    for (size_t i = 0; i < f.session->layout.count; i++) {
        const struct layout_parameter *p = &f.session->layout.parameters[i];
        double norms[3], sorted[3];

        for (size_t peer = 0; peer < 3; peer++) {
            norms[peer] = 0;
            for (uint64_t j = 0; j < p->values; j++)
                norms[peer] += u[peer * x.n + p->offset + j] * u[peer * x.n + p->offset + j];
            norms[peer] = sorted[peer] = sqrt(norms[peer]);
        }
        qsort(sorted, 3, sizeof *sorted, by_value);
        for (size_t peer = 0; peer < 3; peer++)
            for (uint64_t j = 0; j < p->values; j++)
                u[peer * x.n + p->offset + j] *= sorted[1] / fmax(norms[peer], sorted[1]);
    }
    trimmed(&x, u, 0, update);
    check_fold(&x, update);
    free(u);
    free(update);
    fold_close(&x);
}

/* Two rounds in one request: the slot of Nesterov goes on. b2 = mu b1 + d2. */
static void the_outer_optimisers_state_goes_on_to_the_next_round(void **state)
{
    struct fold x;
    struct error err = { 0 };
    json_t *payloads, *request, *rounds, *second, *result;

    (void)state;
    fold_open(&x, (const char *const[]){ "mean", NULL }, 1);

    /* The payload of round 2 is that of round 1 under another header. */
    struct payload_header header = { .bits = 4, .round = 2, .did = "did:key:zA" };
    struct tensor *tensors = folding_tensors(&f.session->layout, x.updates);
    struct buffer bytes = { 0 };
    struct hash id, run;
    size_t body;

    FIXTURE_OK(cid_parse(f.session->run, &run, &err), &err);
    memcpy(header.run, run.bytes, sizeof header.run);
    FIXTURE_OK(payload_encode(&header, tensors, f.session->layout.count, &bytes, &body, &err), &err);
    FIXTURE_OK(object_put(&f.blocks, PAYLOAD_MEDIA, bytes.bytes, bytes.size, &id, &err), &err);
    request = fixture_fold(&f, x.contributions, 1, &payloads);
    rounds = json_object_get(request, "rounds");
    second = json_deep_copy(json_array_get(rounds, 0));
    json_object_set_new(second, "round", json_integer(2));
    json_object_set_new(json_array_get(json_object_get(second, "contributions"), 0), "cid", json_string("later"));
    json_object_set_new(payloads, "later", document_json_cid(id));
    json_array_append_new(rounds, second);
    result = folding_run(f.session, request, payloads, &err);
    FIXTURE_OK(result != NULL, &err);
    assert_int_equal(json_array_size(json_object_get(result, "steps")), 2);
    FIXTURE_OK(
        folding_values(f.session, document_cid(json_array_get(json_object_get(result, "steps"), 1), "outer"), x.after, &err),
        &err);
    for (size_t i = 0; i < x.n; i++) {
        double d = (double)x.updates[i], b = 0.9 * d + d, want = (double)x.before[i] - 0.7 * 1.9 * d - 0.7 * (d + 0.9 * b);

        if (fabs((double)x.after[i] - want) > 1e-6)
            fail_msg("value %zu is %.9g, not %.9g", i, (double)x.after[i], want);
    }
    json_decref(result);
    json_decref(request);
    json_decref(payloads);
    buffer_free(&bytes);
    free(tensors);
    fold_close(&x);
}

static void a_refold_without_a_contribution_is_the_fold_that_never_had_it(void **state)
{
    struct fold x;
    struct error err = { 0 };
    json_t *all, *two, *again, *apart[2];

    (void)state;
    fold_open(&x, (const char *const[]){ "norm_clip", "mean", NULL }, 3);
    apart[0] = x.contributions[0];
    apart[1] = x.contributions[2];
    two = fold_peers(apart, 2, &err);
    all = fold_peers(x.contributions, 3, &err);
    again = fold_peers(apart, 2, &err);
    assert_non_null(all);
    assert_true(json_equal(two, again));
    assert_false(json_equal(two, all));
    json_decref(two);
    json_decref(all);
    json_decref(again);
    fold_close(&x);
}

static void folds_are_the_same_at_any_number_of_threads(void **state)
{
    struct fold x;
    struct error err = { 0 };
    json_t *payloads, *request, *one;

    (void)state;
    fold_open(&x, (const char *const[]){ "norm_clip", "trimmed_mean", NULL }, 5);
    request = fixture_fold(&f, x.contributions, 5, &payloads);
    one = folding_run(f.session, request, payloads, &err);
    FIXTURE_OK(one != NULL, &err);
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct pool *pool;
        struct session *other = fixture_session(&f, threads, &pool);
        json_t *again = folding_run(other, request, payloads, &err);

        assert_true(json_equal(one, again));
        json_decref(again);
        session_free(other);
        pool_free(pool);
    }
    json_decref(one);
    json_decref(request);
    json_decref(payloads);
    fold_close(&x);
}

static void payloads_of_another_trainer_bits_or_shape_fail_with_their_code(void **state)
{
    struct fold x;
    struct error err = { 0 };
    float *spare;

    (void)state;
    fold_open(&x, (const char *const[]){ "mean", NULL }, 2);
    spare = calloc(x.n, sizeof *spare);

    json_t *wide_bits = put_update(0, 8, spare), *stolen = json_copy(x.contributions[0]), *absent = json_copy(x.contributions[0]);

    assert_null(fold_peers(&wide_bits, 1, &err));
    assert_int_equal(err.code, ERROR_MISMATCH);
    error_clear(&err);
    json_object_set_new(stolen, "signer", json_string("did:key:zB"));
    assert_null(fold_peers(&stolen, 1, &err));
    assert_int_equal(err.code, ERROR_MISMATCH);
    assert_non_null(strstr(err.place, "did:key:zB"));
    error_clear(&err);
    json_object_set_new(absent, "payload", document_json_cid(hash_block("absent", 6)));
    assert_null(fold_peers(&absent, 1, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    error_clear(&err);
    json_object_del(absent, "payload");
    assert_null(fold_peers(&absent, 1, &err));
    assert_int_not_equal(err.code, ERROR_NONE);
    free(spare);
    json_decref(wide_bits);
    json_decref(stolen);
    json_decref(absent);
    fold_close(&x);
}

static void a_rule_that_keeps_the_peers_cannot_be_the_last(void **state)
{
    struct fold x;
    struct error err = { 0 };

    (void)state;
    fold_open(&x, (const char *const[]){ "norm_clip", NULL }, 2);
    assert_null(fold_peers(x.contributions, 2, &err));
    assert_int_equal(err.code, ERROR_SCRIPT);
    fold_close(&x);
    error_clear(&err);
    fold_open(&x, (const char *const[]){ "trimmed_mean", NULL }, 2); /* the script's own check: two of two are dropped */
    assert_null(fold_peers(x.contributions, 2, &err));
    assert_int_equal(err.code, ERROR_SCRIPT);
    fold_close(&x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_median_and_trimmed_mean_fold_as_their_formulas_say),
        cmocka_unit_test(a_chain_of_norm_clip_and_mean_folds_as_its_formulas_say),
        cmocka_unit_test(the_outer_optimisers_state_goes_on_to_the_next_round),
        cmocka_unit_test(a_refold_without_a_contribution_is_the_fold_that_never_had_it),
        cmocka_unit_test(folds_are_the_same_at_any_number_of_threads),
        cmocka_unit_test(payloads_of_another_trainer_bits_or_shape_fail_with_their_code),
        cmocka_unit_test(a_rule_that_keeps_the_peers_cannot_be_the_last),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
