/* What a member makes of challenges, openings and picks: whom it hears, what it replays first, when it speaks for an accused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/dispute.h"
#include "runtime/round/member_state.h"
#include "tests/fixture/signing.h"

/* A member s0 in round 4, with records of rounds 0 to 3; in round 3 the trainers a to d gave c-a to c-d. */
struct bench {
    struct rules rules;
    struct member m;
    struct actions out;
};

static json_t *one_record(int round, const json_t *members)
{
    static const char seed[] = "00000000000000000000000000000000000000000000000000000000000000aa";
    json_t *lines = json_array();
    for (char who = 'a'; round == 3 && who <= 'd'; who++)
        json_array_append_new(lines,
                              json_pack("{s:s%, s:s+%, s:i}", "did", &who, (size_t)1, "cid", "c-", &who, (size_t)1, "weight", 1));
    return json_pack("{s:{s:i, s:s, s:s, s:O, s:s, s:s, s:[], s:[], s:{s:i}, s:[{s:i, s:s, s:{s:i}, s:o}]}}", "record", "round",
                     round, "kind", "train", "seed", seed, "members", members, "state", "state", "outer", "outer", "barred",
                     "disputes", "plan", "steps", 8, "unsettled", "round", round, "kind", "train", "plan", "steps", 8,
                     "contributions", lines);
}

static void set_up(struct bench *b)
{
    json_t **const maps[] = { &b->m.documents, &b->m.by_signer,    &b->m.codes,  &b->m.replays, &b->m.asked,
                              &b->m.moves,     &b->m.false_claims, &b->m.listed, &b->m.wanted };
    json_t **const lists[] = { &b->m.finals, &b->m.spots, &b->m.checked };
    json_t *members = json_array();
    *b = (struct bench){ .rules = { .run = "run",
                                    .shards = 8,
                                    .rounds = 9,
                                    .challenge_rounds = 2,
                                    .answer_rounds = 1,
                                    .round_ms = 1000,
                                    .checkpoint_every = 1,
                                    .replicas = 1,
                                    .panel = json_pack("[{s:s}, {s:s}]", "did", "s0", "did", "s1") } };
    b->m = (struct member){ .rules = &b->rules,
                            .did = "s0",
                            .signing = fixture_signing(),
                            .out = &b->out,
                            .now = 50,
                            .round = 4,
                            .phase = PHASE_TRAINING,
                            .seated = true,
                            .committee = json_pack("[ss]", "s0", "s1") };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        *maps[i] = json_object();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = json_array();
    for (char who = 'a'; who <= 'f'; who++)
        json_array_append_new(members, json_pack("{s:s%, s:s, s:s}", "did", &who, (size_t)1, "role", "trainer", "account", "0x"));
    for (int round = 0; round <= 3; round++)
        json_array_append_new(b->m.finals, one_record(round, members));
    json_decref(members);
    b->m.previous = member_record_of(&b->m, 3);
    b->m.disputable = disputes_entries(b->m.previous);
}

static void tear_down(struct bench *b)
{
    json_t *const owned[] = { b->m.documents,    b->m.by_signer, b->m.codes,     b->m.replays,   b->m.asked,      b->m.moves,
                              b->m.false_claims, b->m.listed,    b->m.wanted,    b->m.finals,    b->m.spots,      b->m.checked,
                              b->m.committee,    b->m.unasked,   b->rules.panel, b->m.committed, b->m.statements, b->m.seen,
                              b->m.records,      b->m.verdicts,  b->m.namers,    b->m.judged,    b->m.enrolled,   b->m.prepares,
                              b->m.commits,      b->m.own,       b->m.disputable };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    actions_free(&b->out);
}

static json_t *previous_list(struct bench *b, const char *name)
{
    return json_object_get((json_t *)(uintptr_t)b->m.previous, name);
}

/* Takes it in as if it had come; its document, NULL where it was not kept. Borrowed. */
static json_t *say(struct bench *b, const char *type, const char *signer, const char *contribution, int index)
{
    char cid[CID_TEXT];
    json_t *payload = json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:s}", "run", "run", "signer", signer, "round", 3, "contribution",
                                contribution, "index", index, "trace", "trace", "evidence", "evidence");
    json_t *envelope = json_pack("{s:s, s:O}", "type", type, "payload", payload);
    value_cid(payload, cid);
    member_take(&b->m, envelope);
    json_decref(envelope);
    json_decref(payload);
    return json_object_get(b->m.documents, cid);
}

/* The contribution of the replay that was asked for since; "" when none was, "+" when several were. */
static const char *asked_replay(struct bench *b)
{
    static char cid[CID_TEXT];
    size_t count = 0;
    cid[0] = 0;
    for (size_t i = 0; i < b->out.count; i++)
        if (b->out.list[i].kind == ACTION_REPLAY && !count++)
            snprintf(cid, sizeof cid, "%s", value_text(b->out.list[i].body, "cid"));
    actions_clear(&b->out);
    return count > 1 ? "+" : cid;
}

static size_t asked(struct bench *b, enum action_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < b->out.count; i++)
        count += b->out.list[i].kind == kind;
    actions_clear(&b->out);
    return count;
}

static const char *turn(struct bench *b)
{
    member_take_turn(&b->m, b->m.unasked);
    return asked_replay(b);
}

static void replayed(struct bench *b, const char *cid, int index)
{
    json_object_set_new(b->m.replays, cid, json_integer(index));
}

static void false_challenges_wait_behind_those_of_the_panel_and_cost_one_replay_each_signer(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    b.m.unasked = json_array();
    json_t *e[] = { say(&b, "challenge", "e", "c-a", 9), say(&b, "challenge", "e", "c-b", 9),
                    say(&b, "challenge", "e", "c-c", 9) };
    assert_string_equal(turn(&b), "c-a"); /* leaf 9 is the encoding of a step log of 8: a replay decides */
    assert_string_equal(turn(&b), "");    /* one at a time */
    json_t *s = say(&b, "challenge", "s1", "c-d", 9), *own = say(&b, "challenge", "f", "c-a", 4);
    assert_null(member_move_code(&b.m, own)); /* by tiles: that is judged, not replayed */
    assert_int_equal(asked(&b, ACTION_JUDGE), 1);
    replayed(&b, "c-a", -1);
    assert_string_equal(member_move_code(&b.m, e[0]), "rejected");
    assert_string_equal(turn(&b), "c-d");                  /* the panel's, though it came last */
    assert_string_equal(member_move_code(&b.m, e[1]), ""); /* nor does it hold the round up any more */
    replayed(&b, "c-d", 9);
    assert_string_equal(member_move_code(&b.m, s), "upheld");
    assert_string_equal(turn(&b), "");
    replayed(&b, "c-b", 9); /* what is known anyway costs nothing, and counts */
    assert_string_equal(member_move_code(&b.m, e[1]), "upheld");
    tear_down(&b);
}

/* Whether what was asked for since is one replay, of this contribution, that goes before what this member owes otherwise. */
static bool asked_first(struct bench *b, const char *cid)
{
    bool first = b->out.count == 1 && value_is(b->out.list[0].body, "cid", cid) && json_object_get(b->out.list[0].body, "first");
    actions_clear(&b->out);
    return first;
}

static void what_the_panel_challenges_waits_for_none_but_those_of_the_panel(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    b.m.unasked = json_array();
    b.m.spots_of = 4;
    b.m.spots = (json_decref(b.m.spots), json_pack("[{s:s, s:s, s:i}]", "cid", "c-a", "did", "a", "round", 3));
    member_rule_spots(&b.m);
    assert_false(asked_first(&b, "c-a")); /* a spot check */
    say(&b, "challenge", "e", "c-b", 9);
    member_take_turn(&b.m, b.m.unasked);
    assert_false(asked_first(&b, "c-b"));
    say(&b, "challenge", "s1", "c-c", 9);
    say(&b, "challenge", "s1", "c-d", 9);
    member_take_turn(&b.m, b.m.unasked);
    assert_true(asked_first(&b, "c-c")); /* though e's is not done: that waits behind the spot check */
    assert_string_equal(turn(&b), "");
    replayed(&b, "c-c", 9);
    member_take_turn(&b.m, b.m.unasked);
    assert_true(asked_first(&b, "c-d"));
    tear_down(&b);
}

static void who_has_locked_something_is_heard_before_keys_that_cost_nothing(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    b.m.unasked = json_array();
    say(&b, "challenge", "e", "c-a", 9);
    say(&b, "challenge", "f", "c-b", 9);
    json_object_set_new((json_t *)(uintptr_t)b.m.previous, "deposits", json_pack("[{s:s, s:s}]", "did", "f", "account", "0xf"));
    assert_string_equal(turn(&b), "c-b");
    tear_down(&b);
}

static void who_only_asks_to_enrol_may_not_accuse_and_who_has_left_may_still_answer(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    json_object_set_new((json_t *)(uintptr_t)b.m.previous, "members", json_pack("[{s:s}, {s:s}]", "did", "b", "did", "f"));
    json_object_set_new(b.m.by_signer, "enrolment/new",
                        json_pack("[{s:s, s:{s:s}}]", "type", "enrolment", "payload", "signer", "new"));
    json_array_append_new(previous_list(&b, "disputes"),
                          json_pack("{s:s, s:s, s:i, s:s, s:s, s:i}", "contribution", "c-b", "challenger", "e", "index", 3, "did",
                                    "b", "trace", "trace", "left", 1));
    assert_null(say(&b, "challenge", "new", "c-a", 9));
    assert_non_null(say(&b, "challenge", "f", "c-a", 9));
    assert_non_null(say(&b, "opening", "a", "c-a", 3)); /* its work is not settled yet */
    assert_non_null(say(&b, "pick", "e", "c-b", 3));
    assert_string_equal(member_move_code(&b.m, say(&b, "challenge", "a", "c-b", 9)), "unknown"); /* but accuses nobody any more */
    tear_down(&b);
}

static void what_could_not_be_had_of_a_move_is_looked_for_again(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    json_array_append_new(previous_list(&b, "disputes"),
                          json_pack("{s:s, s:s, s:i, s:s, s:s, s:i}", "contribution", "c-a", "challenger", "e", "index", 3, "did",
                                    "a", "trace", "trace", "left", 1));
    json_t *pick = say(&b, "pick", "e", "c-a", 3);
    assert_null(member_move_code(&b.m, pick));
    assert_int_equal(asked(&b, ACTION_JUDGE), 1);
    json_object_set_new(b.m.codes, value_text(pick, "cid"), json_string("missing"));
    assert_string_equal(member_move_code(&b.m, pick), ""); /* listed nowhere, for what a record lists comes never again */
    assert_int_equal(asked(&b, ACTION_JUDGE), 0);
    b.m.round = 5;
    assert_null(member_move_code(&b.m, pick));
    assert_int_equal(asked(&b, ACTION_JUDGE), 1);
    json_object_set_new(b.m.codes, value_text(pick, "cid"), json_string("upheld"));
    assert_string_equal(member_move_code(&b.m, pick), "upheld");
    tear_down(&b);
}

static void a_member_speaks_for_an_accused_also_where_it_holds_an_opening(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    json_array_append_new(previous_list(&b, "disputes"),
                          json_pack("{s:s, s:s, s:i, s:i, s:s, s:n, s:i}", "contribution", "c-a", "challenger", "e", "round", 3,
                                    "index", 3, "did", "a", "trace", "left", 0));
    assert_non_null(say(&b, "opening", "a", "c-a", 3)); /* others may hold none, or lack its blocks */
    assert_true(member_defends(&b.m));
    member_rule_defend(&b.m);
    assert_string_equal(asked_replay(&b), "c-a");
    replayed(&b, "c-a", -1);
    member_rule_defend(&b.m);
    assert_true(value_lists(b.m.checked, "c-a"));
    assert_false(member_defends(&b.m));
    tear_down(&b);
}

static void a_member_that_has_no_seat_in_the_round_still_picks(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    b.m.seated = false;
    json_array_append_new(previous_list(&b, "disputes"),
                          json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:i}", "contribution", "c-a", "challenger", "s0", "round", 3,
                                    "index", 3, "did", "a", "trace", "trace", "left", 1));
    member_rule_picks(&b.m);
    assert_int_equal(asked(&b, ACTION_MOVE), 1);
    json_object_set_new(b.m.moves, "c-a/3", json_string("evidence"));
    assert_true(member_rule_picks(&b.m));
    assert_int_equal(asked(&b, ACTION_SEND), 1);
    b.m.repeated_at = 0;
    member_rule_repeat(&b.m); /* and says so again until a record has it */
    assert_int_equal(asked(&b, ACTION_SEND), 1);
    tear_down(&b);
}

/* ---- how much it holds, and says ---------------------------------------------------------------------------------------- */

/* Said to one member alone no record ever lists it. */
static void moves_about_nothing_that_is_open_are_held_for_a_round(void **state)
{
    struct bench b;
    json_t *record, *certificate = json_object();
    char cid[CID_TEXT];
    (void)state;
    set_up(&b);
    b.m.results = json_object();
    b.m.verified = 4;
    b.m.verdicts = json_object();
    b.m.head = json_object();
    assert_non_null(say(&b, "challenge", "e", "c-nothing", 3));
    assert_non_null(say(&b, "pick", "e", "c-nothing", 4));
    assert_non_null(say(&b, "challenge", "e", "c-a", 3));
    json_t *final = one_record(4, json_object_get(b.m.previous, "members"));
    record = json_object_get(final, "record");
    json_object_set(record, "unsettled", json_object_get(b.m.previous, "unsettled"));
    assert_true(signing_name(&b.m.signing, record, VALUE_MOST, cid));
    json_object_set_new(b.m.verdicts, cid, json_string("valid"));
    member_finalise(&b.m, record, certificate);
    assert_int_equal(b.m.verified, 5);
    assert_int_equal(json_object_size(b.m.documents), 1);
    json_t *const owned[] = { final, certificate, b.m.results, b.m.head };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    tear_down(&b);
}

/* A longer list would be refused by all, and the member with it. */
static void a_member_says_no_more_than_others_take(void **state)
{
    struct bench b;
    char name[24];
    (void)state;
    set_up(&b);
    for (int i = 0; i < RECEIVED_ITEMS + 100; i++) {
        snprintf(name, sizeof name, "a%d", i);
        json_object_set_new(b.m.documents, name,
                            json_pack("{s:s, s:s, s:{s:s, s:s, s:i}}", "type", "challenge", "cid", name, "payload", "signer", "e",
                                      "contribution", "c-nothing", "index", i));
    }
    json_object_set_new(
        b.m.documents, "z1",
        json_pack("{s:s, s:s, s:{s:s, s:i}}", "type", "contribution", "cid", "z1", "payload", "signer", "f", "round", 4));
    json_object_set_new(b.m.codes, "z1", json_string("ok"));
    json_object_set_new(b.m.documents, "z2",
                        json_pack("{s:s, s:s, s:{s:s, s:s, s:i}}", "type", "challenge", "cid", "z2", "payload", "signer", "s1",
                                  "contribution", "c-nothing", "index", 1));
    b.m.phase = PHASE_COLLECTING;
    assert_true(member_rule_freeze(&b.m));
    assert_int_equal(json_array_size(b.m.items), RECEIVED_ITEMS);
    assert_non_null(value_find(b.m.items, "cid", "z1"));
    assert_non_null(value_find(b.m.items, "cid", "z2"));
    json_decref(b.m.items);
    json_decref(b.m.unanswered);
    tear_down(&b);
}

static json_t *enrol(struct bench *b, const char *did)
{
    char cid[CID_TEXT];
    json_t *payload = json_pack("{s:s, s:s, s:s, s:s}", "run", "run", "signer", did, "role", "trainer", "account",
                                "0x0000000000000000000000000000000000000009");
    json_t *envelope = json_pack("{s:s, s:O}", "type", "enrolment", "payload", payload);
    value_cid(payload, cid);
    member_take(&b->m, envelope);
    json_decref(envelope);
    json_decref(payload);
    return json_object_get(b->m.documents, cid);
}

/* Keys cost nothing: those whose deposit does not stand give way to others. */
static void who_locked_nothing_keeps_nobody_from_enrolling(void **state)
{
    struct bench b;
    (void)state;
    set_up(&b);
    b.rules.trainers_limit = 9;
    b.rules.stake = "5";
    char did[24];
    for (int i = 0; i < MEMBER_STRANGERS; i++) {
        snprintf(did, sizeof did, "x%d", i);
        json_t *kept = enrol(&b, did);
        assert_non_null(kept);
        if (i)
            json_object_set_new(b.m.codes, value_text(kept, "cid"), json_string(i % 2 ? "ok" : "deposit"));
    }
    for (int i = 0; i < MEMBER_STRANGERS / 2 - 1; i++) {
        snprintf(did, sizeof did, "y%d", i);
        assert_non_null(enrol(&b, did));
    }
    assert_int_equal(json_object_size(b.m.documents), MEMBER_STRANGERS);
    assert_non_null(value_find(json_object_get(b.m.by_signer, "enrolment/x0"), "type", "enrolment"));
    assert_non_null(enrol(&b, "z")); /* of all that are left nobody is known to have locked nothing: x0 came first */
    assert_null(json_object_get(b.m.by_signer, "enrolment/x0"));
    assert_int_equal(json_object_size(b.m.documents), MEMBER_STRANGERS);
    const char *cid;
    json_t *held;
    json_object_foreach(b.m.documents, cid, held) json_object_set_new(b.m.codes, cid, json_string("ok"));
    assert_null(enrol(&b, "late")); /* all have locked something */
    json_array_append_new(b.rules.panel, json_pack("{s:s}", "did", "x1"));
    assert_non_null(enrol(&b, "late")); /* who is named by the spec takes no stranger's room */
    tear_down(&b);
}

static json_t *contribute(struct bench *b, const char *did, int round)
{
    char cid[CID_TEXT];
    json_t *payload = json_pack("{s:s, s:s, s:i}", "run", "run", "signer", did, "round", round);
    json_t *envelope = json_pack("{s:s, s:O}", "type", "contribution", "payload", payload);
    value_cid(payload, cid);
    member_take(&b->m, envelope);
    json_decref(envelope);
    json_decref(payload);
    return json_object_get(b->m.documents, cid);
}

/* Where the spec asks for no deposit, too: ever new keys leave no more behind than so many may. */
static void strangers_without_end_take_up_no_more_than_their_room(void **state)
{
    struct bench b;
    char did[24];
    (void)state;
    set_up(&b);
    b.rules.trainers_limit = 9;
    b.m.unasked = json_array();
    b.m.unanswered = json_array();
    b.m.uncounted = json_array();
    for (int i = 0; i < 3 * MEMBER_STRANGERS; i++) {
        snprintf(did, sizeof did, "x%d", i);
        assert_non_null(enrol(&b, did));
        assert_non_null(contribute(&b, did, 5));
    }
    assert_int_equal(json_object_size(b.m.documents), 2 * MEMBER_STRANGERS);
    assert_int_equal(json_object_size(b.m.by_signer), 2 * MEMBER_STRANGERS);
    assert_int_equal(json_array_size(b.m.unasked), 2 * MEMBER_STRANGERS);
    assert_int_equal(json_array_size(b.m.unanswered), 2 * MEMBER_STRANGERS);
    assert_int_equal(json_array_size(b.m.uncounted), 2 * MEMBER_STRANGERS);
    assert_null(contribute(&b, "x0", 5)); /* it has to enrol again */
    assert_non_null(enrol(&b, "x0"));
    assert_non_null(contribute(&b, "x0", 5));
    json_decref(b.m.unanswered);
    json_decref(b.m.uncounted);
    tear_down(&b);
}

/* What it froze others ask it for, and a view that it must win may need it: ever new keys cannot take it away. */
static void what_a_member_said_that_it_has_stays_whoever_comes(void **state)
{
    struct bench b;
    char did[24], enrolled[CID_TEXT], work[CID_TEXT];
    (void)state;
    set_up(&b);
    b.m.unasked = json_array();
    b.m.unanswered = json_array();
    b.m.uncounted = json_array();
    snprintf(enrolled, sizeof enrolled, "%s", value_text(enrol(&b, "frozen"), "cid"));
    assert_non_null(enrol(&b, "gone"));
    snprintf(work, sizeof work, "%s", value_text(contribute(&b, "gone", 5), "cid"));
    b.m.items = json_pack("[{s:s}, {s:s}]", "cid", enrolled, "cid", work);
    value_sort(b.m.items, "cid");
    for (int i = 0; i < 2 * MEMBER_STRANGERS; i++) {
        snprintf(did, sizeof did, "x%d", i);
        assert_non_null(enrol(&b, did));
    }
    assert_non_null(json_object_get(b.m.documents, enrolled));
    assert_null(json_object_get(b.m.by_signer, "enrolment/gone"));
    assert_non_null(json_object_get(b.m.documents, work));
    assert_int_equal(json_object_size(b.m.documents), MEMBER_STRANGERS + 2);
    json_decref(b.m.items);
    b.m.items = NULL;
    json_decref(b.m.unanswered);
    json_decref(b.m.uncounted);
    tear_down(&b);
}

/* As many as take part say as much as each may, the kinds that ask for nothing but the right to say it. */
static void moves_of_many_leave_room_for_contributions_and_for_the_panel(void **state)
{
    enum { MANY = 200 };
    static const char *const kinds[] = { "challenge", "opening", "pick" };
    struct bench b;
    char did[24];
    (void)state;
    set_up(&b);
    for (int i = 0; i < MANY; i++) {
        snprintf(did, sizeof did, "m%d", i);
        json_array_append_new(previous_list(&b, "members"), json_pack("{s:s, s:s}", "did", did, "role", "trainer"));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(did, sizeof did, "m%d", i);
        for (int kind = 0; kind < 3; kind++)
            for (int n = 0; n <= MEMBER_CLAIMS; n++)
                assert_true(!say(&b, kinds[kind], did, "c-nothing", 100 * kind + n) == (n == MEMBER_CLAIMS));
    }
    assert_int_equal(json_object_size(b.m.documents), MANY * 3 * MEMBER_CLAIMS);
    assert_non_null(contribute(&b, "a", 4));
    assert_non_null(contribute(&b, "f", 5));
    assert_non_null(say(&b, "challenge", "s1", "c-a", 4));
    assert_non_null(say(&b, "opening", "a", "c-a", 5));
    tear_down(&b);
}

/* A list of s1 that others name in their records. Its CID, and whether it is held now. */
static bool hear_list(struct bench *b, const char *signer, int number, char cid[CID_TEXT])
{
    json_t *payload =
        json_pack("{s:s, s:s, s:i, s:i, s:{s:i, s:i}, s:i, s:[], s:[], s:n}", "run", "run", "signer", signer, "round", 4, "view",
                  0, "head", "height", 1, "time", number, "funded", 0, "items", "checked", "lock");
    json_t *envelope = json_pack("{s:s, s:O}", "type", "received", "payload", payload);
    value_cid(payload, cid);
    json_object_set_new(b->m.wanted, cid, json_integer(0));
    member_take(&b->m, envelope);
    json_decref(envelope);
    json_decref(payload);
    return json_object_get(b->m.documents, cid);
}

/* It says another to each, and others name them all. What it says first gives way, but what this member has voted on. */
static void one_of_the_panel_that_says_ever_more_lists_takes_only_its_own_room(void **state)
{
    struct bench b;
    struct record_memory memory = { 0 };
    char first[CID_TEXT], second[CID_TEXT], cid[CID_TEXT];
    (void)state;
    set_up(&b);
    b.m.memory = &memory;
    b.m.statements = json_object();
    b.m.seen = json_object();
    assert_true(hear_list(&b, "s1", 0, first));
    assert_true(hear_list(&b, "s1", 1, second));
    b.m.records = json_pack("{s:{s:[s]}}", "r", "received", first);
    b.m.own = json_pack("{s:{s:s}}", "prepare", "record", "r");
    for (int i = 2; i < 3 * MEMBER_SAID; i++)
        assert_true(hear_list(&b, "s1", i, cid));
    assert_int_equal(json_array_size(json_object_get(b.m.by_signer, "received/s1")), MEMBER_SAID);
    assert_non_null(json_object_get(b.m.documents, first));
    assert_null(json_object_get(b.m.documents, second));
    assert_true(hear_list(&b, "s1", 1, second)); /* it is had again when a record asks for it */
    assert_false(hear_list(&b, "nobody", 1, cid));
    record_memory_clear(&memory);
    tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_challenges_wait_behind_those_of_the_panel_and_cost_one_replay_each_signer),
        cmocka_unit_test(what_the_panel_challenges_waits_for_none_but_those_of_the_panel),
        cmocka_unit_test(who_has_locked_something_is_heard_before_keys_that_cost_nothing),
        cmocka_unit_test(who_only_asks_to_enrol_may_not_accuse_and_who_has_left_may_still_answer),
        cmocka_unit_test(what_could_not_be_had_of_a_move_is_looked_for_again),
        cmocka_unit_test(a_member_speaks_for_an_accused_also_where_it_holds_an_opening),
        cmocka_unit_test(a_member_that_has_no_seat_in_the_round_still_picks),
        cmocka_unit_test(moves_about_nothing_that_is_open_are_held_for_a_round),
        cmocka_unit_test(a_member_says_no_more_than_others_take),
        cmocka_unit_test(who_locked_nothing_keeps_nobody_from_enrolling),
        cmocka_unit_test(strangers_without_end_take_up_no_more_than_their_room),
        cmocka_unit_test(what_a_member_said_that_it_has_stays_whoever_comes),
        cmocka_unit_test(moves_of_many_leave_room_for_contributions_and_for_the_panel),
        cmocka_unit_test(one_of_the_panel_that_says_ever_more_lists_takes_only_its_own_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
