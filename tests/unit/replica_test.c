/* The pure parts of the replicated tier: who gets the same shards, what a commitment binds, and what groups agree on. Whole rounds are in
 * simulation_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/assignment.h"
#include "runtime/round/fold.h"
#include "runtime/round/payout.h"
#include "runtime/round/replica.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

static struct hash seed_number(uint64_t n)
{
    return seed_of("bafk2bzarun", n, "entropy", 7);
}

/* `accounts[i]` is a letter: whose machine trainer i is. */
static json_t *record_of(const char *accounts)
{
    json_t *members = json_array();
    for (size_t i = 0; accounts[i]; i++) {
        char did[16], account[2] = { accounts[i], 0 };
        snprintf(did, sizeof did, "did:t%02d", (int)i);
        json_array_append_new(members, json_pack("{ssssss}", "did", did, "role", "trainer", "account", account));
    }
    return json_pack("{sos[i]sssss{}}", "members", members, "unreturned", 2, "outer", "o", "state", "s", "telemetry");
}

/* Groups of the parts: name -> number of machines. Every group has two machines of different accounts at least, its machines have the same
 * shards, and each shard is dealt to one group. New reference. */
static json_t *check_groups(const json_t *parts, const json_t *record, size_t shards)
{
    json_t *groups = json_object(), *part, *shard;
    unsigned seen = 0;
    size_t i, k, j;
    json_array_foreach((json_t *)parts, i, part)
    {
        const char *group = value_text(part, "group"), *did = value_text(part, "did");
        if (!*group) {
            assert_int_equal(json_array_size(json_object_get(part, "shards")), 0);
            continue;
        }
        assert_true(strcmp(group, did) <= 0);
        json_object_set_new(groups, group, json_integer((json_int_t)value_integer(groups, group) + 1));
        assert_true(json_equal(json_object_get(part, "shards"), json_object_get(value_find(parts, "did", group), "shards")));
        for (j = 0; j < i; j++) {
            const json_t *other = json_array_get(parts, j);
            const json_t *members = json_object_get(record, "members");
            if (value_is(other, "group", group))
                assert_string_not_equal(value_text(value_find(members, "did", value_text(other, "did")), "account"),
                                        value_text(value_find(members, "did", did), "account"));
        }
        if (strcmp(group, did))
            continue;
        assert_true(json_array_size(json_object_get(part, "shards")) > 0);
        json_array_foreach(json_object_get(part, "shards"), k, shard)
        {
            assert_false(seen >> json_integer_value(shard) & 1);
            seen |= 1u << json_integer_value(shard);
        }
    }
    assert_int_equal(seen, json_object_size(groups) ? (1u << shards) - 1 : 0);
    return groups;
}

static void a_shard_goes_to_machines_of_different_operators(void **state)
{
    (void)state;
    static const struct {
        const char *accounts;
        int replicas;
        size_t groups, working;
    } cases[] = { { "abcdef", 2, 3, 6 }, { "abcdefg", 2, 3, 7 }, { "aabbcc", 2, 3, 6 },  { "aaaabc", 2, 2, 4 },
                  { "aaaaaa", 2, 0, 0 }, { "a", 2, 0, 0 },       { "ab", 2, 1, 2 },      { "abcdef", 3, 2, 6 },
                  { "aabbcd", 3, 2, 6 }, { "aaabbb", 3, 0, 0 },  { "abcdefgh", 4, 2, 8 } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct rules rules = { .shards = 7, .replicas = cases[c].replicas };
        json_t *record = record_of(cases[c].accounts);
        for (uint64_t seed = 0; seed < 40; seed++) {
            json_t *parts = assignment_draw(&rules, record, seed_number(seed)), *groups = check_groups(parts, record, 7),
                   *machines;
            const char *group;
            size_t working = 0;
            assert_int_equal(json_object_size(groups), cases[c].groups);
            json_object_foreach(groups, group, machines)
            {
                assert_true(json_integer_value(machines) >= cases[c].replicas);
                working += (size_t)json_integer_value(machines);
            }
            assert_int_equal(working, cases[c].working);
            json_decref(groups);
            json_decref(parts);
        }
        json_decref(record);
    }
}

static void groups_are_drawn_by_the_seed_and_have_a_shard_each(void **state)
{
    (void)state;
    struct rules rules = { .shards = 7, .replicas = 2 }, few = { .shards = 2, .replicas = 2 };
    json_t *record = record_of("abcdef");
    unsigned together = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        json_t *parts = assignment_draw(&rules, record, seed_number(seed)),
               *again = assignment_draw(&rules, record, seed_number(seed));
        assert_true(json_equal(parts, again));
        together += value_is(value_find(parts, "did", "did:t01"), "group", "did:t00");
        json_decref(parts);
        json_decref(again);
    }
    assert_in_range(together, 80, 160); /* one of five others */
    json_t *parts = assignment_draw(&few, record, seed_number(1)), *groups = check_groups(parts, record, 2);
    assert_int_equal(json_object_size(groups), 2); /* of three machines each: nobody is without a shard */
    json_decref(groups);
    json_decref(parts);
    json_decref(record);
}

static void machines_of_a_group_draw_the_same_probes(void **state)
{
    (void)state;
    struct rules rules = { .shards = 7, .replicas = 2, .run = "bafk2bzarun" };
    json_t *record = record_of("ab"), *plan = json_pack("{si}", "steps", 40);
    json_t *one = assignment_context(&rules, record, 1, seed_number(1), plan, "did:t00");
    json_t *other = assignment_context(&rules, record, 1, seed_number(1), plan, "did:t01");
    assert_string_equal(value_text(other, "group"), "did:t00");
    assert_false(json_equal(one, other));
    json_object_set_new(other, "did", json_string("did:t00"));
    assert_true(json_equal(one, other));
    json_decref(one);
    json_decref(other);
    json_decref(plan);
    json_decref(record);
}

static json_t *contribution_of(const char *did, const char *body, const char *salt)
{
    return json_pack("{sisssissssssss}", "version", 1, "run", "bafk2bzarun", "round", 1, "signer", did, "body", body, "payload",
                     did, "salt", salt);
}

static void a_commitment_binds_its_signer_and_its_salt(void **state)
{
    (void)state;
    json_t *one = contribution_of("did:a", "x", "1"), *partner = contribution_of("did:b", "x", "1"),
           *salted = contribution_of("did:a", "x", "2"), *other = contribution_of("did:a", "y", "1");
    json_t *made[] = { replica_commitment(one), replica_commitment(partner), replica_commitment(salted),
                       replica_commitment(other) };
    char cid[CID_TEXT], made_cid[CID_TEXT], a[HASH_TEXT], b[HASH_TEXT];
    for (int i = 1; i < 4; i++)
        assert_string_not_equal(value_text(made[0], "digest"), value_text(made[i], "digest"));
    /* The digest of another, under one's own name, is no commitment to anything that one could sign. */
    json_object_set(made[1], "digest", json_object_get(made[0], "digest"));
    value_cid(made[1], made_cid);
    replica_commitment_cid(partner, cid);
    assert_string_not_equal(made_cid, cid);
    replica_commitment_cid(one, cid);
    value_cid(made[0], made_cid);
    assert_string_equal(made_cid, cid);
    assert_true(replica_result(one, a) && replica_result(partner, b));
    assert_string_equal(a, b);
    replica_result(salted, b);
    assert_string_equal(a, b);
    replica_result(other, b);
    assert_string_not_equal(a, b);
    for (int i = 0; i < 4; i++)
        json_decref(made[i]);
    json_decref(one);
    json_decref(partner);
    json_decref(salted);
    json_decref(other);
}

/* Whoever could differ by something that nobody is convicted for would cost its partner each round. */
static void what_no_replay_decides_parts_no_group(void **state)
{
    (void)state;
    static const char *const free[] = { "tokens", "probes", "fragment", "payload_bytes", "codec" };
    static const char *const decided[] = { "start", "end", "carry_in", "carry_out", "body", "steps", "loss", "step_log" };
    json_t *one = contribution_of("did:a", "x", "1"), *other;
    char a[HASH_TEXT], b[HASH_TEXT];
    replica_result(one, a);
    for (size_t i = 0; i < sizeof free / sizeof *free + sizeof decided / sizeof *decided; i++) {
        bool is_free = i < sizeof free / sizeof *free;
        other = json_copy(one);
        json_object_set_new(other, is_free ? free[i] : decided[i - sizeof free / sizeof *free], json_string("else"));
        assert_true(replica_result(other, b));
        assert_int_equal(!strcmp(a, b), is_free);
        json_decref(other);
    }
    json_decref(one);
}

/* `said`: for each trainer of the group "g" a letter, its result, a capital of one on trial; '-': its contribution was refused. The codes as
 * letters. */
static void judged(const char *said, char codes[8])
{
    json_t *list = json_array(), *documents = json_object(), *members = json_array();
    size_t i, count = strlen(said);
    for (i = 0; i < count; i++) {
        bool trial = said[i] >= 'A' && said[i] <= 'Z';
        char did[8], body[2] = { trial ? (char)(said[i] | 0x20) : said[i], 0 };
        snprintf(did, sizeof did, "did:%zu", i);
        json_array_append_new(members, json_pack("{sssi}", "did", did, "trial", trial ? 2 : 0));
        json_array_append_new(
            list, json_pack("{ssssssss}", "did", did, "cid", did, "code", said[i] == '-' ? "truncated" : "ok", "group", "g"));
        json_object_set_new(documents, did, json_pack("{so}", "payload", contribution_of(did, body, did)));
    }
    replica_judge(list, documents, members);
    json_decref(members);
    for (i = 0; i < count; i++)
        codes[i] = *value_text(json_array_get(list, i), "code");
    codes[count] = 0;
    assert_int_equal(replica_accepted(list), strchr(codes, 'o') ? 1 : 0);
    json_decref(list);
    json_decref(documents);
}

static void two_alike_and_more_than_half_are_accepted(void **state)
{
    (void)state;
    static const char *const cases[][2] = { { "xx", "oo" },     { "xy", "dd" },     { "x", "a" },       { "x-", "at" },
                                            { "xxx", "ooo" },   { "xxy", "ood" },   { "xyz", "ddd" },   { "xx-", "oot" },
                                            { "xxyy", "dddd" }, { "xxxy", "oood" }, { "xxyz", "dddd" }, { "xy-", "ddt" } };
    char codes[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        judged(cases[i][0], codes);
        assert_string_equal(codes, cases[i][1]);
    }
}

static void those_on_trial_outvote_nobody_and_help_who_lacks_a_partner(void **state)
{
    (void)state;
    static const char *const cases[][2] = { { "xxYYY", "ooddd" }, { "xxX", "ooo" },   { "xX", "oo" },     { "x-X", "oto" },
                                            { "xYY", "doo" },     { "xyXX", "odoo" }, { "xyXY", "dddd" }, { "XX", "oo" },
                                            { "xxyYY", "ooddd" }, { "X", "a" },       { "xY", "dd" } };
    char codes[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        judged(cases[i][0], codes);
        assert_string_equal(codes, cases[i][1]);
    }
}

/* Two groups, g and h: g agreed, h did not. */
static json_t *lines(void)
{
    static const char *const of[][4] = {
        { "a", "ok", "a", "x" }, { "b", "differs", "b", "y" }, { "c", "ok", "a", "x" }, { "d", "differs", "b", "z" }
    };
    json_t *list = json_array();
    for (size_t i = 0; i < 4; i++)
        json_array_append_new(list, json_pack("{sssssssssssiss}", "did", of[i][0], "cid", of[i][0], "code", of[i][1], "group",
                                              of[i][2], "body", of[i][3], "weight", 3, "account", of[i][0]));
    return list;
}

static void a_group_is_checked_once_and_one_that_disagrees_whole(void **state)
{
    (void)state;
    struct rules rules = { .spot_check = RULES_UNIT, .replicas = 2 };
    json_t *committee = json_pack("[ss]", "m", "n"),
           *record = json_pack("{sssoss}", "kind", "train", "contributions", lines(), "x", "");
    json_t *all = assignment_spots(&rules, record, seed_number(1), committee);
    assert_int_equal(json_array_size(all), 3);
    assert_non_null(value_find(all, "cid", "a"));
    assert_non_null(value_find(all, "cid", "b"));
    assert_non_null(value_find(all, "cid", "d"));
    rules.spot_check = 0;
    json_t *some = assignment_spots(&rules, record, seed_number(1), committee);
    assert_int_equal(json_array_size(some), 2);
    json_object_set_new(record, "kind", json_string("skip"));
    rules.spot_check = RULES_UNIT;
    json_t *skipped = assignment_spots(&rules, record, seed_number(1), committee);
    assert_int_equal(json_array_size(skipped), 2); /* what nobody uses or is paid for, but might be a lie */
    json_decref(all);
    json_decref(some);
    json_decref(skipped);
    json_decref(record);
    json_decref(committee);
}

static void a_group_is_folded_once_and_each_of_it_is_paid(void **state)
{
    (void)state;
    struct rules rules = { .trainers_quorum = 1, .replicas = 2, .run = "r", .per_round = "1000", .share_trainers = RULES_UNIT };
    json_t *contributions = lines(), *line, *none = json_array(), *convicted = json_pack("[{sssi}]", "did", "a", "round", 1);
    size_t i;
    json_array_foreach(contributions, i, line)
    {
        if (value_is(line, "code", "ok"))
            json_object_del(line, "code");
    }
    json_t *entries = json_pack("[{sisssssssnsOs[]}]", "round", 1, "kind", "train", "outer", "o", "state", "s", "plan",
                                "contributions", contributions, "syncers");
    json_t *request = fold_request(&rules, NULL, entries, none, 1, true),
           *again = fold_request(&rules, NULL, entries, convicted, 1, true);
    json_t *folded = json_object_get(json_array_get(json_object_get(request, "rounds"), 0), "contributions");
    assert_int_equal(json_array_size(folded), 1);
    assert_true(value_is(json_array_get(folded, 0), "did", "a"));
    folded = json_object_get(json_array_get(json_object_get(again, "rounds"), 0), "contributions");
    assert_int_equal(json_array_size(folded), 1);
    assert_true(value_is(json_array_get(folded, 0), "did", "c")); /* what both gave stands while one of them does */
    json_t *payout = payout_of(&rules, json_array_get(entries, 0), none), *paid = json_object_get(payout, "paid");
    assert_int_equal(json_array_size(paid), 2);
    assert_true(value_is(value_find(paid, "did", "a"), "amount", "500"));
    assert_true(value_is(value_find(paid, "did", "c"), "amount", "500"));
    json_decref(payout);
    json_decref(request);
    json_decref(again);
    json_decref(entries);
    json_decref(contributions);
    json_decref(none);
    json_decref(convicted);
}

static void a_plan_that_keeps_what_a_machine_ended_with_is_none(void **state)
{
    (void)state;
    struct rules rules = { .replicas = 2 }, plain = { .replicas = 1 };
    json_t *keeps = json_pack("{sss{s{ss}}}", "code", "ok", "result", "plan", "inner", "keep"),
           *resets = json_pack("{sss{s{ss}}}", "code", "ok", "result", "plan", "inner", "reset");
    assert_null(fold_plan_in(&rules, keeps));
    assert_non_null(fold_plan_in(&plain, keeps));
    assert_non_null(fold_plan_in(&rules, resets));
    json_decref(keeps);
    json_decref(resets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_goes_to_machines_of_different_operators),
        cmocka_unit_test(groups_are_drawn_by_the_seed_and_have_a_shard_each),
        cmocka_unit_test(machines_of_a_group_draw_the_same_probes),
        cmocka_unit_test(a_commitment_binds_its_signer_and_its_salt),
        cmocka_unit_test(what_no_replay_decides_parts_no_group),
        cmocka_unit_test(two_alike_and_more_than_half_are_accepted),
        cmocka_unit_test(those_on_trial_outvote_nobody_and_help_who_lacks_a_partner),
        cmocka_unit_test(a_group_is_checked_once_and_one_that_disagrees_whole),
        cmocka_unit_test(a_group_is_folded_once_and_each_of_it_is_paid),
        cmocka_unit_test(a_plan_that_keeps_what_a_machine_ended_with_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
