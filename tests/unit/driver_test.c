/* What others can make a node do and hold: machines that never have enough, objects too large to want, signatures of nobody. */
#include "runtime/role/driver_internal.h"
#include "runtime/role/expected.h"
#include "runtime/role/fetch.h"
#include "runtime/role/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/json.h"
#include "runtime/round/deposit.h"
#include "runtime/store/object.h"
#include "tests/fixture/fixture.h"

struct place {
    char folder[64];
    struct node node;
    struct course course;
    struct driver driver;
    char wanted[CID_TEXT]; /* what the other side says it lacks */
    int posts, puts;
    int ends; /* of a fetch */
    struct error ended;
};

/* The other side, which always lacks the same block. */
static void answer_missing(struct http_request *request, void *context)
{
    struct place *p = context;
    json_t *answer = json_pack("{s:[s]}", "missing", p->wanted);

    if (strcmp(http_request_method(request), "PUT") == 0)
        p->puts++;
    else
        p->posts++;
    http_answer_json(request, 200, answer);
    json_decref(answer);
}

static const struct http_route routes[] = {
    { "PUT", "/v1/blocks/{cid}", BLOCK_SIZE, NULL, answer_missing },
    { "POST", "/v1/documents", 1 << 20, NULL, answer_missing },
    { 0 },
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct http_server_options server = { .routes = routes, .context = p };
    struct error err = { 0 };
    char path[128];

    assert_true(sodium_init() >= 0);
    fixture_folder(p->folder);
    snprintf(path, sizeof path, "%s/blocks", p->folder);
    uv_loop_init(&p->node.loop);
    p->node.peers = peer_list_new();
    p->node.client = http_client_new(&p->node.loop, &(struct http_client_options){ .plain = false }, &err);
    p->node.server = http_server_new(&p->node.loop, &server, &err);
    p->node.options.quiet = true;
    assert_true(block_store_open(path, &p->node.blocks, &err));
    p->node.journal = journal_open(p->folder, &err);
    assert_non_null(p->node.journal);
    p->course.node = &p->node;
    p->course.enrolments = json_object();
    p->course.spec.rounds = 1000;
    p->driver.node = &p->node;
    p->driver.course = &p->course;
    p->driver.finals = json_array();
    p->driver.told = json_object();
    p->node.counters = json_array();
    for (int metric = 0; metric < METRICS; metric++)
        json_array_append_new(p->node.counters, json_object());
    p->driver.last = &p->driver.first;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    driver_deliveries_free(&p->driver);
    driver_jobs_free(&p->driver);
    driver_ledger_free(&p->driver);
    http_client_free(p->node.client);
    http_server_free(p->node.server);
    uv_run(&p->node.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&p->node.loop), 0);
    for (struct pending_event *e = p->driver.first, *next; e; e = next) {
        next = e->next;
        json_decref(e->body);
        free(e);
    }
    journal_close(p->node.journal);
    peer_list_free(p->node.peers);
    json_decref(p->course.enrolments);
    json_decref(p->driver.finals);
    json_decref(p->driver.told);
    json_decref(p->node.counters);
    fixture_remove(p->folder);
    free(p);
    return 0;
}

static json_t *contribution_fields(struct hash payload, int round)
{
    return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:{s:i, s:i}, s:i, s:i, s:s, s:[{s:i, s:s, s:[s]}], s:o}",
                     "run", document_json_cid(payload), "round", round, "start", document_json_hash(payload), "end",
                     document_json_hash(payload), "carry_in", document_json_hash(payload), "carry_out",
                     document_json_hash(payload), "body", document_json_hash(payload), "payload", document_json_cid(payload),
                     "payload_bytes", 1000, "codec", "bits", 4, "block", 256, "tokens", 2048, "steps", 25, "loss", "3fc00000",
                     "probes", "step", 24, "loss", "3fc00000", "values", "00000000", "step_log", document_json_cid(payload));
}

static json_t *contribution(struct hash payload)
{
    struct key_pair keys;
    struct document document = { 0 };
    struct error err = { 0 };
    json_t *fields = contribution_fields(payload, 1), *envelope;

    key_pair_derive("driver_test", "trainer", &keys);
    FIXTURE_OK(document_make(DOCUMENT_CONTRIBUTION, fields, &keys.identity, NULL, &document, &err), &err);
    envelope = json_read((const char *)document.bytes.bytes, document.bytes.size, SIZE_MAX, &err);
    document_free(&document);
    json_decref(fields);
    return envelope;
}

static void a_block_is_pushed_once_to_one_that_never_has_it(void **state)
{
    struct place *p = *state;
    struct error err = { 0 };
    struct hash id;
    json_t *action;

    assert_true(block_put(&p->node.blocks, "a payload", 9, &id, &err));
    cid_text(id, p->wanted);
    json_object_set_new(p->course.enrolments, "did:x",
                        json_pack("{s:{s:s}, s:s}", "payload", "endpoint", http_server_url(p->node.server), "url",
                                  http_server_url(p->node.server)));
    action = json_pack("{s:[s], s:{s:[o]}}", "to", "did:x", "message", "documents", contribution(id));
    driver_send(&p->driver, action);
    json_decref(action);
    assert_non_null(p->driver.deliveries);
    for (int i = 0; p->driver.deliveries && i < 1000; i++)
        uv_run(&p->node.loop, UV_RUN_ONCE);
    assert_null(p->driver.deliveries);
    assert_int_equal(p->posts, 1);
    assert_int_equal(p->puts, 1);
}

/* Says it once, and waits until nothing is under way. */
static void say(struct place *p, const json_t *action)
{
    driver_send(&p->driver, action);
    for (int i = 0; p->driver.deliveries && i < 1000; i++)
        uv_run(&p->node.loop, UV_RUN_ONCE);
    assert_null(p->driver.deliveries);
}

static void what_was_taken_is_not_said_again_within_half_a_view(void **state)
{
    struct place *p = *state;
    json_t *action = json_pack("{s:[s], s:{s:[o]}}", "to", "did:x", "message", "documents", contribution(hash_block("said", 4)));

    p->driver.is_member = true; /* others' contributions: nothing is pushed */
    p->course.spec.committee.view_ms = 100000;
    json_object_set_new(p->course.enrolments, "did:x",
                        json_pack("{s:{s:s}, s:s}", "payload", "endpoint", http_server_url(p->node.server), "url",
                                  http_server_url(p->node.server)));
    say(p, action);
    say(p, action);
    assert_int_equal(p->posts, 1);
    json_array_append_new(json_object_get(json_object_get(action, "message"), "documents"), json_null());
    say(p, action); /* another message */
    assert_int_equal(p->posts, 2);
    p->course.spec.committee.view_ms = 0; /* long ago */
    say(p, action);
    assert_int_equal(p->posts, 3);
    json_decref(action);
}

static void fetched(void *context, const struct error *err)
{
    struct place *p = context;

    p->ends++;
    p->ended = err ? *err : (struct error){ 0 };
}

static void fetch(struct place *p, struct hash id, uint64_t limit)
{
    p->ends = 0;
    fetch_start(&p->node, &(struct fetch_want){ .id = id, .object = true, .limit = limit }, 1, UINT64_C(16) << 30, 5000, fetched,
                p);
    for (int i = 0; !p->ends && i < 1000; i++)
        uv_run(&p->node.loop, UV_RUN_ONCE);
    assert_int_equal(p->ends, 1);
}

static void an_object_that_is_larger_than_it_may_be_is_not_fetched(void **state)
{
    struct place *p = *state;
    size_t size = 3 << 20;
    uint8_t *bytes = calloc(1, size);
    struct error err = { 0 };
    struct hash id;

    assert_true(object_put(&p->node.blocks, PAYLOAD_MEDIA, bytes, size, &id, &err));
    free(bytes);
    fetch(p, id, 0);
    assert_int_equal(p->ended.code, ERROR_NONE);
    fetch(p, id, size - 1);
    assert_int_equal(p->ended.code, ERROR_LIMIT);
    assert_false(
        fetch_complete(&p->node, &(struct fetch_want){ .id = id, .object = true, .limit = size - 1 }, 1, UINT64_C(16) << 30));
}

static void few_messages_wait_for_a_machine_that_is_not_there_yet(void **state)
{
    struct place *p = *state;
    int taken = 0;

    for (int i = 0; i < 1000; i++)
        taken += driver_takes(&p->driver, 1 << 20);
    assert_int_equal(taken, 8);
    assert_false(driver_takes(&p->driver, SIZE_MAX));
}

static bool comes(struct place *p, const char *text)
{
    struct error err = { 0 };
    json_t *missing = json_array();
    bool taken = expected_take(&p->node, hash_block(text, strlen(text)), text, strlen(text), missing, &err);

    assert_true(taken || err.code == ERROR_REFUSED);
    json_decref(missing);
    return taken;
}

static void expects(struct place *p, const char *text, bool member)
{
    json_t *missing = json_array();

    expected_object(&p->node, hash_block(text, strlen(text)), 1 << 20, 1, member, missing);
    json_decref(missing);
}

/* Keys that only asked to enrol may name any number of blocks. */
static void blocks_that_strangers_name_leave_room_for_those_of_members(void **state)
{
    struct place *p = *state;
    char text[24];

    p->node.expected = expected_new();
    for (int i = 0; i < 10000; i++) {
        snprintf(text, sizeof text, "block %d", i);
        expects(p, text, false);
    }
    assert_true(comes(p, "block 8191"));
    assert_false(comes(p, "block 8192"));
    expects(p, "one more", false); /* what has come makes no room for more in this round */
    assert_false(comes(p, "one more"));
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "payload %d", i);
        expects(p, text, true);
        assert_true(comes(p, text));
    }
    expected_expire(p->node.expected, 1);
    expects(p, "one more", false);
    assert_true(comes(p, "one more"));
    expected_free(p->node.expected);
}

static void signatures_of_nobody_take_little_room(void **state)
{
    struct place *p = *state;
    char hex[2 * ACCOUNT_SIGNATURE_SIZE + 1];
    json_t *body;

    p->driver.is_member = true;
    for (int i = 0; i < 200; i++)
        json_array_append_new(p->driver.finals, json_object());
    memset(hex, '0', sizeof hex - 1);
    hex[sizeof hex - 1] = 0;
    body = json_pack("{s:s, s:s}", "signature", hex, "more", "what nobody asked for");
    for (int times = 0; times < 200; times++)
        for (int64_t round = 0; round < 1100; round++) {
            driver_release_signature(&p->driver, round, body);
            driver_release_signature(&p->driver, deposit_number(round, 7), body);
        }
    json_decref(body);
    assert_null(p->driver.releases);
    assert_int_equal(p->driver.early_next, 200 * (64 + 64));
    for (size_t i = 0; i < DRIVER_EARLY; i++) { /* of decided rounds, the newest */
        const int64_t round = p->driver.early[i].round;

        assert_true((round >= 136 && round < 200) || (round >= deposit_number(136, 0) && round < deposit_number(200, 0)));
    }
}

/* --- starting again ----------------------------------------------------------------------------------------------------- */

/* A document of the run in the journal, as a peer that was told "taken" will not send it again. */
static struct hash acknowledged(struct place *p, enum document_type type, json_t *fields)
{
    struct key_pair keys;
    struct document document = { 0 };
    struct error err = { 0 };
    struct hash id;

    key_pair_derive("driver_test", "trainer", &keys);
    json_object_set_new(fields, "run", document_json_cid(p->course.id));
    FIXTURE_OK(document_make(type, fields, &keys.identity, NULL, &document, &err), &err);
    FIXTURE_OK(journal_put_document(p->node.journal, &document, &err), &err);
    id = document.id;
    document_free(&document);
    json_decref(fields);
    return id;
}

static bool is_fed(struct place *p, struct hash id)
{
    bool found = false;

    for (const struct pending_event *e = p->driver.first; e; e = e->next) {
        struct document document = { 0 };
        struct error err = { 0 };

        assert_int_equal(e->kind, EVENT_MESSAGE);
        FIXTURE_OK(document_read_json(json_array_get(json_object_get(e->body, "documents"), 0), &document, &err), &err);
        found |= hash_equal(document.id, id);
        document_free(&document);
    }
    return found;
}

static void a_member_that_starts_again_takes_up_what_it_had_acknowledged(void **state)
{
    struct place *p = *state;
    struct error err = { 0 };
    struct hash ids[3], challenged, left;

    p->course.id = hash_block("run", 3);
    for (int i = 0; i < 3; i++)
        ids[i] = acknowledged(p, DOCUMENT_CONTRIBUTION, contribution_fields(hash_block("payload", 7), i + 1));
    challenged = acknowledged(p, DOCUMENT_CHALLENGE,
                              json_pack("{s:i, s:o, s:i}", "round", 1, "contribution", document_json_cid(ids[0]), "index", 0));
    left = acknowledged(p, DOCUMENT_LEAVE, json_object());
    json_array_append_new(p->driver.finals, json_object());
    json_array_append_new(p->driver.finals, json_object());
    FIXTURE_OK(driver_take_up(&p->driver, &err), &err);
    assert_false(is_fed(p, ids[0]));
    assert_true(is_fed(p, ids[1]));
    assert_false(is_fed(p, ids[2]));
    assert_true(is_fed(p, challenged));
    assert_true(is_fed(p, left));
}

/* --- a ledger that answers what a test says ---------------------------------------------------------------------------- */

struct books {
    struct ledger ledger;
    struct ledger_escrow escrow;
    struct ledger_then then; /* who asked last */
};

static void asked_escrow(struct ledger *ledger, struct address sponsor, struct hash ref, struct ledger_then then)
{
    (void)sponsor, (void)ref;
    ((struct books *)ledger)->then = then;
}

static void asked_block(struct ledger *ledger, uint64_t height, bool wait, struct ledger_then then)
{
    (void)height, (void)wait;
    ((struct books *)ledger)->then = then;
}

static const struct ledger_methods methods = { .escrow = asked_escrow, .block = asked_block };

/* Whether the driver takes the run for funded when round 2 of 3 is open and every escrow stands like this. */
static bool is_funded(struct place *p, enum ledger_escrow_status status, unsigned amount)
{
    struct books b = { .ledger = { &methods }, .escrow = { .amount = amount, .status = status } };
    struct ledger_block block = { 0 };

    p->node.ledger = &b.ledger;
    p->course.spec.rounds = 3;
    p->course.spec.payment.per_round = 100;
    p->driver.ledger_known = true;
    p->driver.await_height = -1;
    p->driver.funded = false;
    json_array_clear(p->driver.finals);
    for (int i = 0; i < 2; i++)
        json_array_append_new(p->driver.finals, json_object());
    driver_ledger_tick(&p->driver);
    for (int i = 0; i < 10 && p->driver.funding; i++)
        b.then.done(b.then.context, &(struct ledger_answer){ .escrow = &b.escrow, .block = &block });
    assert_null(p->driver.funding);
    p->node.ledger = NULL;
    return p->driver.funded;
}

static void no_work_begins_for_an_open_round_whose_money_is_gone(void **state)
{
    struct place *p = *state;

    assert_true(is_funded(p, LEDGER_FUNDED, 100));
    assert_false(is_funded(p, LEDGER_FUNDED, 99));
    assert_false(is_funded(p, LEDGER_RELEASED, 100));
    assert_false(is_funded(p, LEDGER_REFUNDED, 100));
}

/* What becomes of a trainer whose round 1 was settled in record 4, when `records` more were decided and its escrow stands like this a
 * minute later: how many rounds it still waits for, or -1 when it stopped. */
static int owed(struct place *p, enum ledger_escrow_status status, int records, int64_t most)
{
    struct books b = { .ledger = { &methods }, .escrow = { .status = status } };
    json_t *record = json_pack("{s:i, s:[{s:i, s:[{s:s}]}, {s:i, s:[{s:s}]}]}", "round", 4, "settled", "round", 1, "paid", "did",
                               "did:me", "round", 2, "paid", "did", "did:other");
    int left;

    p->driver.dues = json_array();
    p->driver.due_next = 0;
    p->node.ledger = &b.ledger;
    p->node.options.most_unpaid = most;
    p->node.fault.code = ERROR_NONE;
    snprintf(p->node.did, sizeof p->node.did, "did:me");
    json_array_clear(p->driver.finals);
    for (int i = 0; i < 5 + records; i++)
        json_array_append_new(p->driver.finals, json_object());
    driver_dues_add(&p->driver, record);
    assert_int_equal(json_array_size(p->driver.dues), 1);
    json_object_set_new(json_array_get(p->driver.dues, 0), "since", json_integer((json_int_t)uv_now(&p->node.loop) - 61000));
    driver_dues_tick(&p->driver, uv_now(&p->node.loop));
    b.then.done(b.then.context, &(struct ledger_answer){ .escrow = &b.escrow });
    left = p->node.fault.code ? -1 : (int)json_array_size(p->driver.dues);
    if (left < 0)
        uv_run(&p->node.loop, UV_RUN_NOWAIT); /* takes the stop */
    json_decref(p->driver.dues);
    p->driver.dues = NULL;
    p->node.ledger = NULL;
    json_decref(record);
    return left;
}

static void a_trainer_leaves_a_panel_that_does_not_pay(void **state)
{
    struct place *p = *state;

    assert_int_equal(owed(p, LEDGER_RELEASED, 9, 3), 0);
    assert_int_equal(owed(p, LEDGER_REFUNDED, 9, 3), 0);
    assert_int_equal(owed(p, LEDGER_FUNDED, 3, 3), 1);
    assert_int_equal(owed(p, LEDGER_FUNDED, 4, 3), -1);
    assert_int_equal(owed(p, LEDGER_FUNDED, 90, 0), 1);
    p->course.spec.trust.challenge_rounds = 2;
    p->course.spec.trust.answer_rounds = 1;
    assert_int_equal(owed(p, LEDGER_FUNDED, (int)run_spec_settles_after(&p->course.spec) + 2, -1), 1);
    assert_int_equal(owed(p, LEDGER_FUNDED, (int)run_spec_settles_after(&p->course.spec) + 3, -1), -1);
}

/* --- faults of this machine --------------------------------------------------------------------------------------------- */

/* Times an operator was told that this node abstains. */
static int64_t told(const struct place *p)
{
    json_t *value;
    const char *key;
    int64_t sum = 0;

    json_object_foreach(json_array_get(p->node.counters, METRIC_ABSTENTIONS), key, value)
    {
        sum += json_integer_value(value);
    }
    return sum;
}

/* A job that this machine cannot do: what it is about is not here, and nobody has it. */
static void begin(struct place *p, enum action_kind kind)
{
    char cid[CID_TEXT];
    json_t *body = json_pack("{s:i, s:s, s:s, s:{s:i, s:[]}}", "round", 1, "cid", cid_text(hash_block("nowhere", 7), cid),
                             "contribution", cid, "context", "round", 1, "shards");

    driver_job_start(&p->driver, kind, body);
    json_decref(body);
}

/* The pause before the next try, which is cut short: milliseconds. */
static uint64_t try_again(struct place *p)
{
    uv_timer_t *pause = p->driver.jobs->pause;
    const unsigned failures = p->driver.jobs->failures;
    const uint64_t due = uv_timer_get_due_in(pause);

    uv_timer_set_repeat(pause, 1);
    uv_timer_again(pause);
    while (p->driver.jobs && p->driver.jobs->failures == failures)
        uv_run(&p->node.loop, UV_RUN_ONCE);
    return due;
}

static void a_fault_is_told_at_the_third_try_and_a_verdict_is_left_to_others_at_the_last(void **state)
{
    static const enum action_kind verdicts[] = { ACTION_REPLAY, ACTION_JUDGE };
    struct place *p = *state;

    for (size_t i = 0; i < 2; i++) {
        uint64_t pauses = 0;
        int tries = 1;

        json_array_clear(p->node.counters);
        for (int metric = 0; metric < METRICS; metric++)
            json_array_append_new(p->node.counters, json_object());
        for (begin(p, verdicts[i]); p->driver.jobs; tries++) {
            assert_int_equal(p->driver.jobs->failures, tries);
            assert_int_equal(told(p), tries >= 3);
            pauses += try_again(p);
        }
        assert_int_equal(tries, 64);
        assert_int_equal(told(p), 2);
        assert_true(pauses > 14 * 60000 && pauses < 17 * 60000);
        assert_null(p->driver.first); /* the machine heard no code */
    }
}

static void what_a_machine_owes_itself_is_tried_for_as_long_as_it_is_asked_for(void **state)
{
    struct place *p = *state;

    for (begin(p, ACTION_TRAIN); p->driver.jobs->failures < 100;)
        try_again(p);
    assert_int_equal(told(p), 1);
    driver_jobs_cancel(&p->driver, 1);
    assert_null(p->driver.jobs);
    assert_null(p->driver.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_is_pushed_once_to_one_that_never_has_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_taken_is_not_said_again_within_half_a_view, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_object_that_is_larger_than_it_may_be_is_not_fetched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(few_messages_wait_for_a_machine_that_is_not_there_yet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_that_strangers_name_leave_room_for_those_of_members, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signatures_of_nobody_take_little_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_member_that_starts_again_takes_up_what_it_had_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_work_begins_for_an_open_round_whose_money_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trainer_leaves_a_panel_that_does_not_pay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fault_is_told_at_the_third_try_and_a_verdict_is_left_to_others_at_the_last, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_machine_owes_itself_is_tried_for_as_long_as_it_is_asked_for, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
