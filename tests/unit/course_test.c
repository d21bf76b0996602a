/* What a machine that the spec lets speak can make a node keep, and whom a node asks for enrolments. */
#include "runtime/role/course_join.h"
#include "runtime/role/driver_internal.h"
#include "runtime/role/intake.h"
#include "runtime/round/member_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/net/sender.h"
#include "tests/fixture/fixture.h"

enum { MACHINES = 12 };

struct place {
    char folder[64];
    struct node node;
    struct course course;
    struct key_pair keys[MACHINES];
    json_t *allowed, *panel;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct error err = { 0 };
    char did[DID_TEXT], name[16];

    assert_true(sodium_init() >= 0);
    fixture_folder(p->folder);
    uv_loop_init(&p->node.loop);
    p->node.peers = peer_list_new();
    p->node.journal = journal_open(p->folder, &err);
    assert_non_null(p->node.journal);
    p->course.node = &p->node;
    p->course.enrolments = json_object();
    p->course.displaced = json_object();
    p->node.course = &p->course;
    p->course.id = hash_block("run", 3);
    cid_text(p->course.id, p->course.run);
    p->allowed = json_array();
    p->panel = json_array();
    for (int i = 0; i < MACHINES; i++) {
        snprintf(name, sizeof name, "machine-%d", i);
        key_pair_derive("course_test", name, &p->keys[i]);
        struct public_key key = public_key_of(&p->keys[i].identity);
        json_array_append_new(p->allowed, json_string(did_text(&key, did)));
    }
    snprintf(p->course.rules.run, sizeof p->course.rules.run, "%s", p->course.run);
    p->course.rules.allowed = p->allowed;
    p->course.rules.panel = p->panel;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    journal_close(p->node.journal);
    peer_list_free(p->node.peers);
    uv_loop_close(&p->node.loop);
    json_decref(p->course.enrolments);
    json_decref(p->course.displaced);
    json_decref(p->allowed);
    json_decref(p->panel);
    fixture_remove(p->folder);
    free(p);
    return 0;
}

/* An enrolment as the next round's, which its signer may name as it likes. New reference. */
static json_t *enrolment_of(struct place *p, const struct key_pair *keys, int port, int serial)
{
    char run[CID_TEXT], account[ADDRESS_TEXT], endpoint[64];
    struct document document = { 0 };
    struct error err = { 0 };
    json_t *fields, *envelope;

    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", port);
    fields = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:{s:i, s:i, s:i}}", "run", cid_text(p->course.id, run), "round",
                       serial, "role", "trainer", "account", address_text(account_address(&keys->account), account),
                       "kernel_class", "0000000000000000000000000000000000000000000000000000000000000000", "endpoint", endpoint,
                       "serial", serial, "capacity", "memory", 1, "threads", 1, "devices", 0);
    FIXTURE_OK(document_make(DOCUMENT_ENROLMENT, fields, &keys->identity, NULL, &document, &err), &err);
    envelope = json_read((const char *)document.bytes.bytes, document.bytes.size, SIZE_MAX, &err);
    document_free(&document);
    json_decref(fields);
    return envelope;
}

static json_t *enrolment(struct place *p, int machine, int serial)
{
    return enrolment_of(p, &p->keys[machine], 1000 + machine, serial);
}

static size_t kept(struct place *p)
{
    struct hash *ids = NULL;
    size_t count = 0;
    struct error err = { 0 };

    assert_true(journal_list_documents(p->node.journal, p->course.id, DOCUMENT_ENROLMENT, -1, &ids, &count, &err));
    free(ids);
    return count;
}

static void take(struct place *p, json_t *list)
{
    course_take_enrolments(&p->course, list);
    json_decref(list);
}

static void a_flood_of_enrolments_for_ever_other_rounds_is_cut_off(void **state)
{
    struct place *p = *state;

    for (int i = 0; i < 400; i++)
        take(p, json_pack("[o]", enrolment(p, 0, i)));
    assert_int_equal(kept(p), 256);
    assert_int_equal(peer_list_count(p->node.peers), 1);
    take(p, json_pack("[o]", enrolment(p, 1, 0))); /* another has its own room */
    assert_int_equal(kept(p), 257);
}

static void a_list_longer_than_what_is_kept_is_not_looked_at(void **state)
{
    struct place *p = *state;
    json_t *list = json_array();

    for (int i = 0; i <= 2 * COURSE_MACHINES; i++)
        json_array_append_new(list, enrolment(p, i % MACHINES, i));
    take(p, list);
    assert_int_equal(kept(p), 0);
}

/* With evidence that stands under no root. New reference. */
static json_t *made_up(struct place *p, int machine, int serial)
{
    struct document document = { 0 };
    struct error err = { 0 };
    json_t *plain = enrolment(p, machine, serial), *fields, *envelope;

    FIXTURE_OK(document_read_json(plain, &document, &err), &err);
    fields = json_deep_copy(document.json);
    document_free(&document);
    json_object_set_new(
        fields, "evidence",
        json_pack("{s:s, s:s, s:[s, s, s]}", "kind", "sev-snp", "report", "AAAA", "certificates", "AAAA", "AAAA", "AAAA"));
    FIXTURE_OK(document_make(DOCUMENT_ENROLMENT, fields, &p->keys[machine].identity, NULL, &document, &err), &err);
    envelope = json_read((const char *)document.bytes.bytes, document.bytes.size, SIZE_MAX, &err);
    document_free(&document);
    json_decref(fields);
    json_decref(plain);
    return envelope;
}

/* Each costs a millisecond, and a peer that asks nothing of anybody is asked every ten seconds: a thousand would stop a node for one of them. */
static void of_a_list_of_evidence_that_is_made_up_little_is_looked_at(void **state)
{
    struct place *p = *state;
    json_t *list = json_pack("[o, o]", made_up(p, 0, 0), enrolment(p, 1, 0));

    take(p, list);
    assert_int_equal(kept(p), 1); /* one such is passed over */
    list = json_array();
    for (int i = 0; i < 20; i++)
        json_array_append_new(list, made_up(p, 0, i));
    json_array_append_new(list, enrolment(p, 2, 0));
    take(p, list);
    assert_int_equal(kept(p), 1);
}

/* No honest program sends it, so it costs its sender what a forged signature does. */
static void evidence_that_is_made_up_counts_against_its_sender(void **state)
{
    struct place *p = *state;
    struct error err = { 0 };
    json_t *message = json_pack("{s:[o]}", "documents", made_up(p, 0, 0)), *missing = json_array();

    assert_false(intake_message(&p->node, message, missing, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    assert_non_null(strstr(err.message, "enrolment refused: evidence"));
    assert_int_equal(sender_cost(err.code), sender_cost(ERROR_SYNTAX));
    json_decref(message);
    json_decref(missing);
}

static void strangers_are_not_kept(void **state)
{
    struct place *p = *state;

    json_array_remove(p->allowed, 3);
    take(p, json_pack("[o, o]", enrolment(p, 3, 0), enrolment(p, 4, 0)));
    assert_int_equal(kept(p), 1);
    assert_int_equal(json_object_size(p->course.enrolments), 1);
}

static void everybody_has_a_turn_to_be_asked(void **state)
{
    struct place *p = *state;
    bool asked[MACHINES] = { false };
    const struct peer *silent;
    char did[PEER_DID];

    for (int i = 0; i < MACHINES; i++)
        take(p, json_pack("[o]", enrolment(p, i, 0)));
    assert_int_equal(peer_list_count(p->node.peers), MACHINES);
    for (int i = 0; i < MACHINES; i++)
        asked[atoi(strrchr(course_next_peer(&p->course, 0)->endpoint, ':') + 1) - 1000] = true;
    for (int i = 0; i < MACHINES; i++)
        assert_true(asked[i]);
    silent = course_next_peer(&p->course, 0);
    snprintf(did, sizeof did, "%s", silent->did);
    peer_list_note(p->node.peers, did, PEER_SILENT, 0);
    for (int i = 0; i < 2 * MACHINES; i++)
        assert_string_not_equal(course_next_peer(&p->course, 0)->did, did);
}

/* What a stranger says to a node. False: refused, with its code in `err`. */
static bool post(struct place *p, const struct key_pair *keys, struct error *err)
{
    json_t *message = json_pack("{s:[o]}", "documents", enrolment_of(p, keys, 4000, 0)), *missing = json_array();
    bool taken = intake_message(&p->node, message, missing, err);

    json_decref(message);
    json_decref(missing);
    return taken;
}

static const char *did_of(const struct key_pair *keys, char did[DID_TEXT])
{
    struct public_key key = public_key_of(&keys->identity);

    return did_text(&key, did);
}

/* Keys that cost nothing say all that they want to take part. */
static void strangers(struct place *p, int first, int end)
{
    struct key_pair keys;
    struct error err = { 0 };
    char name[24];

    for (int i = first; i < end; i++) {
        snprintf(name, sizeof name, "stranger-%d", i);
        key_pair_derive("course_test", name, &keys);
        FIXTURE_OK(post(p, &keys, &err), &err);
    }
}

/* Keys cost nothing, so the first of no consequence gives way: not who is on the panel or in the run, nor whom the machine may still list. */
static void strangers_give_way_to_newcomers_and_take_their_documents_along(void **state)
{
    struct place *p = *state;
    char did[DID_TEXT];
    struct member machine = { .documents = json_object() };
    struct driver driver = { .node = &p->node, .course = &p->course, .member = &machine, .finals = json_array() };
    struct key_pair keys;
    struct error err = { 0 };
    json_t *members = json_array(), *held;

    p->course.rules.allowed = NULL; /* anybody may */
    json_array_append_new(p->panel, json_pack("{s:s}", "did", did_of(&p->keys[0], did)));
    json_array_append_new(members, json_pack("{s:s}", "did", did_of(&p->keys[1], did)));
    json_array_append_new(driver.finals, json_pack("{s:{s:o, s:[]}}", "record", "members", members, "items"));
    for (int i = 1; i < 4; i++)
        take(p, json_pack("[o]", enrolment(p, i, 0)));
    held = json_object_get(json_object_get(p->course.enrolments, did_of(&p->keys[2], did)), "ids");
    json_object_set_new(machine.documents, json_string_value(json_array_get(held, 0)), json_pack("{s:{}}", "envelope"));
    p->node.driver = &driver;
    strangers(p, 3, COURSE_MACHINES + 20);
    assert_int_equal(json_object_size(p->course.enrolments), COURSE_MACHINES);
    assert_int_equal(kept(p), COURSE_MACHINES);
    assert_non_null(json_object_get(p->course.enrolments, did_of(&p->keys[1], did)));
    assert_non_null(json_object_get(p->course.enrolments, did_of(&p->keys[2], did)));
    assert_null(json_object_get(p->course.enrolments, did_of(&p->keys[3], did)));
    assert_null(peer_list_find(p->node.peers, did));
    FIXTURE_OK(post(p, &p->keys[3], &err), &err); /* says it again, and is taken */
    assert_non_null(json_object_get(p->course.enrolments, did_of(&p->keys[3], did)));
    driver.member = NULL; /* who has a seat is not known: nobody gives way */
    key_pair_derive("course_test", "too early", &keys);
    assert_false(post(p, &keys, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    p->node.driver = NULL;
    json_decref(driver.finals);
    json_decref(machine.documents);
}

/* Others need it to compute the record again. */
static void what_a_record_lists_stays_when_its_signer_gives_way(void **state)
{
    struct place *p = *state;
    char did[DID_TEXT];
    struct member machine = { .documents = json_object() };
    struct driver driver = { .node = &p->node, .course = &p->course, .member = &machine, .finals = json_array() };

    p->course.rules.allowed = NULL;
    take(p, json_pack("[o]", enrolment(p, 3, 0)));
    json_t *ids = json_object_get(json_object_get(p->course.enrolments, did_of(&p->keys[3], did)), "ids");
    json_array_append_new(driver.finals,
                          json_pack("{s:{s:[], s:[{s:O}]}}", "record", "members", "items", "cid", json_array_get(ids, 0)));
    p->node.driver = &driver;
    strangers(p, 0, COURSE_MACHINES);
    assert_null(json_object_get(p->course.enrolments, did_of(&p->keys[3], did)));
    assert_int_equal(kept(p), COURSE_MACHINES + 1);
    p->node.driver = NULL;
    json_decref(driver.finals);
    json_decref(machine.documents);
}

/* It has to answer for what it did: a node that no longer knew it would refuse its opening, and it would lose by silence. */
static void who_has_left_keeps_its_place_while_its_work_may_be_judged(void **state)
{
    struct place *p = *state;
    char left[DID_TEXT], challenger[DID_TEXT];
    struct member machine = { .documents = json_object() };
    struct driver driver = { .node = &p->node, .course = &p->course, .member = &machine, .finals = json_array() };

    p->course.rules.allowed = NULL;
    take(p, json_pack("[o, o]", enrolment(p, 3, 0), enrolment(p, 4, 0)));
    json_array_append_new(driver.finals,
                          json_pack("{s:{s:[], s:[], s:[{s:i, s:[{s:s}]}], s:[{s:s}]}}", "record", "members", "items",
                                    "unsettled", "round", 0, "contributions", "did", did_of(&p->keys[3], left), "disputes",
                                    "challenger", did_of(&p->keys[4], challenger)));
    p->node.driver = &driver;
    strangers(p, 0, COURSE_MACHINES);
    assert_non_null(json_object_get(p->course.enrolments, left));
    assert_non_null(json_object_get(p->course.enrolments, challenger));
    p->node.driver = NULL;
    json_decref(driver.finals);
    json_decref(machine.documents);
}

/* Others' lists can go on without end: where there is no more room, who is named by nobody says itself that it wants to take part. */
static void a_full_list_takes_the_named_on_top_and_nobody_else_from_others(void **state)
{
    struct place *p = *state;
    char did[DID_TEXT];
    struct member machine = { .documents = json_object() };
    struct driver driver = { .node = &p->node, .course = &p->course, .member = &machine, .finals = json_array() };
    struct error err = { 0 };

    p->course.rules.allowed = NULL;
    p->node.driver = &driver;
    strangers(p, 0, COURSE_MACHINES);
    json_array_append_new(driver.finals,
                          json_pack("{s:{s:[{s:s}], s:[]}}", "record", "members", "did", did_of(&p->keys[0], did), "items"));
    FIXTURE_OK(post(p, &p->keys[0], &err), &err);
    assert_non_null(json_object_get(p->course.enrolments, did));
    take(p, json_pack("[o]", enrolment(p, 1, 0)));
    assert_null(json_object_get(p->course.enrolments, did_of(&p->keys[1], did)));
    assert_int_equal(json_object_size(p->course.enrolments), COURSE_MACHINES + 1);
    p->node.driver = NULL;
    json_decref(driver.finals);
    json_decref(machine.documents);
}

/* It does not know who is in the run, and would delete what records list. */
static void a_node_without_a_round_machine_keeps_the_first(void **state)
{
    struct place *p = *state;
    struct error err = { 0 };

    p->course.rules.allowed = NULL;
    strangers(p, 0, COURSE_MACHINES);
    assert_false(post(p, &p->keys[0], &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    p->course.rules.allowed = p->allowed; /* the named come on top */
    FIXTURE_OK(post(p, &p->keys[0], &err), &err);
    assert_int_equal(kept(p), COURSE_MACHINES + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flood_of_enrolments_for_ever_other_rounds_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_longer_than_what_is_kept_is_not_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_a_list_of_evidence_that_is_made_up_little_is_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evidence_that_is_made_up_counts_against_its_sender, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_are_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_give_way_to_newcomers_and_take_their_documents_along, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_record_lists_stays_when_its_signer_gives_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_left_keeps_its_place_while_its_work_may_be_judged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_list_takes_the_named_on_top_and_nobody_else_from_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_without_a_round_machine_keeps_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(everybody_has_a_turn_to_be_asked, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
