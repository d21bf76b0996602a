/* The pure parts of a round: draws, quorums, tallies, payouts, step logs. Whole rounds are in simulation_test.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/crypto/root.h"
#include "runtime/round/assignment.h"
#include "runtime/round/committee.h"
#include "runtime/round/payout.h"
#include "runtime/round/received.h"
#include "runtime/round/seed.h"
#include "runtime/round/step_log.h"
#include "runtime/round/value.h"

static struct hash seed_number(uint64_t n)
{
    return seed_of("bafk2bzarun", n, "entropy", 7);
}

static void quorums_are_those_of_the_table_in_section_11(void **state)
{
    (void)state;
    static const int table[][3] = {
        { 1, 1, 0 }, { 2, 2, 0 }, { 3, 2, 0 }, { 3, 3, 0 }, { 4, 3, 1 }, { 7, 5, 2 }, { 32, 22, 10 }
    };
    static const int forks[] = { 1, 2, 1, 3, 2, 3, 12 }, waits[] = { 1, 1, 2, 1, 2, 3, 11 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct quorum quorum = quorum_of(table[i][0], table[i][1]);
        assert_int_equal(quorum.f, table[i][2]);
        assert_int_equal(quorum.t, table[i][2] + 1);
        assert_true(quorum.t <= quorum.q - quorum.f);
        assert_int_equal(2 * quorum.q - quorum.n, forks[i]); /* two quorums share only these: all of them liars fork */
        assert_int_equal(quorum.n - quorum.q + 1, waits[i]);
    }
}

static void draws_below_n_are_uniform_and_streams_differ(void **state)
{
    (void)state;
    struct stream a, b;
    unsigned counts[7] = { 0 }, same = 0;
    stream_start(&a, seed_number(1), "samples", 0);
    stream_start(&b, seed_number(1), "samples", 1);
    for (int i = 0; i < 70000; i++) {
        uint64_t x = stream_below(&a, 7), y = stream_below(&b, 7);
        assert_true(x < 7 && y < 7);
        counts[x]++;
        same += x == y;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400);
    assert_in_range(same, 9600, 10400);
}

static void a_committee_is_drawn_from_the_panel_by_weights(void **state)
{
    (void)state;
    struct rules rules = { .rounds = 9, .size = 2, .threshold = 2 };
    rules.panel = json_pack("[{sssi}{ss}{sssi}{sssi}]", "did", "a", "weight", 1, "did", "b", "did", "c", "weight", 2, "did", "d",
                            "weight", 4);
    json_t *record = json_pack("{s[{ss}{ss}{ss}{ss}]}", "members", "did", "a", "did", "b", "did", "c", "did", "d");
    unsigned seated[4] = { 0 };
    for (uint64_t n = 0; n < 4000; n++) {
        struct hash seed = seed_number(n);
        json_t *drawn = committee_draw(&rules, record, 1, &seed), *late = committee_draw(&rules, record, 10, &seed);
        const char *first = json_string_value(json_array_get(drawn, 0)), *second = json_string_value(json_array_get(drawn, 1));
        assert_int_equal(json_array_size(drawn), 2);
        assert_int_equal(json_array_size(late), 4);
        assert_string_not_equal(first, second);
        assert_int_equal(committee_quorum(&rules, drawn).q, 2);
        assert_int_equal(committee_quorum(&rules, late).q, 3);
        seated[*first - 'a']++;
        json_decref(drawn);
        json_decref(late);
    }
    assert_in_range(seated[0], 440, 560);
    assert_in_range(seated[1], 440, 560);
    assert_in_range(seated[2], 900, 1100);
    assert_in_range(seated[3], 1880, 2120);
    json_decref(record);
    json_decref(rules.panel);
}

static json_t *record_of_trainers(int trainers, json_t *unreturned)
{
    json_t *members = json_array();
    for (int i = 0; i < trainers; i++) {
        char did[16];
        snprintf(did, sizeof did, "did:t%02d", i);
        json_array_append_new(members, json_pack("{ssss}", "did", did, "role", "trainer"));
    }
    json_array_append_new(members, json_pack("{ssss}", "did", "did:s", "role", "syncer"));
    return json_pack("{soso}", "members", members, "unreturned", unreturned);
}

static void every_shard_is_dealt_exactly_once_and_evenly(void **state)
{
    (void)state;
    for (int trainers = 1; trainers < 9; trainers++) {
        struct rules rules = { .shards = 16 };
        json_t *record = record_of_trainers(trainers, json_array()), *part, *shard;
        json_t *parts = assignment_draw(&rules, record, seed_number((uint64_t)trainers));
        unsigned seen = 0;
        size_t i, k;
        assert_int_equal(json_array_size(parts), trainers);
        json_array_foreach(parts, i, part)
        {
            size_t count = json_array_size(json_object_get(part, "shards"));
            assert_in_range(count, (size_t)(16 / trainers), (size_t)((16 + trainers - 1) / trainers));
            json_array_foreach(json_object_get(part, "shards"), k, shard)
            {
                unsigned bit = 1u << json_integer_value(shard);
                assert_false(seen & bit);
                seen |= bit;
            }
        }
        assert_int_equal(seen, 0xffff);
        json_decref(parts);
        json_decref(record);
    }
}

static void unreturned_shards_come_first(void **state)
{
    (void)state;
    struct rules rules = { .shards = 16 };
    json_t *record = record_of_trainers(2, json_pack("[iiii]", 3, 5, 9, 12)), *part;
    json_t *parts = assignment_draw(&rules, record, seed_number(4));
    size_t i;
    json_array_foreach(parts, i, part)
    {
        for (size_t k = 0; k < 2; k++) {
            int64_t shard = json_integer_value(json_array_get(json_object_get(part, "shards"), k));
            assert_true(shard == 3 || shard == 5 || shard == 9 || shard == 12);
        }
    }
    json_decref(parts);
    json_decref(record);
}

static void the_last_step_is_always_probed(void **state)
{
    (void)state;
    for (int steps = 1; steps < 60; steps++) {
        json_t *probes = assignment_probes(seed_number((uint64_t)steps), "did:t", steps);
        size_t count = json_array_size(probes);
        assert_int_equal(count, (steps + 9) / 10);
        assert_int_equal(json_integer_value(json_array_get(probes, count - 1)), steps - 1);
        for (size_t i = 1; i < count; i++)
            assert_true(json_integer_value(json_array_get(probes, i - 1)) < json_integer_value(json_array_get(probes, i)));
        json_decref(probes);
    }
}

static void spot_checks_round_up_and_take_every_copy(void **state)
{
    (void)state;
    struct rules rules = { .spot_check = RULES_UNIT / 10 };
    json_t *committee = json_pack("[sss]", "a", "b", "c");
    json_t *record = json_pack("{s[{ssssssss}{ssssssss}{ssssssss}{ssssssss}]}", "contributions", "cid", "1", "did", "w", "code",
                               "ok", "body", "x", "cid", "2", "did", "x", "code", "ok", "body", "same", "cid", "3", "did", "y",
                               "code", "ok", "body", "same", "cid", "4", "did", "z", "code", "truncated", "body", "same");
    for (uint64_t seed = 0; seed < 50; seed++) {
        json_t *spots = assignment_spots(&rules, record, seed_number(seed), committee);
        assert_non_null(value_find(spots, "cid", "2"));
        assert_non_null(value_find(spots, "cid", "3"));
        assert_null(value_find(spots, "cid", "4"));
        assert_in_range(json_array_size(spots), 2, 3);
        json_decref(spots);
    }
    json_decref(record);
    json_decref(committee);
}

static json_t *says(const char *code, int ms, int height)
{
    char cid[CID_TEXT];
    json_t *items = json_array();
    if (code)
        json_array_append_new(items, json_pack("{sssssi}", "cid", cid_text(hash_block("a", 1), cid), "code", code, "ms", ms));
    return json_pack("{sis{sisi}siso s[]sn}", "view", 0, "head", "height", height, "time", height, "funded", 1, "items", items,
                     "checked", "lock");
}

static void check_tally(json_t *received, const char *code, int64_t ms, int64_t height)
{
    struct received_tally tally = received_tally(received, 2);
    const json_t *item = json_array_get(tally.items, 0);
    assert_string_equal(value_text(item, "code"), code);
    assert_int_equal(value_integer(item, "ms"), ms);
    assert_int_equal(tally.height, height);
    json_decref(tally.items);
    json_decref(tally.checked);
    json_decref(received);
}

static void an_item_is_taken_by_t_and_what_one_member_says_alone_counts_for_nothing(void **state)
{
    (void)state;
    check_tally(json_pack("[ooo]", says("ok", 9, 5), says("ok", 4, 7), says("late", 1, 900)), "ok", 9, 7);
    check_tally(json_pack("[ooo]", says("ok", 9, 5), says("late", 4, 7), says("late", 6, 6)), "late", 6, 6);
    check_tally(json_pack("[ooo]", says(NULL, 0, 5), says(NULL, 0, 6), says("ok", 3, 7)), "", 0, 6);
    check_tally(json_pack("[ooo]", says("b", 9, 5), says("a", 4, 7), says(NULL, 6, 6)), "a", 4, 6);
}

static void the_middle_head_is_an_honest_one_while_fewer_than_half_lie(void **state)
{
    (void)state;
    json_t *received = json_pack("[ooo]", says(NULL, 0, 5), says(NULL, 0, 900), says(NULL, 0, 7));
    struct received_tally tally = received_tally(received, 1);
    assert_int_equal(tally.height, 900);
    assert_int_equal(tally.middle, 7);
    json_decref(tally.items);
    json_decref(tally.checked);
    json_decref(received);
}

static void a_pool_is_split_by_weight_and_remainders_go_in_did_order(void **state)
{
    (void)state;
    struct rules rules = { .per_round = "1000", .share_trainers = 800000000, .share_syncers = 200000000 };
    json_t *entry = json_pack("{siss s[{sssiss}{sssiss}{sssiss}]s[{ssss}{ssss}{ssss}]}", "round", 2, "kind", "train",
                              "contributions", "did", "t1", "weight", 1, "account", "0x0000000000000000000000000000000000000001",
                              "did", "t2", "weight", 1, "account", "0x0000000000000000000000000000000000000002", "did", "t3",
                              "weight", 1, "account", "0x0000000000000000000000000000000000000001", "syncers", "did", "s1",
                              "account", "0x000000000000000000000000000000000000000a", "did", "s2", "account",
                              "0x000000000000000000000000000000000000000B", "did", "s3", "account",
                              "0x000000000000000000000000000000000000000c");
    json_t *nobody = json_array(), *one = json_pack("[{sssi}]", "did", "t3", "round", 1);
    json_t *payout = payout_of(&rules, entry, nobody), *paid = json_object_get(payout, "paid");
    assert_string_equal(value_text(value_find(paid, "did", "t1"), "amount"), "267");
    assert_string_equal(value_text(value_find(paid, "did", "t2"), "amount"), "267");
    assert_string_equal(value_text(value_find(paid, "did", "t3"), "amount"), "266");
    assert_string_equal(value_text(value_find(paid, "did", "s3"), "amount"), "66");
    assert_string_equal(value_text(payout, "total"), "1000");
    const json_t *payees = json_object_get(payout, "payees");
    assert_int_equal(json_array_size(payees), 5);
    assert_string_equal(value_text(json_array_get(payees, 0), "amount"), "533");
    json_decref(payout);
    payout = payout_of(&rules, entry, one);
    assert_null(value_find(json_object_get(payout, "paid"), "did", "t3"));
    assert_string_equal(value_text(payout, "total"), "1000");
    json_decref(payout);
    json_object_set_new(entry, "kind", json_string("skip"));
    payout = payout_of(&rules, entry, nobody);
    assert_string_equal(value_text(payout, "total"), "0");
    json_decref(payout);
    json_decref(entry);
    json_decref(nobody);
    json_decref(one);
}

static struct step_log some_log(uint32_t steps)
{
    struct step_log log = { .start = hash_block("s", 1),
                            .carry_in = root_empty(),
                            .carry_out = root_empty(),
                            .body = hash_block("b", 1),
                            .steps = steps };
    log.leaves = calloc(steps, sizeof *log.leaves);
    for (uint32_t i = 0; i < steps; i++)
        log.leaves[i] =
            (struct step_leaf){ .batch = hash_block(&i, sizeof i), .state = hash_block(&i, 2), .loss = 1.0f + (float)i };
    return log;
}

static void a_step_log_reads_as_it_was_written_and_refuses_everything_else(void **state)
{
    (void)state;
    struct step_log log = some_log(9), back;
    struct buffer bytes = { 0 };
    step_log_encode(&log, &bytes);
    assert_true(step_log_decode(bytes.bytes, bytes.size, &back, NULL));
    assert_int_equal(step_log_difference(&log, &back), -1);
    step_log_free(&back);
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(step_log_decode(bytes.bytes, size, &back, NULL));
    bytes.bytes[8] = 0; /* no steps */
    assert_false(step_log_decode(bytes.bytes, bytes.size, &back, NULL));
    buffer_free(&bytes);
    log.leaves[3].loss = INFINITY;
    step_log_encode(&log, &bytes);
    assert_false(step_log_decode(bytes.bytes, bytes.size, &back, NULL));
    buffer_free(&bytes);
    step_log_free(&log);
}

static void two_logs_differ_first_where_one_of_them_is_wrong(void **state)
{
    (void)state;
    for (uint32_t at = 1; at < 5; at++) {
        struct step_log a = some_log(5), b = some_log(5);
        b.leaves[at].state.bytes[7] ^= 1;
        b.leaves[4].loss += 1;
        assert_int_equal(step_log_difference(&a, &b), at + 1);
        step_log_free(&b);
        b = some_log(at);
        assert_int_equal(step_log_difference(&a, &b), at + 1);
        step_log_free(&a);
        step_log_free(&b);
    }
}

static json_t *hex_of(struct hash hash)
{
    char text[HASH_TEXT];
    return json_string(hash_hex(hash, text));
}

static json_t *fitting_contribution(const struct step_log *log)
{
    return json_pack("{so so so so so si ss s{sisi} s[{si ss s[s]}]}", "start", hex_of(log->start), "end",
                     hex_of(log->leaves[log->steps - 1].state), "carry_in", hex_of(log->carry_in), "carry_out",
                     hex_of(log->carry_out), "body", hex_of(log->body), "steps", (int)log->steps, "loss", "40400000", "codec",
                     "bits", 4, "block", 256, "probes", "step", 4, "loss", "40a00000", "values", "3f800000");
}

static void each_broken_rule_of_a_contribution_has_its_own_code(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *code;
    } cases[] = {
        { "start", "\"00\"", "start" },
        { "steps", "4", "steps" },
        { "codec", "{\"bits\":8,\"block\":256}", "codec" },
        { "carry_in", "\"00\"", "carry" },
        { "body", "\"00\"", "body" },
        { "end", "\"00\"", "end" },
        { "loss", "\"40400001\"", "loss" },
        { "probes", "[]", "probes" },
        { "probes", "[{\"step\":3,\"loss\":\"40a00000\",\"values\":[]}]", "probes" },
        { "probes", "[{\"step\":4,\"loss\":\"40a00001\",\"values\":[]}]", "probes" },
        { "probes", "[{\"step\":4,\"loss\":\"40a00000\",\"values\":[\"7fc00000\"]}]", "probes" },
    };
    struct step_log log = some_log(5);
    json_t *context = json_pack("{so s{sis{sisi}} s[i]}", "state", hex_of(log.start), "plan", "steps", 5, "codec", "bits", 4,
                                "block", 256, "probes", 4);
    json_t *contribution = fitting_contribution(&log);
    assert_string_equal(contribution_code(contribution, context, &log, log.body), "ok");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *broken = json_deep_copy(contribution);
        json_object_set_new(broken, cases[i].name, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        assert_string_equal(contribution_code(broken, context, &log, log.body), cases[i].code);
        json_decref(broken);
    }
    log.start.bytes[0] ^= 1;
    assert_string_equal(contribution_code(contribution, context, &log, log.body), "step_log");
    json_decref(contribution);
    json_decref(context);
    step_log_free(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorums_are_those_of_the_table_in_section_11),
        cmocka_unit_test(draws_below_n_are_uniform_and_streams_differ),
        cmocka_unit_test(a_committee_is_drawn_from_the_panel_by_weights),
        cmocka_unit_test(every_shard_is_dealt_exactly_once_and_evenly),
        cmocka_unit_test(unreturned_shards_come_first),
        cmocka_unit_test(the_last_step_is_always_probed),
        cmocka_unit_test(spot_checks_round_up_and_take_every_copy),
        cmocka_unit_test(the_middle_head_is_an_honest_one_while_fewer_than_half_lie),
        cmocka_unit_test(an_item_is_taken_by_t_and_what_one_member_says_alone_counts_for_nothing),
        cmocka_unit_test(a_pool_is_split_by_weight_and_remainders_go_in_did_order),
        cmocka_unit_test(a_step_log_reads_as_it_was_written_and_refuses_everything_else),
        cmocka_unit_test(two_logs_differ_first_where_one_of_them_is_wrong),
        cmocka_unit_test(each_broken_rule_of_a_contribution_has_its_own_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
