#include "native/base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *hint_of(int number)
{
    if (number == ENOSPC || number == EDQUOT)
        return "free some space; nothing was lost";
    if (number == EACCES || number == EPERM || number == EROFS)
        return "run it as the user whom the folder belongs to, on a disk that may be written";
    return NULL;
}

static bool fail(struct error *err, const char *path, const char *doing)
{
    error_set(err, errno == ENOENT ? ERROR_MISSING : ERROR_IO, hint_of(errno), "%s: %s", doing, strerror(errno));
    return error_at(err, "%s", path);
}

bool file_read(const char *path, size_t limit, struct buffer *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return fail(err, path, "cannot open");
    for (size_t total = 0;;) {
        buffer_reserve(out, 65536);
        ssize_t got = read(fd, out->bytes + out->size, 65536);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            fail(err, path, "cannot read");
            close(fd);
            return false;
        }
        if (got == 0)
            break;
        out->size += (size_t)got;
        total += (size_t)got;
        if (total > limit) {
            close(fd);
            error_set(err, ERROR_LIMIT, NULL, "larger than %zu bytes", limit);
            return error_at(err, "%s", path);
        }
    }
    close(fd);
    return true;
}

static bool sync_folder(const char *path)
{
    char copy[PATH_MAX];

    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool ok = fsync(fd) == 0;

    close(fd);
    return ok;
}

/* Threads of one process may write the same file. */
static bool name_beside(const char *path, char beside[PATH_MAX], struct error *err)
{
    return snprintf(beside, PATH_MAX, "%s.%ld.part", path, (long)gettid()) < PATH_MAX ||
           error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
}

/* The bytes in a file beside, not synced yet; its descriptor, or -1. */
static int write_beside(const struct file_piece *piece, int mode, struct error *err)
{
    char beside[PATH_MAX];

    if (!name_beside(piece->path, beside, err))
        return -1;

    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    if (fd < 0) {
        fail(err, beside, "cannot create");
        return -1;
    }
    for (size_t done = 0; done < piece->size;) {
        ssize_t put = write(fd, (const char *)piece->bytes + done, piece->size - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            fail(err, piece->path, "cannot write");
            close(fd);
            unlink(beside);
            return -1;
        }
        done += (size_t)put;
    }
    return fd;
}

static bool take_place(const struct file_piece *piece, int fd, bool sync, struct error *err)
{
    char beside[PATH_MAX];
    bool synced = !sync || fsync(fd) == 0;

    if (close(fd) == 0 && synced && name_beside(piece->path, beside, err) && rename(beside, piece->path) == 0)
        return true;
    fail(err, piece->path, "cannot write");
    unlink(beside);
    return false;
}

bool file_write_all(const struct file_piece *pieces, size_t count, int mode, struct error *err)
{
    int fds[FILE_TOGETHER];
    size_t written = 0;
    bool ok = true;

    assert(count <= FILE_TOGETHER);
    for (; ok && written < count; written += ok) {
        fds[written] = write_beside(&pieces[written], mode, err);
        ok = fds[written] >= 0;
        if (ok && count > 1) /* the disk begins while the next is written */
            sync_file_range(fds[written], 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    for (size_t i = 0; i < written; i++)
        ok = take_place(&pieces[i], fds[i], true, ok ? err : NULL) && ok;
    return ok && (count == 0 || sync_folder(pieces[0].path) || fail(err, pieces[0].path, "cannot write"));
}

bool file_write(const char *path, const void *bytes, size_t size, int mode, struct error *err)
{
    return file_write_all(&(struct file_piece){ path, bytes, size }, 1, mode, err);
}

bool file_place(const char *path, const void *bytes, size_t size, int mode, struct error *err)
{
    const struct file_piece piece = { path, bytes, size };
    int fd = write_beside(&piece, mode, err);

    return fd >= 0 && take_place(&piece, fd, false, err);
}

bool file_copy(const char *from, const char *to, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = file_read(from, SIZE_MAX, &bytes, err) && file_write(to, bytes.bytes, bytes.size, 0600, err);

    buffer_free(&bytes);
    return ok;
}

bool file_make_folder(const char *path, struct error *err)
{
    char part[PATH_MAX];
    struct stat st;

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char was = *at;

        *at = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fail(err, part, "cannot make folder");
        if (stat(part, &st) == 0 && !S_ISDIR(st.st_mode)) {
            error_set(err, ERROR_TYPE, "name a folder, or a path where one can be made", "it is a file; a folder is needed");
            return error_at(err, "%s", part);
        }
        if (was == '\0')
            return true;
        *at = was;
    }
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const void *file_map(const char *path, size_t *size, struct error *err)
{
    static const char empty[1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        fail(err, path, "cannot open");
        return NULL;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        error_set(err, ERROR_IO, NULL, "%s is not a regular file", path);
        return NULL;
    }
    *size = (size_t)st.st_size;
    if (*size == 0) {
        close(fd);
        return empty;
    }
    void *bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);

    close(fd);
    if (bytes == MAP_FAILED) {
        fail(err, path, "cannot map");
        return NULL;
    }
    return bytes;
}

void file_unmap(const void *bytes, size_t size)
{
    if (size)
        munmap((void *)bytes, size);
}
