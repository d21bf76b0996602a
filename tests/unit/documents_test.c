/* Every type of document: made, read back, and refused when it says what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/documents.h"

static struct error err;
static struct key_pair people[4];
static const struct hash run = { { 1 } }, thing = { { 2 } };

static int make_people(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "member-%d", i);
        key_pair_derive("documents_test", name, &people[i]);
    }
    return 0;
}

/* In a place of a round: the fields that all of them have. */
static json_t *placed(int round)
{
    return json_pack("{s:o, s:i}", "run", document_json_cid(run), "round", round);
}

static json_t *vote_fields(int round, int view, const char *phase, struct hash record)
{
    json_t *out = placed(round);

    json_object_set_new(out, "view", json_integer(view));
    json_object_set_new(out, "phase", json_string(phase));
    json_object_set_new(out, "record", document_json_cid(record));
    return out;
}

static struct document make(enum document_type type, json_t *fields, int who)
{
    struct document out;
    bool both = type == DOCUMENT_IDENTITY;

    if (!document_make(type, fields, who < 0 ? NULL : &people[who].identity, both ? &people[who].account : NULL, &out, &err))
        fail_msg("%s: %s: %s", document_type_name(type), err.place, err.message);
    json_decref(fields);
    return out;
}

static json_t *embedded(const struct document *d)
{
    return json_loadb((const char *)d->bytes.bytes, d->bytes.size, 0, NULL);
}

/* q votes in ascending order of their signers. */
static json_t *votes(int round, int view, struct hash record, int count)
{
    struct document made[4];
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        made[i] = make(DOCUMENT_VOTE, vote_fields(round, view, "prepare", record), i);
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (did_compare(&made[j].signer, &made[i].signer) < 0) {
                struct document swap = made[i];

                made[i] = made[j], made[j] = swap;
            }
    for (int i = 0; i < count; i++) {
        json_array_append_new(list, embedded(&made[i]));
        document_free(&made[i]);
    }
    return list;
}

static json_t *certificate_fields(int round, int view, struct hash record, int count)
{
    json_t *out = vote_fields(round, view, "prepare", record);

    json_object_set_new(out, "votes", votes(round, view, record, count));
    return out;
}

static json_t *contribution_fields(void)
{
    json_t *out = placed(3);
    static const char *const roots[] = { "start", "end", "carry_in", "carry_out", "body" };

    for (size_t i = 0; i < 5; i++)
        json_object_set_new(out, roots[i], document_json_hash(thing));
    json_object_set_new(out, "payload", document_json_cid(thing));
    json_object_set_new(out, "payload_bytes", json_integer(1000));
    json_object_set_new(out, "codec", json_pack("{s:i, s:i}", "bits", 4, "block", 256));
    json_object_set_new(out, "tokens", json_integer(2048));
    json_object_set_new(out, "steps", json_integer(25));
    json_object_set_new(out, "loss", document_json_float(1.5f));
    json_object_set_new(out, "probes", json_pack("[{s:i, s:s, s:[s]}]", "step", 24, "loss", "3fc00000", "values", "00000000"));
    json_object_set_new(out, "step_log", document_json_cid(thing));
    return out;
}

static json_t *received_fields(int view, json_t *lock)
{
    json_t *out = placed(3);

    json_object_set_new(out, "view", json_integer(view));
    json_object_set_new(out, "head", json_pack("{s:i, s:i}", "height", 7, "time", 1700000000));
    json_object_set_new(out, "funded", json_integer(0));
    json_object_set_new(out, "items", json_pack("[{s:o, s:s, s:i}]", "cid", document_json_cid(thing), "code", "ok", "ms", 12));
    json_object_set_new(out, "checked", json_array());
    json_object_set_new(out, "lock", lock ? lock : json_null());
    return out;
}

static json_t *fields_of(enum document_type type)
{
    json_t *out = placed(3);
    char address[ADDRESS_TEXT];
    struct document a, b;

    switch (type) {
    case DOCUMENT_IDENTITY:
        json_decref(out);
        return json_pack("{s:s, s:n}", "account", address_text(account_address(&people[0].account), address), "previous");
    case DOCUMENT_ENROLMENT:
        json_object_set_new(out, "role", json_string("trainer"));
        json_object_set_new(out, "account", json_string(address_text(account_address(&people[0].account), address)));
        json_object_set_new(out, "kernel_class", document_json_hash(thing));
        json_object_set_new(out, "capacity", json_pack("{s:i, s:i, s:i}", "memory", 1 << 30, "threads", 2, "devices", 0));
        json_object_set_new(out, "endpoint", json_null());
        return out;
    case DOCUMENT_CONTRIBUTION:
        json_decref(out);
        return contribution_fields();
    case DOCUMENT_RECEIVED:
        json_decref(out);
        return received_fields(1, NULL);
    case DOCUMENT_PROPOSAL:
        json_object_set_new(out, "view", json_integer(0));
        json_object_set_new(out, "record", document_json_cid(thing));
        json_object_set_new(out, "justification", json_null());
        return out;
    case DOCUMENT_VOTE:
        json_decref(out);
        return vote_fields(3, 0, "commit", thing);
    case DOCUMENT_CERTIFICATE:
        json_decref(out);
        return certificate_fields(3, 0, thing, 3);
    case DOCUMENT_CHALLENGE:
        json_object_set_new(out, "contribution", document_json_cid(thing));
        json_object_set_new(out, "index", json_integer(5));
        return out;
    case DOCUMENT_OPENING:
    case DOCUMENT_PICK:
        json_object_set_new(out, "contribution", document_json_cid(thing));
        json_object_set_new(out, "index", json_integer(5));
        json_object_set_new(out, "trace", document_json_cid(thing));
        if (type == DOCUMENT_PICK)
            json_object_set_new(out, "evidence", document_json_cid(thing));
        return out;
    case DOCUMENT_COMMITMENT:
        json_object_set_new(out, "digest", document_json_hash(thing));
        return out;
    case DOCUMENT_CLOSED:
        json_object_set_new(out, "commitments", json_pack("[o]", document_json_cid(thing)));
        return out;
    case DOCUMENT_AMENDMENT:
        json_object_del(out, "round");
        json_object_set_new(out, "number", json_integer(1));
        json_object_set_new(out, "from", json_integer(5));
        json_object_set_new(out, "changes", json_pack("{s:b}", "end", 1));
        return out;
    case DOCUMENT_EQUIVOCATION:
        a = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", thing), 1);
        b = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", run), 1);
        json_object_set_new(out, "did", document_json_did(&a.signer));
        json_object_set_new(out, "statements", json_pack("[o, o]", embedded(&a), embedded(&b)));
        document_free(&a), document_free(&b);
        return out;
    default:
        return out;
    }
}

/* `run` has its own test, `record` is made by the round machines. */
static const enum document_type simple[] = { DOCUMENT_IDENTITY,  DOCUMENT_ENROLMENT,    DOCUMENT_LEAVE,   DOCUMENT_CONTRIBUTION,
                                             DOCUMENT_RECEIVED,  DOCUMENT_PROPOSAL,     DOCUMENT_VOTE,    DOCUMENT_CERTIFICATE,
                                             DOCUMENT_CHALLENGE, DOCUMENT_EQUIVOCATION, DOCUMENT_OPENING, DOCUMENT_PICK,
                                             DOCUMENT_AMENDMENT, DOCUMENT_COMMITMENT,   DOCUMENT_CLOSED };
enum { SIMPLE = sizeof simple / sizeof *simple };

static int who_signs(enum document_type type)
{
    return type == DOCUMENT_CERTIFICATE ? -1 : 0;
}

static void every_type_is_read_back_as_it_was_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIMPLE; i++) {
        struct document d = make(simple[i], fields_of(simple[i]), who_signs(simple[i])), again;

        assert_true(document_read(d.bytes.bytes, d.bytes.size, &again, &err));
        assert_int_equal(again.type, simple[i]);
        assert_true(hash_equal(d.id, again.id));
        assert_true(json_equal(d.json, again.json));
        assert_int_equal(d.has_signer, simple[i] != DOCUMENT_CERTIFICATE);
        if (simple[i] != DOCUMENT_IDENTITY) {
            assert_true(hash_equal(d.run, run));
            assert_true(simple[i] == DOCUMENT_AMENDMENT ? !d.has_round : d.has_round && d.round == 3);
        }
        json_t *value = embedded(&d);
        struct document third;

        assert_true(document_read_json(value, &third, &err));
        assert_int_equal(third.bytes.size, d.bytes.size);
        assert_memory_equal(third.bytes.bytes, d.bytes.bytes, d.bytes.size);
        json_decref(value);
        document_free(&d), document_free(&again), document_free(&third);
    }
}

static void every_missing_and_every_unknown_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIMPLE; i++) {
        json_t *fields = fields_of(simple[i]);
        const char *name;
        json_t *value;

        json_object_foreach(fields, name, value)
        {
            json_t *less = json_copy(fields);
            struct document d;
            bool optional = simple[i] == DOCUMENT_LEAVE || simple[i] == DOCUMENT_ENROLMENT; /* their round */

            json_object_del(less, name);
            bool ok = document_make(simple[i], less, &people[0].identity,
                                    simple[i] == DOCUMENT_IDENTITY ? &people[0].account : NULL, &d, &err);

            if (ok && optional && strcmp(name, "round") == 0) {
                document_free(&d);
            } else {
                assert_false(ok);
                assert_int_equal(err.code, ERROR_MISSING);
                assert_non_null(strstr(err.place, name));
            }
            json_decref(less);
        }
        json_object_set_new(fields, "colour", json_string("red"));
        struct document d;

        assert_false(document_make(simple[i], fields, &people[0].identity,
                                   simple[i] == DOCUMENT_IDENTITY ? &people[0].account : NULL, &d, &err));
        assert_int_equal(err.code, ERROR_UNKNOWN);
        assert_non_null(strstr(err.message, "colour"));
        json_decref(fields);
    }
}

static void identity_needs_the_signature_of_its_account(void **state)
{
    struct document d;
    json_t *fields = fields_of(DOCUMENT_IDENTITY);
    struct buffer text = { 0 };

    (void)state;
    assert_false(document_make(DOCUMENT_IDENTITY, fields, &people[0].identity, &people[1].account, &d, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    envelope_prepare(fields, &people[0].identity, NULL);
    assert_true(envelope_make("identity", fields, &people[0].identity, NULL, &text, &err));
    assert_false(document_read(text.bytes, text.size, &d, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    json_decref(fields);
    buffer_free(&text);
}

static void certificate_with_a_vote_for_something_else_is_refused(void **state)
{
    static const struct {
        const char *name;
        int value;
    } other[] = { { "round", 4 }, { "view", 1 } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        json_t *fields = certificate_fields(3, 0, thing, 3);
        struct document d;

        json_object_set_new(fields, other[i].name, json_integer(other[i].value));
        assert_false(document_make(DOCUMENT_CERTIFICATE, fields, NULL, NULL, &d, &err));
        assert_int_equal(err.code, ERROR_MISMATCH);
        assert_non_null(strstr(err.place, "votes[0]"));
        json_decref(fields);
    }
}

static void certificate_that_counts_one_vote_twice_is_refused(void **state)
{
    json_t *fields = certificate_fields(3, 0, thing, 2), *list = json_object_get(fields, "votes");
    struct document d;

    (void)state;
    json_array_append(list, json_array_get(list, 1));
    assert_false(document_make(DOCUMENT_CERTIFICATE, fields, NULL, NULL, &d, &err));
    assert_int_equal(err.code, ERROR_DUPLICATE);
    json_decref(fields);
}

static void lock_inside_received_is_checked_too(void **state)
{
    json_t *lock = certificate_fields(3, 0, thing, 3);
    struct document d;

    (void)state;
    json_object_set_new(lock, "version", json_integer(1));
    json_object_set_new(lock, "type", json_string("certificate"));
    d = make(DOCUMENT_RECEIVED, received_fields(1, json_deep_copy(lock)), 0);
    document_free(&d);
    json_object_set_new(lock, "record", document_json_cid(run));
    json_t *fields = received_fields(1, lock);

    assert_false(document_make(DOCUMENT_RECEIVED, fields, &people[0].identity, NULL, &d, &err));
    assert_string_equal(err.place, "received: lock: votes[0]");
    json_decref(fields);
}

static void equivocation_needs_two_different_statements_of_the_accused(void **state)
{
    struct document a = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", thing), 1),
                    b = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", run), 1);
    struct document c = make(DOCUMENT_VOTE, vote_fields(3, 1, "commit", run), 1),
                    e = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", run), 2);
    const struct {
        const struct document *first, *second;
        enum error_code code;
    } bad[] = { { &a, &a, ERROR_DUPLICATE }, { &a, &c, ERROR_MISMATCH }, { &a, &e, ERROR_SIGNATURE } };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        json_t *fields = placed(3);
        struct document d;

        json_object_set_new(fields, "did", document_json_did(&a.signer));
        json_object_set_new(fields, "statements", json_pack("[o, o]", embedded(bad[i].first), embedded(bad[i].second)));
        assert_false(document_make(DOCUMENT_EQUIVOCATION, fields, &people[0].identity, NULL, &d, &err));
        assert_int_equal(err.code, bad[i].code);
        json_decref(fields);
    }
    document_free(&a), document_free(&b), document_free(&c), document_free(&e);
}

static void bare_document_must_be_canonical_where_it_lies(void **state)
{
    struct document d = make(DOCUMENT_CERTIFICATE, certificate_fields(3, 0, thing, 3), -1), again;

    (void)state;
    buffer_add_u8(&d.bytes, '\n');
    assert_false(document_read(d.bytes.bytes, d.bytes.size, &again, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
    document_free(&d);
}

static void another_type_than_asked_for_is_refused(void **state)
{
    struct document d = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", thing), 1), again;

    (void)state;
    assert_true(document_read_as(DOCUMENT_VOTE, d.bytes.bytes, d.bytes.size, &again, &err));
    document_free(&again);
    assert_false(document_read_as(DOCUMENT_PROPOSAL, d.bytes.bytes, d.bytes.size, &again, &err));
    assert_int_equal(err.code, ERROR_TYPE);
    document_free(&d);
}

static void text_that_is_no_document_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "null",
                                       "[]",
                                       "{}",
                                       "{\"type\":\"vote\"}",
                                       "{\"type\":\"record\"}",
                                       "{\"payload\":1}",
                                       "{\"a\":1,\"a\":1}",
                                       "{\"type\":\"certificate\",\"version\":1.0}" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct document d;

        assert_false(document_read(bad[i], strlen(bad[i]), &d, &err));
        assert_int_equal(error_status(err.code), 3);
    }
}

static void a_document_that_comes_again_is_read_the_same_and_not_verified_again(void **state)
{
    struct verified *known = verified_new(64);
    struct document made[] = { make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", thing), 1),
                               make(DOCUMENT_CERTIFICATE, certificate_fields(3, 0, thing, 3), -1) };
    uint64_t hits, misses;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int turn = 0; turn < 3; turn++) {
            json_t *value = embedded(&made[i]);
            struct document d;

            assert_true(document_read_known(value, known, &d, &err));
            assert_true(hash_equal(d.id, made[i].id));
            assert_memory_equal(d.signer.bytes, made[i].signer.bytes, sizeof d.signer.bytes);
            assert_int_equal(d.round, 3);
            assert_int_equal(d.bytes.size, made[i].bytes.size);
            document_free(&d);
            json_decref(value);
        }
    verified_counts(known, &hits, &misses);
    assert_int_equal(hits, 4);
    assert_int_equal(misses, 1 + 1 + 3); /* the vote, the certificate, the votes in it */
    verified_free(known);
    document_free(&made[0]), document_free(&made[1]);
}

/* Any change makes another name: of the payload, of a signature, of the type. */
static void what_is_remembered_vouches_for_nothing_else(void **state)
{
    struct verified *known = verified_new(64);
    struct document a = make(DOCUMENT_VOTE, vote_fields(3, 0, "commit", thing), 1),
                    b = make(DOCUMENT_VOTE, vote_fields(4, 0, "commit", thing), 1), d;
    json_t *first = embedded(&a), *second = embedded(&b), *mixed = json_deep_copy(first);

    (void)state;
    assert_true(document_read_known(first, known, &d, &err));
    document_free(&d);
    json_object_set(mixed, "payload", json_object_get(second, "payload"));
    assert_false(document_read_known(mixed, known, &d, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    json_object_set(mixed, "payload", json_object_get(first, "payload"));
    json_object_set(mixed, "signatures", json_object_get(second, "signatures"));
    assert_false(document_read_known(mixed, known, &d, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    json_object_set(mixed, "signatures", json_object_get(first, "signatures"));
    json_object_set_new(mixed, "payloadType", json_string("application/vnd.rondo.proposal+json"));
    assert_false(document_read_known(mixed, known, &d, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    json_decref(first), json_decref(second), json_decref(mixed);
    document_free(&a), document_free(&b);
    verified_free(known);
}

static void what_is_remembered_is_bounded_and_the_oldest_gives_way(void **state)
{
    struct verified *known = verified_new(8);
    struct hash names[9] = { 0 };

    (void)state;
    for (uint8_t i = 0; i < 9; i++) {
        names[i].bytes[31] = (uint8_t)(i + 1);
        assert_false(verified_has(known, names[i]));
        verified_add(known, names[i]);
        verified_add(known, names[i]);
    }
    assert_false(verified_has(known, names[0]));
    for (int i = 1; i < 9; i++)
        assert_true(verified_has(known, names[i]));
    verified_free(known);
}

static void float_is_its_bits_in_hex(void **state)
{
    static const float some[] = { 0.0f, -0.0f, 1.5f, -3.25e-30f, 1e38f };

    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        json_t *text = document_json_float(some[i]);
        float again = document_float(text);

        assert_memory_equal(&again, &some[i], sizeof again);
        json_decref(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_back_as_it_was_made),
        cmocka_unit_test(every_missing_and_every_unknown_field_is_named),
        cmocka_unit_test(identity_needs_the_signature_of_its_account),
        cmocka_unit_test(certificate_with_a_vote_for_something_else_is_refused),
        cmocka_unit_test(certificate_that_counts_one_vote_twice_is_refused),
        cmocka_unit_test(lock_inside_received_is_checked_too),
        cmocka_unit_test(equivocation_needs_two_different_statements_of_the_accused),
        cmocka_unit_test(bare_document_must_be_canonical_where_it_lies),
        cmocka_unit_test(another_type_than_asked_for_is_refused),
        cmocka_unit_test(text_that_is_no_document_is_refused),
        cmocka_unit_test(a_document_that_comes_again_is_read_the_same_and_not_verified_again),
        cmocka_unit_test(what_is_remembered_vouches_for_nothing_else),
        cmocka_unit_test(what_is_remembered_is_bounded_and_the_oldest_gives_way),
        cmocka_unit_test(float_is_its_bits_in_hex),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, make_people, NULL);
}
