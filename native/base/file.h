/* file.h - whole files: read with a limit, written so that a crash leaves the old or the new, never half. */
#ifndef RONDO_BASE_FILE_H
#define RONDO_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

/* Appends the file to `out`. Errors: missing (with the path), io, limit. */
bool file_read(const char *path, size_t limit, struct buffer *out, struct error *err);

/* Writes beside the file, fsyncs, renames over it, fsyncs the folder. `mode` as for open(2). */
bool file_write(const char *path, const void *bytes, size_t size, int mode, struct error *err);

/* The same for up to FILE_TOGETHER files of one folder, which is synced once: the disk writes them side by side. A fault may leave some written. */
struct file_piece {
    const char *path;
    const void *bytes;
    size_t size;
};
enum { FILE_TOGETHER = 32 };
bool file_write_all(const struct file_piece *pieces, size_t count, int mode, struct error *err);

/* The same without syncs: after a crash it may be there, absent or empty. For bytes that are kept elsewhere until they are synced. */
bool file_place(const char *path, const void *bytes, size_t size, int mode, struct error *err);

/* The same bytes under another name, for the owner alone. */
bool file_copy(const char *from, const char *to, struct error *err);

/* Makes a folder and those above it that are missing. */
bool file_make_folder(const char *path, struct error *err);

bool file_exists(const char *path);

/* A read-only map of the whole file; NULL with `err`. An empty file maps to a valid pointer with *size 0. Undo with file_unmap. */
const void *file_map(const char *path, size_t *size, struct error *err);
void file_unmap(const void *bytes, size_t size);

#endif
