/* One hardware root counts once in a run: whose evidence is taken, and who of two with one machine is seated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/doc/documents.h"
#include "runtime/doc/verified.h"
#include "runtime/round/hardware.h"
#include "runtime/round/member_state.h"
#include "runtime/round/membership.h"
#include "runtime/round/trainer.h"
#include "runtime/round/value.h"
#include "tests/fixture/attest_chain.h"
#include "tests/fixture/signing.h"

static const char run[] = "r", account[] = "0x00000000000000000000000000000000000000AA";
static struct attest_chain chips[3]; /* chips 1, 2 and 3 under one root */
static struct rules rules, attested;

static int make_chips(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 3; i++)
        attest_chain_make(&chips[i], &(struct attest_plan){ .chip = (uint8_t)(i + 1), .under = i ? &chips[0] : NULL });
    rules =
        (struct rules){ .run = "r", .shards = 8, .rounds = 99, .trainers_limit = 60, .drop_after = 3, .roots = &chips[0].roots };
    attested = rules;
    attested.attested = true;
    return 0;
}

static int free_chips(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        attest_chain_free(&chips[i]);
    return 0;
}

/* Evidence that the chip (from 1; 0: none) gives a DID for a run. */
static json_t *evidence_of(size_t chip, const char *of, const char *did)
{
    if (!chip)
        return NULL;
    attest_data(of, did, chips[chip - 1].report + 0x50);
    attest_chain_sign(&chips[chip - 1]);
    return attest_chain_pack(&chips[chip - 1]);
}

static json_t *enrolment(const char *did, const char *role, size_t chip)
{
    json_t *payload = json_pack("{ssssssss}", "run", run, "signer", did, "role", role, "account", account);
    if (chip)
        json_object_set_new(payload, "evidence", evidence_of(chip, run, did));
    return payload;
}

/* What a record takes: up to four enrolments or leaves, in this order. */
struct taken {
    const char *did;
    size_t chip; /* 0: it shows nothing */
};
enum { LEAVES = 9 };

static void advance(const struct rules *by, json_t *record, const struct taken *taken, const char *convicted)
{
    json_t *items = json_array(), *documents = json_object(),
           *bad = convicted ? json_pack("[{ss si}]", "did", convicted, "record", (int)value_integer(record, "round") + 1)
                            : json_array();
    for (size_t i = 0; i < 4 && taken[i].did; i++) {
        const char *type = taken[i].chip == LEAVES ? "leave" : "enrolment";
        char cid[16];
        snprintf(cid, sizeof cid, "cid%zu", i);
        json_array_append_new(items, json_pack("{ssssssss}", "cid", cid, "type", type, "did", taken[i].did, "code", "ok"));
        json_object_set_new(
            documents, cid,
            json_pack("{ssso}", "type", type, "payload", enrolment(taken[i].did, "trainer", taken[i].chip % LEAVES)));
    }
    const struct membership_change change = { .rules = by,
                                              .previous = record,
                                              .round = value_integer(record, "round") + 1,
                                              .items = items,
                                              .documents = documents,
                                              .convicted = bad };
    json_t *members = membership_after(&change);
    json_object_set_new(record, "members", members);
    json_object_set_new(record, "round", json_integer((json_int_t)change.round));
    json_decref(items);
    json_decref(documents);
    json_decref(bad);
}

static const json_t *member_of(const json_t *record, const char *did)
{
    return value_find(json_object_get(record, "members"), "did", did);
}

static void expect_members(const json_t *record, const char *dids)
{
    char text[256] = "";
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(record, "members"), i, one)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", value_text(one, "did"));
    assert_string_equal(text, dids);
}

static void expect(const struct rules *by, const json_t *record, json_t *payload, const char *code)
{
    assert_string_equal(membership_code(by, record, "enrolment", payload), code);
    json_decref(payload);
}

/* ---- what an enrolment shows ------------------------------------------------------------------------------------------------ */

static void an_attested_run_takes_machines_that_show_evidence_and_no_others(void **state)
{
    (void)state;
    expect(&attested, NULL, enrolment("did:a", "trainer", 1), "ok");
    expect(&attested, NULL, enrolment("did:a", "trainer", 0), "unattested");
    expect(&rules, NULL, enrolment("did:a", "trainer", 1), "ok");
    expect(&rules, NULL, enrolment("did:a", "trainer", 0), "ok");
}

static void the_panel_is_named_by_the_spec_and_need_not_show_evidence(void **state)
{
    (void)state;
    struct rules with_panel = attested;
    with_panel.panel = json_pack("[{ssss}]", "did", "did:s", "account", account);
    expect(&with_panel, NULL, enrolment("did:s", "syncer", 0), "ok");
    expect(&with_panel, NULL, enrolment("did:s", "syncer", 1), "ok");
    json_t *copied = enrolment("did:s", "syncer", 0);
    json_object_set_new(copied, "evidence", evidence_of(1, run, "did:a"));
    expect(&with_panel, NULL, copied, "evidence");
    json_decref(with_panel.panel);
}

/* A report is public: it stands in the enrolment. */
static void evidence_that_was_copied_is_of_no_use(void **state)
{
    (void)state;
    static const struct {
        const char *of, *did;
    } made[] = { { "r", "did:victim" }, { "another run", "did:thief" }, { "", "did:thief" } };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        json_t *payload = enrolment("did:thief", "trainer", 0);
        json_object_set_new(payload, "evidence", evidence_of(1, made[i].of, made[i].did));
        expect(&rules, NULL, json_incref(payload), "evidence");
        expect(&attested, NULL, payload, "evidence");
    }
}

/* Where it may be left out, too: what is wrong on purpose is no honest machine's. */
static void evidence_that_does_not_stand_is_refused_in_every_mode(void **state)
{
    (void)state;
    static const char *const wrong[] = { "{}", "[]", "null", "1",
                                         "{\"kind\":\"tdx\",\"report\":\"AAAA\",\"certificates\":[\"AAAA\"]}" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *payload = enrolment("did:a", "trainer", 0);
        json_object_set_new(payload, "evidence", json_loads(wrong[i], JSON_DECODE_ANY, NULL));
        expect(&rules, NULL, payload, "evidence");
    }
    json_t *turned = enrolment("did:a", "trainer", 1),
           *list = json_object_get(json_object_get(turned, "evidence"), "certificates"),
           *first = json_incref(json_array_get(list, 0));
    json_array_set(list, 0, json_array_get(list, 1));
    json_array_set_new(list, 1, first);
    expect(&rules, NULL, turned, "evidence");

    struct rules elsewhere = rules;
    elsewhere.roots = &snp_vendor_roots; /* what every run has: a machine of the tests is none of the vendor's */
    expect(&elsewhere, NULL, enrolment("did:a", "trainer", 1), "evidence");
    elsewhere.roots = NULL;
    expect(&elsewhere, NULL, enrolment("did:a", "trainer", 1), "evidence");
}

static void what_was_found_good_is_known_again_and_nothing_else_is(void **state)
{
    (void)state;
    struct rules knows = rules;
    uint64_t hits, misses;
    knows.evidence = verified_new(8);
    json_t *good = enrolment("did:a", "trainer", 1), *other = json_deep_copy(good), *bad = json_deep_copy(good);
    json_object_set_new(other, "signer", json_string("did:b"));
    json_array_remove(json_object_get(json_object_get(bad, "evidence"), "certificates"), 2);
    for (int i = 0; i < 3; i++) {
        expect(&knows, NULL, json_incref(good), "ok");
        expect(&knows, NULL, json_incref(other), "evidence");
        expect(&knows, NULL, json_incref(bad), "evidence");
    }
    verified_counts(knows.evidence, &hits, &misses);
    assert_int_equal(hits, 2);
    json_decref(good);
    json_decref(other);
    json_decref(bad);
    verified_free(knows.evidence);
}

/* ---- one root once ---------------------------------------------------------------------------------------------------------- */

static void of_two_with_one_machine_the_second_is_refused(void **state)
{
    (void)state;
    json_t *record = json_pack("{sis[]}", "round", 0, "members");
    advance(&attested, record, (struct taken[4]){ { "did:b", 1 } }, NULL);
    expect_members(record, "did:b");
    expect(&attested, record, enrolment("did:a", "trainer", 1), "root");
    expect(&rules, record, enrolment("did:a", "trainer", 1), "root");
    expect(&attested, record, enrolment("did:a", "trainer", 2), "ok");
    advance(&attested, record, (struct taken[4]){ { "did:a", 1 }, { "did:c", 2 } }, NULL);
    expect_members(record, "did:b did:c"); /* also where t members say "ok" of it */
    json_decref(record);
}

static void of_two_in_one_record_the_first_listed_is_seated(void **state)
{
    (void)state;
    json_t *record = json_pack("{sis[]}", "round", 0, "members");
    advance(&rules, record, (struct taken[4]){ { "did:b", 1 }, { "did:a", 1 }, { "did:c", 2 }, { "did:d", 0 } }, NULL);
    expect_members(record, "did:b did:c did:d");
    assert_int_equal(strlen(value_text(member_of(record, "did:b"), "root")), 64);
    assert_null(json_object_get(member_of(record, "did:d"), "root"));
    json_decref(record);
}

static void an_operator_with_one_machine_has_one_seat_whatever_it_calls_itself(void **state)
{
    (void)state;
    json_t *record = json_pack("{sis[]}", "round", 0, "members");
    for (int round = 0; round < 5; round++) {
        char names[4][16];
        struct taken many[4];
        for (int i = 0; i < 4; i++) {
            snprintf(names[i], sizeof names[i], "did:%d%d", round, i);
            many[i] = (struct taken){ names[i], 1 };
        }
        advance(&attested, record, many, NULL);
        expect_members(record, "did:00");
    }
    json_decref(record);
}

static void a_machine_that_enrols_again_keeps_its_seat_and_may_change_its_hardware(void **state)
{
    (void)state;
    char root[HASH_TEXT];
    json_t *record = json_pack("{sis[]}", "round", 0, "members"), *second = enrolment("did:a", "trainer", 2);
    advance(&rules, record, (struct taken[4]){ { "did:a", 1 } }, NULL);
    expect(&rules, record, enrolment("did:a", "trainer", 1), "ok");
    advance(&rules, record, (struct taken[4]){ { "did:b", 0 }, { "did:a", 1 } }, NULL); /* cid1: the newer one counts */
    expect_members(record, "did:a did:b");
    assert_string_equal(value_text(member_of(record, "did:a"), "enrolment"), "cid1");
    advance(&rules, record, (struct taken[4]){ { "did:b", LEAVES } }, NULL);
    advance(&rules, record, (struct taken[4]){ { "did:a", 2 }, { "did:b", 2 } }, NULL);
    expect_members(record, "did:a");
    assert_string_equal(value_text(member_of(record, "did:a"), "root"), hardware_root(second, root));
    expect(&rules, record, enrolment("did:b", "trainer", 1), "ok"); /* the first is free */
    advance(&rules, record, (struct taken[4]){ { "did:a", 0 } }, NULL);
    assert_null(json_object_get(member_of(record, "did:a"), "root"));
    expect(&rules, record, enrolment("did:b", "trainer", 2), "ok");
    json_decref(second);
    json_decref(record);
}

static void a_seat_that_is_left_or_lost_frees_the_machine(void **state)
{
    (void)state;
    json_t *record = json_pack("{sis[]}", "round", 0, "members");
    advance(&rules, record, (struct taken[4]){ { "did:a", 1 } }, NULL);
    advance(&rules, record, (struct taken[4]){ { "did:a", LEAVES } }, NULL);
    expect_members(record, "");
    expect(&rules, record, enrolment("did:b", "trainer", 1), "ok");
    advance(&rules, record, (struct taken[4]){ { "did:b", 1 } }, NULL);
    advance(&rules, record, (struct taken[4]){ { "did:c", 1 } }, "did:b"); /* of record 3: seated before the conviction counts */
    expect_members(record, "");
    expect(&rules, record, enrolment("did:c", "trainer", 1), "ok");
    json_decref(record);
}

/* Of two tenants of one chip the first has the seat, but the spec has given the panel's away. */
static void a_neighbour_on_its_chip_cannot_have_a_panel_members_seat(void **state)
{
    (void)state;
    struct rules with_panel = attested;
    with_panel.panel = json_pack("[{ssss}]", "did", "did:s", "account", account);
    json_t *record = json_pack("{sis[]}", "round", 0, "members"), *syncer = enrolment("did:s", "syncer", 1),
           *items = json_pack("[{ssssssss}]", "cid", "cid0", "type", "enrolment", "did", "did:s", "code", "ok"), *documents,
           *members;
    advance(&with_panel, record, (struct taken[4]){ { "did:a", 1 } }, NULL);
    expect(&with_panel, record, json_incref(syncer), "ok");
    documents = json_pack("{s{ssso}}", "cid0", "type", "enrolment", "payload", syncer);
    members = membership_after(&(struct membership_change){
        .rules = &with_panel, .previous = record, .round = 2, .items = items, .documents = documents });
    json_object_set_new(record, "members", members);
    expect_members(record, "did:a did:s");
    assert_non_null(json_object_get(member_of(record, "did:a"), "root"));
    assert_null(json_object_get(member_of(record, "did:s"), "root")); /* of two members none have the same */
    json_decref(record);
    json_decref(items);
    json_decref(documents);
    json_decref(with_panel.panel);
}

/* ---- a committee's member --------------------------------------------------------------------------------------------------- */

/* A committee of one, s0, that waits ten units of time for two trainers. */
static void read_rules(struct rules *out, const char *mode)
{
    json_t *spec = json_pack("{sis{si}s{sisisisis{sssisi}}s{sisisisis[{ssss}]si}s{sssisisss{ss}}sis{sss{ssss}si}s{si}}", "rounds",
                             2, "dataset", "shards", 4, "quorum", "trainers", 2, "round_ms", 10, "close_ms", 1, "drop_after", 3,
                             "grace", "factor", "3", "min_ms", 1, "max_ms", 5, "committee", "size", 1, "threshold", 1, "view_ms",
                             4, "settle_ms", 1, "panel", "did", "s0", "account", account, "release_threshold", 1, "trust",
                             "spot_check", "1", "challenge_rounds", 2, "answer_rounds", 1, "correction", "refold", "admission",
                             "mode", mode, "seed_lead", 1, "payment", "per_round", "10", "terms", "trainers", "0.5", "syncers",
                             "0.5", "expiry_rounds", 9, "limits", "trainers", 4);
    assert_true(rules_read(out, spec, run, NULL));
    assert_ptr_equal(out->roots, &snp_vendor_roots); /* a run that is read from its spec has the vendors' roots */
    assert_int_equal(out->attested, !strcmp(mode, "attested"));
    out->roots = &chips[0].roots;
    rules_set_genesis(out, "outer", "state");
    json_decref(spec);
}

static void step(struct member *member, enum event_kind kind, int64_t now, json_t *body)
{
    struct event event = { .kind = kind, .now = now, .body = body };
    struct actions actions = { 0 };
    member_step(member, &event, &actions);
    actions_free(&actions);
    json_decref(body);
}

static void tell(struct member *member, int64_t now, const char *did, const char *role, size_t chip)
{
    json_t *payload = enrolment(did, role, chip);
    json_object_set_new(payload, "version", json_integer(1));
    step(member, EVENT_MESSAGE, now, json_pack("{s[{ssso}]}", "documents", "type", "enrolment", "payload", payload));
}

/* One chip with three names would else begin the run in place of two machines. */
static void round_0_waits_for_machines_not_for_names(void **state)
{
    (void)state;
    struct rules by;
    read_rules(&by, "attested");
    struct member_start start = { .rules = &by, .did = "s0", .signing = fixture_signing(), .fresh = true };
    struct member *member = member_new(&start, NULL);
    assert_non_null(member);
    step(member, EVENT_HEAD, 1, json_pack("{sisi}", "height", 1, "time", 1));
    step(member, EVENT_FUNDED, 1, json_pack("{si}", "time", 1));
    tell(member, 1, "s0", "syncer", 0);
    tell(member, 1, "did:a", "trainer", 1);
    tell(member, 2, "did:b", "trainer", 1);
    tell(member, 2, "did:c", "trainer", 1);
    tell(member, 2, "did:d", "trainer", 0); /* it shows nothing */
    step(member, EVENT_TIME, 4, NULL);
    assert_int_equal(member_round(member), 0);
    assert_int_equal(json_object_size(json_object_get(member->enrolled, "trainer")), 1);
    tell(member, 5, "did:e", "trainer", 2);
    for (int64_t now = 5; now < 9; now++)
        step(member, EVENT_TIME, now, NULL);
    assert_int_equal(member_round(member), 1);

    const json_t *members = json_object_get(member->previous, "members");
    assert_int_equal(json_array_size(members), 3); /* s0, one of the three names, and e */
    assert_non_null(value_find(members, "did", "did:e"));
    assert_null(value_find(members, "did", "did:d"));
    assert_string_not_equal(value_text(value_find(members, "did", "did:e"), "root"), "");
    member_free(member);
    rules_free(&by);
}

/* ---- a trainer -------------------------------------------------------------------------------------------------------------- */

/* The serial of the enrolment that trainer did:b with chip 1 sends after a record that seats did:a with `seated`, and lists what `items` say. */
static json_int_t sends_after(size_t seated, json_t *items)
{
    struct rules by;
    read_rules(&by, "attested");
    char root[HASH_TEXT];
    json_t *other = enrolment("did:a", "trainer", seated), *own = enrolment("did:b", "trainer", 1);
    json_object_set_new(own, "serial", json_integer(0));
    char cid[CID_TEXT];
    value_cid(own, cid);
    if (items)
        json_object_set_new(json_array_get(items, 0), "cid", json_string(cid));
    json_t *envelope = json_pack("{ssso}", "type", "enrolment", "payload", own),
           *finals = json_pack("[{s{sssssis[{ssssss}]so}s{}}]", "record", "kind", "open", "run", run, "round", 0, "members",
                               "did", "did:a", "role", "trainer", "root", hardware_root(other, root), "items",
                               items ? items : json_array(), "certificate");
    struct trainer_start start = {
        .rules = &by, .did = "did:b", .signing = fixture_signing(), .enrolment = envelope, .finals = finals
    };
    struct trainer *trainer = trainer_new(&start, NULL);
    struct actions actions = { 0 };
    json_int_t serial = -1;
    assert_non_null(trainer);
    trainer_step(trainer, &(struct event){ .kind = EVENT_TIME, .now = 1 }, &actions);
    for (size_t i = 0; i < actions.count; i++) {
        const json_t *sent = json_array_get(json_object_get(json_object_get(actions.list[i].body, "message"), "documents"), 0);
        if (actions.list[i].kind == ACTION_SEND)
            serial = (json_int_t)value_integer(json_object_get(sent, "payload"), "serial");
    }
    actions_free(&actions);
    trainer_free(trainer);
    json_decref(envelope);
    json_decref(finals);
    json_decref(other);
    rules_free(&by);
    return serial;
}

/* Members pass over what a record has listed: who was listed while its machine had a seat would be out when the seat is free. */
static void who_was_listed_beside_its_own_machine_asks_again_with_another_enrolment(void **state)
{
    (void)state;
    assert_int_equal(sends_after(1, json_pack("[{ssss}]", "type", "enrolment", "code", "ok")), 1);
    assert_int_equal(sends_after(1, json_pack("[{ssss}]", "type", "enrolment", "code", "root")), 1);
    assert_int_equal(sends_after(1, NULL), 0);
    assert_int_equal(sends_after(2, json_pack("[{ssss}]", "type", "enrolment", "code", "ok")), 0);
}

/* ---- the document ----------------------------------------------------------------------------------------------------------- */

static void real_evidence_fits_the_document(void **state)
{
    (void)state;
    struct secret_key key;
    struct document document = { 0 };
    struct error err = { 0 };
    struct address address;
    secret_key_from_seed(hash_typed("test/key", "a", 1).bytes, &key);
    assert_true(address_parse(account, &address));
    json_t *fields = json_pack(
        "{ss ss ss ss s{si si si} sn si so}", "run", "bafk2bzaceaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "role",
        "trainer", "account", account, "kernel_class", "0000000000000000000000000000000000000000000000000000000000000000",
        "capacity", "memory", 1, "threads", 1, "devices", 0, "endpoint", "serial", 0, "evidence", evidence_of(1, run, "did:a"));
    json_object_set_new(fields, "run", document_json_cid(hash_typed("test/run", "r", 1)));
    json_t *more = json_deep_copy(fields), *unknown = json_deep_copy(fields);
    assert_true(document_make(DOCUMENT_ENROLMENT, fields, &key, NULL, &document, &err));
    document_free(&document);
    json_array_append_new(json_object_get(json_object_get(more, "evidence"), "certificates"), json_string("AAAA"));
    assert_false(document_make(DOCUMENT_ENROLMENT, more, &key, NULL, &document, &err));
    assert_non_null(strstr(err.place, "evidence.certificates"));
    document_free(&document);
    error_clear(&err);
    json_object_set_new(json_object_get(unknown, "evidence"), "nonce", json_string("AAAA"));
    assert_false(document_make(DOCUMENT_ENROLMENT, unknown, &key, NULL, &document, &err));
    document_free(&document);
    json_decref(fields);
    json_decref(more);
    json_decref(unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attested_run_takes_machines_that_show_evidence_and_no_others),
        cmocka_unit_test(the_panel_is_named_by_the_spec_and_need_not_show_evidence),
        cmocka_unit_test(evidence_that_was_copied_is_of_no_use),
        cmocka_unit_test(evidence_that_does_not_stand_is_refused_in_every_mode),
        cmocka_unit_test(what_was_found_good_is_known_again_and_nothing_else_is),
        cmocka_unit_test(of_two_with_one_machine_the_second_is_refused),
        cmocka_unit_test(of_two_in_one_record_the_first_listed_is_seated),
        cmocka_unit_test(an_operator_with_one_machine_has_one_seat_whatever_it_calls_itself),
        cmocka_unit_test(a_machine_that_enrols_again_keeps_its_seat_and_may_change_its_hardware),
        cmocka_unit_test(a_seat_that_is_left_or_lost_frees_the_machine),
        cmocka_unit_test(a_neighbour_on_its_chip_cannot_have_a_panel_members_seat),
        cmocka_unit_test(round_0_waits_for_machines_not_for_names),
        cmocka_unit_test(who_was_listed_beside_its_own_machine_asks_again_with_another_enrolment),
        cmocka_unit_test(real_evidence_fits_the_document),
    };

    return cmocka_run_group_tests(tests, make_chips, free_chips);
}
