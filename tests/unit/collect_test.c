/* collect_test.c - which blocks are dropped, which never, and that it may be broken off anywhere. */
#include "runtime/role/collect.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/json.h"
#include "runtime/store/object.h"
#include "tests/fixture/fixture.h"

enum { ROUNDS = 14 };

struct place {
    char folder[64];
    struct node node;
    struct course course;
    struct key_pair maker;
    struct hash model, shard, payload[ROUNDS], log[ROUNDS], state[ROUNDS]; /* objects */
};

static struct error err;

/* Two chunks: a large one that all objects of one `head` share, and a small one of its own. */
static struct hash put_object(struct place *p, int head, int seed)
{
    size_t size = BLOCK_SIZE + 1000;
    uint8_t *bytes = malloc(size);
    struct hash id;

    memset(bytes, head, BLOCK_SIZE);
    for (size_t i = BLOCK_SIZE; i < size; i++)
        bytes[i] = (uint8_t)((size_t)seed * 31 + i % 7 + (size_t)seed / 256);
    assert_true(object_put(&p->node.blocks, "application/x", bytes, size, &id, &err));
    free(bytes);
    return id;
}

static struct hash put_json(struct place *p, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    struct hash id;

    assert_true(block_put(&p->node.blocks, text, strlen(text), &id, &err));
    free(text);
    json_decref(value);
    return id;
}

static void put_document(struct place *p, enum document_type type, json_t *fields, bool bare, struct hash *id)
{
    struct document d = { 0 };

    FIXTURE_OK(document_make(type, fields, bare ? NULL : &p->maker.identity, NULL, &d, &err), &err);
    assert_true(journal_put_document(p->node.journal, &d, &err));
    *id = d.id;
    document_free(&d);
    json_decref(fields);
}

static json_t *contribution_fields(struct place *p, int round)
{
    struct hash some = { { 7 } };

    return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:{s:i, s:i}, s:i, s:i, s:s, s:[], s:o}", "run",
                     document_json_cid(p->course.id), "round", round, "start", document_json_hash(some), "end",
                     document_json_hash(some), "carry_in", document_json_hash(some), "carry_out", document_json_hash(some),
                     "body", document_json_hash(some), "payload", document_json_cid(p->payload[round]), "payload_bytes", 1000,
                     "codec", "bits", 4, "block", 256, "tokens", 2048, "steps", 25, "loss", "3fc00000", "probes", "step_log",
                     document_json_cid(p->log[round]));
}

static json_t *record_fields(struct place *p, int round)
{
    char did[DID_TEXT];
    struct public_key key = public_key_of(&p->maker.identity);
    json_t *record =
        json_pack("{s:o, s:i, s:s, s:n, s:n, s:n, s:[s], s:[o], s:i, s:i, s:i, s:i}", "run", document_json_cid(p->course.id),
                  "round", round, "kind", "train", "previous", "seed", "block", "committee", did_text(&key, did), "received",
                  document_json_cid(p->course.id), "height", 1, "time", 1, "funded", 0, "next_height", 2);
    static const char *const lists[] = { "contributions", "items",     "members", "unreturned", "arrivals",
                                         "unsettled",     "convicted", "barred",  "disputes",   "settled" };

    json_object_set_new(record, "start", json_null());
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_object_set_new(record, lists[i], json_array());
    json_object_set_new(record, "plan", json_null());
    json_object_set_new(record, "aggregate", json_null());
    json_object_set_new(record, "outer", document_json_cid(p->state[round]));
    json_object_set_new(record, "state", json_null());
    json_object_set_new(record, "telemetry", json_null());
    json_object_set_new(record, "grace_ms", json_integer(0));
    json_object_set_new(record, "correct", json_integer(0));
    return record;
}

/* What each round leaves: a contribution with payload and step log, and a state. */
static void put_round(struct place *p, int round)
{
    struct hash record, any;

    p->payload[round] = put_object(p, 1, 100 + round); /* its first chunk is the model's */
    p->log[round] = put_object(p, 4, 200 + round);
    p->state[round] = put_object(p, 3, 300 + round); /* states share a chunk */
    put_document(p, DOCUMENT_CONTRIBUTION, contribution_fields(p, round), false, &any);
    put_document(p, DOCUMENT_RECORD, record_fields(p, round), true, &record);
    assert_true(journal_finish_round(p->node.journal, p->course.id, (uint32_t)round, record, any, &err));
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    char path[128], cid[CID_TEXT];

    assert_true(sodium_init() >= 0);
    key_pair_derive("collect_test", "maker", &p->maker);
    snprintf(p->folder, sizeof p->folder,
             "/dev/shm/rondo-collect-XXXXXX"); /* thousands of small writes: in memory where there is room */
    if (!mkdtemp(p->folder))
        fixture_folder(p->folder);
    snprintf(path, sizeof path, "%s/blocks", p->folder);
    snprintf(p->node.folder, sizeof p->node.folder, "%s", p->folder);
    assert_true(block_store_open(path, &p->node.blocks, &err));
    p->node.journal = journal_open(p->folder, &err);
    assert_non_null(p->node.journal);
    p->node.course = &p->course;
    p->course.node = &p->node;
    p->course.id = hash_block("run", 3);
    cid_text(p->course.id, p->course.run);
    p->model = put_object(p, 1, 1);
    p->shard = put_object(p, 2, 2);
    p->course.spec.chat_template = "model";
    p->course.spec.base_model = put_json(p, json_pack("{s:[{s:s, s:s, s:i}], s:i}", "files", "name", "a", "object",
                                                      cid_text(p->model, cid), "size", 1, "version", 1));
    p->course.spec.dataset.manifest = put_json(p, json_pack("{s:i, s:[{s:s, s:i, s:i}], s:i}", "rows", 1, "shards", "object",
                                                            cid_text(p->shard, cid), "rows", 1, "size", 1, "version", 1));
    for (int round = 0; round < ROUNDS; round++)
        put_round(p, round);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    journal_close(p->node.journal);
    fixture_remove(p->folder);
    free(p);
    return 0;
}

static bool whole(struct place *p, struct hash id)
{
    struct buffer bytes = { 0 };
    bool ok = object_get(&p->node.blocks, id, NULL, UINT64_MAX, &bytes, NULL);

    buffer_free(&bytes);
    return ok;
}

/* `below`: rounds of which payloads may be gone; `states`: the same of states. */
static void assert_there(struct place *p, int below, int states)
{
    assert_true(whole(p, p->model));
    assert_true(whole(p, p->shard));
    for (int round = 0; round < ROUNDS; round++) {
        if (round >= below) {
            assert_true(whole(p, p->payload[round]));
            assert_true(whole(p, p->log[round]));
        }
        if (round >= states - 1 || round % COLLECT_CHECKPOINT == 0)
            assert_true(whole(p, p->state[round]));
    }
}

static void assert_kept(struct place *p, int below)
{
    assert_there(p, below, below);
}

static void assert_dropped(struct place *p, int below)
{
    for (int round = 0; round < below; round++) {
        assert_false(block_has(&p->node.blocks, p->payload[round]));
        assert_false(block_has(&p->node.blocks, p->log[round]));
        if (round < below - 1 && round % COLLECT_CHECKPOINT != 0)
            assert_false(block_has(&p->node.blocks, p->state[round]));
    }
}

static struct collection collect(struct place *p, int below, uint64_t quota, bool dry)
{
    struct collection c;

    FIXTURE_OK(collect_run(&p->node, below, quota, dry, &c, &err), &err);
    return c;
}

static void what_is_over_is_dropped_and_all_else_is_kept(void **state)
{
    struct place *p = *state;
    struct collection c = collect(p, 9, 0, false), again;
    uint64_t bytes, blocks;

    assert_dropped(p, 9);
    assert_kept(p, 9);
    assert_int_equal(c.round, 8);
    assert_true(collect_measure(&p->node.blocks, &bytes, &blocks, &err));
    assert_int_equal(bytes, c.bytes - c.dropped_bytes);
    assert_int_equal(blocks, c.blocks - c.dropped_blocks);
    again = collect(p, 9, 0, false);
    assert_int_equal(again.dropped_blocks, 0);
    assert_int_equal(again.bytes, bytes);
    collect(p, 12, 0, false);
    assert_dropped(p, 12);
    assert_kept(p, 12);
}

/* Bytes of a block stand in the journal too, until the folder is synced; or in it alone, where the folder took no more. */
static void what_is_dropped_does_not_come_back_with_the_next_start(void **state)
{
    struct place *p = *state;
    struct hash ids[] = { p->payload[1], p->log[1] };
    struct buffer bytes = { 0 };

    for (int i = 0; i < 2; i++) {
        buffer_clear(&bytes);
        assert_true(block_get(&p->node.blocks, ids[i], &bytes, &err));
        assert_true(journal_put_block(p->node.journal, ids[i], bytes.bytes, bytes.size, &err));
    }
    p->node.blocks.unsynced = journal_files(p->node.journal);
    collect(p, 9, 0, false);
    assert_dropped(p, 9);
    journal_close(p->node.journal);
    p->node.blocks.unsynced = NULL;
    p->node.journal = journal_open(p->folder, &err);
    assert_non_null(p->node.journal);
    assert_dropped(p, 9);
    assert_kept(p, 9);
    buffer_free(&bytes);
}

static void no_more_is_dropped_than_the_quota_asks(void **state)
{
    struct place *p = *state;
    uint64_t bytes, blocks;
    struct collection c;

    assert_true(collect_measure(&p->node.blocks, &bytes, &blocks, &err));
    c = collect(p, 9, bytes, false);
    assert_int_equal(c.dropped_blocks, 0);
    c = collect(p, 9, bytes - 1, false);
    assert_int_equal(c.round, 0);
    assert_true(c.dropped_blocks > 0);
    assert_there(p, 1, 9);
    c = collect(p, 9, bytes - 6 * 1500, false);
    assert_true(c.bytes - c.dropped_bytes <= bytes - 6 * 1500);
    assert_there(p, (int)c.round + 1, 9);
    assert_true(c.round < 8);
}

static void a_dry_run_drops_nothing_and_says_the_same(void **state)
{
    struct place *p = *state;
    struct collection dry = collect(p, 9, 0, true), real;

    assert_kept(p, 0);
    real = collect(p, 9, 0, false);
    assert_int_equal(dry.dropped_bytes, real.dropped_bytes);
    assert_int_equal(dry.dropped_blocks, real.dropped_blocks);
    assert_int_equal(dry.round, real.round);
}

static void a_pinned_run_is_left_alone(void **state)
{
    struct place *p = *state;

    assert_true(collect_pin(p->node.journal, p->course.run, true, &err));
    assert_true(collect(p, 9, 0, false).pinned);
    assert_kept(p, 0);
    assert_true(collect_pin(p->node.journal, p->course.run, false, &err));
    assert_false(collect(p, 9, 0, false).pinned);
    assert_dropped(p, 9);
}

/* A liar's old contribution names the model, a shard and a payload that is still needed as its own. */
static void what_a_liar_names_as_its_own_is_kept_where_it_is_needed(void **state)
{
    struct place *p = *state;
    struct hash any;
    json_t *fields;

    for (int i = 0; i < 3; i++) {
        fields = contribution_fields(p, 2);
        json_object_set_new(fields, "payload", document_json_cid(i == 0 ? p->model : i == 1 ? p->shard : p->payload[12]));
        json_object_set_new(fields, "step_log", document_json_cid(p->course.spec.base_model));
        put_document(p, DOCUMENT_CONTRIBUTION, fields, false, &any);
    }
    collect(p, 9, 0, false);
    assert_dropped(p, 9);
    assert_kept(p, 9);
}

/* Killed at any moment: nothing needed is lost, and the next time everything droppable goes. */
static void a_kill_in_between_loses_nothing(void **state)
{
    struct place *p = *state;
    unsigned killed = 0;

    for (unsigned us = 200; us < 60000; us = us * 2) {
        pid_t child;
        int status;

        journal_close(p->node.journal);
        child = fork();
        if (child == 0) {
            struct collection c;

            p->node.journal = journal_open(p->folder, &err);
            _exit(!collect_run(&p->node, 9, 0, false, &c, &err));
        }
        usleep(us);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        p->node.journal = journal_open(p->folder, &err);
        assert_non_null(p->node.journal);
        killed += WIFSIGNALED(status);
        assert_kept(p, 9);
    }
    collect(p, 9, 0, false);
    assert_dropped(p, 9);
    assert_kept(p, 9);
    print_message("killed %u times\n", killed);
}

static void a_round_may_go_when_it_is_settled_corrected_and_recomputed(void **state)
{
    json_t *record = json_pack("{s:i, s:i, s:[]}", "round", 20, "correct", 0, "unsettled");

    (void)state;
    assert_int_equal(collect_below(record, -1), 20 - COLLECT_SPARE);
    assert_int_equal(collect_below(record, 12), 12 - COLLECT_SPARE);
    json_array_append_new(json_object_get(record, "unsettled"), json_pack("{s:i}", "round", 17));
    assert_int_equal(collect_below(record, -1), 17 - COLLECT_SPARE);
    json_object_set_new(record, "correct", json_integer(9));
    assert_int_equal(collect_below(record, 12), 9 - COLLECT_SPARE);
    json_object_set_new(record, "correct", json_integer(1));
    assert_int_equal(collect_below(record, 12), 0);
    json_decref(record);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_over_is_dropped_and_all_else_is_kept),
        T(what_is_dropped_does_not_come_back_with_the_next_start),
        T(no_more_is_dropped_than_the_quota_asks),
        T(a_dry_run_drops_nothing_and_says_the_same),
        T(a_pinned_run_is_left_alone),
        T(what_a_liar_names_as_its_own_is_kept_where_it_is_needed),
        T(a_kill_in_between_loses_nothing),
        cmocka_unit_test(a_round_may_go_when_it_is_settled_corrected_and_recomputed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
