#include "runtime/store/journal_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/store/database.h"

static const char tables[] =
    "create table if not exists signed (run blob, round integer, view integer, kind text, phase text, id blob not null,"
    "  primary key (run, round, view, kind, phase)) without rowid;"
    "create table if not exists open (run blob primary key, round integer not null, view integer not null,"
    "  variables blob not null) without rowid;"
    "create table if not exists final (run blob, round integer, record blob, certificate blob not null,"
    "  primary key (run, round, record)) without rowid;"
    "create table if not exists released (escrow blob primary key, digest blob not null) without rowid;"
    "create table if not exists documents (id blob primary key, run blob not null, type integer not null,"
    "  round integer not null, signer blob) without rowid;"
    "create index if not exists documents_of_round on documents (run, type, round, id);"
    "create table if not exists notes (name text primary key, value blob not null) without rowid;"
    "create table if not exists unsynced (number integer primary key, path text not null, bytes blob not null);";

/* ---- Writes -------------------------------------------------------------------------------------------------------------- */

static void run_full(struct journal *j)
{
    sqlite3_exec(j->db, "pragma synchronous = full", NULL, NULL, NULL);
}

/* After a sync that failed nothing follows in the log: what it holds is written anew, and goes into the database (database.h). */
static bool empty_log(struct journal *j, struct error *err)
{
    if (!database_rewrite_log(j->db, JOURNAL_LOST, err))
        return error_at(err, "journal");
    if (sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK)
        return journal_fail(j, err);
    j->unsure = false;
    return true;
}

static void doubt_log(struct journal *j)
{
    database_doubt_log(j->db);
    j->unsure = true;
}

/* The outermost write's part in the database. */
static bool begin_outer(struct journal *j, struct error *err)
{
    if (j->unsure && !empty_log(j, err))
        return false;
    j->changes = sqlite3_total_changes(j->db);
    j->begun = (!j->lazy || journal_run(j, "pragma synchronous = normal", err)) && journal_repeat(j, "begin immediate", err);
    if (j->lazy && !j->begun)
        run_full(j);
    return j->begun;
}

bool journal_begin_waiting(struct journal *j, struct error *err)
{
    return !j->depth || j->begun || begin_outer(j, err);
}

bool journal_begin(struct journal *j, struct error *err)
{
    assert(j->depth < JOURNAL_DEPTH);
    if (!(j->depth ? journal_begin_waiting(j, err) && journal_repeat(j, "savepoint inner", err) : begin_outer(j, err)))
        return false;
    j->marks[j->depth++] = j->files.count;
    return true;
}

void journal_begin_lazily(struct journal *j)
{
    assert(!j->depth);
    j->lazy = true;
    j->marks[j->depth++] = j->files.count;
}

/* Files go into their folders once their rows are synced, with those of lazy writes before: a write without changes syncs nothing. */
static bool commit(struct journal *j, bool ok, struct error *err)
{
    if (ok && !journal_repeat(j, "commit", err)) {
        doubt_log(j);
        ok = false;
    }
    if (!ok && !sqlite3_get_autocommit(j->db))
        sqlite3_exec(j->db, "rollback", NULL, NULL, NULL);
    if (!ok)
        unsynced_cut(&j->files, j->marks[0]);
    else if (!j->lazy && sqlite3_total_changes(j->db) != j->changes)
        journal_place_files(j, NULL); /* what their folders do not take is read here: it is written all the same */
    return ok;
}

bool journal_end(struct journal *j, bool ok, struct error *err)
{
    const bool waited = !j->begun; /* a lazy one that put nothing, or could not begin */

    if (!--j->depth) {
        j->begun = false;
        ok = waited ? ok : commit(j, ok, err);
        if (j->lazy && !waited)
            run_full(j);
        j->lazy = false;
        return ok;
    }
    if (!ok) {
        sqlite3_exec(j->db, "rollback to inner", NULL, NULL, NULL);
        unsynced_cut(&j->files, j->marks[j->depth]);
    }
    return journal_repeat(j, "release inner", ok ? err : NULL) && ok;
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------- */

/* Nothing is written where nothing is missing: a folder opens on a full disk too, so that what empties it can run. */
static bool make_tables(struct journal *j, struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "pragma user_version", "");
    bool ok = journal_step(j, statement, err) == ROW_THERE;
    int version = ok ? sqlite3_column_int(statement, 0) : 0;

    journal_done(j, statement);
    if (ok && (version < 0 || version > 1))
        return error_set(err, ERROR_UNSUPPORTED, "use the newer program", "the journal is of version %d", version);
    return ok && journal_run(j, tables, err) && (version == 1 || journal_run(j, "pragma user_version = 1", err));
}

static bool open_database(struct journal *j, const char *path, struct error *err)
{
    if (sqlite3_open_v2(path, &j->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) != SQLITE_OK ||
        !database_distrust(j->db))
        return journal_fail(j, err);
    /* One process a journal: an exclusive lock, taken with the first read, kept until the end. */
    doubt_log(j); /* the process before may have met such a sync */
    return journal_run(j,
                       "pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full;"
                       " pragma wal_autocheckpoint = 4000; begin immediate",
                       err) &&
           make_tables(j, err) && journal_run(j, "commit", err);
}

static struct journal *journal_new(const char *folder, struct error *err)
{
    struct journal *j = calloc(1, sizeof *j);

    if (!j) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a journal");
        return NULL;
    }
    if (snprintf(j->root, sizeof j->root, "%s", folder) < (int)sizeof j->root) {
        snprintf(j->folder, sizeof j->folder, "%s/documents", j->root);
        return j;
    }
    free(j);
    error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", folder);
    return NULL;
}

struct journal *journal_open(const char *folder, struct error *err)
{
    struct journal *j = journal_new(folder, err);
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/node.db", folder);
    if (j && file_make_folder(j->folder, err) && open_database(j, path, err)) {
        struct error none;

        empty_log(j, &none); /* what is read is then on the disk; where that takes no write, the next one is refused */
        if (journal_restore_files(j, err))
            return j;
    }
    error_at(err, "%s", path);
    journal_close(j);
    return NULL;
}

/* Any lock of another process counts: SQLite's lie at and above its pending byte. */
static bool read_lock(const char *path, struct flock *lock)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool asked;

    *lock = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };
    asked = fd >= 0 && fcntl(fd, F_GETLK, lock) == 0;
    if (fd >= 0)
        close(fd);
    return asked;
}

pid_t journal_holder(const char *folder)
{
    char path[PATH_MAX];
    struct flock lock;

    snprintf(path, sizeof path, "%s/node.db", folder);
    return read_lock(path, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0 ? lock.l_pid : 0;
}

static bool is_unused(const char *path, struct error *err)
{
    struct flock lock;

    if (!read_lock(path, &lock))
        return error_set(err, ERROR_IO, NULL, "cannot open: %s", strerror(errno));
    return lock.l_type == F_UNLCK ||
           error_set(err, ERROR_CONFLICT, "stop the other process, or name another --home", "another process uses this journal");
}

struct journal *journal_open_copy(const char *folder, const char *work, struct error *err)
{
    struct journal *j = journal_new(folder, err);
    char path[PATH_MAX], copy[PATH_MAX], log[PATH_MAX], log_copy[PATH_MAX];

    snprintf(path, sizeof path, "%s/node.db", folder);
    snprintf(log, sizeof log, "%s/node.db-wal", folder);
    snprintf(copy, sizeof copy, "%s/node.db", work);
    snprintf(log_copy, sizeof log_copy, "%s/node.db-wal", work);
    if (j && is_unused(path, err) && file_make_folder(work, err) && file_copy(path, copy, err) &&
        (!file_exists(log) || file_copy(log, log_copy, err)) && is_unused(path, err) && open_database(j, copy, err) &&
        journal_take_files(j, err)) {
        j->copied = true;
        return j;
    }
    error_at(err, "%s", path);
    journal_close(j);
    return NULL;
}

void journal_close(struct journal *j)
{
    struct error none;

    if (!j)
        return;
    if (j->files.count && !j->copied)
        journal_settle(j, &none); /* what fails here is done at the next start */
    unsynced_free(&j->files);
    journal_close_database(j);
    free(j);
}

/* ---- Signing once, the open round ------------------------------------------------------------------------------------------ */

static bool sign(struct journal *j, const struct hash *run, int64_t round, int64_t view, const struct statement *s,
                 struct error *err)
{
    sqlite3_stmt *statement =
        journal_query(j, err, "select id from signed where run = ? and round = ? and view = ? and kind = ? and phase = ?",
                      "hiitt", run, round, view, s->kind, s->phase);
    enum row row = journal_step(j, statement, err);
    bool same = row == ROW_THERE && hash_equal(journal_hash(statement, 0), s->id);

    journal_done(j, statement);
    if (row == ROW_FAULT)
        return false;
    if (row == ROW_THERE)
        return same ||
               error_set(err, ERROR_CONFLICT, "two statements for one place would be proof of a lie; the first one stands",
                         "another %s%s%s was signed in round %lld, view %lld", s->kind, *s->phase ? " " : "", s->phase,
                         (long long)round, (long long)view);
    return journal_change(j,
                          journal_query(j, err,
                                        "insert into signed (run, round, view, kind, phase, id) values (?, ?, ?, ?, ?, ?)",
                                        "hiitth", run, round, view, s->kind, s->phase, &s->id),
                          err);
}

bool journal_sign_once(struct journal *j, struct hash run, uint32_t round, uint32_t view, const struct statement *statement,
                       struct error *err)
{
    return journal_begin(j, err) && journal_end(j, sign(j, &run, round, view, statement, err), err);
}

static bool not_stale(struct journal *j, const struct hash *run, int64_t round, int64_t view, struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "select round, view from open where run = ?", "h", run);
    enum row row = journal_step(j, statement, err);
    int64_t open_round = row == ROW_THERE ? sqlite3_column_int64(statement, 0) : -1;
    int64_t open_view = row == ROW_THERE ? sqlite3_column_int64(statement, 1) : -1;

    journal_done(j, statement);
    if (row == ROW_FAULT)
        return false;
    if (round < open_round || (round == open_round && view < open_view))
        return error_set(err, ERROR_STALE, NULL, "round %lld, view %lld is over: round %lld, view %lld was written",
                         (long long)round, (long long)view, (long long)open_round, (long long)open_view);

    statement = journal_query(j, err, "select 1 from final where run = ? and round >= ? limit 1", "hi", run, round);
    row = journal_step(j, statement, err);
    journal_done(j, statement);
    if (row == ROW_THERE)
        return error_set(err, ERROR_STALE, NULL, "round %lld is final already", (long long)round);
    return row == ROW_NONE;
}

bool journal_save_round(struct journal *j, struct hash run, uint32_t round, uint32_t view, const void *variables, size_t size,
                        const struct statement *statements, size_t count, struct error *err)
{
    bool ok;

    if (!journal_begin(j, err))
        return false;
    ok = not_stale(j, &run, round, view, err) &&
         journal_change(j,
                        journal_query(j, err, "insert or replace into open (run, round, view, variables) values (?, ?, ?, ?)",
                                      "hiib", &run, (int64_t)round, (int64_t)view, variables, size),
                        err);
    for (size_t i = 0; ok && i < count; i++)
        ok = sign(j, &run, round, view, &statements[i], err);
    return journal_end(j, ok, err);
}

static bool nothing(const char *what, struct error *err)
{
    return error_set(err, ERROR_MISSING, NULL, "%s is not in the journal", what);
}

static void add_column(sqlite3_stmt *statement, int column, struct buffer *out)
{
    buffer_add(out, sqlite3_column_blob(statement, column), (size_t)sqlite3_column_bytes(statement, column));
}

bool journal_load_round(struct journal *j, struct hash run, uint32_t *round, uint32_t *view, struct buffer *variables,
                        struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "select round, view, variables from open where run = ?", "h", &run);
    enum row row = journal_step(j, statement, err);

    if (row == ROW_THERE) {
        *round = (uint32_t)sqlite3_column_int64(statement, 0);
        *view = (uint32_t)sqlite3_column_int64(statement, 1);
        add_column(statement, 2, variables);
    }
    journal_done(j, statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing("an open round", err));
}

/* ---- Final rounds, releases ------------------------------------------------------------------------------------------------ */

/* All records that were certified for the round; more than one is a conflict that stays on disk. */
static bool final_records(struct journal *j, const struct hash *run, int64_t round, struct hash *record, struct hash *certificate,
                          size_t *count, struct error *err)
{
    sqlite3_stmt *statement = journal_query(
        j, err, "select record, certificate from final where run = ? and round = ? order by record", "hi", run, round);
    enum row row;

    for (*count = 0; (row = journal_step(j, statement, err)) == ROW_THERE; ++*count) {
        *record = journal_hash(statement, 0);
        *certificate = journal_hash(statement, 1);
    }
    journal_done(j, statement);
    return row == ROW_NONE;
}

static bool conflict(int64_t round, struct error *err)
{
    return error_set(err, ERROR_CONFLICT, "both are kept and should be published", "two records are certified for round %lld",
                     (long long)round);
}

static bool finish(struct journal *j, const struct hash *run, int64_t round, struct hash record, struct hash certificate,
                   size_t *count, struct error *err)
{
    struct hash other, its;

    return journal_change(j,
                          journal_query(j, err,
                                        "insert or ignore into final (run, round, record, certificate) values (?, ?, ?, ?)",
                                        "hihh", run, round, &record, &certificate),
                          err) &&
           final_records(j, run, round, &other, &its, count, err);
}

bool journal_finish_round(struct journal *j, struct hash run, uint32_t round, struct hash record, struct hash certificate,
                          struct error *err)
{
    size_t count = 0;

    if (!journal_begin(j, err))
        return false;
    if (!journal_end(j, finish(j, &run, round, record, certificate, &count, err), err))
        return false;
    return count == 1 || conflict(round, err);
}

bool journal_final(struct journal *j, struct hash run, uint32_t round, struct hash *record, struct hash *certificate,
                   struct error *err)
{
    size_t count;

    if (!final_records(j, &run, round, record, certificate, &count, err))
        return false;
    if (count == 0)
        return nothing("that round's record", err);
    return count == 1 || conflict(round, err);
}

bool journal_last_final(struct journal *j, struct hash run, uint32_t *round, struct error *err)
{
    sqlite3_stmt *statement =
        journal_query(j, err, "select round from final where run = ? order by round desc limit 1", "h", &run);
    enum row row = journal_step(j, statement, err);

    if (row == ROW_THERE)
        *round = (uint32_t)sqlite3_column_int64(statement, 0);
    journal_done(j, statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing("a final round", err));
}

static bool release(struct journal *j, const struct hash *escrow, const struct hash *digest, struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "select digest from released where escrow = ?", "h", escrow);
    enum row row = journal_step(j, statement, err);
    bool same = row == ROW_THERE && hash_equal(journal_hash(statement, 0), *digest);

    journal_done(j, statement);
    if (row == ROW_THERE)
        return same || error_set(err, ERROR_CONFLICT, "the first one stands", "another release of this escrow was signed");
    return row == ROW_NONE &&
           journal_change(j, journal_query(j, err, "insert into released (escrow, digest) values (?, ?)", "hh", escrow, digest),
                          err);
}

bool journal_release_once(struct journal *j, struct hash escrow, struct hash digest, struct error *err)
{
    return journal_begin(j, err) && journal_end(j, release(j, &escrow, &digest, err), err);
}

/* ---- Check and backup ------------------------------------------------------------------------------------------------------ */

bool journal_sound(struct journal *j, struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "pragma integrity_check(1)", "");
    bool ok = journal_step(j, statement, err) == ROW_THERE;
    const char *said = ok ? (const char *)sqlite3_column_text(statement, 0) : NULL;

    if (said && strcmp(said, "ok") != 0)
        ok = error_set(err, ERROR_MISMATCH, "wipe the folder but key.json, and fetch the run again: rondo sync",
                       "the file is damaged: %s", said);
    journal_done(j, statement);
    return ok;
}

bool journal_backup(struct journal *j, const char *path, struct error *err)
{
    char beside[PATH_MAX];
    struct journal copy = { 0 };
    bool ok;

    if (snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
    if (!journal_place_files(j, err)) /* the copy has no rows of them */
        return error_at(err, "%s", path);
    unlink(beside);
    ok = journal_change(j, journal_query(j, err, "vacuum into ?", "t", beside), err);
    if (ok)
        ok = (sqlite3_open_v2(beside, &copy.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) == SQLITE_OK &&
              database_distrust(copy.db)) ||
             journal_fail(&copy, err);
    ok = ok && journal_run(&copy, "pragma synchronous = full", err) && journal_begin(&copy, err) &&
         journal_end(&copy,
                     journal_run(&copy, "delete from open; delete from unsynced; delete from notes where name glob 'own/*'", err),
                     err);
    journal_close_database(&copy);
    if (ok && rename(beside, path) != 0)
        ok = error_set(err, ERROR_IO, NULL, "cannot write: %s", strerror(errno));
    if (!ok)
        unlink(beside);
    return ok || error_at(err, "%s", path);
}

/* ---- Notes ----------------------------------------------------------------------------------------------------------------- */

bool journal_put_note(struct journal *j, const char *name, const void *bytes, size_t size, struct error *err)
{
    return journal_begin(j, err) &&
           journal_end(j,
                       journal_change(j,
                                      journal_query(j, err, "insert or replace into notes (name, value) values (?, ?)", "tb",
                                                    name, bytes, size),
                                      err),
                       err);
}

bool journal_get_note(struct journal *j, const char *name, struct buffer *bytes, struct error *err)
{
    sqlite3_stmt *statement = journal_query(j, err, "select value from notes where name = ?", "t", name);
    enum row row = journal_step(j, statement, err);

    if (row == ROW_THERE)
        add_column(statement, 0, bytes);
    journal_done(j, statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing(name, err));
}
