/* One committee member, stepped by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/member_state.h"
#include "runtime/round/seed.h"
#include "tests/fixture/signing.h"

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
    struct member_start start = { .rules = rules, .did = "s0", .signing = fixture_signing(), .fresh = true };
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
    step(member, EVENT_HEAD, 1, json_pack("{sisi}", "height", 1, "time", 1), &actions);
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

/* A record of `bytes`, named by s1. */
static bool takes_record_of(const struct rules *rules, size_t bytes)
{
    struct actions actions = { 0 };
    struct member *member = make_member(rules);
    char cid[CID_TEXT], *filler = calloc(bytes + 1, 1);
    json_t *said = naming("s1", 0, "prepare", 0, cid), *record = json_array_get(json_object_get(said, "records"), 0);
    assert_non_null(filler);
    json_object_set_new(record, "filler", json_string(""));
    memset(filler, 'x', bytes - json_dumpb(record, NULL, 0, JSON_COMPACT));
    json_object_set_new(record, "filler", json_string(filler));
    value_cid(record, cid);
    json_object_set_new(json_object_get(json_array_get(json_object_get(said, "documents"), 0), "payload"), "record",
                        json_string(cid));
    step(member, EVENT_MESSAGE, 1, said, &actions);
    bool taken = json_object_get(member->records, cid);
    actions_free(&actions);
    member_free(member);
    free(filler);
    return taken;
}

static void a_record_is_as_long_as_the_machines_of_its_run_may_make_it(void **state)
{
    (void)state;
    struct rules rules;
    read_rules(&rules, 4);
    assert_int_equal(rules.record_most, (1 << 20) + 1024 * (4 + 4) * (2 + 4 * 2 + 1)); /* trainers, panel; W, D, its own */
    assert_true(takes_record_of(&rules, rules.record_most));
    assert_false(takes_record_of(&rules, rules.record_most + 1));
    rules_free(&rules);
}

static struct member *start_member(const struct rules *rules, json_t *durable, json_t *finals, json_t *enrolment)
{
    struct member_start start = { .rules = rules,
                                  .did = "s0",
                                  .signing = fixture_signing(),
                                  .enrolment = enrolment,
                                  .durable = durable,
                                  .finals = finals,
                                  .fresh = !durable };
    struct member *member = member_new(&start, NULL);
    assert_non_null(member);
    member->seated = true;
    return member;
}

/* A decided round that lists the item `cid`. */
static json_t *decided(int round, const char *cid)
{
    return json_pack("{s{sssis[{ss}]}s{}}", "record", "run", "bafk2bzaarun", "round", round, "items", "cid", cid, "certificate");
}

/* What was last written of the open round; borrowed. */
static json_t *written(const struct actions *actions)
{
    json_t *value = NULL;
    for (size_t i = 0; i < actions->count; i++)
        if (actions->list[i].kind == ACTION_PERSIST && value_is(actions->list[i].body, "key", "round"))
            value = json_object_get(actions->list[i].body, "value");
    return value;
}

/* A folder that was wiped, fetched or restored does not know what its key signed since. A record that lists what this folder alone made is
 * newer than all of that. */
static void a_folder_that_began_empty_signs_after_round_0_only_once_a_record_lists_its_enrolment(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    char own[CID_TEXT];
    read_rules(&rules, 4);
    json_t *payload = json_pack("{sssssssi}", "run", "bafk2bzaarun", "signer", "s0", "role", "syncer", "nonce", 1), *enrolment;
    value_cid(payload, own);
    enrolment = json_pack("{ssso}", "type", "enrolment", "payload", payload);
    json_t *before = decided(0, "an older enrolment"), *after = decided(1, own), *finals = json_pack("[O]", before);

    struct member *member = start_member(&rules, NULL, NULL, enrolment);
    assert_true(member_may_sign(member)); /* in round 0 an empty folder is a new machine */
    member_free(member);

    member = start_member(&rules, NULL, finals, enrolment);
    assert_false(member_may_sign(member));
    step(member, EVENT_TIME, 1, NULL, &actions);
    json_t *durable = json_deep_copy(written(&actions));
    assert_non_null(durable); /* before anything was sent */
    assert_int_equal(actions.list[0].kind, ACTION_PERSIST);
    member_free(member);

    member = start_member(&rules, durable, finals, enrolment); /* nor after a restart */
    assert_false(member_may_sign(member));
    member->out = &actions;
    member_finalise(member, json_object_get(after, "record"), json_object_get(after, "certificate"));
    member->seated = true;
    assert_true(member_may_sign(member));
    member_free(member);

    json_array_append(finals, after);
    member = start_member(&rules, durable, finals, enrolment); /* nothing was written in between */
    assert_true(member_may_sign(member));
    member_free(member);

    actions_free(&actions);
    json_t *const owned[] = { before, after, finals, durable, enrolment };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    rules_free(&rules);
}

/* A folder that was put back from a copy hears what its key said since. */
static void who_hears_of_a_statement_of_its_own_that_it_does_not_know_abstains_through_the_next_round(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    char cid[CID_TEXT];
    read_rules(&rules, 4);
    struct member *member = make_member(&rules);
    member->seated = true;
    assert_true(member_may_sign(member));
    step(member, EVENT_MESSAGE, 1, naming("s0", 0, "prepare", 0, cid), &actions);
    assert_false(member_may_sign(member));
    assert_int_equal(value_integer(written(&actions), "abstain"), 1);
    actions_free(&actions);
    member_free(member);
    rules_free(&rules);
}

/* Of 32 syncers ten that sit side by side say nothing. Each machine is told by eight, of whom one is itself. */
static void no_stretch_of_silent_syncers_keeps_a_machine_from_hearing(void **state)
{
    enum { PANEL = 32, LIARS = 10, ROUNDS = 40, TRAINERS = 5 };
    struct rules rules;
    int deaf[PANEL + TRAINERS] = { 0 };
    char name[16];

    (void)state;
    read_rules(&rules, PANEL);
    for (int round = 1; round <= ROUNDS; round++) {
        struct hash seed = seed_of("run", (uint64_t)round, "entropy", 7);
        char text[HASH_TEXT];
        json_t *members = json_array(), *record;
        int heard[PANEL + TRAINERS] = { 0 }, told[PANEL + TRAINERS] = { 0 };

        for (int i = 0; i < TRAINERS; i++) {
            snprintf(name, sizeof name, "t%d", i);
            json_array_append_new(members, json_pack("{ssss}", "did", name, "role", "trainer"));
        }
        record = json_pack("{sssiso}", "seed", hash_hex(seed, text), "round", round, "members", members);
        for (int i = 0; i < PANEL; i++) {
            snprintf(name, sizeof name, "s%d", i);

            struct member_start start = { .rules = &rules, .did = name, .signing = fixture_signing(), .fresh = true };
            struct member *member = member_new(&start, NULL);
            json_t *to = member_readers(member, record), *did;
            size_t k;

            json_array_foreach(to, k, did)
            {
                const char *whom = json_string_value(did);
                int place = atoi(whom + 1) + (*whom == 't' ? PANEL : 0);

                told[place]++;
                heard[place] += i >= LIARS && place != i;
            }
            json_decref(to);
            member_free(member);
        }
        for (int i = 0; i < PANEL + TRAINERS; i++) {
            assert_int_equal(told[i], MEMBER_TELLERS);
            deaf[i] += heard[i] == 0;
        }
        json_decref(record);
    }
    for (int i = 0; i < PANEL + TRAINERS; i++)
        assert_in_range(deaf[i], 0, 2);
    rules_free(&rules);
}

/* ---- many rounds ------------------------------------------------------------------------------------------------------ */

static json_t *fold_of(const json_t *request)
{
    json_t *steps = json_array(), *round;
    size_t i;
    json_array_foreach(json_object_get(request, "rounds"), i, round)
        json_array_append_new(steps, json_pack("{sOssss}", "round", json_object_get(round, "round"), "outer", "o", "state", "s"));
    return json_pack("{sssos{}}", "aggregate", "a", "steps", steps, "telemetry");
}

/* What a driver hands in for one action, and the trainer's contribution once a round begins. NULL: nothing. */
static json_t *answer_to(const struct action *action, enum event_kind *kind)
{
    static const char entropy[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const json_t *body = action->body, *request = json_object_get(body, "request");
    switch (action->kind) {
    case ACTION_AWAIT_BLOCK:
        *kind = EVENT_BLOCK;
        return json_pack("{sOssss}", "height", json_object_get(body, "height"), "hash", entropy, "entropy", entropy);
    case ACTION_CHECK:
        *kind = EVENT_CHECKED;
        return json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code", "ok");
    case ACTION_REPLAY:
        *kind = EVENT_REPLAYED;
        return json_pack("{sOsi}", "cid", json_object_get(body, "cid"), "index", -1);
    case ACTION_COMPUTE:
        *kind = EVENT_COMPUTED;
        return json_pack("{sOssso}", "hash", json_object_get(body, "hash"), "code", "ok", "result",
                         value_is(request, "kind", "plan") ? json_pack("{s{si}}", "plan", "steps", 20) : fold_of(request));
    case ACTION_STATE:
        *kind = EVENT_MESSAGE;
        return value_is(body, "phase", "training") && value_integer(body, "round")
                   ? json_pack("{s[{sss{sssssOss}}]}", "documents", "type", "contribution", "payload", "run", "bafk2bzaarun",
                               "signer", "t0", "round", json_object_get(body, "round"), "body", "b")
                   : NULL;
    default:
        return NULL;
    }
}

/* Answers what it asks for, in turn, until `round` is open. */
static void reach(struct member *member, int64_t round, struct actions *actions, size_t *answered, int64_t *now)
{
    while (member_round(member) < round) {
        enum event_kind kind = EVENT_TIME;
        bool any = *answered < actions->count;
        json_t *body = any ? answer_to(&actions->list[(*answered)++], &kind) : NULL;
        assert_true(*now < 100000);
        if (body || !any)
            step(member, kind, body ? *now : ++*now, body, actions);
    }
}

static size_t held(const struct member *m)
{
    return json_object_size(m->asked) + json_object_size(m->codes) + json_object_size(m->documents) +
           json_object_size(m->replays) + json_object_size(m->results) + json_object_size(m->wanted);
}

/* Each round asks for a block, a plan, a check, a fold and a replay. */
static void what_settled_rounds_asked_for_is_forgotten(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    size_t answered = 0;
    int64_t now = 1;
    read_rules(&rules, 1);
    rules.rounds = 200;
    json_t *enrolment = json_pack("{sss{ssssssss}}", "type", "enrolment", "payload", "run", "bafk2bzaarun", "signer", "s0",
                                  "role", "syncer", "nonce", "1");
    struct member *member = start_member(&rules, NULL, NULL, enrolment);
    step(member, EVENT_HEAD, now, json_pack("{sisi}", "height", 1, "time", 1), &actions);
    step(member, EVENT_FUNDED, now, json_pack("{si}", "time", 1), &actions);
    step(member, EVENT_MESSAGE, now,
         json_pack("{s[{sss{ssssssss}}]}", "documents", "type", "enrolment", "payload", "run", "bafk2bzaarun", "signer", "t0",
                   "role", "trainer", "account", "0x0000000000000000000000000000000000000009"),
         &actions);
    reach(member, 20, &actions, &answered, &now);
    assert_string_equal(value_text(member_last(member), "kind"), "train");
    assert_true(json_object_size(member->replays) > 0);
    const size_t early = held(member);
    reach(member, 150, &actions, &answered, &now);
    assert_int_equal(held(member), early);
    assert_int_equal(member->verified, 150);
    actions_free(&actions);
    member_free(member);
    json_decref(enrolment);
    rules_free(&rules);
}

/* A statement of s0 in what is sent, as s1 says it. New reference, or NULL. */
static json_t *echo(const struct actions *actions, const char *type)
{
    for (size_t i = 0; i < actions->count; i++) {
        json_t *documents = json_object_get(json_object_get(actions->list[i].body, "message"), "documents"), *document;
        size_t k;
        json_array_foreach(documents, k, document)
        {
            if (actions->list[i].kind != ACTION_SEND || !value_is(document, "type", type))
                continue;
            json_t *copy = json_deep_copy(document);
            json_object_set_new(json_object_get(copy, "payload"), "signer", json_string("s1"));
            return json_pack("{s[o]}", "documents", copy);
        }
    }
    return NULL;
}

static size_t sends(const struct actions *actions)
{
    size_t count = 0;
    for (size_t i = 0; i < actions->count; i++)
        count += actions->list[i].kind == ACTION_SEND;
    return count;
}

static void a_vote_tells_again_what_was_said_before_it_only_an_interval_later(void **state)
{
    (void)state;
    struct rules rules;
    struct actions actions = { 0 };
    read_rules(&rules, 2);
    rules.view_ms = 1000; /* so an interval is 250 ms */
    struct member *member = make_member(&rules);
    step(member, EVENT_HEAD, 1, json_pack("{sisi}", "height", 1, "time", 1), &actions);
    step(member, EVENT_FUNDED, 1, json_pack("{si}", "time", 1), &actions);
    step(member, EVENT_TIME, 100, NULL, &actions);
    json_t *received = echo(&actions, "received");
    assert_non_null(received);
    actions_clear(&actions);
    step(member, EVENT_MESSAGE, 100, received, &actions); /* s0 proposes and prepares */
    json_t *prepare = echo(&actions, "vote");
    assert_non_null(prepare);
    actions_clear(&actions);
    step(member, EVENT_MESSAGE, 300, prepare, &actions);
    assert_int_equal(sends(&actions), 1); /* its commit */
    actions_clear(&actions);
    step(member, EVENT_TIME, 360, NULL, &actions);
    assert_int_equal(sends(&actions), 0);
    actions_clear(&actions);
    step(member, EVENT_TIME, 550, NULL, &actions);
    assert_int_equal(sends(&actions), 1);
    for (size_t i = 0; i < actions.count; i++)
        if (actions.list[i].kind == ACTION_SEND) /* received, proposal, prepare, commit, and the received of the record */
            assert_true(json_array_size(json_object_get(json_object_get(actions.list[i].body, "message"), "documents")) >= 4);
    actions_free(&actions);
    member_free(member);
    rules_free(&rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_of_a_step_holds_what_was_said_up_to_it),
        cmocka_unit_test(a_record_is_as_long_as_the_machines_of_its_run_may_make_it),
        cmocka_unit_test(a_member_that_names_records_without_end_leaves_room_for_those_of_others),
        cmocka_unit_test(a_folder_that_began_empty_signs_after_round_0_only_once_a_record_lists_its_enrolment),
        cmocka_unit_test(who_hears_of_a_statement_of_its_own_that_it_does_not_know_abstains_through_the_next_round),
        cmocka_unit_test(no_stretch_of_silent_syncers_keeps_a_machine_from_hearing),
        cmocka_unit_test(what_settled_rounds_asked_for_is_forgotten),
        cmocka_unit_test(a_vote_tells_again_what_was_said_before_it_only_an_interval_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
