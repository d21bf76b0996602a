/* Who counts as present, whose machine one is, and on whom the groups of the replicated tier depend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/assignment.h"
#include "runtime/round/claim.h"
#include "runtime/round/membership.h"
#include "runtime/round/replica.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

static const struct rules plain = { .run = "r", .shards = 8, .rounds = 99, .trainers_limit = 60, .drop_after = 3 };
static const struct rules pairs = {
    .run = "r", .shards = 8, .rounds = 99, .trainers_limit = 60, .drop_after = 3, .replicas = 2, .trainers_quorum = 1
};

static struct account_key key_of(const char *name)
{
    struct account_key key;
    assert_true(account_key_from_bytes(hash_typed("test/account", name, strlen(name)).bytes, &key));
    return key;
}

static const char *account_of(const char *name, char text[ADDRESS_TEXT])
{
    const struct account_key key = key_of(name);
    return address_text(account_address(&key), text);
}

/* "a1": a machine of account "a". */
static json_t *trainer(const char *did)
{
    char account[ADDRESS_TEXT], name[2] = { did[0], 0 };
    return json_pack("{sssssssssi}", "did", did, "role", "trainer", "account", account_of(name, account), "enrolment", "e",
                     "absent", 0);
}

/* Record `round` with these machines. */
static json_t *record_of(int round, const char *const dids[], size_t count)
{
    json_t *members = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(members, trainer(dids[i]));
    return json_pack("{siso}", "round", round, "members", members);
}

static json_t *member_of(const json_t *record, const char *did)
{
    return value_find(json_object_get(record, "members"), "did", did);
}

static void advance(const struct rules *rules, json_t *record, const json_t *parts, const json_t *contributions, bool planned)
{
    const struct membership_change change = { .rules = rules,
                                              .previous = record,
                                              .round = value_integer(record, "round") + 1,
                                              .parts = parts,
                                              .contributions = contributions,
                                              .planned = planned };
    json_t *members = membership_after(&change);
    json_object_set_new(record, "members", members);
    json_object_set_new(record, "round", json_integer((json_int_t)change.round));
}

/* ---- who was there ---------------------------------------------------------------------------------------------------- */

/* Who commits to something and then shows rubbish would cost its group every round, and keep its share of the shards. */
static void only_what_was_found_right_counts_as_presence(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        bool there;
    } cases[] = { { "ok", true },          { "differs", true },      { "alone", true },    { "truncated", false },
                  { "missing", false },    { "uncommitted", false }, { "start", false },   { "equivocated", false },
                  { "unassigned", false }, { "convicted", false },   { "anything", false } };
    const char *const dids[] = { "a1" };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        json_t *record = record_of(1, dids, 1), *parts = json_pack("[{sss[i]}]", "did", "a1", "shards", 0);
        json_t *lines = json_pack("[{ssss}]", "did", "a1", "code", cases[c].code);
        for (int round = 0; round < 3; round++)
            advance(c % 2 ? &plain : &pairs, record, parts, lines, true);
        assert_int_equal(member_of(record, "a1") != NULL, cases[c].there);
        json_decref(lines);
        json_decref(parts);
        json_decref(record);
    }
}

static void a_refused_document_beside_a_right_one_is_no_absence(void **state)
{
    (void)state;
    const char *const dids[] = { "a1" };
    json_t *record = record_of(1, dids, 1), *parts = json_pack("[{sss[i]}]", "did", "a1", "shards", 0),
           *lines = json_pack("[{ssss}{ssss}]", "did", "a1", "code", "truncated", "did", "a1", "code", "ok");
    advance(&plain, record, parts, lines, true);
    assert_int_equal(value_integer(member_of(record, "a1"), "absent"), 0);
    json_decref(lines);
    json_decref(parts);
    json_decref(record);
}

/* Else a machine that is away would come back by being given nothing to do; and nobody can do what no plan says. */
static void only_work_ends_an_absence_and_only_a_round_with_a_plan_makes_one(void **state)
{
    (void)state;
    const char *const dids[] = { "a1" };
    json_t *record = record_of(1, dids, 1), *some = json_pack("[{sss[i]}]", "did", "a1", "shards", 0),
           *none = json_pack("[{sss[]}]", "did", "a1", "shards"), *lines = json_array();
    advance(&plain, record, some, lines, true);
    assert_int_equal(value_integer(member_of(record, "a1"), "absent"), 1);
    advance(&plain, record, none, lines, true);
    assert_int_equal(value_integer(member_of(record, "a1"), "absent"), 1);
    advance(&plain, record, some, lines, false);
    assert_int_equal(value_integer(member_of(record, "a1"), "absent"), 1);
    advance(&plain, record, some, lines, true);
    assert_int_equal(value_integer(member_of(record, "a1"), "absent"), 2);
    json_decref(lines);
    json_decref(none);
    json_decref(some);
    json_decref(record);
}

/* ---- whose machine ---------------------------------------------------------------------------------------------------- */

static json_t *enrolment_of(const char *did, const char *account, const char *signs, const char *run, const char *of)
{
    char text[ADDRESS_TEXT], signature[CLAIM_TEXT];
    json_t *payload = json_pack("{ssssssss}", "run", "r", "signer", did, "role", "trainer", "account", account_of(account, text));
    if (*signs) {
        const struct account_key key = key_of(signs);
        json_object_set_new(payload, "account_signature", json_string(claim_sign(&key, run, of, signature)));
    }
    return payload;
}

/* Groups keep machines of one account apart: keys that name a victim's account without its word would take its seats. */
static void a_victims_account_is_named_by_its_own_machines_only(void **state)
{
    (void)state;
    static const struct {
        const char *signs, *run, *of, *code;
    } cases[] = { { "v", "r", "m1", "ok" },
                  { "", "r", "m1", "claim" },          /* nothing but the name */
                  { "m", "r", "m1", "claim" },         /* another account's word */
                  { "v", "r", "v1", "claim" },         /* what the victim signed for its own machine */
                  { "v", "another", "m1", "claim" } }; /* what it signed for this one elsewhere */
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        json_t *payload = enrolment_of("m1", "v", cases[c].signs, cases[c].run, cases[c].of);
        assert_string_equal(membership_code(&pairs, NULL, "enrolment", payload), cases[c].code);
        assert_string_equal(membership_code(&plain, NULL, "enrolment", payload), "ok"); /* who gives its pay away may */
        json_decref(payload);
    }
    json_t *payload = enrolment_of("m1", "v", "v", "r", "m1");
    json_object_set_new(payload, "account_signature", json_string("00"));
    assert_string_equal(membership_code(&pairs, NULL, "enrolment", payload), "claim");
    json_decref(payload);
}

/* ---- on whom a group depends ------------------------------------------------------------------------------------------ */

static json_t *draw(const json_t *record, uint64_t n)
{
    return assignment_draw(&pairs, record, seed_of("r", n, "entropy", 7));
}

/* Everybody with a part gave what was found right, but for those of `away`; one without a partner is alone. */
static json_t *lines_of(const json_t *parts, const json_t *record, const char *away)
{
    char account[ADDRESS_TEXT];
    json_t *lines = json_array(), *there = json_object(), *part;
    size_t i;
    account_of(away, account);
    for (int pass = 0; pass < 2; pass++) {
        json_array_foreach((json_t *)parts, i, part)
        {
            const char *did = value_text(part, "did"), *group = value_text(part, "group");
            if (!*group || value_is(member_of(record, did), "account", account))
                continue;
            if (!pass)
                json_object_set_new(there, group, json_integer((json_int_t)value_integer(there, group) + 1));
            else
                json_array_append_new(lines,
                                      json_pack("{sssssO}", "did", did, "code", value_integer(there, group) > 1 ? "ok" : "alone",
                                                "group", json_object_get(part, "group")));
        }
    }
    json_decref(there);
    return lines;
}

static bool anything_accepted(const json_t *lines)
{
    return value_find(lines, "code", "ok");
}

/* Two honest machines, and an account with one in every group: it can be silent, and work, as it likes. */
static void an_account_with_a_machine_in_every_group_stops_one_round_in_five_at_most(void **state)
{
    (void)state;
    const char *const dids[] = { "a1", "b1", "x1", "x2", "x3", "x4" };
    json_t *record = record_of(0, dids, 6);
    int stopped = 0;
    for (uint64_t round = 0; round < 60; round++) {
        json_t *parts = draw(record, round);
        /* It stays away whenever a group has nobody but it beside an honest machine. */
        bool decides = !value_is(value_find(parts, "did", "a1"), "group", value_text(value_find(parts, "did", "b1"), "group"));
        json_t *lines = lines_of(parts, record, decides ? "x" : "-");
        stopped += !anything_accepted(lines);
        assert_true(anything_accepted(lines) || decides);
        advance(&pairs, record, parts, lines, true);
        assert_int_equal(value_integer(member_of(record, "a1"), "trial"), 0);
        json_decref(lines);
        json_decref(parts);
    }
    assert_in_range(stopped, 1, 60 / (REPLICA_TRIAL + 1) + 1);
    json_decref(record);
}

/* Silent for good it is dropped, as anybody, and stops no round but the first. */
static void who_stays_away_stops_one_round(void **state)
{
    (void)state;
    const char *const dids[] = { "a1", "b1", "x1", "x2" };
    json_t *record = record_of(0, dids, 4);
    for (uint64_t round = 0; round < 6; round++) {
        json_t *parts = draw(record, round), *lines = lines_of(parts, record, "x");
        assert_int_equal(anything_accepted(lines), round > 0);
        advance(&pairs, record, parts, lines, true);
        json_decref(lines);
        json_decref(parts);
    }
    assert_null(member_of(record, "x1"));
    assert_null(member_of(record, "x2"));
    assert_non_null(member_of(record, "a1"));
    json_decref(record);
}

static void take(json_t *record, const char *did, const char *account)
{
    json_t *payload = enrolment_of(did, account, account, "r", did), *documents = json_pack("{s{so}}", "e", "payload", payload),
           *items = json_pack("[{ssssss}]", "cid", "e", "type", "enrolment", "code", "ok");
    const bool begun = json_object_get(record, "members");
    const struct membership_change change = { .rules = &pairs,
                                              .previous = begun ? record : NULL,
                                              .round = begun ? value_integer(record, "round") + 1 : 0,
                                              .items = items,
                                              .documents = documents };
    json_object_set_new(record, "members", membership_after(&change));
    json_decref(items);
    json_decref(documents);
}

/* Else whoever was set aside would come back as another key. */
static void who_comes_later_is_depended_on_when_it_has_worked(void **state)
{
    (void)state;
    json_t *record = json_pack("{si}", "round", 0), *lines = json_pack("[{ssss}]", "did", "b1", "code", "ok"),
           *parts = json_pack("[{sss[i]}]", "did", "b1", "shards", 0);
    take(record, "a1", "a");
    assert_int_equal(value_integer(member_of(record, "a1"), "trial"), 0); /* when the run begins all are alike */
    take(record, "b1", "b");
    assert_int_equal(value_integer(member_of(record, "b1"), "trial"), REPLICA_TRIAL);
    take(record, "a2", "a");
    assert_int_equal(value_integer(member_of(record, "a2"), "trial"), 0); /* another machine of who is trusted */
    for (int round = 1; round <= REPLICA_TRIAL; round++) {
        advance(&pairs, record, parts, lines, true);
        assert_int_equal(value_integer(member_of(record, "b1"), "trial"), REPLICA_TRIAL - round);
        if (round == 1) {
            take(record, "b1", "b"); /* to enrol again is no work */
            assert_int_equal(value_integer(member_of(record, "b1"), "trial"), REPLICA_TRIAL - 1);
        }
    }
    assert_null(json_object_get(member_of(record, "b1"), "trial"));
    json_decref(parts);
    json_decref(lines);
    json_decref(record);
}

/* Else it would send machine after machine that lies, each depended on from its first round because another of its is. */
static void whose_machine_is_convicted_is_set_aside(void **state)
{
    (void)state;
    const char *const dids[] = { "a1", "x1", "x2", "y2" };
    char account[ADDRESS_TEXT];
    json_t *record = record_of(5, dids, 4),
           *now = json_pack("[{sssisi}{sssisi}{sssisi}]", "did", "x1", "round", 4, "record", 6, "did", "y1", "round", 4, "record",
                            6, "did", "a9", "round", 4, "record", 5);
    json_object_set_new(
        record, "unsettled", /* y1 has left since */
        json_pack("[{sis[{ssss}]}]", "round", 4, "contributions", "did", "y1", "account", account_of("y", account)));
    const struct membership_change change = { .rules = &pairs, .previous = record, .round = 6, .convicted = now };
    json_t *members = membership_after(&change);
    assert_null(value_find(members, "did", "x1"));
    assert_int_equal(value_integer(value_find(members, "did", "x2"), "trial"), REPLICA_TRIAL);
    assert_int_equal(value_integer(value_find(members, "did", "y2"), "trial"), REPLICA_TRIAL);
    assert_int_equal(value_integer(value_find(members, "did", "a1"), "trial"), 0);
    json_decref(members);
    json_decref(now);
    json_decref(record);
}

/* One machine of an account that is away sets all of them aside; they still work, beside those whose trial is over. */
static void those_set_aside_work_beside_groups_that_do_without_them(void **state)
{
    (void)state;
    const char *const dids[] = { "a1", "b1", "c1", "d1", "x1", "x2", "x3" };
    json_t *record = record_of(0, dids, 7), *part;
    json_object_set_new(member_of(record, "x1"), "trial", json_integer(1));
    json_object_set_new(member_of(record, "x2"), "trial", json_integer(REPLICA_TRIAL));
    json_object_set_new(member_of(record, "x3"), "trial", json_integer(2));
    for (uint64_t n = 0; n < 40; n++) {
        json_t *parts = draw(record, n), *trusted = json_object(), *count;
        const char *group;
        size_t i, beside = 0;
        json_array_foreach(parts, i, part)
        {
            const json_t *member = member_of(record, value_text(part, "did"));
            group = value_text(part, "group");
            if (*group && !value_integer(member, "trial"))
                json_object_set_new(trusted, group, json_integer((json_int_t)value_integer(trusted, group) + 1));
            beside += *group && value_integer(member, "trial");
        }
        assert_int_equal(json_object_size(trusted), 2);
        json_object_foreach(trusted, group, count) assert_int_equal(json_integer_value(count), 2);
        assert_int_equal(beside, 2); /* of one account, so one a group */
        json_decref(trusted);
        json_decref(parts);
    }
    /* Where they are needed for the quorum, those with the least of it before them come first. */
    struct rules more = pairs;
    more.trainers_quorum = 3;
    json_object_set_new(member_of(record, "d1"), "trial", json_integer(3));
    json_t *parts = assignment_draw(&more, record, seed_of("r", 1, "entropy", 7)), *groups = json_object();
    size_t i;
    json_array_foreach(parts, i, part)
        json_object_set_new(groups, *value_text(part, "group") ? value_text(part, "group") : "-", json_true());
    assert_int_equal(json_object_size(groups), 3);
    json_decref(groups);
    json_decref(parts);
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_found_right_counts_as_presence),
        cmocka_unit_test(a_refused_document_beside_a_right_one_is_no_absence),
        cmocka_unit_test(only_work_ends_an_absence_and_only_a_round_with_a_plan_makes_one),
        cmocka_unit_test(a_victims_account_is_named_by_its_own_machines_only),
        cmocka_unit_test(an_account_with_a_machine_in_every_group_stops_one_round_in_five_at_most),
        cmocka_unit_test(who_stays_away_stops_one_round),
        cmocka_unit_test(who_comes_later_is_depended_on_when_it_has_worked),
        cmocka_unit_test(whose_machine_is_convicted_is_set_aside),
        cmocka_unit_test(those_set_aside_work_beside_groups_that_do_without_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
