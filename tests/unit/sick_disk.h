/* sick_disk.h - a disk that is full, and one that cannot be read, for this program: SQLite's files among them.
 *
 * It defines pread in place of the C library's, so that it is one program's alone: in a library of the tests it would be in them all.
 */
#ifndef RONDO_TESTS_SICK_DISK_H
#define RONDO_TESTS_SICK_DISK_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

/* Reads of files fail while it is set. */
static bool unreadable;

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at)
{
    if (unreadable) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, bytes, count, at);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    return pread64(fd, bytes, count, at);
}

/* No file grows beyond a page, until disk_empty with what disk_fill gave. */
static inline void disk_fill(struct rlimit *room)
{
    struct rlimit tight;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, room);
    tight = *room;
    tight.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &tight);
}

static inline void disk_empty(const struct rlimit *room)
{
    setrlimit(RLIMIT_FSIZE, room);
}

/* What SQLite remembers of the database at this path counts for nothing: it is changed by another. */
static inline void disk_forget(const char *path)
{
    sqlite3 *other;

    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "create table other (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
}

#endif
