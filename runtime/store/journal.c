#include "runtime/store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/store/database.h"

struct journal {
    sqlite3 *db;
    char folder[4000];      /* of documents */
    struct verified *known; /* borrowed, or NULL */
};

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
    "pragma user_version = 1;";

/* ---- SQLite ---------------------------------------------------------------------------------------------------------------- */

static bool fail(struct journal *j, struct error *err)
{
    int code = sqlite3_errcode(j->db);

    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        error_set(err, ERROR_CONFLICT, "stop the other process, or name another --home", "another process uses this journal");
    else if (code == SQLITE_FULL)
        error_set(err, ERROR_IO, "free some space; nothing was lost, and nothing is sent until it is written",
                  "the disk is full");
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        error_set(err, ERROR_MISMATCH, "wipe the folder but key.json, and fetch the run again: rondo sync",
                  "the file is damaged: %s", sqlite3_errmsg(j->db));
    else
        error_set(err, ERROR_IO, NULL, "%s", sqlite3_errmsg(j->db));
    return error_at(err, "journal");
}

static bool run_sql(struct journal *j, const char *sql, struct error *err)
{
    return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK || fail(j, err);
}

/* Prepares and binds. One letter a value: h struct hash *, i int64_t, t const char *, b (const void *, size_t), n (null). */
static sqlite3_stmt *query(struct journal *j, struct error *err, const char *sql, const char *kinds, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list args;

    if (sqlite3_prepare_v2(j->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail(j, err);
        return NULL;
    }
    va_start(args, kinds);
    for (int at = 1; *kinds; kinds++, at++) {
        const void *bytes;

        switch (*kinds) {
        case 'h':
            sqlite3_bind_blob(statement, at, va_arg(args, const struct hash *)->bytes, HASH_SIZE, SQLITE_TRANSIENT);
            break;
        case 'i':
            sqlite3_bind_int64(statement, at, va_arg(args, int64_t));
            break;
        case 't':
            sqlite3_bind_text(statement, at, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
            break;
        case 'b':
            bytes = va_arg(args, const void *);
            sqlite3_bind_blob64(statement, at, bytes ? bytes : "", va_arg(args, size_t), SQLITE_TRANSIENT);
            break;
        default:
            sqlite3_bind_null(statement, at);
        }
    }
    va_end(args);
    return statement;
}

/* Runs a prepared statement that gives no rows, and ends it. */
static bool change(struct journal *j, sqlite3_stmt *statement, struct error *err)
{
    if (!statement)
        return false;

    bool ok = sqlite3_step(statement) == SQLITE_DONE || fail(j, err);

    sqlite3_finalize(statement);
    return ok;
}

enum row { ROW_FAULT, ROW_NONE, ROW_THERE };

static enum row step(struct journal *j, sqlite3_stmt *statement, struct error *err)
{
    int code = statement ? sqlite3_step(statement) : SQLITE_ERROR;

    if (code == SQLITE_ROW)
        return ROW_THERE;
    if (code == SQLITE_DONE)
        return ROW_NONE;
    if (statement)
        fail(j, err);
    return ROW_FAULT;
}

static struct hash hash_column(sqlite3_stmt *statement, int column)
{
    struct hash out = { { 0 } };

    if (sqlite3_column_bytes(statement, column) == HASH_SIZE)
        memcpy(out.bytes, sqlite3_column_blob(statement, column), HASH_SIZE);
    return out;
}

static bool begin(struct journal *j, struct error *err)
{
    return run_sql(j, "begin immediate", err);
}

/* Commits what went well; else, or when the commit itself fails, nothing of it was written. */
static bool end(struct journal *j, bool ok, struct error *err)
{
    ok = ok && run_sql(j, "commit", err);
    if (!ok && !sqlite3_get_autocommit(j->db))
        sqlite3_exec(j->db, "rollback", NULL, NULL, NULL);
    return ok;
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------- */

static bool check_version(struct journal *j, struct error *err)
{
    sqlite3_stmt *statement = query(j, err, "pragma user_version", "");
    bool ok = step(j, statement, err) == ROW_THERE;
    int version = ok ? sqlite3_column_int(statement, 0) : 0;

    sqlite3_finalize(statement);
    if (ok && version > 1)
        ok = error_set(err, ERROR_UNSUPPORTED, "use the newer program", "the journal is of version %d", version);
    return ok;
}

static bool open_database(struct journal *j, const char *path, struct error *err)
{
    if (sqlite3_open_v2(path, &j->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) != SQLITE_OK ||
        !database_distrust(j->db))
        return fail(j, err);
    /* One process a journal: an exclusive lock, taken with the first read, kept until the end. */
    return run_sql(j, "pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full;", err) &&
           begin(j, err) && end(j, check_version(j, err) && run_sql(j, tables, err), err);
}

static struct journal *journal_new(const char *folder, struct error *err)
{
    struct journal *j = calloc(1, sizeof *j);

    if (!j) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a journal");
        return NULL;
    }
    if (snprintf(j->folder, sizeof j->folder, "%s/documents", folder) < (int)sizeof j->folder)
        return j;
    free(j);
    error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", folder);
    return NULL;
}

struct journal *journal_open(const char *folder, struct error *err)
{
    struct journal *j = journal_new(folder, err);
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/node.db", folder);
    if (j && file_make_folder(j->folder, err) && open_database(j, path, err))
        return j;
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
        (!file_exists(log) || file_copy(log, log_copy, err)) && open_database(j, copy, err))
        return j;
    error_at(err, "%s", path);
    journal_close(j);
    return NULL;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    sqlite3_close(j->db);
    free(j);
}

/* ---- Signing once, the open round ------------------------------------------------------------------------------------------ */

static bool sign(struct journal *j, const struct hash *run, int64_t round, int64_t view, const struct statement *s,
                 struct error *err)
{
    sqlite3_stmt *statement =
        query(j, err, "select id from signed where run = ? and round = ? and view = ? and kind = ? and phase = ?", "hiitt", run,
              round, view, s->kind, s->phase);
    enum row row = step(j, statement, err);
    bool same = row == ROW_THERE && hash_equal(hash_column(statement, 0), s->id);

    sqlite3_finalize(statement);
    if (row == ROW_FAULT)
        return false;
    if (row == ROW_THERE)
        return same ||
               error_set(err, ERROR_CONFLICT, "two statements for one place would be proof of a lie; the first one stands",
                         "another %s%s%s was signed in round %lld, view %lld", s->kind, *s->phase ? " " : "", s->phase,
                         (long long)round, (long long)view);
    return change(j,
                  query(j, err, "insert into signed (run, round, view, kind, phase, id) values (?, ?, ?, ?, ?, ?)", "hiitth", run,
                        round, view, s->kind, s->phase, &s->id),
                  err);
}

bool journal_sign_once(struct journal *j, struct hash run, uint32_t round, uint32_t view, const struct statement *statement,
                       struct error *err)
{
    return begin(j, err) && end(j, sign(j, &run, round, view, statement, err), err);
}

static bool not_stale(struct journal *j, const struct hash *run, int64_t round, int64_t view, struct error *err)
{
    sqlite3_stmt *statement = query(j, err, "select round, view from open where run = ?", "h", run);
    enum row row = step(j, statement, err);
    int64_t open_round = row == ROW_THERE ? sqlite3_column_int64(statement, 0) : -1;
    int64_t open_view = row == ROW_THERE ? sqlite3_column_int64(statement, 1) : -1;

    sqlite3_finalize(statement);
    if (row == ROW_FAULT)
        return false;
    if (round < open_round || (round == open_round && view < open_view))
        return error_set(err, ERROR_STALE, NULL, "round %lld, view %lld is over: round %lld, view %lld was written",
                         (long long)round, (long long)view, (long long)open_round, (long long)open_view);

    statement = query(j, err, "select 1 from final where run = ? and round >= ? limit 1", "hi", run, round);
    row = step(j, statement, err);
    sqlite3_finalize(statement);
    if (row == ROW_THERE)
        return error_set(err, ERROR_STALE, NULL, "round %lld is final already", (long long)round);
    return row == ROW_NONE;
}

bool journal_save_round(struct journal *j, struct hash run, uint32_t round, uint32_t view, const void *variables, size_t size,
                        const struct statement *statements, size_t count, struct error *err)
{
    bool ok;

    if (!begin(j, err))
        return false;
    ok = not_stale(j, &run, round, view, err) &&
         change(j,
                query(j, err, "insert or replace into open (run, round, view, variables) values (?, ?, ?, ?)", "hiib", &run,
                      (int64_t)round, (int64_t)view, variables, size),
                err);
    for (size_t i = 0; ok && i < count; i++)
        ok = sign(j, &run, round, view, &statements[i], err);
    return end(j, ok, err);
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
    sqlite3_stmt *statement = query(j, err, "select round, view, variables from open where run = ?", "h", &run);
    enum row row = step(j, statement, err);

    if (row == ROW_THERE) {
        *round = (uint32_t)sqlite3_column_int64(statement, 0);
        *view = (uint32_t)sqlite3_column_int64(statement, 1);
        add_column(statement, 2, variables);
    }
    sqlite3_finalize(statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing("an open round", err));
}

/* ---- Final rounds, releases ------------------------------------------------------------------------------------------------ */

/* All records that were certified for the round; more than one is a conflict that stays on disk. */
static bool final_records(struct journal *j, const struct hash *run, int64_t round, struct hash *record, struct hash *certificate,
                          size_t *count, struct error *err)
{
    sqlite3_stmt *statement =
        query(j, err, "select record, certificate from final where run = ? and round = ? order by record", "hi", run, round);
    enum row row;

    for (*count = 0; (row = step(j, statement, err)) == ROW_THERE; ++*count) {
        *record = hash_column(statement, 0);
        *certificate = hash_column(statement, 1);
    }
    sqlite3_finalize(statement);
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

    return change(j,
                  query(j, err, "insert or ignore into final (run, round, record, certificate) values (?, ?, ?, ?)", "hihh", run,
                        round, &record, &certificate),
                  err) &&
           final_records(j, run, round, &other, &its, count, err);
}

bool journal_finish_round(struct journal *j, struct hash run, uint32_t round, struct hash record, struct hash certificate,
                          struct error *err)
{
    size_t count = 0;

    if (!begin(j, err))
        return false;
    if (!end(j, finish(j, &run, round, record, certificate, &count, err), err))
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
    sqlite3_stmt *statement = query(j, err, "select round from final where run = ? order by round desc limit 1", "h", &run);
    enum row row = step(j, statement, err);

    if (row == ROW_THERE)
        *round = (uint32_t)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing("a final round", err));
}

static bool release(struct journal *j, const struct hash *escrow, const struct hash *digest, struct error *err)
{
    sqlite3_stmt *statement = query(j, err, "select digest from released where escrow = ?", "h", escrow);
    enum row row = step(j, statement, err);
    bool same = row == ROW_THERE && hash_equal(hash_column(statement, 0), *digest);

    sqlite3_finalize(statement);
    if (row == ROW_THERE)
        return same || error_set(err, ERROR_CONFLICT, "the first one stands", "another release of this escrow was signed");
    return row == ROW_NONE &&
           change(j, query(j, err, "insert into released (escrow, digest) values (?, ?)", "hh", escrow, digest), err);
}

bool journal_release_once(struct journal *j, struct hash escrow, struct hash digest, struct error *err)
{
    return begin(j, err) && end(j, release(j, &escrow, &digest, err), err);
}

/* ---- Documents ------------------------------------------------------------------------------------------------------------- */

static void document_path(const struct journal *j, struct hash id, char path[PATH_MAX])
{
    char cid[CID_TEXT];

    snprintf(path, PATH_MAX, "%s/%s", j->folder, cid_text(id, cid));
}

bool journal_has_document(struct journal *j, struct hash id)
{
    sqlite3_stmt *statement = query(j, NULL, "select 1 from documents where id = ?", "h", &id);
    bool there = step(j, statement, NULL) == ROW_THERE;

    sqlite3_finalize(statement);
    return there;
}

/* The file first: an index row always has its file. */
void journal_remember(struct journal *j, struct verified *known)
{
    j->known = known;
}

bool journal_put_document(struct journal *j, const struct document *d, struct error *err)
{
    char path[PATH_MAX];

    if (journal_has_document(j, d->id))
        return true;
    document_path(j, d->id, path);
    if (!file_write(path, d->bytes.bytes, d->bytes.size, 0644, err))
        return false;
    return change(j,
                  query(j, err, "insert or ignore into documents (id, run, type, round, signer) values (?, ?, ?, ?, ?)", "hhiib",
                        &d->id, &d->run, (int64_t)d->type, d->has_round ? (int64_t)d->round : -1, d->signer.bytes,
                        d->has_signer ? sizeof d->signer.bytes : (size_t)0),
                  err);
}

bool journal_get_document(struct journal *j, struct hash id, struct buffer *bytes, struct error *err)
{
    char path[PATH_MAX], cid[CID_TEXT];
    struct buffer text = { 0 };
    struct document d;
    bool ok;

    document_path(j, id, path);
    if (!file_exists(path))
        return error_set(err, ERROR_MISSING, "it has to be fetched from a peer", "document %s is not here", cid_text(id, cid));
    if (!file_read(path, ENVELOPE_SIZE, &text, err)) {
        buffer_free(&text);
        return false;
    }
    ok = document_read_bytes(text.bytes, text.size, j->known, &d, err);
    if (ok) {
        ok = hash_equal(d.id, id) ||
             error_set(err, ERROR_MISMATCH, "delete the file; it is fetched again", "the bytes are not what the name says");
        document_free(&d);
    }
    if (ok)
        buffer_add(bytes, text.bytes, text.size);
    buffer_free(&text);
    return ok || error_at(err, "%s", path);
}

/* Takes the first column of all rows as hashes. */
static bool list(struct journal *j, sqlite3_stmt *statement, struct hash **ids, size_t *count, struct error *err)
{
    struct buffer out = { 0 };
    enum row row;

    while ((row = step(j, statement, err)) == ROW_THERE) {
        struct hash id = hash_column(statement, 0);

        buffer_add(&out, id.bytes, sizeof id);
    }
    sqlite3_finalize(statement);
    buffer_reserve(&out, 1);
    *ids = (struct hash *)out.bytes;
    *count = out.size / sizeof **ids;
    if (row == ROW_NONE)
        return true;
    buffer_free(&out);
    *ids = NULL, *count = 0;
    return false;
}

bool journal_list_documents(struct journal *j, struct hash run, enum document_type type, int64_t round, struct hash **ids,
                            size_t *count, struct error *err)
{
    if (round < 0)
        return list(
            j, query(j, err, "select id from documents where run = ? and type = ? order by round, id", "hi", &run, (int64_t)type),
            ids, count, err);
    return list(j,
                query(j, err, "select id from documents where run = ? and type = ? and round = ? order by id", "hii", &run,
                      (int64_t)type, round),
                ids, count, err);
}

bool journal_count_documents(struct journal *j, struct hash run, enum document_type type, int64_t round,
                             const struct public_key *signer, size_t *count, struct error *err)
{
    sqlite3_stmt *statement =
        query(j, err, "select count(*) from documents where run = ? and type = ? and (round = ? or ? < 0) and signer = ?",
              "hiiib", &run, (int64_t)type, round, round, signer->bytes, sizeof signer->bytes);
    bool ok = step(j, statement, err) == ROW_THERE;

    *count = ok ? (size_t)sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return ok;
}

bool journal_list_runs(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return list(j, query(j, err, "select id from documents where type = ? order by id", "i", (int64_t)DOCUMENT_RUN), ids, count,
                err);
}

bool journal_index(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return list(j, query(j, err, "select id from documents order by id", ""), ids, count, err);
}

bool journal_named_by_finals(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return list(j, query(j, err, "select record from final union select certificate from final order by 1", ""), ids, count, err);
}

bool journal_forget_document(struct journal *j, struct hash id, struct error *err)
{
    char path[PATH_MAX];

    /* The row first: an index row always has its file. */
    if (!change(j, query(j, err, "delete from documents where id = ?", "h", &id), err))
        return false;
    document_path(j, id, path);
    return unlink(path) == 0 || errno == ENOENT ||
           (error_set(err, ERROR_IO, NULL, "cannot delete: %s", strerror(errno)), error_at(err, "%s", path));
}

/* ---- Check and backup ------------------------------------------------------------------------------------------------------ */

bool journal_sound(struct journal *j, struct error *err)
{
    sqlite3_stmt *statement = query(j, err, "pragma integrity_check(1)", "");
    bool ok = step(j, statement, err) == ROW_THERE;
    const char *said = ok ? (const char *)sqlite3_column_text(statement, 0) : NULL;

    if (said && strcmp(said, "ok") != 0)
        ok = error_set(err, ERROR_MISMATCH, "wipe the folder but key.json, and fetch the run again: rondo sync",
                       "the file is damaged: %s", said);
    sqlite3_finalize(statement);
    return ok;
}

bool journal_backup(struct journal *j, const char *path, struct error *err)
{
    char beside[PATH_MAX];
    struct journal copy = { 0 };
    bool ok;

    if (snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
    unlink(beside);
    ok = change(j, query(j, err, "vacuum into ?", "t", beside), err);
    if (ok)
        ok = (sqlite3_open_v2(beside, &copy.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) == SQLITE_OK &&
              database_distrust(copy.db)) ||
             fail(&copy, err);
    ok = ok && run_sql(&copy, "pragma synchronous = full", err) && begin(&copy, err) &&
         end(&copy, run_sql(&copy, "delete from open", err) && run_sql(&copy, "delete from notes where name glob 'own/*'", err),
             err);
    sqlite3_close(copy.db);
    if (ok && rename(beside, path) != 0)
        ok = error_set(err, ERROR_IO, NULL, "cannot write: %s", strerror(errno));
    if (!ok)
        unlink(beside);
    return ok || error_at(err, "%s", path);
}

/* ---- Notes ----------------------------------------------------------------------------------------------------------------- */

bool journal_put_note(struct journal *j, const char *name, const void *bytes, size_t size, struct error *err)
{
    return change(j, query(j, err, "insert or replace into notes (name, value) values (?, ?)", "tb", name, bytes, size), err);
}

bool journal_get_note(struct journal *j, const char *name, struct buffer *bytes, struct error *err)
{
    sqlite3_stmt *statement = query(j, err, "select value from notes where name = ?", "t", name);
    enum row row = step(j, statement, err);

    if (row == ROW_THERE)
        add_column(statement, 0, bytes);
    sqlite3_finalize(statement);
    return row == ROW_THERE || (row == ROW_NONE && nothing(name, err));
}
