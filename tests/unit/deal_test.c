/* Who gets which shard: shares against a plain reference, regions, and that no order of enrolments matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/membership.h"
#include "runtime/round/regions.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

enum { TRAINERS = 12, SHARDS = 64 };

static uint64_t dice = 1;

static uint64_t below(uint64_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % n;
}

static struct hash seed_number(uint64_t n)
{
    return seed_of("run", n, "entropy", 7);
}

/* As the largest remainder is told in a book: floors, then one each to whoever is furthest below. */
static void shares_plainly(int64_t whole, const int64_t *weights, size_t count, int64_t *shares)
{
    int64_t sum = 0, given = 0;
    bool raised[TRAINERS] = { false };
    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    for (size_t i = 0; i < count; i++)
        given += shares[i] = whole * weights[i] / sum;
    for (; given < whole; given++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (!raised[i] && (best == count || whole * weights[i] % sum > whole * weights[best] % sum))
                best = i;
        raised[best] = true;
        shares[best]++;
    }
}

static void shares_are_those_of_the_largest_remainder(void **state)
{
    (void)state;
    for (int k = 0; k < 3000; k++) {
        size_t count = 1 + below(TRAINERS);
        int64_t weights[TRAINERS], shares[TRAINERS], plain[TRAINERS], whole = (int64_t)below(1000), sum = 0, weight = 0;
        for (size_t i = 0; i < count; i++)
            weight += weights[i] = 1 + (int64_t)below(k % 2 ? 4 : 4000);
        deal_shares(whole, weights, count, shares);
        shares_plainly(whole, weights, count, plain);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(shares[i], plain[i]);
            assert_in_range(shares[i], whole * weights[i] / weight, (whole * weights[i] + weight - 1) / weight);
            sum += shares[i];
        }
        assert_int_equal(sum, whole);
    }
}

/* ---- whole assignments ------------------------------------------------------------------------------------------------------ */

static json_t *member(const char *did, int64_t batches, const char *region, int64_t absent)
{
    return json_pack("{sssssIsIss*}", "did", did, "role", "trainer", "batches", (json_int_t)batches, "absent", (json_int_t)absent,
                     "region", region);
}

static json_t *shards_of(const json_t *parts, const char *did)
{
    return json_object_get(value_find(parts, "did", did), "shards");
}

static int64_t weight_of(const json_t *parts, const char *did)
{
    return value_integer(value_find(parts, "did", did), "weight");
}

/* Each shard in one part or in none; marks[shard] tells how often. */
static void count_shards(const json_t *parts, unsigned marks[SHARDS])
{
    json_t *part, *shard;
    size_t i, k;
    memset(marks, 0, SHARDS * sizeof *marks);
    json_array_foreach((json_t *)parts, i, part)
    {
        json_array_foreach(json_object_get(part, "shards"), k, shard) marks[json_integer_value(shard)]++;
    }
}

static void shards_are_dealt_in_proportion_to_what_is_stated(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 300; n++) {
        struct rules rules = { .shards = 1 + (int64_t)below(SHARDS), .batches = 16 };
        size_t count = 1 + below(TRAINERS);
        json_t *members = json_array(), *record = json_pack("{soso}", "members", members, "unreturned", json_array());
        unsigned marks[SHARDS];
        int64_t sum = 0;
        for (size_t i = 0; i < count; i++) {
            char did[8] = { 't', (char)('a' + i) };
            int64_t batches = 1 + (int64_t)below(16);
            sum += batches;
            json_array_append_new(members, member(did, batches, NULL, 0));
        }
        json_t *parts = assignment_draw(&rules, record, seed_number(n)), *undealt = assignment_undealt(&rules, parts);
        count_shards(parts, marks);
        for (int64_t k = 0; k < rules.shards; k++)
            assert_int_equal(marks[k], 1);
        assert_int_equal(json_array_size(undealt), 0);
        for (size_t i = 0; i < count; i++) {
            const json_t *one = json_array_get(members, i);
            int64_t batches = value_integer(one, "batches"),
                    dealt = (int64_t)json_array_size(shards_of(parts, value_text(one, "did")));
            assert_in_range(dealt, rules.shards * batches / sum, (rules.shards * batches + sum - 1) / sum);
            assert_int_equal(weight_of(parts, value_text(one, "did")), dealt ? batches : 0);
        }
        json_decref(undealt);
        json_decref(parts);
        json_decref(record);
    }
}

static void equal_capacities_are_dealt_as_without_any(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 40; n++) {
        struct rules plain = { .shards = 37 }, stated = { .shards = 37, .batches = 8 };
        json_t *members = json_array(), *record = json_pack("{sos[ii]}", "members", members, "unreturned", 5, 30), *part;
        size_t i;
        for (char who = 'a'; who < (char)('b' + n % 9); who++)
            json_array_append_new(members, member((char[]){ who, 0 }, 8, NULL, 0));
        json_t *a = assignment_draw(&plain, record, seed_number(n)), *b = assignment_draw(&stated, record, seed_number(n));
        json_array_foreach(a, i, part)
            assert_true(json_equal(json_object_get(part, "shards"), shards_of(b, value_text(part, "did"))));
        json_decref(a);
        json_decref(b);
        json_decref(record);
    }
}

static json_t *two_regions(void)
{
    return json_pack("[{sss[[ii]]}{sss[[ii][ii]]}{ss}]", "name", "eu", "only", 0, 9, "name", "us", "only", 8, 12, 20, 20, "name",
                     "in");
}

static void no_order_of_enrolments_changes_an_assignment(void **state)
{
    (void)state;
    json_t *regions = two_regions();
    static const char *const names[] = { "eu", "us", "in" };
    for (uint64_t n = 0; n < 60; n++) {
        struct rules rules = { .shards = 40, .batches = 6, .regions = regions };
        json_t *members = json_array(), *mixed = json_array();
        for (size_t i = 0; i < 9; i++)
            json_array_append_new(members, member((char[]){ (char)('a' + i), 0 }, 1 + (int64_t)below(6), names[below(3)], 0));
        while (json_array_size(members) > json_array_size(mixed)) {
            json_t *one = json_array_get(members, below(9));
            if (!value_find(mixed, "did", value_text(one, "did")))
                json_array_append(mixed, one);
        }
        json_t *record = json_pack("{sos[]}", "members", members, "unreturned"),
               *other = json_pack("{sos[]}", "members", mixed, "unreturned");
        json_t *a = assignment_draw(&rules, record, seed_number(n)), *b = assignment_draw(&rules, other, seed_number(n));
        assert_true(json_equal(a, b));
        json_decref(a);
        json_decref(b);
        json_decref(record);
        json_decref(other);
    }
    json_decref(regions);
}

static void a_bound_shard_never_leaves_its_regions_and_waits_where_nobody_is(void **state)
{
    (void)state;
    json_t *regions = two_regions();
    static const char *const names[] = { "eu", "us", "in", NULL };
    for (uint64_t n = 0; n < 300; n++) {
        struct rules rules = { .shards = 40, .regions = regions };
        json_t *members = json_array(), *record = json_pack("{sos[]}", "members", members, "unreturned");
        size_t count = 1 + below(6);
        bool some[4] = { false };
        unsigned marks[SHARDS];
        for (size_t i = 0; i < count; i++) {
            size_t where = below(4);
            some[where] = true;
            json_array_append_new(members, member((char[]){ (char)('a' + i), 0 }, 1, names[where], 0));
        }
        json_t *parts = assignment_draw(&rules, record, seed_number(n)), *undealt = assignment_undealt(&rules, parts), *part,
               *shard;
        size_t i, k;
        count_shards(parts, marks);
        for (int64_t at = 0; at < rules.shards; at++) {
            bool eu = at <= 9, us = (at >= 8 && at <= 12) || at == 20, taken = (!eu && !us) || (eu && some[0]) || (us && some[1]);
            assert_int_equal(marks[at], taken);
            json_array_foreach(undealt, k, shard) assert_true(json_integer_value(shard) != at || !taken);
        }
        json_array_foreach(parts, i, part)
        {
            const char *region = value_text(value_find(members, "did", value_text(part, "did")), "region");
            json_array_foreach(json_object_get(part, "shards"), k, shard)
            {
                int64_t at = json_integer_value(shard);
                bool eu = at <= 9, us = (at >= 8 && at <= 12) || at == 20;
                assert_true((!eu && !us) || (eu && !strcmp(region, "eu")) || (us && !strcmp(region, "us")));
            }
        }
        json_decref(undealt);
        json_decref(parts);
        json_decref(record);
    }
    json_decref(regions);
}

static void free_shards_make_up_for_bound_ones(void **state)
{
    (void)state;
    json_t *regions = json_pack("[{sss[[ii]]}]", "name", "eu", "only", 0, 3);
    struct rules rules = { .shards = 8, .regions = regions };
    json_t *record = json_pack("{s[oo]s[]}", "members", member("a", 1, "eu", 0), member("b", 1, NULL, 0), "unreturned");
    for (uint64_t n = 0; n < 20; n++) {
        json_t *parts = assignment_draw(&rules, record, seed_number(n));
        assert_int_equal(json_array_size(shards_of(parts, "a")), 4);
        assert_int_equal(json_array_size(shards_of(parts, "b")), 4);
        json_decref(parts);
    }
    json_decref(record);
    json_decref(regions);
}

static void a_preferred_region_gets_its_shards_up_to_its_share(void **state)
{
    (void)state;
    json_t *regions = json_pack("[{sss[[ii]]}]", "name", "eu", "prefer", 0, 5);
    struct rules rules = { .shards = 12, .regions = regions };
    json_t *record = json_pack("{s[ooo]s[]}", "members", member("a", 1, "eu", 0), member("b", 1, NULL, 0),
                               member("c", 1, NULL, 0), "unreturned"),
           *shard;
    for (uint64_t n = 0; n < 20; n++) {
        json_t *parts = assignment_draw(&rules, record, seed_number(n));
        size_t k;
        assert_int_equal(json_array_size(shards_of(parts, "a")), 4);
        json_array_foreach(shards_of(parts, "a"), k, shard) assert_in_range(json_integer_value(shard), 0, 5);
        assert_int_equal(json_array_size(shards_of(parts, "b")), 4);
        json_decref(parts);
    }
    json_decref(record);
    json_decref(regions);
}

static void who_boasts_and_stays_away_is_dealt_less_each_round(void **state)
{
    (void)state;
    struct rules rules = { .shards = 18, .batches = 8 };
    static const size_t dealt[] = { 16, 14, 12, 9, 9 }; /* of 18 beside one of capacity 1: 8/9, 4/5 (rounded), 2/3, 1/2 */
    for (int absent = 0; absent < 5; absent++) {
        json_t *record = json_pack("{s[oo]s[]}", "members", member("a", 8, NULL, absent), member("b", 1, NULL, 0), "unreturned");
        json_t *parts = assignment_draw(&rules, record, seed_number(1));
        assert_int_equal(json_array_size(shards_of(parts, "a")), dealt[absent]);
        assert_int_equal(weight_of(parts, "a"), absent < 3 ? 8 >> absent : 1);
        json_decref(parts);
        json_decref(record);
    }
}

static void an_enrolment_states_no_more_than_the_spec_lets_it(void **state)
{
    (void)state;
    json_t *regions = two_regions();
    struct rules plain = { .run = "r" }, rules = { .run = "r", .batches = 4, .regions = regions };
    json_t *enrolment = json_pack("{sssssssss{si}ss}", "run", "r", "signer", "did:a", "role", "trainer", "account",
                                  "0x0000000000000000000000000000000000000001", "capacity", "batches", 4, "region", "us");
    assert_string_equal(membership_code(&rules, NULL, "enrolment", enrolment), "ok");
    assert_string_equal(membership_code(&plain, NULL, "enrolment", enrolment), "capacity");
    json_object_set_new(json_object_get(enrolment, "capacity"), "batches", json_integer(5));
    assert_string_equal(membership_code(&rules, NULL, "enrolment", enrolment), "capacity");
    json_object_set_new(json_object_get(enrolment, "capacity"), "batches", json_integer(1));
    assert_string_equal(membership_code(&plain, NULL, "enrolment", enrolment), "region");
    json_object_set_new(enrolment, "region", json_string("eo"));
    assert_string_equal(membership_code(&rules, NULL, "enrolment", enrolment), "region");
    json_object_del(enrolment, "region");
    assert_string_equal(membership_code(&plain, NULL, "enrolment", enrolment), "ok");
    json_decref(enrolment);
    json_decref(regions);
}

static void a_new_enrolment_says_capacity_and_region_anew(void **state)
{
    (void)state;
    json_t *regions = two_regions();
    struct rules rules = { .run = "r", .batches = 4, .regions = regions, .trainers_limit = 9, .rounds = 9, .drop_after = 3 };
    json_t *payload = json_pack("{sssssssss{si}ss}", "run", "r", "signer", "did:a", "role", "trainer", "account",
                                "0x0000000000000000000000000000000000000001", "capacity", "batches", 3, "region", "eu"),
           *second = json_deep_copy(payload);
    json_object_del(second, "region");
    json_object_set_new(json_object_get(second, "capacity"), "batches", json_integer(2));
    json_t *documents = json_pack("{s{so}s{so}}", "one", "payload", payload, "two", "payload", second),
           *items = json_pack("[{ssssss}]", "cid", "one", "type", "enrolment", "code", "ok");
    const struct membership_change first = { .rules = &rules, .items = items, .documents = documents };
    json_t *members = membership_after(&first), *previous = json_pack("{sO}", "members", members);
    assert_int_equal(value_integer(json_array_get(members, 0), "batches"), 3);
    assert_string_equal(value_text(json_array_get(members, 0), "region"), "eu");
    json_object_set_new(json_array_get(members, 0), "absent", json_integer(2));
    json_object_set_new(json_array_get(items, 0), "cid", json_string("two"));
    const struct membership_change next = { .rules = &rules, .previous = previous, .items = items, .documents = documents };
    json_t *after = membership_after(&next);
    assert_int_equal(json_array_size(after), 1);
    assert_int_equal(value_integer(json_array_get(after, 0), "batches"), 2);
    assert_string_equal(value_text(json_array_get(after, 0), "region"), "");
    assert_int_equal(value_integer(json_array_get(after, 0), "absent"), 2); /* enrolling is no work: a boast stays halved */
    json_decref(after);
    json_decref(previous);
    json_decref(members);
    json_decref(items);
    json_decref(documents);
    json_decref(regions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_of_the_largest_remainder),
        cmocka_unit_test(shards_are_dealt_in_proportion_to_what_is_stated),
        cmocka_unit_test(equal_capacities_are_dealt_as_without_any),
        cmocka_unit_test(no_order_of_enrolments_changes_an_assignment),
        cmocka_unit_test(a_bound_shard_never_leaves_its_regions_and_waits_where_nobody_is),
        cmocka_unit_test(free_shards_make_up_for_bound_ones),
        cmocka_unit_test(a_preferred_region_gets_its_shards_up_to_its_share),
        cmocka_unit_test(who_boasts_and_stays_away_is_dealt_less_each_round),
        cmocka_unit_test(an_enrolment_states_no_more_than_the_spec_lets_it),
        cmocka_unit_test(a_new_enrolment_says_capacity_and_region_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
