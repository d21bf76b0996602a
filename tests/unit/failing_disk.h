/* failing_disk.h - a disk that fails at a point one names: the power is cut, there is no room, a sync fails.
 *
 *     system calls, SQLite's among them ── points ── the power is cut, the disk is full, a sync fails
 *                                            └ what was not synced is undone
 *
 * It defines write, fsync and others in place of the C library's, so that it is one program's alone: in a library of the tests it would be in
 * them all.
 */
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum cut { CUT_BEFORE, CUT_MIDST, CUT_AFTER, CUTS };

/* What a cut undoes: bytes that were written over or added, a file's old size, a name. `doomed`: a sync of it failed, after which the system
 * takes it for written, and no later one writes it. `anew`: it was, and was written over since, so that a sync writes it. */
struct undo {
    dev_t device;
    ino_t file;
    char path[256], from[256]; /* from: of a rename */
    off_t at, size;
    size_t length, count; /* of what was written; of the bytes that were there */
    char *bytes;
    bool doomed, anew;
    struct undo *next;
};

static struct {
    bool on, lossy;
    bool spares; /* of what was never synced all happens to be there, but for what a sync failed to write */
    long points, cut_at;
    enum cut cut;
    bool faulty, lasting, full; /* the point cut_at fails, and the power does not; from there on nothing takes room; it is so */
    struct undo *undos;         /* the newest first */
} disk;

static inline void power_fails(void)
{
    for (struct undo *u = disk.undos; u && disk.lossy; u = u->next) {
        struct stat st;
        int fd;

        if (disk.spares && !u->doomed && !u->anew)
            continue;
        if (u->from[0]) {
            syscall(SYS_renameat, AT_FDCWD, u->path, AT_FDCWD, u->from);
            continue;
        }
        fd = (int)syscall(SYS_openat, AT_FDCWD, u->path, O_WRONLY);
        if (fd < 0)
            continue;
        if (fstat(fd, &st) != 0 || st.st_dev != u->device || st.st_ino != u->file) { /* another file of this name */
            syscall(SYS_close, fd);
            continue;
        }
        if (u->doomed || u->anew) {
            for (size_t i = 0; i < u->length && u->at + (off_t)i < st.st_size; i++)
                (void)!syscall(SYS_pwrite64, fd, "", 1, u->at + (off_t)i);
            syscall(SYS_close, fd);
            continue;
        }
        if (u->count)
            (void)!syscall(SYS_pwrite64, fd, u->bytes, u->count, u->at);
        (void)!syscall(SYS_ftruncate, fd, u->size);
        syscall(SYS_close, fd);
    }
    _exit(9);
}

/* Counts a write point; true when this is the one that the power fails at. */
static inline bool point(void)
{
    bool here = disk.on && disk.points++ == disk.cut_at && !disk.faulty;

    if (here && disk.cut == CUT_BEFORE)
        power_fails();
    return here;
}

/* Whether the call whose point was counted last fails. */
static inline bool fails(bool takes_room)
{
    bool here = disk.on && disk.faulty && disk.points - 1 == disk.cut_at;

    if (here && disk.lasting)
        disk.full = true;
    if (!here && !(disk.on && disk.full && takes_room))
        return false;
    errno = takes_room ? ENOSPC : EIO;
    return true;
}

static inline bool is_file(int fd, struct stat *st)
{
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

static inline void remember(int fd, off_t at, size_t count)
{
    struct undo *u;
    struct stat st;
    char link[64];
    ssize_t size, got;
    int copy;

    if (!disk.on || !is_file(fd, &st))
        return;
    for (struct undo *old = disk.undos; old; old = old->next) /* what is written over is to be synced again */
        if (old->doomed && old->device == st.st_dev && old->file == st.st_ino && at <= old->at &&
            at + (off_t)count >= old->at + (off_t)old->length) {
            old->doomed = false;
            old->anew = true;
        }
    u = calloc(1, sizeof *u);
    *u = (struct undo){
        .device = st.st_dev, .file = st.st_ino, .at = at, .size = st.st_size, .length = count, .next = disk.undos
    };
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, u->path, sizeof u->path - 1);
    if (size > 0 && count && at < st.st_size) {
        u->bytes = malloc(count);
        copy = (int)syscall(SYS_openat, AT_FDCWD, u->path, O_RDONLY);
        got = copy < 0 ? -1 : pread(copy, u->bytes, count, at);
        syscall(SYS_close, copy);
        u->count = got > 0 ? (size_t)got : 0;
    }
    disk.undos = u;
}

/* What was written to a file is safe once it is synced; a name, once its folder is. */
static inline void forget(int fd)
{
    struct stat st;

    if (!disk.on || fstat(fd, &st) != 0)
        return;
    for (struct undo **at = &disk.undos; *at;)
        if (!(*at)->doomed &&
            (((*at)->device == st.st_dev && (*at)->file == st.st_ino) || (S_ISDIR(st.st_mode) && (*at)->from[0])))
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

static inline ssize_t put(int fd, const void *bytes, size_t count, off_t at, bool placed)
{
    bool here = false;
    struct stat st;

    if (disk.on && is_file(fd, &st)) {
        here = point();
        if (fails(true)) {
            if (disk.cut != CUT_MIDST || disk.points - 1 != disk.cut_at || count < 2)
                return -1;
            count /= 2; /* some of it finds room */
        }
        remember(fd, placed ? at : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR), count);
    }
    if (here && disk.cut == CUT_MIDST)
        count /= 2;

    ssize_t done = placed ? syscall(SYS_pwrite64, fd, bytes, count, at) : syscall(SYS_write, fd, bytes, count);

    if (here)
        power_fails();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return put(fd, bytes, count, 0, false);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return put(fd, bytes, count, at, true);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return put(fd, bytes, count, at, true);
}

/* A sync of this file, or of all, failed. */
static inline void doom(int fd, bool all)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return;
    for (struct undo *u = disk.undos; u; u = u->next)
        u->doomed = u->doomed || (!u->from[0] && (all || (u->device == st.st_dev && u->file == st.st_ino)));
}

/* In the midst of a sync nothing can be said of what it was for: that is as before it. */
static inline int sync_file(long number, int fd)
{
    bool here = point();
    int done;

    if (here && disk.cut == CUT_MIDST)
        power_fails();
    if (fails(false)) {
        doom(fd, number == SYS_syncfs);
        return -1;
    }
    done = (int)syscall(number, fd);
    forget(fd);
    if (here)
        power_fails();
    return done;
}

int fsync(int fd)
{
    return sync_file(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_file(SYS_fdatasync, fd);
}

int syncfs(int fd)
{
    int done = sync_file(SYS_syncfs, fd);

    for (struct undo **at = &disk.undos; done == 0 && *at;)
        if ((*at)->doomed)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    return done;
}

static inline int cut_file(int fd, off_t size)
{
    bool here = point();
    int done;

    if (fails(false))
        return -1;
    remember(fd, 0, 0);
    done = (int)syscall(SYS_ftruncate, fd, size);
    if (here)
        power_fails();
    return done;
}

int ftruncate(int fd, off_t size)
{
    return cut_file(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return cut_file(fd, size);
}

int rename(const char *from, const char *to)
{
    bool here = point(), fresh = access(to, F_OK) != 0;
    int done = fails(true) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    struct undo *u;

    if (disk.on && done == 0 && fresh) {
        u = calloc(1, sizeof *u);
        u->next = disk.undos;
        snprintf(u->path, sizeof u->path, "%s", to);
        snprintf(u->from, sizeof u->from, "%s", from);
        disk.undos = u;
    }
    if (here)
        power_fails();
    return done;
}

#endif
