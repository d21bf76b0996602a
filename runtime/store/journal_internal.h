/* journal_internal.h - the parts of a journal: journal.c (writes, rounds, notes), journal_statements.c (the database's statements),
 * journal_documents.c (documents and their index), journal_files.c (files that are not synced yet). Only these include it. */
#ifndef RONDO_STORE_JOURNAL_INTERNAL_H
#define RONDO_STORE_JOURNAL_INTERNAL_H

#include <limits.h>
#include <sqlite3.h>

#include "runtime/store/journal.h"

#define JOURNAL_LOST "free some space; nothing was lost, and nothing is sent until it is written"

enum { JOURNAL_DEPTH = 8, JOURNAL_KEPT = 32 };

struct kept_statement {
    const char *sql; /* the text itself: each stands in one place of the program */
    sqlite3_stmt *statement;
    bool used; /* between journal_query and journal_done */
};

struct journal {
    sqlite3 *db;
    char root[4000], folder[4100];     /* of the node, of its documents */
    struct verified *known;            /* borrowed, or NULL */
    struct unsynced files;             /* put, and not in their folders yet */
    size_t unsynced_size, marked_size; /* bytes of rows of files that may not be synced; of those when a sync began */
    int changes;                       /* of the database when the write began */
    unsigned depth;                    /* of writes within writes */
    size_t marks[JOURNAL_DEPTH];       /* files when each began */
    bool lazy;                         /* the open write is not synced by itself */
    bool begun;                        /* the database knows of the open write: a lazy one begins with the first change */
    struct kept_statement kept[JOURNAL_KEPT];
    size_t kept_count;
    bool unsure; /* a sync of the log may have failed */
    bool copied; /* the folder is only read: its files are never written */
};

enum row { ROW_FAULT, ROW_NONE, ROW_THERE };

/* journal.c */
bool journal_begin_waiting(struct journal *j, struct error *err); /* an open write that the database does not know of yet */

/* journal_statements.c */
bool journal_fail(struct journal *j, struct error *err); /* the database's last fault */
bool journal_run(struct journal *j, const char *sql, struct error *err);
/* Compiles or takes a kept one, and binds; to be ended with journal_done, journal_change or journal_list. `sql` is a literal: it lives as long as the
 * journal. One letter a value: h struct hash *, i int64_t, t const char *, b (const void *, size_t), n (null). NULL with `err`. */
sqlite3_stmt *journal_query(struct journal *j, struct error *err, const char *sql, const char *kinds, ...);
void journal_done(struct journal *j, sqlite3_stmt *statement);
bool journal_change(struct journal *j, sqlite3_stmt *statement, struct error *err); /* runs one that gives no rows, and ends it */
bool journal_repeat(struct journal *j, const char *sql, struct error *err);         /* a kept one without values and rows */
enum row journal_step(struct journal *j, sqlite3_stmt *statement, struct error *err);
struct hash journal_hash(sqlite3_stmt *statement, int column);
/* Takes the first column of all rows as hashes, and ends the statement. */
bool journal_list(struct journal *j, sqlite3_stmt *statement, struct hash **ids, size_t *count, struct error *err);
void journal_close_database(struct journal *j);

/* journal_files.c */
/* Puts the file ROOT/FOLDER/CID: large ones are synced at once, of small ones the bytes stand in the database until they are. */
bool journal_put_file(struct journal *j, const char *folder, struct hash id, const void *bytes, size_t size, struct error *err);
/* After the write is in the database: its files. Those that their folders do not take stay in `files`, and have another try after the next write. */
bool journal_place_files(struct journal *j, struct error *err);
/* All files whose rows are there, checked, into `files`. */
bool journal_take_files(struct journal *j, struct error *err);
/* The rows of files that are deleted, and their bytes here. `ids` ascending. */
bool journal_forget_files(struct journal *j, const char *folder, const struct hash *ids, size_t count, struct error *err);
/* A synced write of no meaning, which takes what was written lazily along. */
bool journal_settle(struct journal *j, struct error *err);

#endif
