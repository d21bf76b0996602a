#include "runtime/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

bool database_distrust(sqlite3 *db)
{
    return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) == SQLITE_OK &&
           sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) == SQLITE_OK;
}

void database_doubt_log(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* Each byte where it was. SQLite has no lock on this file that closing it could drop. */
static bool write_anew(int fd, char *bytes)
{
    ssize_t got;
    off_t at;

    for (at = 0; (got = pread(fd, bytes, PIECE, at)) != 0; at += got)
        if (got < 0 || pwrite(fd, bytes, (size_t)got, at) != got)
            return false;
    return at == 0 || fsync(fd) == 0;
}

bool database_rewrite_log(sqlite3 *db, const char *lost, struct error *err)
{
    int fd = open(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), O_RDWR | O_CLOEXEC), number = errno;
    char *bytes = fd >= 0 ? malloc(PIECE) : NULL;
    bool ok = fd < 0 ? number == ENOENT : bytes && write_anew(fd, bytes);

    if (fd >= 0) {
        number = errno;
        close(fd);
    }
    free(bytes);
    if (!ok)
        return error_set(err, ERROR_IO, lost, "the log cannot be written: %s", strerror(number));
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return true;
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
