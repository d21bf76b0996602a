/* Every write point of a node's stores fails: the disk is full, once or until room is made, or does not sync, and takes what it was given for
 * written all the same. The step says so, nothing that was acknowledged is lost, and the same step works once the disk does. */
#include <limits.h>

#include "runtime/ledger/local.h"
#include "tests/unit/crashing.h"

/* What becomes of the node once a step has failed. */
enum end {
    GOES_ON,         /* tries again when the disk is well, and ends in order */
    GOES_ON_AND_CUT, /* the same, and the power fails after the last step */
    CUT,             /* the power fails at once */
    KILLED,          /* the process alone ends */
    RESTARTED,       /* the same; another goes on when the disk is well, and the power fails after the last step */
    ENDS
};

struct trouble {
    long at;
    bool lasting; /* of the first write half finds room, and of those that follow nothing */
    enum end end;
};

/* What the system will not write any more, whichever process syncs it; in memory that the processes share. */
static struct undo *lost;
enum { LOST = 256 };

static void keep_lost(void)
{
    int count = 0;

    for (struct undo *u = disk.undos; u; u = u->next)
        if (u->doomed && count < LOST)
            lost[count++] = *u;
    lost[count].path[0] = '\0';
}

static void take_lost(void)
{
    for (int i = 0; lost[i].path[0]; i++) {
        lost[i].next = disk.undos;
        disk.undos = &lost[i];
    }
}

static void end_there(enum end end)
{
    if (end == KILLED || end == RESTARTED) {
        keep_lost();
        _exit(9);
    }
    if (end == CUT) {
        disk.lossy = true;
        power_fails();
    }
    disk.faulty = disk.full = false;
}

static void say_so(const struct stores *s)
{
    if (s->err.code != ERROR_IO || !s->err.message[0]) {
        print_message("%s: %s: %s\n", error_name(s->err.code), s->err.place, s->err.message);
        _exit(3);
    }
}

static void run_steps(const char *folder, int first, enum end end)
{
    struct stores s;

    if (!stores_open(&s, folder)) {
        say_so(&s);
        journal_close(s.journal);
        end_there(end);
        if (!stores_open(&s, folder))
            _exit(1);
    }
    for (int i = first; i < STORES_STEPS; i++) {
        if (!stores_step(&s, folder, i)) {
            say_so(&s);
            end_there(end);
            if (!stores_step(&s, folder, i))
                _exit(2);
        }
        *acknowledged = i + 1;
    }
    if (end == GOES_ON_AND_CUT || end == CUT) {
        disk.lossy = true;
        power_fails();
    }
    journal_close(s.journal);
    _exit(end == GOES_ON ? 0 : 9);
}

/* A step was refused: it says why, and what becomes of the process comes. */
static void refused(const struct error *err, enum end end)
{
    struct stores s = { .err = *err };

    say_so(&s);
    end_there(end);
}

enum { BLOCKS = 4 };

/* The same of a ledger: what is acknowledged is a height. */
static void make_blocks(const char *folder, int first, enum end end)
{
    const struct ledger_genesis genesis = { .chain = 1, .block_ms = 100, .test_seed = "full" };
    struct ledger_local *ledger;
    struct error err = { 0 };
    char path[128];

    (void)first;
    snprintf(path, sizeof path, "%s/ledger.db", folder);
    ledger = ledger_local_open(path, &genesis, &err);
    if (!ledger) {
        refused(&err, end);
        ledger = ledger_local_open(path, &genesis, &err);
    }
    while (ledger && ledger_local_status(ledger).height < BLOCKS) {
        if (!ledger_local_make_block(ledger, 1900000000, &err)) {
            refused(&err, end);
            if (!ledger_local_make_block(ledger, 1900000000, &err))
                _exit(2);
        }
        *acknowledged = (int)ledger_local_status(ledger).height;
    }
    if (!ledger)
        _exit(1);
    if (end == GOES_ON_AND_CUT || end == CUT) {
        disk.lossy = true;
        power_fails();
    }
    acknowledged[1] = (int)disk.points;
    ledger_local_close(ledger);
    _exit(end == GOES_ON ? 0 : 9);
}

/* `runs`: run_steps or make_blocks. */

static int in_process(const char *folder, void (*runs)(const char *folder, int first, enum end end), const struct trouble *t)
{
    pid_t pid;

    *acknowledged = 0;
    lost[0].path[0] = '\0';
    pid = fork();
    if (pid == 0) {
        disk.on = disk.faulty = true;
        disk.cut_at = t->at;
        disk.cut = t->lasting ? CUT_MIDST : CUT_BEFORE;
        disk.lasting = t->lasting;
        runs(folder, 0, t->end);
    }
    return exit_of(pid);
}

/* Another process, on a disk that is well again, with what the first one lost. */
static int goes_on(const char *folder, void (*runs)(const char *folder, int first, enum end end))
{
    pid_t pid = fork();

    if (pid == 0) {
        disk.on = true;
        disk.cut_at = -1;
        take_lost();
        runs(folder, *acknowledged, GOES_ON_AND_CUT);
    }
    return exit_of(pid);
}

/* On a disk that takes nothing a folder opens, and what it holds is read. */
static int opens_on_a_full_disk(const char *folder)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct stores s;
        struct buffer text = { 0 };
        uint32_t round, view;

        disk.on = disk.full = true;
        disk.cut_at = -1;
        if (!stores_open(&s, folder)) {
            print_message("%s: %s\n", s.err.place, s.err.message);
            _exit(1);
        }
        _exit(journal_load_round(s.journal, stores_run, &round, &view, &text, &s.err) ? 0 : 2);
    }
    return exit_of(pid);
}

static void check(const char *folder, const struct stores_states *states, const struct trouble *t, struct buffer *held)
{
    int status;

    fixture_remove(folder);
    status = in_process(folder, run_steps, t);

    if (t->end == RESTARTED && status == 9)
        status = goes_on(folder, run_steps);

    int done = *acknowledged;

    if (status != (t->end == GOES_ON ? 0 : 9))
        fail_msg("point %ld, lasting %d, end %d: status %d after step %d", t->at, t->lasting, t->end, status, done);
    if (t->end == KILLED && done > 2 && opens_on_a_full_disk(folder) != 0)
        fail_msg("point %ld: the folder does not open on a full disk", t->at);
    if (!stores_look(folder, held) || !stores_follow(states, held, done))
        fail_msg("point %ld, lasting %d, end %d: after step %d it holds\n%s", t->at, t->lasting, t->end, done, buffer_text(held));
}

static void whatever_fails_is_told_and_nothing_acknowledged_is_lost(void **state)
{
    char folder[64];
    struct stores_states states;
    struct buffer held = { 0 };
    long points, failures = 0;

    (void)state;
    crash_folder(folder);
    points = undisturbed(folder, &states);
    for (long at = 0; at < points; at++) {
        for (int end = 0; end < ENDS; end++, failures++)
            check(folder, &states, &(struct trouble){ .at = at, .end = (enum end)end }, &held);
        check(folder, &states, &(struct trouble){ .at = at, .lasting = true, .end = GOES_ON }, &held);
        check(folder, &states, &(struct trouble){ .at = at, .lasting = true, .end = KILLED }, &held);
        failures += 2;
    }
    print_message("%ld write points, %ld failures\n", points, failures);
    buffer_free(&held);
    stores_states_free(&states);
    fixture_remove(folder);
}

/* Another process opens the folder and does the next step, with what the first one lost; then the power fails, or at `cut_at` of its points.
 * What it wrote happens to be there, but for that. Returns how many points there were, or -1. */
static int goes_on_until(const char *folder, long cut_at)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct stores s;

        disk.on = disk.lossy = disk.spares = true;
        disk.cut_at = cut_at;
        disk.cut = CUT_MIDST;
        acknowledged[1] = -1;
        take_lost();
        if (!stores_open(&s, folder) || !stores_step(&s, folder, *acknowledged))
            _exit(1);
        ++*acknowledged;
        acknowledged[1] = (int)disk.points;
        power_fails();
    }
    assert_int_equal(exit_of(pid), 9);
    return acknowledged[1];
}

/* The log is emptied by who comes after a sync that failed; the power fails while it is. */
static void a_log_that_is_emptied_after_a_failed_sync_survives_a_power_cut(void **state)
{
    char folder[64];
    struct stores_states states;
    struct buffer held = { 0 };
    long points, cuts = 0;

    (void)state;
    crash_folder(folder);
    points = undisturbed(folder, &states);
    for (long at = 0; at < points; at++)
        for (long cut_at = 0, more = 1; cut_at < more; cut_at++) {
            fixture_remove(folder);
            if (in_process(folder, run_steps, &(struct trouble){ .at = at, .end = KILLED }) != 9 || !lost[0].path[0])
                break;
            more = goes_on_until(folder, cut_at);
            more = more < 0 ? LONG_MAX : more;
            cuts++;
            if (!stores_look(folder, &held) || !stores_follow(&states, &held, *acknowledged))
                fail_msg("point %ld, then %ld: after step %d it holds\n%s", at, cut_at, *acknowledged, buffer_text(&held));
        }
    print_message("%ld cuts\n", cuts);
    assert_true(cuts > 100);
    buffer_free(&held);
    stores_states_free(&states);
    fixture_remove(folder);
}

enum { ARRIVED = 4 };

/* Blocks arrive while the disk fails at this point; `there` of them are there afterwards. Then the power fails. */
static int arrive(const char *folder, struct block_arrival *list, const struct trouble *t)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct block_store store;
        struct error err = { 0 };
        bool ok;

        if (!block_store_open(folder, &store, &err))
            _exit(1);
        disk.on = disk.faulty = true;
        disk.cut_at = t->at;
        disk.cut = t->lasting ? CUT_MIDST : CUT_BEFORE;
        disk.lasting = t->lasting;
        ok = block_put_arrived(&store, list, ARRIVED, &err);
        acknowledged[1] = (int)disk.points;
        *acknowledged = 0;
        for (int i = 0; i < ARRIVED; i++)
            *acknowledged |= block_has(&store, list[i].id) << i;
        if (ok != (t->at < 0) || (ok && *acknowledged != (1 << ARRIVED) - 1))
            _exit(2);
        disk.faulty = disk.full = false;
        disk.lossy = true;
        power_fails();
    }
    return exit_of(pid);
}

static void what_a_full_disk_took_of_blocks_that_arrived_is_kept_and_no_more(void **state)
{
    static char bytes[ARRIVED][3000];
    struct block_arrival list[ARRIVED];
    char folder[64];
    long points, kept = 0;

    (void)state;
    crash_folder(folder);
    for (int i = 0; i < ARRIVED; i++) {
        memset(bytes[i], 'a' + i, sizeof bytes[i]);
        list[i] =
            (struct block_arrival){ .id = hash_block(bytes[i], sizeof bytes[i]), .bytes = bytes[i], .size = sizeof bytes[i] };
    }
    assert_int_equal(arrive(folder, list, &(struct trouble){ .at = -1 }), 9);
    points = acknowledged[1];
    assert_true(points >= 3 * ARRIVED + 1); /* a write, a sync and a rename of each, and their folder */
    for (long at = 0; at < 2 * points; at++) {
        struct block_store store;
        struct error err = { 0 };

        fixture_remove(folder);
        assert_int_equal(arrive(folder, list, &(struct trouble){ .at = at / 2, .lasting = at % 2 }), 9);
        kept += *acknowledged != 0;
        assert_true(block_store_open(folder, &store, &err));
        for (int i = 0; i < ARRIVED; i++) { /* whatever the call left survives the cut, whole */
            struct buffer read = { 0 };

            assert_int_equal(block_get(&store, list[i].id, &read, &err), *acknowledged >> i & 1);
            buffer_free(&read);
        }
    }
    print_message("%ld write points, %ld times some were kept\n", points, kept);
    assert_true(kept > 0);
    fixture_remove(folder);
}

static void a_ledger_keeps_every_block_it_told_of(void **state)
{
    char folder[64], path[128];
    long failures = 0;

    (void)state;
    crash_folder(folder);
    snprintf(path, sizeof path, "%s/ledger.db", folder);
    assert_int_equal(in_process(folder, make_blocks, &(struct trouble){ .at = -1 }), 0);

    const long points = acknowledged[1];

    assert_true(points > 20);
    for (long at = 0; at < points; at++)
        for (int kind = 0; kind < 2 * ENDS; kind++, failures++) {
            const struct trouble t = { .at = at, .lasting = kind % 2, .end = (enum end)(kind / 2) };
            struct error err = { 0 };
            uint64_t height = 0;
            int status;

            fixture_remove(folder);
            assert_int_equal(mkdir(folder, 0755), 0);
            status = in_process(folder, make_blocks, &t);
            if (t.end == RESTARTED && status == 9)
                status = goes_on(folder, make_blocks);
            if (status != (t.end == GOES_ON ? 0 : 9))
                fail_msg("point %ld, lasting %d, end %d: status %d after block %d", at, t.lasting, t.end, status, *acknowledged);
            if (*acknowledged &&
                (!ledger_local_check(path, &height, &err) || height < (uint64_t)*acknowledged || height > BLOCKS))
                fail_msg("point %ld, lasting %d, end %d: told of block %d, holds %d: %s: %s", at, t.lasting, t.end, *acknowledged,
                         (int)height, err.place, err.message);
        }
    print_message("%ld write points, %ld failures\n", points, failures);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_fails_is_told_and_nothing_acknowledged_is_lost),
        cmocka_unit_test(a_log_that_is_emptied_after_a_failed_sync_survives_a_power_cut),
        cmocka_unit_test(what_a_full_disk_took_of_blocks_that_arrived_is_kept_and_no_more),
        cmocka_unit_test(a_ledger_keeps_every_block_it_told_of),
    };

    acknowledged = shared(2 * sizeof *acknowledged);
    lost = shared((LOST + 1) * sizeof *lost);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
