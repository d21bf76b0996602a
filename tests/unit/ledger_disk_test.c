/* ledger_disk_test.c - the embedded ledger's file: any changed value is found, a full disk loses nothing, and it is sound after kill -9. */
#include <sys/wait.h>
#include <time.h>

#include <sqlite3.h>

#include "runtime/ledger/server.h"
#include "tests/unit/ledger_world.h"
#include "tests/unit/sick_disk.h"

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

/* ---- full disks and crashes ---- */

static void a_full_disk_loses_nothing_and_the_next_try_works(void **state)
{
    struct world *w = *state;
    struct rlimit room;
    struct hash id;
    struct ledger_receipt receipt;

    make(w);
    id = create(w, 1);
    disk_fill(&room);
    for (int i = 0; i < 3; i++) {
        assert_false(ledger_local_make_block(w->ledger, NOW, &w->err));
        assert_int_equal(w->err.code, ERROR_IO);
        assert_int_equal(ledger_local_status(w->ledger).height, 1);
        assert_true(balance(w, &w->sponsor) == 1000000);
        assert_int_equal(ledger_local_waiting(w->ledger), 1);
    }
    disk_empty(&room);
    make(w);
    assert_true(ledger_local_receipt(w->ledger, id, &receipt));
    assert_int_equal(receipt.height, 2);
    reopen(w);
    assert_true(balance(w, &w->sponsor) == 999900);
}

static void a_ledger_that_can_neither_write_nor_read_its_file_answers_nothing_more(void **state)
{
    struct world *w = *state;
    struct rlimit room;
    struct buffer bytes = { 0 }, answer = { 0 };
    struct hash id;
    static const char status[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}";

    make(w);
    id = create(w, 1);
    disk_forget(w->path);
    disk_fill(&room);
    unreadable = true;
    assert_false(ledger_local_make_block(w->ledger, NOW, &w->err));
    assert_int_equal(w->err.code, ERROR_FAULT);
    unreadable = false;
    disk_empty(&room);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(any_changed_value_is_found_and_its_block_named),
        T(a_full_disk_loses_nothing_and_the_next_try_works),
        T(a_ledger_that_can_neither_write_nor_read_its_file_answers_nothing_more),
        T(killed_at_any_moment_it_holds_every_block_it_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
