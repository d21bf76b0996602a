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

#endif
