#include "runtime/store/database.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

bool database_distrust(sqlite3 *db)
{
    return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) == SQLITE_OK &&
           sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) == SQLITE_OK;
}

bool database_fault(sqlite3 *db, const char *lost, struct error *err)
{
    int code = sqlite3_errcode(db) & 0xff, number = sqlite3_system_errno(db);

    if (code != SQLITE_FULL && code != SQLITE_IOERR && code != SQLITE_CANTOPEN && code != SQLITE_READONLY)
        return error_set(err, ERROR_IO, NULL, "%s", sqlite3_errmsg(db));

    if (code == SQLITE_FULL || number == ENOSPC || number == EDQUOT || number == EFBIG)
        return error_set(err, ERROR_IO, lost, "the disk is full");
    if (code == SQLITE_READONLY || sqlite3_db_readonly(db, "main") == 1 || number == EACCES || number == EPERM || number == EROFS)
        return error_set(err, ERROR_IO, "run it as the user whom the folder belongs to, on a disk that may be written",
                         "the file or its folder may not be written");
    if (code == SQLITE_IOERR && number)
        return error_set(err, ERROR_IO, "look at the disk: dmesg, smartctl; nothing that was acknowledged is lost",
                         "the disk does not read or write: %s", strerror(number));
    return error_set(err, ERROR_IO, NULL, "%s", sqlite3_errmsg(db));
}
