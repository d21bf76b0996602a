#include "native/base/file.h"

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

static bool fail(struct error *err, const char *path, const char *doing)
{
    error_set(err, errno == ENOENT ? ERROR_MISSING : ERROR_IO, errno == ENOSPC ? "free some space; nothing was lost" : NULL,
              "%s: %s", doing, strerror(errno));
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

bool file_write(const char *path, const void *bytes, size_t size, int mode, struct error *err)
{
    char beside[PATH_MAX];

    if (snprintf(beside, sizeof beside, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof beside)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);

    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    if (fd < 0)
        return fail(err, beside, "cannot create");
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, (const char *)bytes + done, size - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            fail(err, path, "cannot write");
            close(fd);
            unlink(beside);
            return false;
        }
        done += (size_t)put;
    }
    if (fsync(fd) != 0 || close(fd) != 0 || rename(beside, path) != 0 || !sync_folder(path)) {
        fail(err, path, "cannot write");
        unlink(beside);
        return false;
    }
    return true;
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
