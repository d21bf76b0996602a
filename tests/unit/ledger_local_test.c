/* ledger_local_test.c - the embedded ledger: what its chain holds, also after a restart, and who may open its file. */
#include <sys/stat.h>

#include "tests/unit/ledger_world.h"

static void a_transaction_takes_effect_in_the_next_block(void **state)
{
    struct world *w = *state;
    struct hash id = create(w, 1);
    struct ledger_receipt receipt;

    assert_true(balance(w, &w->sponsor) == 1000000);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_int_equal(receipt.height, 0);
    make(w);
    assert_true(balance(w, &w->sponsor) == 999900);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_int_equal(receipt.height, 1);
    assert_int_equal(receipt.code, ERROR_NONE);
    assert_true(receipt.final);
}

static void a_restart_goes_on_where_it_was(void **state)
{
    struct world *w = *state;
    struct hash id = create(w, 1);
    struct ledger_receipt receipt;
    struct ledger_escrow escrow;
    struct ledger_block before, after;

    make(w);
    pay(w, 1, 2);
    make(w);
    assert_true(ledger_local_block(w->ledger, LEDGER_FINAL, &before, &w->err));
    reopen(w);
    assert_true(ledger_local_block(w->ledger, LEDGER_FINAL, &after, &w->err));
    assert_memory_equal(&before, &after, sizeof before);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_true(
        ledger_local_escrow(w->ledger, account_address(&w->sponsor), release_round_ref((struct hash){ { 7 } }, 1), &escrow));
    assert_int_equal(escrow.status, LEDGER_RELEASED);
    assert_true(ledger_local_account(w->ledger, account_address(&w->worker)).credit == 1);
    make(w);
    assert_true(ledger_local_block(w->ledger, LEDGER_FINAL, &after, &w->err));
    assert_int_equal(after.height, 3);
    assert_true(hash_equal(after.previous, before.hash));
}

static void the_same_bytes_twice_are_one_transaction(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };
    struct hash first, second;

    creation(w, 1, &bytes);
    assert_true(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &first, &w->err));
    assert_true(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &second, &w->err));
    assert_true(hash_equal(first, second));
    assert_int_equal(ledger_local_waiting(w->ledger), 1);
    make(w);
    reopen(w);
    assert_true(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &second, &w->err));
    assert_int_equal(ledger_local_waiting(w->ledger), 0);
    assert_true(balance(w, &w->sponsor) == 999900);
    buffer_free(&bytes);
}

static void a_failed_transaction_stands_in_its_block_with_the_reason(void **state)
{
    struct world *w = *state;
    struct hash id;
    struct ledger_receipt receipt;

    create(w, 1);
    id = create(w, 1);
    make(w);
    reopen(w);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_int_equal(receipt.code, ERROR_DUPLICATE);
    assert_int_equal(ledger_local_account(w->ledger, account_address(&w->sponsor)).nonce, 2);
}

static void wrong_chain_nonce_signature_and_bytes_are_refused(void **state)
{
    struct world *w = *state;
    struct transaction t = { .method = TRANSACTION_WITHDRAW, .chain = CHAIN + 1 };
    struct buffer bytes = { 0 };
    struct hash id;

    assert_true(transaction_sign(&t, &w->worker, &bytes, &w->err));
    assert_false(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &id, &w->err));
    assert_int_equal(w->err.code, ERROR_MISMATCH);
    buffer_clear(&bytes);
    t.chain = CHAIN, t.nonce = 1;
    assert_true(transaction_sign(&t, &w->worker, &bytes, &w->err));
    assert_false(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &id, &w->err));
    assert_int_equal(w->err.code, ERROR_STALE);
    buffer_clear(&bytes);
    creation(w, 1, &bytes);
    for (size_t i = 0; i < bytes.size; i += 7) {
        bytes.bytes[i] ^= 1;
        assert_false(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &id, &w->err));
        bytes.bytes[i] ^= 1;
        assert_false(ledger_local_add(w->ledger, bytes.bytes, i, &id, &w->err));
    }
    assert_int_equal(ledger_local_waiting(w->ledger), 0);
    buffer_free(&bytes);
}

static void block_times_never_run_backwards(void **state)
{
    struct world *w = *state;
    struct ledger_block block;

    make(w);
    assert_true(ledger_local_make_block(w->ledger, NOW - 500, &w->err));
    assert_true(ledger_local_block(w->ledger, 2, &block, &w->err));
    assert_int_equal(block.time, NOW);
    reopen(w);
}

static void entropy_is_fresh_in_every_block_and_the_same_with_a_test_seed(void **state)
{
    struct world *w = *state;
    struct ledger_block a, b, c;
    struct hasher h;

    make(w), make(w);
    assert_true(ledger_local_block(w->ledger, 1, &a, &w->err) && ledger_local_block(w->ledger, 2, &b, &w->err));
    assert_false(hash_equal(a.entropy, b.entropy));
    assert_false(ledger_local_status(w->ledger).test_entropy);
    end(state);
    begin(state);
    w = *state;
    ledger_local_close(w->ledger);
    unlink(w->path);
    w->genesis.test_seed = "seven";
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
    assert_true(ledger_local_status(w->ledger).test_entropy);
    make(w), make(w);
    assert_true(ledger_local_block(w->ledger, 2, &c, &w->err));
    hash_start(&h, "rondo/entropy");
    hash_text(&h, "seven");
    assert_true(hash_equal(c.entropy, hash_end(&h)));
    reopen(w);
}

static void another_genesis_is_refused(void **state)
{
    struct world *w = *state;
    struct ledger_genesis other = w->genesis;

    make(w);
    ledger_local_close(w->ledger);
    w->ledger = NULL;
    other.test_seed = "x";
    assert_null(ledger_local_open(w->path, &other, &w->err));
    assert_int_equal(w->err.code, ERROR_MISMATCH);
    w->ledger = ledger_local_open(w->path, NULL, &w->err);
    assert_non_null(w->ledger);
}

static void a_genesis_of_more_money_than_there_can_be_leaves_the_file_free_for_another(void **state)
{
    struct world *w = *state;
    struct ledger_allocation two[2] = { { w->allocation.account, ~(unsigned __int128)0 }, { account_address(&w->worker), 1 } };
    struct ledger_genesis other = w->genesis;

    ledger_local_close(w->ledger);
    w->ledger = NULL;
    assert_int_equal(unlink(w->path), 0);
    other.allocations = two;
    other.allocation_count = 2;
    assert_null(ledger_local_open(w->path, &other, &w->err));
    assert_int_equal(w->err.code, ERROR_RANGE);
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
}

static void two_writers_are_refused_and_readers_are_not(void **state)
{
    struct world *w = *state;
    struct ledger_local *reader;

    create(w, 1);
    make(w);
    assert_null(ledger_local_open(w->path, NULL, &w->err));
    assert_int_equal(w->err.code, ERROR_CONFLICT);
    reader = ledger_local_open_read(w->path, &w->err);
    assert_non_null(reader);
    make(w);
    assert_int_equal(ledger_local_status(reader).height, 1);
    assert_false(ledger_local_make_block(reader, NOW, &w->err));
    ledger_local_close(reader);
    assert_null(ledger_local_open_read("/tmp/rondo-no-such-ledger.db", &w->err));
    assert_int_equal(w->err.code, ERROR_MISSING);
}

/* TMPDIR is a folder of its own here: rmdir works on empty ones only. */
static void what_nobody_keeps_is_read_without_leaving_a_trace(void **state)
{
    struct world *w = *state;
    struct ledger_local *reader;
    struct buffer log = { 0 };
    char work[] = "/tmp/rondo-readers-XXXXXX", path[128];

    assert_non_null(mkdtemp(work));
    setenv("TMPDIR", work, 1);
    create(w, 1);
    make(w);
    snprintf(path, sizeof path, "%s-wal", w->path);
    assert_true(file_read(path, 1u << 22, &log, &w->err)); /* as after kill -9: the block is in the log only */
    ledger_local_close(w->ledger);
    w->ledger = NULL;
    reader = ledger_local_open_read(w->path, &w->err);
    assert_non_null(reader);
    assert_int_equal(rmdir(work), 0);
    assert_int_equal(ledger_local_status(reader).height, 1);
    ledger_local_close(reader);
    assert_int_equal(mkdir(work, 0700), 0);
    assert_true(file_write(path, "not a log", 9, 0600, &w->err));
    assert_true(file_write(w->path, "SQLite, but no", 14, 0600, &w->err));
    assert_null(ledger_local_open_read(w->path, &w->err));
    assert_int_equal(w->err.code, ERROR_MISMATCH);
    assert_int_equal(rmdir(work), 0);
    unsetenv("TMPDIR");
    buffer_free(&log);
}

static void events_are_told_in_pages_that_tear_no_block(void **state)
{
    struct world *w = *state;
    struct ledger_event events[LEDGER_EVENTS];
    struct hash run = { { 7 } }, stranger = { { 8 } };
    uint64_t next = 0, head;
    size_t told = 0;

    for (uint64_t round = 0; round < 10; round++) {
        create(w, round);
        make(w);
        pay(w, round, 60);
    }
    while (ledger_local_waiting(w->ledger))
        make(w);
    head = ledger_local_status(w->ledger).height;
    while (next <= head) {
        size_t count = ledger_local_events(w->ledger, &run, next, UINT64_MAX, events, &next);

        assert_true(count > 0);
        told += count;
    }
    assert_int_equal(told, 10 * (1 + 1 + 60));
    assert_int_equal(next, head + 1);
    assert_int_equal(ledger_local_events(w->ledger, &stranger, 0, UINT64_MAX, events, &next), 0);
}

/* Many large releases at once: no block holds more events than an answer tells. */
static void a_block_holds_no_more_events_than_one_answer(void **state)
{
    struct world *w = *state;
    struct ledger_event events[LEDGER_EVENTS];
    uint64_t next;

    for (uint64_t round = 0; round < 12; round++)
        create(w, round);
    make(w);
    for (uint64_t round = 0; round < 12; round++)
        pay(w, round, 64);
    make(w);
    assert_int_equal(ledger_local_waiting(w->ledger), 9);
    assert_int_equal(ledger_local_events(w->ledger, NULL, 2, 2, events, &next), 3 * 65);
    assert_int_equal(next, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_transaction_takes_effect_in_the_next_block),
        T(a_restart_goes_on_where_it_was),
        T(the_same_bytes_twice_are_one_transaction),
        T(a_failed_transaction_stands_in_its_block_with_the_reason),
        T(wrong_chain_nonce_signature_and_bytes_are_refused),
        T(block_times_never_run_backwards),
        T(entropy_is_fresh_in_every_block_and_the_same_with_a_test_seed),
        T(another_genesis_is_refused),
        T(a_genesis_of_more_money_than_there_can_be_leaves_the_file_free_for_another),
        T(two_writers_are_refused_and_readers_are_not),
        T(what_nobody_keeps_is_read_without_leaving_a_trace),
        T(events_are_told_in_pages_that_tear_no_block),
        T(a_block_holds_no_more_events_than_one_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
