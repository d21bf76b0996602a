/* What is durable before it is sent, and that nothing is ever signed twice. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>
#include <sqlite3.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/store/journal.h"

static char folder[64];
static struct journal *journal;
static struct error err;
static const struct hash run = { { 1 } }, one = { { 0x11 } }, two = { { 0x22 } }, three = { { 0x33 } };

static void empty_folder(const char *path)
{
    DIR *entries = opendir(path);
    char name[400];

    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            if (unlink(name) != 0) {
                empty_folder(name);
                rmdir(name);
            }
        }
    if (entries)
        closedir(entries);
}

static int open_journal(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rondo_journal_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    journal = journal_open(folder, &err);
    return journal ? 0 : -1;
}

static int drop_journal(void **state)
{
    (void)state;
    journal_close(journal);
    empty_folder(folder);
    return rmdir(folder);
}

static void reopen(void)
{
    journal_close(journal);
    journal = journal_open(folder, &err);
    assert_non_null(journal);
}

static void second_statement_for_one_place_is_refused_for_ever(void **state)
{
    struct statement vote = { "vote", "prepare", one }, other = { "vote", "prepare", two };
    struct statement commit = { "vote", "commit", two };

    (void)state;
    assert_true(journal_sign_once(journal, run, 3, 0, &vote, &err));
    assert_true(journal_sign_once(journal, run, 3, 0, &vote, &err));
    assert_false(journal_sign_once(journal, run, 3, 0, &other, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    reopen();
    assert_false(journal_sign_once(journal, run, 3, 0, &other, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_true(journal_sign_once(journal, run, 3, 0, &commit, &err));
    assert_true(journal_sign_once(journal, run, 3, 1, &other, &err));
    assert_true(journal_sign_once(journal, run, 4, 0, &other, &err));
    assert_true(journal_sign_once(journal, two, 3, 0, &other, &err));
}

static void round_is_written_whole_or_not_at_all(void **state)
{
    struct statement statements[2] = { { "received", "", one }, { "vote", "prepare", one } };
    struct buffer variables = { 0 };
    uint32_t round, view;

    (void)state;
    assert_false(journal_load_round(journal, run, &round, &view, &variables, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_true(journal_save_round(journal, run, 1, 0, "A", 1, statements, 2, &err));
    statements[0].id = one, statements[1].id = two; /* the second contradicts */
    assert_false(journal_save_round(journal, run, 1, 0, "B", 1, statements, 2, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    reopen();
    assert_true(journal_load_round(journal, run, &round, &view, &variables, &err));
    assert_int_equal(round, 1);
    assert_int_equal(view, 0);
    assert_string_equal(buffer_text(&variables), "A");

    /* Nor is a statement kept of a write that failed on its second. */
    struct statement fresh[2] = { { "proposal", "", one }, { "vote", "prepare", two } };
    struct statement later = { "proposal", "", two };

    assert_false(journal_save_round(journal, run, 1, 0, "C", 1, fresh, 2, &err));
    assert_true(journal_sign_once(journal, run, 1, 0, &later, &err));
    buffer_free(&variables);
}

static void view_that_was_left_is_never_entered_again(void **state)
{
    (void)state;
    assert_true(journal_save_round(journal, run, 1, 2, "A", 1, NULL, 0, &err));
    assert_false(journal_save_round(journal, run, 1, 1, "B", 1, NULL, 0, &err));
    assert_int_equal(err.code, ERROR_STALE);
    assert_true(journal_save_round(journal, run, 1, 2, "C", 1, NULL, 0, &err));
    assert_true(journal_save_round(journal, run, 2, 0, "D", 1, NULL, 0, &err));
    assert_false(journal_save_round(journal, run, 1, 9, "E", 1, NULL, 0, &err));
    assert_int_equal(err.code, ERROR_STALE);
}

static void final_round_is_over_and_a_second_record_for_it_is_kept_as_a_conflict(void **state)
{
    struct hash record, certificate;
    struct buffer variables = { 0 };
    uint32_t round, view;

    (void)state;
    assert_false(journal_last_final(journal, run, &round, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_true(journal_save_round(journal, run, 1, 0, "A", 1, NULL, 0, &err));
    assert_true(journal_finish_round(journal, run, 1, one, two, &err));
    assert_true(journal_finish_round(journal, run, 1, one, three, &err)); /* another certificate of the same record */
    /* What was saved of it stays: without it the folder would be one that does not know what its key signed. */
    assert_true(journal_load_round(journal, run, &round, &view, &variables, &err));
    assert_int_equal(round, 1);
    assert_false(journal_save_round(journal, run, 1, 5, "B", 1, NULL, 0, &err));
    assert_int_equal(err.code, ERROR_STALE);
    assert_true(journal_final(journal, run, 1, &record, &certificate, &err));
    assert_true(hash_equal(record, one) && hash_equal(certificate, two));
    assert_true(journal_finish_round(journal, run, 2, three, two, &err));
    assert_true(journal_last_final(journal, run, &round, &err));
    assert_int_equal(round, 2);

    assert_false(journal_finish_round(journal, run, 1, three, two, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    reopen();
    assert_false(journal_final(journal, run, 1, &record, &certificate, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    buffer_free(&variables);
}

static void escrow_is_released_by_one_digest(void **state)
{
    (void)state;
    assert_true(journal_release_once(journal, one, two, &err));
    assert_true(journal_release_once(journal, one, two, &err));
    reopen();
    assert_false(journal_release_once(journal, one, three, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_true(journal_release_once(journal, two, three, &err));
}

static struct document vote(uint32_t round, uint32_t view)
{
    struct document out;
    struct key_pair keys;
    json_t *fields = json_pack("{s:o, s:i, s:i, s:s, s:o}", "run", document_json_cid(run), "round", (int)round, "view", (int)view,
                               "phase", "prepare", "record", document_json_cid(one));

    key_pair_derive("journal_test", "one", &keys);
    assert_true(document_make(DOCUMENT_VOTE, fields, &keys.identity, NULL, &out, &err));
    json_decref(fields);
    return out;
}

static void documents_are_found_by_id_and_by_run_type_and_round(void **state)
{
    struct document a = vote(1, 0), b = vote(1, 1), c = vote(2, 0);
    struct buffer bytes = { 0 };
    struct hash *ids;
    size_t count;

    (void)state;
    assert_false(journal_has_document(journal, a.id));
    assert_true(journal_put_document(journal, &a, &err));
    assert_true(journal_put_document(journal, &a, &err));
    assert_true(journal_put_document(journal, &c, &err));
    assert_true(journal_put_document(journal, &b, &err));
    reopen();
    assert_true(journal_has_document(journal, a.id));
    assert_true(journal_get_document(journal, a.id, &bytes, &err));
    assert_int_equal(bytes.size, a.bytes.size);
    assert_memory_equal(bytes.bytes, a.bytes.bytes, bytes.size);
    assert_true(journal_list_documents(journal, run, DOCUMENT_VOTE, 1, &ids, &count, &err));
    assert_int_equal(count, 2);
    assert_true(hash_compare(ids[0], ids[1]) < 0);
    free(ids);
    assert_true(journal_list_documents(journal, run, DOCUMENT_VOTE, -1, &ids, &count, &err));
    assert_int_equal(count, 3);
    assert_true(hash_equal(ids[2], c.id));
    free(ids);
    assert_true(journal_list_documents(journal, run, DOCUMENT_PROPOSAL, -1, &ids, &count, &err));
    assert_int_equal(count, 0);
    free(ids);
    assert_true(journal_list_runs(journal, &ids, &count, &err));
    assert_int_equal(count, 0);
    free(ids);
    buffer_free(&bytes);
    document_free(&a), document_free(&b), document_free(&c);
}

static void changed_byte_in_a_document_is_an_error_that_names_its_file(void **state)
{
    struct document a = vote(1, 0);
    struct buffer bytes = { 0 };
    char path[200], cid[CID_TEXT];
    FILE *file;

    (void)state;
    assert_true(journal_put_document(journal, &a, &err));
    snprintf(path, sizeof path, "%s/documents/%s", folder, cid_text(a.id, cid));
    for (long at = 0; at < (long)a.bytes.size; at += 41) {
        file = fopen(path, "r+");
        fseek(file, at, SEEK_SET);
        fputc(a.bytes.bytes[at] ^ 1, file);
        fclose(file);
        assert_false(journal_get_document(journal, a.id, &bytes, &err));
        assert_non_null(strstr(err.place, cid));
        file = fopen(path, "r+");
        fseek(file, at, SEEK_SET);
        fputc(a.bytes.bytes[at], file);
        fclose(file);
    }
    assert_true(journal_get_document(journal, a.id, &bytes, &err));
    buffer_free(&bytes);
    document_free(&a);
}

static ino_t file_of(struct hash id)
{
    struct stat about;
    char path[200], cid[CID_TEXT];

    snprintf(path, sizeof path, "%s/documents/%s", folder, cid_text(id, cid));
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

static void a_file_that_finds_no_place_is_kept_and_placed_with_the_next_write(void **state)
{
    struct document a = vote(1, 0);
    struct buffer bytes = { 0 };
    char path[200];
    int64_t mark;

    (void)state;
    snprintf(path, sizeof path, "%s/documents", folder);
    assert_int_equal(rmdir(path), 0);
    assert_true(journal_put_document(journal, &a, &err)); /* it stands in the database */
    assert_false(journal_mark(journal, &mark, &err));
    assert_true(journal_get_document(journal, a.id, &bytes, &err));
    assert_int_equal(bytes.size, a.bytes.size);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(journal_sign_once(journal, run, 1, 0, &(struct statement){ "vote", "prepare", one }, &err));
    assert_true(file_of(a.id));
    buffer_free(&bytes);
    document_free(&a);
}

/* A file that reads well may be one that the disk never took. */
static void files_are_written_again_until_a_sync_succeeds(void **state)
{
    struct document a = vote(1, 0);
    int64_t mark;
    ino_t before;

    (void)state;
    assert_true(journal_put_document(journal, &a, &err));
    before = file_of(a.id);
    assert_true(before != 0);
    assert_true(journal_restore_files(journal, &err));
    assert_true(file_of(a.id) != 0 && file_of(a.id) != before);
    assert_true(journal_mark(journal, &mark, &err) && journal_sync_folder(folder, &err) && journal_synced(journal, mark, &err));
    before = file_of(a.id);
    assert_true(journal_restore_files(journal, &err));
    assert_true(file_of(a.id) == before);
    document_free(&a);
}

/* A document and a block whose files the disk lost in a power cut, or never took. */
static void put_and_lose(struct document *a, struct hash *block)
{
    char path[300], cid[CID_TEXT];

    *a = vote(1, 0);
    *block = hash_block("block", 5);
    assert_true(journal_put_document(journal, a, &err));
    assert_true(journal_put_block(journal, *block, "block", 5, &err));
    snprintf(path, sizeof path, "%s/documents/%s", folder, cid_text(a->id, cid));
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/blocks/%s", folder, cid_text(*block, cid));
    unlink(path); /* the folder may not be there */
}

static void what_stands_in_the_journal_alone_is_read_also_on_a_full_disk(void **state)
{
    struct document a;
    struct hash block;
    struct buffer bytes = { 0 };
    struct rlimit open, tight;

    (void)state;
    put_and_lose(&a, &block);
    journal_close(journal);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &open);
    tight = open;
    tight.rlim_cur = 0;
    setrlimit(RLIMIT_FSIZE, &tight);
    journal = journal_open(folder, &err);
    setrlimit(RLIMIT_FSIZE, &open);
    if (!journal)
        fail_msg("%s: %s", err.place, err.message);
    assert_true(journal_get_document(journal, a.id, &bytes, &err));
    assert_non_null(unsynced_find(journal_files(journal), "blocks", block));
    assert_int_equal(file_of(a.id), 0);
    assert_true(journal_put_note(journal, "note", "text", 4, &err));
    assert_true(journal_sign_once(journal, run, 1, 0, &(struct statement){ "vote", "prepare", one }, &err));
    assert_true(file_of(a.id) != 0);
    buffer_free(&bytes);
    document_free(&a);
}

static void what_stands_in_the_journal_alone_is_read_from_a_copy_and_checked(void **state)
{
    struct document a;
    struct hash block;
    struct buffer bytes = { 0 };
    struct journal *copy;
    char work[128];
    sqlite3 *db;
    char path[128];

    (void)state;
    put_and_lose(&a, &block);
    journal_close(journal);
    journal = NULL;
    snprintf(work, sizeof work, "%s/work", folder);
    copy = journal_open_copy(folder, work, &err);
    if (!copy)
        fail_msg("%s: %s", err.place, err.message);
    assert_true(journal_get_document(copy, a.id, &bytes, &err));
    assert_int_equal(bytes.size, a.bytes.size);
    assert_non_null(unsynced_find(journal_files(copy), "blocks", block));
    journal_close(copy);
    assert_int_equal(file_of(a.id), 0); /* evidence stays as it is */

    for (int i = 0; i < 2; i++) {
        const char *folders[] = { "blocks", "documents" };
        char sql[200];

        snprintf(path, sizeof path, "%s/node.db", folder);
        snprintf(sql, sizeof sql, "update unsynced set bytes = cast('x' || substr(bytes, 2) as blob) where path glob '%s/*'",
                 folders[i]);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_null(journal_open_copy(folder, work, &err));
        assert_non_null(strstr(err.place, folders[i]));
        if (i == 0) {
            assert_int_equal(err.code, ERROR_MISMATCH);
            assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
            sqlite3_exec(db, "update unsynced set bytes = cast('b' || substr(bytes, 2) as blob) where path glob 'blocks/*'", NULL,
                         NULL, NULL);
            sqlite3_close(db);
        }
    }
    buffer_free(&bytes);
    document_free(&a);
}

/* Records grow with machines and open rounds (round/rules.h). */
static void record_of_more_than_a_mebibyte_is_kept_and_read_as_any_other(void **state)
{
    char *long_text = malloc((3 << 20) + 1);
    struct document d, again;
    struct buffer bytes = { 0 };
    struct public_key key;
    struct key_pair keys;

    (void)state;
    key_pair_derive("journal_test", "one", &keys);
    key = public_key_of(&keys.identity);
    memset(long_text, 'x', 3 << 20);
    long_text[3 << 20] = 0;
    json_t *fields = json_pack("{s:o, s:i, s:s, s:n, s:n, s:n, s:[o], s:[o], s:i, s:i, s:i, s:i, s:n, s:[], s:[], s:n}", "run",
                               document_json_cid(run), "round", 0, "kind", "open", "previous", "seed", "block", "committee",
                               document_json_did(&key), "received", document_json_cid(one), "height", 1, "time", 1, "funded", 1,
                               "next_height", 1, "start", "contributions", "items", "plan");

    json_object_update_new(fields,
                           json_pack("{s:n, s:n, s:n, s:s, s:[], s:[], s:[], s:i, s:[], s:i, s:[], s:[], s:[], s:[]}",
                                     "aggregate", "outer", "state", "telemetry", long_text, "members", "unreturned", "arrivals",
                                     "grace_ms", 0, "unsettled", "correct", 0, "convicted", "barred", "disputes", "settled"));
    if (!document_make(DOCUMENT_RECORD, fields, NULL, NULL, &d, &err))
        fail_msg("%s: %s", err.place, err.message);
    assert_true(d.bytes.size > 3 << 20);
    assert_true(journal_put_document(journal, &d, &err));
    reopen();
    assert_true(journal_get_document(journal, d.id, &bytes, &err));
    assert_true(document_read_as(DOCUMENT_RECORD, bytes.bytes, bytes.size, &again, &err));
    assert_true(hash_equal(again.id, d.id));
    document_free(&d), document_free(&again);
    buffer_free(&bytes);
    json_decref(fields);
    free(long_text);
}

static void notes_are_kept(void **state)
{
    struct buffer value = { 0 };

    (void)state;
    assert_false(journal_get_note(journal, "cursor", &value, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_true(journal_put_note(journal, "cursor", "1", 1, &err));
    assert_true(journal_put_note(journal, "cursor", "22", 2, &err));
    assert_true(journal_put_note(journal, "empty", NULL, 0, &err));
    reopen();
    assert_true(journal_get_note(journal, "cursor", &value, &err));
    assert_string_equal(buffer_text(&value), "22");
    buffer_free(&value);
    assert_true(journal_get_note(journal, "empty", &value, &err));
    assert_int_equal(value.size, 0);
    buffer_free(&value);
    for (int put = 0; put < 2; put++) { /* a lazy write that puts nothing, and one that is taken back */
        journal_begin_lazily(journal);
        assert_false(journal_end(journal, put && journal_put_note(journal, "lazy", "x", 1, &err) && false, &err));
        assert_false(journal_get_note(journal, "lazy", &value, &err));
        assert_true(journal_put_note(journal, "after", "x", 1, &err));
    }
}

static void second_process_is_turned_away(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        struct error why = { 0 };

        _exit(journal_open(folder, &why) == NULL && why.code == ERROR_CONFLICT ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child writes views until it is killed; what it reported as written must be there. */
static void kill_at_any_moment_loses_nothing_that_was_reported(void **state)
{
    (void)state;
    journal_close(journal);
    for (int attempt = 0; attempt < 5; attempt++) {
        int pipes[2];
        uint32_t reported = 0, seen, round, view;
        struct buffer variables = { 0 };

        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();

        if (child == 0) {
            struct journal *mine = journal_open(folder, NULL);
            uint32_t from = 0;

            if (mine && journal_load_round(mine, run, &round, &view, &variables, NULL))
                from = view;
            for (uint32_t at = from + 1; mine; at++) {
                struct statement statement = { "vote", "prepare", { { (uint8_t)at, (uint8_t)(at >> 8) } } };

                if (!journal_save_round(mine, run, 1, at, &at, sizeof at, &statement, 1, NULL) ||
                    write(pipes[1], &at, sizeof at) != sizeof at)
                    _exit(1);
            }
            _exit(2);
        }
        close(pipes[1]);
        for (int i = 0; i < 20 + attempt && read(pipes[0], &seen, sizeof seen) == sizeof seen; i++)
            reported = seen;
        kill(child, SIGKILL);
        while (read(pipes[0], &seen, sizeof seen) == sizeof seen)
            reported = seen;
        waitpid(child, NULL, 0);
        close(pipes[0]);

        journal = journal_open(folder, &err);
        assert_non_null(journal);
        assert_true(journal_load_round(journal, run, &round, &view, &variables, &err));
        assert_true(view == reported || view == reported + 1);
        assert_memory_equal(variables.bytes, &view, sizeof view);
        struct statement other = { "vote", "prepare", { { 0xff, 0xff, 0xff } } };

        assert_false(journal_sign_once(journal, run, 1, view, &other, &err));
        assert_true(journal_sign_once(journal, run, 1, view + 1000000, &other, &err));
        buffer_free(&variables);
        if (attempt < 4)
            journal_close(journal);
    }
}

/* A limit on the size of files stands for the full disk. */
static void full_disk_is_told_and_loses_nothing(void **state)
{
    struct rlimit before, tight;
    struct buffer variables = { 0 };
    uint8_t *big = calloc(1, 8 << 20);
    uint32_t round, view;

    (void)state;
    assert_true(journal_save_round(journal, run, 1, 0, "A", 1, NULL, 0, &err));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before, tight.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &tight);
    struct statement statement = { "vote", "prepare", one }, other = { "vote", "prepare", two };

    assert_false(journal_save_round(journal, run, 1, 1, big, 8 << 20, &statement, 1, &err));
    assert_int_equal(err.code, ERROR_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_true(journal_load_round(journal, run, &round, &view, &variables, &err));
    assert_int_equal(view, 0);
    assert_string_equal(buffer_text(&variables), "A");
    assert_true(journal_save_round(journal, run, 1, 1, "B", 1, &other, 1, &err)); /* nothing was signed by the failed write */
    buffer_free(&variables);
    free(big);
}

/* Nobody but root passes by the rights of files, so the test needs root to become somebody else. */
static void a_folder_that_may_not_be_written_is_told_from_a_disk_that_fails(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    journal_close(journal);
    journal = NULL;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(folder, 0755), 0);
    pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        if (journal_open(folder, &err) || err.code != ERROR_IO || !strstr(err.message, "may not be written"))
            _exit(1);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_that_may_not_be_written_is_told_from_a_disk_that_fails, open_journal,
                                        drop_journal),
        cmocka_unit_test_setup_teardown(second_statement_for_one_place_is_refused_for_ever, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(round_is_written_whole_or_not_at_all, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(view_that_was_left_is_never_entered_again, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(final_round_is_over_and_a_second_record_for_it_is_kept_as_a_conflict, open_journal,
                                        drop_journal),
        cmocka_unit_test_setup_teardown(escrow_is_released_by_one_digest, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(documents_are_found_by_id_and_by_run_type_and_round, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(changed_byte_in_a_document_is_an_error_that_names_its_file, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(a_file_that_finds_no_place_is_kept_and_placed_with_the_next_write, open_journal,
                                        drop_journal),
        cmocka_unit_test_setup_teardown(what_stands_in_the_journal_alone_is_read_also_on_a_full_disk, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(what_stands_in_the_journal_alone_is_read_from_a_copy_and_checked, open_journal,
                                        drop_journal),
        cmocka_unit_test_setup_teardown(files_are_written_again_until_a_sync_succeeds, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(record_of_more_than_a_mebibyte_is_kept_and_read_as_any_other, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(notes_are_kept, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(second_process_is_turned_away, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(kill_at_any_moment_loses_nothing_that_was_reported, open_journal, drop_journal),
        cmocka_unit_test_setup_teardown(full_disk_is_told_and_loses_nothing, open_journal, drop_journal),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
