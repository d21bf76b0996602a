/* What a dispute may ask of the accused: how many at once, and which objects a node takes for it. */
#include "runtime/round/dispute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/received.h"
#include "runtime/round/trainer_state.h"
#include "runtime/round/value.h"

/* A challenge of one contribution by each of the rows, listed in one record. */
static json_t *disputes_of(const char *const challengers[], const int indices[], size_t count)
{
    const struct rules rules = { .challenge_rounds = 2, .answer_rounds = 1, .round_ms = 1000, .expiry_rounds = 100 };
    json_t *items = json_array(), *documents = json_object(), *open;
    json_t *previous = json_pack("{s:i, s:[{s:i, s:[{s:s, s:s, s:s}]}]}", "round", 3, "unsettled", "round", 3, "contributions",
                                 "cid", "c", "did", "accused", "account", "0x");
    char cid[16];

    for (size_t i = 0; i < count; i++) {
        snprintf(cid, sizeof cid, "item-%02zu", i);
        json_array_append_new(items, json_pack("{s:s, s:s}", "cid", cid, "code", "ok"));
        json_object_set_new(documents, cid,
                            json_pack("{s:s, s:{s:s, s:s, s:i}}", "type", "challenge", "payload", "signer", challengers[i],
                                      "contribution", "c", "index", indices[i]));
    }

    struct verdicts v =
        disputes_judge(&(struct disputes_input){ .rules = &rules, .previous = previous, .items = items, .documents = documents });

    open = json_incref(v.open);
    assert_int_equal(json_array_size(v.upheld), 0);
    verdicts_free(&v);
    json_decref(previous);
    json_decref(items);
    json_decref(documents);
    return open;
}

static void a_challenger_has_one_dispute_about_a_contribution_and_may_ask_for_its_carry(void **state)
{
    const char *const challengers[] = { "a", "a", "b", "a", "a" };
    json_t *open = disputes_of(challengers, (const int[]){ 5, 6, 7, 0, 8 }, 5);

    (void)state;
    assert_int_equal(json_array_size(open), 3);
    assert_non_null(disputes_find(open, "c", 5, "a"));
    assert_non_null(disputes_find(open, "c", 7, "b"));
    assert_non_null(disputes_find(open, "c", 0, "a"));
    json_decref(open);
}

/* Of a dispute that ends with this record: the accused was silent, and `vouching` of the members replayed its work and found it right. */
static void ends(bool outage, int vouching, int index, size_t upheld, size_t rejected)
{
    const struct rules rules = { .challenge_rounds = 2, .answer_rounds = 1, .round_ms = 1000, .expiry_rounds = 100 };
    json_t *previous =
        json_pack("{s:i, s:[{s:i, s:[{s:s, s:s, s:s}]}], s:[{s:s, s:s, s:i, s:i, s:s, s:n, s:i}]}", "round", 3, "unsettled",
                  "round", 3, "contributions", "cid", "c", "did", "accused", "account", "0x", "disputes", "contribution", "c",
                  "did", "accused", "round", 3, "index", index, "challenger", "a", "trace", "left", 0);
    json_t *checked = json_pack("{s:i}", "c", vouching), *items = json_array();
    struct verdicts v = disputes_judge(&(struct disputes_input){
        .rules = &rules, .previous = previous, .items = items, .checked = checked, .t = 2, .outage = outage });

    assert_int_equal(json_array_size(v.upheld), upheld);
    assert_int_equal(json_array_size(v.rejected), rejected);
    assert_int_equal(json_array_size(v.open), outage);
    disputes_count(v.open, json_object_get(previous, "disputes"));
    assert_int_equal(value_integer(json_array_get(v.open, 0), "left"), 0);
    verdicts_free(&v);
    json_decref(previous);
    json_decref(checked);
    json_decref(items);
}

static void who_is_silent_loses_unless_t_members_replayed_its_work_and_found_it_right(void **state)
{
    (void)state;
    ends(false, 0, 3, 1, 0);
    ends(false, 1, 3, 1, 0);
    ends(false, 2, 3, 0, 1);
    ends(false, 2, 0, 1, 0); /* nobody else can show a carry */
}

static void a_skip_that_too_few_could_reach_decides_nothing_about_the_silent(void **state)
{
    (void)state;
    ends(true, 0, 3, 0, 0);
    ends(true, 2, 3, 0, 0);
}

static void of_a_move_a_record_lists_what_t_members_say_alike(void **state)
{
    json_t *received = json_pack(
        "[{s:[{s:s, s:s, s:i}, {s:s, s:s, s:i}, {s:s, s:s, s:i}]}, {s:[{s:s, s:s, s:i}, {s:s, s:s, s:i}, {s:s, s:s, s:i}]}]",
        "items", "cid", "a", "code", "upheld", "ms", 0, "cid", "b", "code", "ok", "ms", 0, "cid", "c", "code", "late", "ms", 0,
        "items", "cid", "a", "code", "rejected", "ms", 0, "cid", "b", "code", "truncated", "ms", 0, "cid", "c", "code", "late",
        "ms", 0);
    json_t *documents =
        json_pack("{s:{s:s}, s:{s:s}, s:{s:s}}", "a", "type", "challenge", "b", "type", "contribution", "c", "type", "challenge");
    struct received_tally tally = received_tally(received, 2);
    json_t *agreed = received_agreed(tally.items, documents, 2);

    (void)state;
    assert_int_equal(json_array_size(tally.items), 3);
    assert_int_equal(json_array_size(agreed), 2);
    assert_null(value_find(agreed, "cid", "a")); /* one of the two may lie: it comes again */
    assert_string_equal(value_text(value_find(agreed, "cid", "b"), "code"), "truncated");
    assert_string_equal(value_text(value_find(agreed, "cid", "c"), "code"), "late");
    json_decref(agreed);
    json_decref(tally.items);
    json_decref(tally.checked);
    json_decref(documents);
    json_decref(received);
}

/* ---- how long a round may be disputed ---------------------------------------------------------------------------------- */

enum { PEOPLE = 6 };

static unsigned long long dice;

static unsigned below(unsigned n)
{
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(dice >> 33) % n;
}

static void add_item(json_t *items, json_t *documents, const char *type, const char *code, json_t *payload)
{
    char cid[24];

    snprintf(cid, sizeof cid, "item-%04zu", json_array_size(items));
    json_array_append_new(items, json_pack("{s:s, s:s}", "cid", cid, "code", code));
    json_object_set_new(documents, cid, json_pack("{s:s, s:o}", "type", type, "payload", payload));
}

/* Some of what anyone may say in a record: challenges by whoever likes, openings and picks of what is open or not, all found in order. */
static void say_anything(json_t *items, json_t *documents, bool carries)
{
    for (int i = 0; i < PEOPLE; i++) {
        const char who[2] = { (char)('a' + i), 0 };

        if (below(3) == 0)
            add_item(items, documents, "challenge", "ok",
                     json_pack("{s:s, s:s, s:i}", "signer", who, "contribution", "c", "index", carries && below(2) ? 0 : i + 1));
        if (below(6) == 0)
            add_item(items, documents, "opening", "ok",
                     json_pack("{s:s, s:s, s:i, s:s}", "signer", "accused", "contribution", "c", "index",
                               carries && below(2) ? 0 : i + 1, "trace", "t"));
        if (below(8) == 0)
            add_item(items, documents, "pick", "rejected",
                     json_pack("{s:s, s:s, s:i, s:s}", "signer", who, "contribution", "c", "index", i + 1, "trace", "t"));
    }
}

/* The record in which round 3 may be settled. */
static int64_t settled_in(const struct rules *rules, bool carries)
{
    json_t *open = json_array(), *shown = json_array(), *before;
    int64_t round = 3;

    do {
        json_t *items = json_array(), *documents = json_object();
        json_t *previous =
            json_pack("{s:I, s:[{s:i, s:[{s:s, s:s, s:s}]}], s:O, s:O}", "round", (json_int_t)round, "unsettled", "round", 3,
                      "contributions", "cid", "c", "did", "accused", "account", "0x", "disputes", open, "openings", shown);
        struct verdicts v;

        say_anything(items, documents, carries);
        v = disputes_judge(
            &(struct disputes_input){ .rules = rules, .previous = previous, .items = items, .documents = documents, .t = 2 });
        before = open;
        open = json_incref(v.open);
        json_decref(shown);
        shown = json_incref(v.openings);
        disputes_count(open, before);
        json_decref(before);
        json_decref(previous);
        json_decref(items);
        json_decref(documents);
        if (json_array_size(v.upheld)) /* the silent have lost it: removed, and nothing about it is open any more */
            json_array_clear(open);
        verdicts_free(&v);
        round++;
    } while (round < 3 + rules->challenge_rounds || json_array_size(open));
    json_decref(open);
    json_decref(shown);
    return round;
}

static void whatever_is_said_a_round_is_settled_within_its_bound(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4000; turn++) {
        const bool carries = turn % 2;
        const struct rules rules = {
            .challenge_rounds = 2 + turn / 2 % 2, .answer_rounds = 1 + turn / 4 % 2, .round_ms = 1000, .expiry_rounds = 1000
        };
        const int64_t last = 3 + rules.challenge_rounds + disputes_most(&rules, carries);
        int64_t round;

        dice = (unsigned long long)turn;
        round = settled_in(&rules, carries);
        if (round > last)
            fail_msg("turn %d: settled in %d instead of %d", turn, (int)round, (int)last);
    }
}

static void who_asked_for_the_carry_in_time_may_accuse_a_leaf_later(void **state)
{
    const struct rules rules = { .challenge_rounds = 2 };
    json_t *entry = json_pack("{s:i}", "round", 3);
    json_t *open = json_pack("[{s:s, s:i, s:s}]", "contribution", "c", "index", 0, "challenger", "a");
    const struct {
        int64_t round;
        const char *signer;
        int index;
        bool late;
    } said[] = { { 5, "b", 4, false }, { 5, "b", 0, false }, { 6, "b", 4, true },
                 { 6, "a", 4, false }, { 6, "a", 0, true },  { 9, "a", 4, false } };

    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        json_t *challenge = json_pack("{s:s, s:s, s:i}", "signer", said[i].signer, "contribution", "c", "index", said[i].index);

        assert_int_equal(disputes_late(&rules, open, said[i].round, entry, challenge), said[i].late);
        json_decref(challenge);
    }
    json_decref(entry);
    json_decref(open);
}

static void only_what_a_record_asks_for_may_be_pushed(void **state)
{
    json_t *before = json_pack("{s:[{s:s, s:{s:s}}, {s:s}]}", "members", "did", "a", "carry", "object", "kept", "did", "b");
    json_t *last =
        json_pack("{s:[{s:s, s:i, s:s, s:s}]}", "disputes", "contribution", "c", "index", 3, "did", "a", "challenger", "b");
    const struct {
        const char *type, *signer, *contribution;
        int index;
        const char *trace;
        bool asked;
    } moves[] = { { "opening", "a", "c", 0, "kept", true },  { "opening", "a", "c", 0, "any", false },
                  { "opening", "b", "c", 0, "kept", false }, { "opening", "b", "c", 0, "", false },
                  { "opening", "a", "c", 3, "t", true },     { "opening", "a", "c", 4, "t", false },
                  { "opening", "a", "d", 3, "t", false },    { "opening", "b", "c", 3, "t", false },
                  { "pick", "b", "c", 3, "t", true },        { "pick", "a", "c", 3, "t", false },
                  { "pick", "b", "c", 0, "kept", false } };

    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        json_t *move = json_pack("{s:s, s:s, s:i, s:s}", "signer", moves[i].signer, "contribution", moves[i].contribution,
                                 "index", moves[i].index, "trace", moves[i].trace);

        assert_int_equal(disputes_ask(before, last, moves[i].type, move), moves[i].asked);
        assert_false(disputes_ask(NULL, NULL, moves[i].type, move));
        json_decref(move);
    }
    json_decref(before);
    json_decref(last);
}

/* Which opening is sent first. */
static const char *first_sent(struct trainer *t, int64_t now)
{
    const char *first = NULL;

    actions_clear(t->out);
    t->now = now;
    t->wake = INT64_MAX;
    trainer_rule_answer(t);
    for (size_t i = 0; !first && i < t->out->count; i++)
        if (t->out->list[i].kind == ACTION_SEND)
            first = value_text(json_array_get(json_object_get(json_object_get(t->out->list[i].body, "message"), "documents"), 0),
                               "of");
    return first ? first : "";
}

static void each_of_several_openings_is_sent_first_in_its_turn(void **state)
{
    const struct rules rules = { .view_ms = 400, .panel = json_pack("[{s:s}]", "did", "m") };
    struct actions out = { 0 };
    json_t *previous = json_pack("{s:[{s:s, s:i, s:s, s:n}, {s:s, s:i, s:s, s:n}, {s:s, s:i, s:s, s:s}]}", "disputes",
                                 "contribution", "c", "index", 1, "did", "a", "trace", "contribution", "d", "index", 1, "did",
                                 "a", "trace", "contribution", "e", "index", 1, "did", "a", "trace", "shown");
    struct trainer t = { .rules = &rules,
                         .previous = previous,
                         .did = "a",
                         .out = &out,
                         .moves = json_pack("{s:{s:s}, s:{s:s}}", "c/1", "of", "c", "d/1", "of", "d") };

    (void)state;
    assert_string_equal(first_sent(&t, 1000), "c");
    assert_string_equal(first_sent(&t, 1050), ""); /* an interval has to pass */
    assert_string_equal(first_sent(&t, 1100), "d");
    assert_string_equal(first_sent(&t, 1200), "c");
    actions_free(&out);
    json_decref(previous);
    json_decref(t.moves);
    json_decref(rules.panel);
}

/* Asks for traces of four steps that are disputed at once. */
static size_t traces_asked(struct trainer *t, int64_t now)
{
    size_t count = 0;

    actions_clear(t->out);
    t->now = now;
    trainer_rule_answer(t);
    for (size_t i = 0; i < t->out->count; i++)
        count += t->out->list[i].kind == ACTION_MOVE;
    return count;
}

static void many_that_ask_for_traces_do_not_keep_a_trainer_from_its_work(void **state)
{
    const struct rules rules = { .view_ms = 400, .panel = json_pack("[{s:s}]", "did", "m"), .shards = 1, .rounds = 9 };
    const char *const seed = "00000000000000000000000000000000000000000000000000000000000000aa";
    struct actions out = { 0 };
    json_t *record = json_pack("{s:{s:i, s:s, s:{}, s:[{s:s, s:s}], s:s, s:s, s:[]}}", "record", "round", 1, "seed", seed, "plan",
                               "members", "did", "a", "role", "trainer", "state", "", "outer", "", "disputes");
    json_t *disputes = json_object_get(json_object_get(record, "record"), "disputes");
    struct trainer t = { .rules = &rules,
                         .round = 2,
                         .did = "a",
                         .out = &out,
                         .moves = json_object(),
                         .wake = INT64_MAX,
                         .finals = json_pack("[O, O]", record, record),
                         .asked_training = true };

    (void)state;
    for (int i = 1; i <= 4; i++)
        json_array_append_new(
            disputes, json_pack("{s:s, s:i, s:i, s:s, s:n}", "contribution", "c", "round", 1, "index", i, "did", "a", "trace"));
    t.previous = json_object_get(record, "record");
    assert_int_equal(traces_asked(&t, 1000), 1);
    assert_int_equal(traces_asked(&t, 1100), 0);
    json_object_set_new(t.moves, "c/1", json_pack("{s:s}", "of", "c"));
    assert_int_equal(traces_asked(&t, 1200), 0); /* it trains */
    t.contribution = json_object();
    assert_int_equal(traces_asked(&t, 1300), 1);
    assert_int_equal(traces_asked(&t, 1400), 0); /* one at a time */
    json_object_set_new(t.moves, "c/2", json_pack("{s:s}", "of", "c"));
    assert_int_equal(traces_asked(&t, 1500), 1);
    t.round = 3; /* a trace that never comes holds up no other for longer than its round */
    assert_int_equal(traces_asked(&t, 1600), 1);
    actions_free(&out);
    json_decref(t.contribution);
    json_decref(t.moves);
    json_decref(t.finals);
    json_decref(record);
    json_decref(rules.panel);
}

static void who_asks_about_a_contribution_of_a_run_that_is_over_is_told(void **state)
{
    const struct {
        const char *did, *verdict;
        bool done;
    } asked[] = { { "liar", "convicted", true }, { "honest", "settled", true }, { "", "", true }, { "late", "", false } };
    json_t *previous =
        json_pack("{s:i, s:[{s:s, s:i}], s:[], s:[]}", "round", 3, "convicted", "did", "liar", "round", 2, "barred", "unsettled");

    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct actions out = { 0 };
        struct trainer t = { .previous = previous,
                             .did = "a",
                             .out = &out,
                             .phase = asked[i].done ? DONE : FOLLOWING,
                             .audit = { .share = 1, .round = asked[i].done ? 2 : 4 } };

        snprintf(t.audit.did, sizeof t.audit.did, "%s", asked[i].did);
        trainer_rule_audit(&t);
        trainer_rule_audit(&t);
        assert_int_equal(out.count, asked[i].verdict[0] ? 1 : 0);
        if (out.count)
            assert_string_equal(value_text(out.list[0].body, "verdict"), asked[i].verdict);
        actions_free(&out);
    }
    json_decref(previous);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_challenger_has_one_dispute_about_a_contribution_and_may_ask_for_its_carry),
        cmocka_unit_test(who_is_silent_loses_unless_t_members_replayed_its_work_and_found_it_right),
        cmocka_unit_test(a_skip_that_too_few_could_reach_decides_nothing_about_the_silent),
        cmocka_unit_test(of_a_move_a_record_lists_what_t_members_say_alike),
        cmocka_unit_test(many_that_ask_for_traces_do_not_keep_a_trainer_from_its_work),
        cmocka_unit_test(whatever_is_said_a_round_is_settled_within_its_bound),
        cmocka_unit_test(who_asked_for_the_carry_in_time_may_accuse_a_leaf_later),
        cmocka_unit_test(only_what_a_record_asks_for_may_be_pushed),
        cmocka_unit_test(each_of_several_openings_is_sent_first_in_its_turn),
        cmocka_unit_test(who_asks_about_a_contribution_of_a_run_that_is_over_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
