/* database.h - SQLite files that somebody else may have made: a home is handed on as evidence, and read. */
#ifndef RONDO_STORE_DATABASE_H
#define RONDO_STORE_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "native/base/error.h"

/* Views and triggers of the file are refused: a query without an end could stand where a table should be. To be called before
 * anything is read. False: sqlite3_errcode says why. */
bool database_distrust(sqlite3 *db);

/* What the last fault of the file means, of those that lie with the disk or the folder: false and io. `lost`: said of a full disk. */
bool database_fault(sqlite3 *db, const char *lost, struct error *err);

/* A sync of the write-ahead log may have failed, in this process or the one before: the system takes what it did not write for written, and a later
 * sync says that all is well. What follows in the log could be lost with it; and were the log emptied into the file while the power fails, the file
 * could hold a part of a transaction whose log is gone. From `database_doubt_log` on closing leaves the log alone; `database_rewrite_log`, before
 * anything is read as true or written, writes it once more where it is, and syncs it: then it may be emptied. Errors: io; `lost` as above. */
void database_doubt_log(sqlite3 *db);
bool database_rewrite_log(sqlite3 *db, const char *lost, struct error *err);

#endif
