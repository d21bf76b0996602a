/* ledger_local_test.c - the embedded ledger and its file: durable, sound after kill -9, and any changed value is found. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "native/base/file.h"
#include "runtime/ledger/server.h"

#define CHAIN 31337
#define NOW   1900000000

struct world {
    char folder[64], path[96];
    struct account_key sponsor, worker, member;
    struct ledger_allocation allocation;
    struct ledger_genesis genesis;
    struct ledger_local *ledger;
    struct error err;
};

static struct account_key key_of(uint8_t number)
{
    uint8_t bytes[32] = { 0 };
    struct account_key key;

    bytes[31] = number;
    assert_true(account_key_from_bytes(bytes, &key));
    return key;
}

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    snprintf(w->folder, sizeof w->folder, "/tmp/rondo-ledger-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/ledger.db", w->folder);
    w->sponsor = key_of(1), w->worker = key_of(2), w->member = key_of(3);
    w->allocation = (struct ledger_allocation){ account_address(&w->sponsor), 1000000 };
    w->genesis = (struct ledger_genesis){ .chain = CHAIN, .block_ms = 100, .allocations = &w->allocation, .allocation_count = 1 };
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    static const char *const tails[] = { "", "-wal", "-shm", ".lock" };
    char path[128];

    ledger_local_close(w->ledger);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", w->path, tails[i]);
        unlink(path);
    }
    rmdir(w->folder);
    free(w);
    return 0;
}

/* ---- transactions ---- */

static void sign(struct world *w, struct transaction t, const struct account_key *key, struct buffer *out)
{
    t.chain = CHAIN;
    t.nonce = ledger_local_account(w->ledger, account_address(key)).nonce;
    if (!transaction_sign(&t, key, out, &w->err))
        fail_msg("%s: %s", w->err.place, w->err.message);
}

static void creation(struct world *w, uint64_t round, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_CREATE };

    t.create = (struct transaction_create){ .run = { { 7 } },
                                            .round = round,
                                            .amount = 100,
                                            .panel = { account_address(&w->member) },
                                            .panel_count = 1,
                                            .threshold = 1,
                                            .expiry = NOW + 1000 };
    sign(w, t, &w->sponsor, out);
}

static void payment(struct world *w, uint64_t round, uint32_t payees, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_RELEASE };
    struct release_domain domain = ledger_local_domain(CHAIN);
    struct hash digest;

    t.release =
        (struct transaction_release){ .record = { { 9 } }, .payee_count = payees, .signature_count = 1, .deadline = NOW + 1000 };
    t.release.id = ledger_escrow_id(&domain, account_address(&w->sponsor), release_round_ref((struct hash){ { 7 } }, round));
    for (uint32_t i = 0; i < payees; i++) {
        t.release.payees[i] = (struct address){ { 0xee, (uint8_t)i } };
        t.release.amounts[i] = 1;
    }
    t.release.payees[0] = account_address(&w->worker);
    assert_true(transaction_release_digest(&domain, &t.release, &digest, &w->err));
    t.release.signatures[0] = account_sign(&w->member, digest);
    sign(w, t, &w->worker, out);
}

static struct hash add(struct world *w, struct buffer *bytes)
{
    struct hash id;

    assert_true(ledger_local_add(w->ledger, bytes->bytes, bytes->size, &id, &w->err));
    buffer_free(bytes);
    return id;
}

static struct hash create(struct world *w, uint64_t round)
{
    struct buffer bytes = { 0 };

    creation(w, round, &bytes);
    return add(w, &bytes);
}

static struct hash pay(struct world *w, uint64_t round, uint32_t payees)
{
    struct buffer bytes = { 0 };

    payment(w, round, payees, &bytes);
    return add(w, &bytes);
}

static void make(struct world *w)
{
    assert_true(ledger_local_make_block(w->ledger, NOW, &w->err));
}

static void reopen(struct world *w)
{
    ledger_local_close(w->ledger);
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
}

static unsigned __int128 balance(struct world *w, const struct account_key *key)
{
    return ledger_local_account(w->ledger, account_address(key)).balance;
}

/* ---- the chain ---- */

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

/* ---- damage ---- */

static void alter(struct world *w, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db) > 0, true);
    sqlite3_close(db);
}

static void any_changed_value_is_found_and_its_block_named(void **state)
{
    static const struct {
        const char *sql, *place;
    } damages[] = {
        { "UPDATE block SET time = time + 1 WHERE height = 3", "block 3" },
        { "UPDATE block SET entropy = randomblob(32) WHERE height = 2", "block 2" },
        { "UPDATE block SET root = randomblob(32) WHERE height = 5", "block 5" },
        { "UPDATE block SET previous = randomblob(32) WHERE height = 4", "block 4" },
        { "UPDATE block SET hash = randomblob(32) WHERE height = 5", "block 5" },
        { "UPDATE block SET hash = 'text' WHERE height = 1", "block 1" },
        { "DELETE FROM block WHERE height = 3", "block 4" },
        { "DELETE FROM block WHERE height = 5", "block 5" },
        { "UPDATE entry SET code = 'conflict' WHERE height = 2", "block 2" },
        { "UPDATE entry SET code = 'nonsense' WHERE height = 2", "block 2" },
        { "UPDATE entry SET bytes = CAST(replace(CAST(bytes AS TEXT), 'a', 'b') AS BLOB) WHERE height = 5", "block 5" },
        { "DELETE FROM entry WHERE height = 5", "block 5" },
        { "UPDATE entry SET position = 3 WHERE height = 5", "block 5" },
        { "INSERT INTO entry SELECT 9, position, bytes, code FROM entry WHERE height = 5", "block 6" },
        { "UPDATE genesis SET text = replace(text, '1000000', '2000000')", "genesis" },
        { "UPDATE genesis SET hash = randomblob(32)", "genesis" },
    };
    struct world *w = *state;
    struct buffer good = { 0 };
    uint64_t height;

    make(w), create(w, 1), make(w), make(w), make(w), pay(w, 1, 2), make(w);
    ledger_local_close(w->ledger);
    w->ledger = NULL;
    assert_true(ledger_local_check(w->path, &height, &w->err));
    assert_int_equal(height, 5);
    assert_true(file_read(w->path, 1u << 22, &good, &w->err));
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        alter(w, damages[i].sql);
        assert_false(ledger_local_check(w->path, &height, &w->err));
        assert_int_equal(w->err.code, ERROR_MISMATCH);
        if (!strstr(w->err.place, damages[i].place))
            fail_msg("%s: %s: %s", damages[i].sql, w->err.place, w->err.message);
        assert_true(file_write(w->path, good.bytes, good.size, 0600, &w->err));
    }
    assert_true(ledger_local_check(w->path, &height, &w->err));
    buffer_free(&good);
}

/* ---- crashes and full disks ---- */

static void a_full_disk_loses_nothing_and_the_next_try_works(void **state)
{
    struct world *w = *state;
    struct rlimit open, tight;
    struct hash id;
    struct ledger_receipt receipt;

    make(w);
    id = create(w, 1);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &open);
    tight = open;
    tight.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &tight);
    for (int i = 0; i < 3; i++) {
        assert_false(ledger_local_make_block(w->ledger, NOW, &w->err));
        assert_int_equal(w->err.code, ERROR_IO);
        assert_int_equal(ledger_local_status(w->ledger).height, 1);
        assert_true(balance(w, &w->sponsor) == 1000000);
        assert_int_equal(ledger_local_waiting(w->ledger), 1);
    }
    setrlimit(RLIMIT_FSIZE, &open);
    make(w);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_int_equal(receipt.height, 2);
    reopen(w);
    assert_true(balance(w, &w->sponsor) == 999900);
}

/* Reads of files fail while it is set; SQLite's too. */
static bool unreadable;

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at)
{
    if (unreadable) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, bytes, count, at);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    return pread64(fd, bytes, count, at);
}

/* So that what SQLite remembers of the file counts for nothing. */
static void touch(struct world *w)
{
    sqlite3 *other;

    assert_int_equal(sqlite3_open(w->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "create table other (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
}

static void a_ledger_that_can_neither_write_nor_read_its_file_answers_nothing_more(void **state)
{
    struct world *w = *state;
    struct rlimit open, tight;
    struct buffer bytes = { 0 }, answer = { 0 };
    struct hash id;
    static const char status[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}";

    make(w);
    id = create(w, 1);
    touch(w);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &open);
    tight = open;
    tight.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &tight);
    unreadable = true;
    assert_false(ledger_local_make_block(w->ledger, NOW, &w->err));
    assert_int_equal(w->err.code, ERROR_FAULT);
    unreadable = false;
    setrlimit(RLIMIT_FSIZE, &open);

    /* Also once the disk is well: what is in memory is no book of this chain. */
    assert_false(ledger_local_make_block(w->ledger, NOW, &w->err));
    assert_int_equal(w->err.code, ERROR_FAULT);
    creation(w, 2, &bytes);
    assert_false(ledger_local_add(w->ledger, bytes.bytes, bytes.size, &id, &w->err));
    assert_int_equal(w->err.code, ERROR_FAULT);
    ledger_answer(w->ledger, status, sizeof status - 1, &answer);
    assert_non_null(strstr(buffer_text(&answer), "\"code\":\"fault\""));
    buffer_free(&bytes);
    buffer_free(&answer);
    reopen(w);
    assert_true(balance(w, &w->sponsor) == 1000000);
    assert_int_equal(ledger_local_status(w->ledger).height, 1);
}

/* The child: escrows made and released as fast as they go; each height told through the pipe after it is on disk. */
static void write_for_ever(struct world *w, int pipe)
{
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    if (!w->ledger)
        _exit(1);
    for (uint64_t round = ledger_local_status(w->ledger).height;; round++) {
        uint64_t height;

        create(w, round);
        if (!ledger_local_make_block(w->ledger, NOW, &w->err))
            _exit(2);
        pay(w, round, 3);
        if (!ledger_local_make_block(w->ledger, NOW, &w->err))
            _exit(3);
        height = ledger_local_status(w->ledger).height;
        if (write(pipe, &height, sizeof height) != sizeof height)
            _exit(4);
    }
}

static void killed_at_any_moment_it_holds_every_block_it_told_of(void **state)
{
    struct world *w = *state;
    uint64_t told = 0, height;

    ledger_local_close(w->ledger);
    w->ledger = NULL;
    for (int i = 0; i < 12; i++) {
        struct timespec pause = { .tv_nsec = 8000000 + (i * 7919 % 40) * 1000000 };
        int ends[2], status;

        assert_int_equal(pipe(ends), 0);

        pid_t child = fork();

        if (child == 0)
            write_for_ever(w, ends[1]);
        close(ends[1]);
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        while (read(ends[0], &height, sizeof height) == sizeof height)
            told = height;
        close(ends[0]);
        assert_true(ledger_local_check(w->path, &height, &w->err));
        assert_true(height >= told);
    }
    assert_true(told > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

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
        T(any_changed_value_is_found_and_its_block_named),
        T(a_full_disk_loses_nothing_and_the_next_try_works),
        T(a_ledger_that_can_neither_write_nor_read_its_file_answers_nothing_more),
        T(killed_at_any_moment_it_holds_every_block_it_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
