#include "runtime/ledger/chain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/store/database.h"

struct chain_file {
    sqlite3 *db;
    sqlite3_stmt *insert_block, *insert_entry, *select_block;
    int lock;
    bool unsure; /* a sync of the log may have failed: nothing follows in it (journal.c, empty_log) */
};

static const char layout[] =
    "CREATE TABLE IF NOT EXISTS genesis (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL, hash BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS block (height INTEGER PRIMARY KEY, time INTEGER NOT NULL, previous BLOB NOT NULL,"
    " entropy BLOB NOT NULL, root BLOB NOT NULL, hash BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS entry (height INTEGER NOT NULL, position INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " code TEXT NOT NULL, PRIMARY KEY (height, position)) WITHOUT ROWID;";

static const char lost[] = "make room on the disk; nothing was lost, and blocks go on then";

static bool failed(struct chain_file *file, struct error *err)
{
    int code = sqlite3_errcode(file->db);

    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return error_set(err, ERROR_MISMATCH, "the chain has to come from a backup", "the ledger's file is damaged: %s",
                         sqlite3_errmsg(file->db));
    database_fault(file->db, lost, err);
    return error_at(err, "the ledger's file");
}

static bool run(struct chain_file *file, const char *sql, struct error *err)
{
    return sqlite3_exec(file->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(file, err);
}

/* ---- life ---- */

static bool lock(struct chain_file *file, const char *path, struct error *err)
{
    char name[4096];

    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return error_set(err, ERROR_LIMIT, NULL, "the path is too long");
    file->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file->lock < 0)
        return error_set(err, ERROR_IO, NULL, "%s: %s", name, strerror(errno));
    if (flock(file->lock, LOCK_EX | LOCK_NB))
        return error_set(err, ERROR_CONFLICT, "stop the other one, or use another home", "another process keeps this ledger");
    return true;
}

static bool prepare(struct chain_file *file, bool only_read, struct error *err)
{
    static const char insert_block[] = "INSERT INTO block VALUES (?, ?, ?, ?, ?, ?)";
    static const char insert_entry[] = "INSERT INTO entry VALUES (?, ?, ?, ?)";
    static const char select_block[] = "SELECT time, previous, entropy, hash FROM block WHERE height = ?";

    if (!database_distrust(file->db))
        return failed(file, err);
    if (!only_read)
        database_doubt_log(file->db); /* the process before may have met a sync that failed */
    if (!only_read && (!run(file, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", err) || !run(file, layout, err)))
        return false;
    if (!only_read && (sqlite3_prepare_v2(file->db, insert_block, -1, &file->insert_block, NULL) != SQLITE_OK ||
                       sqlite3_prepare_v2(file->db, insert_entry, -1, &file->insert_entry, NULL) != SQLITE_OK))
        return failed(file, err);
    if (sqlite3_prepare_v2(file->db, select_block, -1, &file->select_block, NULL) != SQLITE_OK)
        return failed(file, err);
    return true;
}

/* Whether a ledger runs on it now. */
static bool is_kept(const char *path)
{
    char name[4096];

    snprintf(name, sizeof name, "%s.lock", path);

    int fd = open(name, O_RDONLY | O_CLOEXEC);
    bool kept = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return kept;
}

static void remove_copy(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    char name[4200];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    snprintf(name, sizeof name, "%.*s", (int)(strrchr(path, '/') - path), path);
    rmdir(name);
}

/* Takes the log into the copy itself: one open file is all that is left of it. */
static bool open_copy(struct chain_file *file, const char *path, const char *copy, struct error *err)
{
    char log[4200], log_copy[4200];

    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(log_copy, sizeof log_copy, "%s-wal", copy);
    if (!file_copy(path, copy, err) || (file_exists(log) && !file_copy(log, log_copy, err)))
        return false;
    return (sqlite3_open_v2(copy, &file->db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
            database_distrust(file->db) &&
            sqlite3_exec(file->db, "PRAGMA journal_mode = DELETE; PRAGMA query_only = 1;", NULL, NULL, NULL) == SQLITE_OK) ||
           failed(file, err);
}

/* SQLite writes beside a file that it only reads, to share what its log holds. What nobody keeps is read from a copy: evidence stays as it
 * is, and may lie where nothing can be written. The copy has no name any more once it is open: however the process ends, nothing stays. */
static bool open_to_read(struct chain_file *file, const char *path, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    char copy[4096];
    bool opened;

    if (is_kept(path))
        return sqlite3_open_v2(path, &file->db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ||
               failed(file, err);
    snprintf(copy, sizeof copy - 16, "%s/rondo-ledger-XXXXXX", parent && parent[0] ? parent : "/tmp");
    if (!mkdtemp(copy))
        return error_set(err, ERROR_IO, "name a folder by TMPDIR", "cannot make a folder to work in: %s", strerror(errno));
    strcat(copy, "/ledger.db");
    opened = open_copy(file, path, copy, err);
    remove_copy(copy);
    return opened;
}

static bool empty_log(struct chain_file *file, struct error *err)
{
    if (!database_rewrite_log(file->db, lost, err))
        return error_at(err, "the ledger's file");
    if (sqlite3_wal_checkpoint_v2(file->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK)
        return failed(file, err);
    file->unsure = false;
    return true;
}

struct chain_file *chain_file_open(const char *path, bool only_read, struct error *err)
{
    struct chain_file *file = calloc(1, sizeof *file);
    struct error none;
    bool opened;

    if (!file)
        abort();
    file->lock = -1;
    file->unsure = !only_read;
    if (only_read)
        opened = (file_exists(path) || error_set(err, ERROR_MISSING, NULL, "there is no ledger here")) &&
                 open_to_read(file, path, err);
    else
        opened = lock(file, path, err) &&
                 (sqlite3_open_v2(path, &file->db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
                      SQLITE_OK ||
                  failed(file, err));
    opened = opened && sqlite3_busy_timeout(file->db, 5000) == SQLITE_OK && prepare(file, only_read, err);
    if (opened && file->unsure)
        empty_log(file, &none); /* what is read is then on the disk; where that takes no write, the next one is refused */
    if (opened)
        return file;
    error_at(err, "%s", path);
    chain_file_close(file);
    return NULL;
}

void chain_file_close(struct chain_file *file)
{
    if (!file)
        return;
    sqlite3_finalize(file->insert_block);
    sqlite3_finalize(file->insert_entry);
    sqlite3_finalize(file->select_block);
    sqlite3_close(file->db);
    if (file->lock >= 0)
        close(file->lock);
    free(file);
}

/* ---- columns: the file may have been changed by anybody ---- */

static bool column_hash(sqlite3_stmt *row, int column, struct hash *hash)
{
    if (sqlite3_column_type(row, column) != SQLITE_BLOB || sqlite3_column_bytes(row, column) != HASH_SIZE)
        return false;
    memcpy(hash->bytes, sqlite3_column_blob(row, column), HASH_SIZE);
    return true;
}

static bool column_number(sqlite3_stmt *row, int column, uint64_t *number)
{
    sqlite3_int64 value = sqlite3_column_int64(row, column);

    *number = (uint64_t)value;
    return sqlite3_column_type(row, column) == SQLITE_INTEGER && value >= 0;
}

static bool column_code(sqlite3_stmt *row, int column, enum error_code *code)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    if (!text || sqlite3_column_type(row, column) != SQLITE_TEXT)
        return false;
    for (int i = 0; i < ERROR_CODES; i++)
        if (strcmp(text, error_name((enum error_code)i)) == 0) {
            *code = (enum error_code)i;
            return true;
        }
    return false;
}

/* ---- genesis ---- */

bool chain_file_genesis(struct chain_file *file, struct buffer *text, struct hash *hash, bool *present, struct error *err)
{
    sqlite3_stmt *row;
    int step;
    bool read = true;

    *present = false;
    if (sqlite3_prepare_v2(file->db, "SELECT text, hash FROM genesis", -1, &row, NULL) != SQLITE_OK)
        return failed(file, err);
    step = sqlite3_step(row);
    if (step == SQLITE_ROW) {
        buffer_add(text, sqlite3_column_text(row, 0), (size_t)sqlite3_column_bytes(row, 0));
        *present = true;
        if (!column_hash(row, 1, hash)) {
            error_set(err, ERROR_MISMATCH, NULL, "its hash is malformed");
            read = error_at(err, "genesis");
        }
    } else if (step != SQLITE_DONE) {
        read = failed(file, err);
    }
    sqlite3_finalize(row);
    return read;
}

bool chain_file_begin(struct chain_file *file, const char *text, struct hash hash, struct error *err)
{
    sqlite3_stmt *row;
    bool done;

    if (sqlite3_prepare_v2(file->db, "INSERT INTO genesis VALUES (1, ?, ?)", -1, &row, NULL) != SQLITE_OK)
        return failed(file, err);
    sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_blob(row, 2, hash.bytes, HASH_SIZE, SQLITE_STATIC);
    done = sqlite3_step(row) == SQLITE_DONE || failed(file, err);
    sqlite3_finalize(row);
    return done;
}

/* ---- blocks ---- */

static bool step_once(struct chain_file *file, sqlite3_stmt *statement, struct error *err)
{
    bool done = sqlite3_step(statement) == SQLITE_DONE || failed(file, err);

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return done;
}

static bool insert(struct chain_file *file, const struct chain_block *b, struct error *err)
{
    sqlite3_stmt *s = file->insert_block;

    sqlite3_bind_int64(s, 1, (sqlite3_int64)b->block.height);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)b->block.time);
    sqlite3_bind_blob(s, 3, b->block.previous.bytes, HASH_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(s, 4, b->block.entropy.bytes, HASH_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(s, 5, b->root.bytes, HASH_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(s, 6, b->block.hash.bytes, HASH_SIZE, SQLITE_STATIC);
    if (!step_once(file, s, err))
        return false;
    s = file->insert_entry;
    for (size_t i = 0; i < b->entry_count; i++) {
        sqlite3_bind_int64(s, 1, (sqlite3_int64)b->block.height);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)i);
        sqlite3_bind_blob(s, 3, b->entries[i].bytes, (int)b->entries[i].size, SQLITE_STATIC);
        sqlite3_bind_text(s, 4, error_name(b->entries[i].code), -1, SQLITE_STATIC);
        if (!step_once(file, s, err))
            return false;
    }
    return true;
}

bool chain_file_append(struct chain_file *file, const struct chain_block *block, struct error *err)
{
    if ((file->unsure && !empty_log(file, err)) || !run(file, "BEGIN IMMEDIATE", err))
        return false;
    if (insert(file, block, err) && run(file, "COMMIT", err))
        return true;
    database_doubt_log(file->db);
    file->unsure = true;
    if (!sqlite3_get_autocommit(file->db))
        sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

bool chain_file_block(struct chain_file *file, uint64_t height, struct ledger_block *block, struct error *err)
{
    sqlite3_stmt *row = file->select_block;
    int step;
    bool found;

    *block = (struct ledger_block){ .height = height };
    sqlite3_bind_int64(row, 1, (sqlite3_int64)height);
    step = sqlite3_step(row);
    if (step == SQLITE_DONE)
        found = error_set(err, ERROR_MISSING, "ask again later", "block %llu is not made yet", (unsigned long long)height);
    else if (step != SQLITE_ROW)
        found = failed(file, err);
    else if (!column_number(row, 0, &block->time) || !column_hash(row, 1, &block->previous) ||
             !column_hash(row, 2, &block->entropy) || !column_hash(row, 3, &block->hash))
        found = error_set(err, ERROR_MISMATCH, NULL, "block %llu is malformed", (unsigned long long)height);
    else
        found = true;
    sqlite3_reset(row);
    return found;
}

/* ---- reading it all ---- */

struct pass {
    struct chain_file *file;
    sqlite3_stmt *blocks, *entries;
    bool entry_waits; /* `entries` stands on a row not yet taken */
    struct chain_entry *list;
    size_t count, capacity;
};

static bool malformed(uint64_t height, const char *what, struct error *err)
{
    error_set(err, ERROR_MISMATCH, "the file was changed or is damaged", "%s", what);
    return error_at(err, "block %llu", (unsigned long long)height);
}

static bool next_entry(struct pass *p, struct error *err)
{
    int step = sqlite3_step(p->entries);

    p->entry_waits = step == SQLITE_ROW;
    return p->entry_waits || step == SQLITE_DONE || failed(p->file, err);
}

static void entries_free(struct pass *p)
{
    for (size_t i = 0; i < p->count; i++)
        free((void *)p->list[i].bytes);
    p->count = 0;
}

static bool take_entry(struct pass *p, uint64_t height, struct error *err)
{
    uint64_t position;
    struct chain_entry entry = { 0 };
    uint8_t *copy;

    if (!column_number(p->entries, 1, &position) || position != p->count || sqlite3_column_type(p->entries, 2) != SQLITE_BLOB ||
        !column_code(p->entries, 3, &entry.code))
        return malformed(height, "a transaction's row is malformed or out of order", err);
    entry.size = (size_t)sqlite3_column_bytes(p->entries, 2);
    copy = malloc(entry.size + 1);
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 16;
        p->list = realloc(p->list, p->capacity * sizeof *p->list);
    }
    if (!copy || !p->list)
        abort();
    memcpy(copy, sqlite3_column_blob(p->entries, 2), entry.size);
    entry.bytes = copy;
    p->list[p->count++] = entry;
    return next_entry(p, err);
}

static bool take_entries(struct pass *p, uint64_t height, struct error *err)
{
    uint64_t at;

    entries_free(p);
    while (p->entry_waits) {
        if (!column_number(p->entries, 0, &at) || at < height)
            return malformed(height, "transactions that belong to no block", err);
        if (at > height)
            break;
        if (!take_entry(p, height, err))
            return false;
    }
    return true;
}

static bool take_block(struct pass *p, bool (*each)(void *, const struct chain_block *, struct error *), void *context,
                       struct error *err)
{
    struct chain_block b = { 0 };

    if (!column_number(p->blocks, 0, &b.block.height))
        return malformed(0, "its height is not a number", err);
    if (!column_number(p->blocks, 1, &b.block.time) || !column_hash(p->blocks, 2, &b.block.previous) ||
        !column_hash(p->blocks, 3, &b.block.entropy) || !column_hash(p->blocks, 4, &b.root) ||
        !column_hash(p->blocks, 5, &b.block.hash))
        return malformed(b.block.height, "its row is malformed", err);
    if (!take_entries(p, b.block.height, err))
        return false;
    b.entries = p->list;
    b.entry_count = p->count;
    return each(context, &b, err);
}

static bool pass_run(struct pass *p, bool (*each)(void *, const struct chain_block *, struct error *), void *context,
                     struct error *err)
{
    uint64_t height = 0;
    int step;

    if (!next_entry(p, err))
        return false;
    while ((step = sqlite3_step(p->blocks)) == SQLITE_ROW) {
        if (!take_block(p, each, context, err))
            return false;
        column_number(p->blocks, 0, &height);
    }
    if (step != SQLITE_DONE)
        return failed(p->file, err);
    return !p->entry_waits || malformed(height + 1, "transactions without their block", err);
}

bool chain_file_each(struct chain_file *file, bool (*each)(void *context, const struct chain_block *block, struct error *err),
                     void *context, struct error *err)
{
    struct pass p = { .file = file };
    bool done = run(file, "BEGIN", err); /* one snapshot while a writer goes on */

    if (!done)
        return false;
    if (sqlite3_prepare_v2(file->db, "SELECT * FROM block ORDER BY height", -1, &p.blocks, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(file->db, "SELECT * FROM entry ORDER BY height, position", -1, &p.entries, NULL) != SQLITE_OK)
        done = failed(file, err);
    else
        done = pass_run(&p, each, context, err);
    entries_free(&p);
    free(p.list);
    sqlite3_finalize(p.blocks);
    sqlite3_finalize(p.entries);
    sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL);
    return done;
}
