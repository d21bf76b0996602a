/* One committee member, stepped by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/member_state.h"

static json_t *plain_sign(void *context, const char *type, json_t *payload, struct error *err)
{
    (void)context;
    (void)err;
    return json_pack("{sssO}", "type", type, "payload", payload);
}

static json_t *plain_open(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err)
{
    (void)context;
    (void)err;
    snprintf(type, 32, "%s", value_text(envelope, "type"));
    value_cid(json_object_get(envelope, "payload"), cid);
    return json_incref(json_object_get(envelope, "payload"));
}

/* A panel of `size`, s0, s1, ..., all but (size - 1) / 3 of them the threshold. */
static void read_rules(struct rules *rules, int size)
{
    json_t *panel = json_array();
    for (int i = 0; i < size; i++) {
        char did[16], account[48];
        snprintf(did, sizeof did, "s%d", i);
        snprintf(account, sizeof account, "0x%040d", i + 1);
        json_array_append_new(panel, json_pack("{ssss}", "did", did, "account", account));
    }
    json_t *spec =
        json_pack("{sis{si}s{sisisisis{sssisi}}s{sisisisisosi}s{sssisiss}sis{sss{ssss}si}s{si}}", "rounds", 2, "dataset",
                  "shards", 4, "quorum", "trainers", 1, "round_ms", 10, "close_ms", 1, "drop_after", 3, "grace", "factor", "3",
                  "min_ms", 1, "max_ms", 5, "committee", "size", size, "threshold", size - (size - 1) / 3, "view_ms", 4,
                  "settle_ms", 1, "panel", panel, "release_threshold", 1, "trust", "spot_check", "1", "challenge_rounds", 2,
                  "answer_rounds", 1, "correction", "refold", "seed_lead", 1, "payment", "per_round", "10", "terms", "trainers",
                  "0.5", "syncers", "0.5", "expiry_rounds", 9, "limits", "trainers", 4);
    assert_true(rules_read(rules, spec, "bafk2bzaarun", NULL));
    rules_set_genesis(rules, "outer", "state");
    json_decref(spec);
}

static struct member *make_member(const struct rules *rules)
{
    struct member_start start = {
        .rules = rules, .did = "s0", .signing = { .sign = plain_sign, .open = plain_open }, .fresh = true
    };
    struct member *member = member_new(&start, NULL);
    assert_non_null(member);
    return member;
}

static void step(struct member *member, enum event_kind kind, int64_t now, json_t *body, struct actions *actions)
{
    struct event event = { .kind = kind, .now = now, .body = body };
    member_step(member, &event, actions);
    json_decref(body);
}

/* One step may sign several statements. What is written before the first of them is sent knows nothing of the later ones: else a crash in
 * between would bring back a commit without its lock. */
static void each_write_of_a_step_holds_what_was_said_up_to_it(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    read_rules(&rules, 1);
    struct member *member = make_member(&rules);
    step(member, EVENT_FUNDED, 1, json_pack("{si}", "time", 1), &actions);
    actions_clear(&actions);
    step(member, EVENT_TIME, 100, NULL, &actions); /* alone, it closes round 0 and decides it in one step */
    static const char *const said[] = { "received", "proposal", "prepare", "commit" };
    size_t writes = 0;
    for (size_t i = 0; i < actions.count; i++) {
        const json_t *body = actions.list[i].body, *value = json_object_get(body, "value");
        if (actions.list[i].kind != ACTION_PERSIST || !value_is(body, "key", "round"))
            continue;
        const json_t *own = json_object_get(value, "own");
        writes++;
        assert_int_equal(json_object_size(own), writes);
        for (size_t k = 0; k < writes; k++)
            assert_non_null(json_object_get(own, said[k]));
        assert_int_equal(json_is_object(json_object_get(value, "lock")), writes == 4);
    }
    assert_int_equal(writes, 4);
    assert_int_equal(member_round(member), 1);
    actions_free(&actions);
    member_free(member);
    rules_free(&rules);
}

/* A vote of `did` for a record of its own making, with the record. */
static json_t *naming(const char *did, int view, const char *phase, int number, char cid[CID_TEXT])
{
    json_t *record = json_pack("{sssisssi}", "run", "bafk2bzaarun", "round", 0, "by", did, "number", number);
    value_cid(record, cid);
    json_t *vote = json_pack("{sisssssisisiss}", "version", 1, "run", "bafk2bzaarun", "signer", did, "round", 0, "view", view,
                             "n", 0, "phase", phase);
    json_object_set_new(vote, "record", json_string(cid));
    return json_pack("{s[{ssso}]s[o]}", "documents", "type", "vote", "payload", vote, "records", record);
}

static void a_member_that_names_records_without_end_leaves_room_for_those_of_others(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    char cid[CID_TEXT], kept[CID_TEXT];
    read_rules(&rules, 4);
    struct member *member = make_member(&rules);
    step(member, EVENT_MESSAGE, 1, naming("s1", 0, "prepare", 0, kept), &actions);
    json_t *same = naming("s2", 0, "prepare", 0, cid); /* another names the first one, too */
    json_t *vote = json_object_get(json_array_get(json_object_get(same, "documents"), 0), "payload");
    json_object_set_new(vote, "record", json_string(kept));
    step(member, EVENT_MESSAGE, 1, same, &actions);
    for (int i = 1; i < 2 * MEMBER_RECORDS;
         i++) { /* statements of the open views are bounded: those that were taken are let go */
        step(member, EVENT_MESSAGE, 1, naming("s1", i % MEMBER_VIEWS, "commit", i, cid), &actions);
        for (int view = 0; view <= MEMBER_VIEWS; view++) {
            char key[64];
            snprintf(key, sizeof key, "vote/%d/commit/s1", view);
            json_object_del(member->statements, key);
        }
    }
    assert_in_range(json_object_size(member->records), 2, MEMBER_RECORDS / 4);
    assert_non_null(json_object_get(member->records, kept));
    step(member, EVENT_MESSAGE, 1, naming("s3", 0, "prepare", 1, cid), &actions);
    assert_non_null(json_object_get(member->records, cid));
    actions_free(&actions);
    member_free(member);
    rules_free(&rules);
}

/* A folder that was fetched or restored knows decided rounds, but not what its key signed since. */
static void a_restored_folder_signs_neither_in_the_round_it_finds_open_nor_in_the_next(void **state)
{
    (void)state;
    struct rules rules;
    char cid[CID_TEXT];
    read_rules(&rules, 4);
    json_t *finals = json_pack("[{s{sssi}s{}}]", "record", "run", "bafk2bzaarun", "round", 0, "certificate");
    for (int restored = 0; restored < 2; restored++) {
        struct member_start start = { .rules = &rules,
                                      .did = "s0",
                                      .signing = { .sign = plain_sign, .open = plain_open },
                                      .finals = finals,
                                      .fresh = restored };
        struct member *member = member_new(&start, NULL);
        struct actions actions = { 0 };
        json_t *heard = naming("s1", 0, "prepare", 0, cid);
        json_object_set_new(json_object_get(json_array_get(json_object_get(heard, "documents"), 0), "payload"), "round",
                            json_integer(1));
        assert_non_null(member);
        member->seated = true;
        assert_int_equal(member_may_sign(member), !restored);
        step(member, EVENT_MESSAGE, 1, heard, &actions);
        assert_int_equal(member_may_sign(member), !restored);
        assert_int_equal(member->abstain, restored ? 2 : -1);
        bool written = false;
        for (size_t i = 0; i < actions.count; i++)
            written |= actions.list[i].kind == ACTION_PERSIST &&
                       value_integer(json_object_get(actions.list[i].body, "value"), "abstain") == 2;
        assert_int_equal(written, restored);
        actions_free(&actions);
        member_free(member);
    }
    json_decref(finals);
    rules_free(&rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_of_a_step_holds_what_was_said_up_to_it),
        cmocka_unit_test(a_member_that_names_records_without_end_leaves_room_for_those_of_others),
        cmocka_unit_test(a_restored_folder_signs_neither_in_the_round_it_finds_open_nor_in_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
