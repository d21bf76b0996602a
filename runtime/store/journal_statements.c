/* Statements of a journal, compiled once and kept: most are needed many times a round. */
#include <stdarg.h>
#include <string.h>

#include "runtime/store/database.h"
#include "runtime/store/journal_internal.h"

bool journal_fail(struct journal *j, struct error *err)
{
    int code = sqlite3_errcode(j->db);

    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        error_set(err, ERROR_CONFLICT, "stop the other process, or name another --home", "another process uses this journal");
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        error_set(err, ERROR_MISMATCH, "wipe the folder but key.json, and fetch the run again: rondo sync",
                  "the file is damaged: %s", sqlite3_errmsg(j->db));
    else
        database_fault(j->db, JOURNAL_LOST, err);
    return error_at(err, "journal");
}

bool journal_run(struct journal *j, const char *sql, struct error *err)
{
    return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK || journal_fail(j, err);
}

/* A kept one that nobody steps through now, or a new one, kept while there is room. */
static sqlite3_stmt *compile(struct journal *j, const char *sql, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    size_t i = 0;

    while (i < j->kept_count && (j->kept[i].sql != sql || j->kept[i].used))
        i++;
    if (i == j->kept_count) {
        if (sqlite3_prepare_v3(j->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
            journal_fail(j, err);
            return NULL;
        }
        if (i == JOURNAL_KEPT)
            return statement;
        j->kept[j->kept_count++] = (struct kept_statement){ .sql = sql, .statement = statement };
    }
    j->kept[i].used = true;
    return j->kept[i].statement;
}

void journal_done(struct journal *j, sqlite3_stmt *statement)
{
    for (size_t i = 0; statement && i < j->kept_count; i++)
        if (j->kept[i].statement == statement) {
            sqlite3_reset(statement);
            sqlite3_clear_bindings(statement); /* else what was bound stays in memory */
            j->kept[i].used = false;
            return;
        }
    sqlite3_finalize(statement);
}

void journal_close_database(struct journal *j)
{
    for (size_t i = 0; i < j->kept_count; i++)
        sqlite3_finalize(j->kept[i].statement);
    j->kept_count = 0;
    sqlite3_close(j->db);
    j->db = NULL;
}

sqlite3_stmt *journal_query(struct journal *j, struct error *err, const char *sql, const char *kinds, ...)
{
    sqlite3_stmt *statement = compile(j, sql, err);
    va_list args;

    if (!statement)
        return NULL;
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

bool journal_change(struct journal *j, sqlite3_stmt *statement, struct error *err)
{
    if (!statement)
        return false;

    bool ok = journal_begin_waiting(j, err) && (sqlite3_step(statement) == SQLITE_DONE || journal_fail(j, err));

    journal_done(j, statement);
    return ok;
}

bool journal_repeat(struct journal *j, const char *sql, struct error *err)
{
    sqlite3_stmt *statement = compile(j, sql, err);
    bool ok = statement && (sqlite3_step(statement) == SQLITE_DONE || journal_fail(j, err));

    journal_done(j, statement);
    return ok;
}

enum row journal_step(struct journal *j, sqlite3_stmt *statement, struct error *err)
{
    int code = statement ? sqlite3_step(statement) : SQLITE_ERROR;

    if (code == SQLITE_ROW)
        return ROW_THERE;
    if (code == SQLITE_DONE)
        return ROW_NONE;
    if (statement)
        journal_fail(j, err);
    return ROW_FAULT;
}

struct hash journal_hash(sqlite3_stmt *statement, int column)
{
    struct hash out = { { 0 } };

    if (sqlite3_column_bytes(statement, column) == HASH_SIZE)
        memcpy(out.bytes, sqlite3_column_blob(statement, column), HASH_SIZE);
    return out;
}

bool journal_list(struct journal *j, sqlite3_stmt *statement, struct hash **ids, size_t *count, struct error *err)
{
    struct buffer out = { 0 };
    enum row row;

    while ((row = journal_step(j, statement, err)) == ROW_THERE) {
        struct hash id = journal_hash(statement, 0);

        buffer_add(&out, id.bytes, sizeof id);
    }
    journal_done(j, statement);
    buffer_reserve(&out, 1);
    *ids = (struct hash *)out.bytes;
    *count = out.size / sizeof **ids;
    if (row == ROW_NONE)
        return true;
    buffer_free(&out);
    *ids = NULL, *count = 0;
    return false;
}
