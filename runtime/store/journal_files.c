#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/store/journal_internal.h"

/* Larger files are synced by themselves: twice through the database would cost more than that. */
enum { SMALL = 64 << 10 };

static const char blocks[] = "blocks", documents[] = "documents";

static const char *path_of(const struct journal *j, const char *folder, struct hash id, char path[PATH_MAX])
{
    char cid[CID_TEXT];

    snprintf(path, PATH_MAX, "%s/%s/%s", j->root, folder, cid_text(id, cid));
    return path;
}

bool journal_put_file(struct journal *j, const char *folder, struct hash id, const void *bytes, size_t size, struct error *err)
{
    char path[PATH_MAX], name[CID_TEXT + 16], cid[CID_TEXT];

    if (size > SMALL)
        return file_write(path_of(j, folder, id, path), bytes, size, 0644, err);
    snprintf(name, sizeof name, "%s/%s", folder, cid_text(id, cid));
    if (!journal_change(j, journal_query(j, err, "insert into unsynced (path, bytes) values (?, ?)", "tb", name, bytes, size),
                        err))
        return false;
    unsynced_add(&j->files, folder, id, bytes, size);
    j->unsynced_size += size;
    return true;
}

static bool put_block(struct journal *j, struct hash id, const void *bytes, size_t size, struct error *err)
{
    return journal_put_file(j, blocks, id, bytes, size, err);
}

bool journal_put_block(struct journal *j, struct hash id, const void *bytes, size_t size, struct error *err)
{
    return journal_begin(j, err) && journal_end(j, put_block(j, id, bytes, size, err), err);
}

const struct unsynced *journal_files(const struct journal *j)
{
    return &j->files;
}

bool journal_place_files(struct journal *j, struct error *err)
{
    char path[PATH_MAX];
    bool ok = true;

    for (size_t i = 0; ok && i < j->files.count; i++)
        ok = file_place(path_of(j, j->files.list[i].folder, j->files.list[i].id, path), j->files.list[i].bytes,
                        j->files.list[i].size, 0644, err);
    if (ok) /* else they are read here, and have another try after the next write: no sync of the folders is theirs */
        unsynced_cut(&j->files, 0);
    return ok;
}

/* ---- After a crash, or a sync that failed ----------------------------------------------------------------------------------- */

/* A journal may be handed on: its rows name files of the two folders, and none beside. */
static bool read_name(const char *name, const char **folder, struct hash *id, struct error *err)
{
    const char *slash = name ? strchr(name, '/') : NULL;
    size_t size = slash ? (size_t)(slash - name) : 0;

    *folder = size == strlen(blocks) && memcmp(name, blocks, size) == 0         ? blocks
              : size == strlen(documents) && memcmp(name, documents, size) == 0 ? documents
                                                                                : NULL;
    return (*folder && cid_parse(slash + 1, id, err)) ||
           error_set(err, ERROR_MISMATCH, NULL, "the journal names a file that is none of this folder");
}

/* Also where the file looks right: the system may hold bytes that the disk did not take. */
static bool restore(const struct journal *j, const char *name, const void *bytes, size_t size, struct error *err)
{
    const char *folder;
    char path[PATH_MAX];
    struct hash id;

    return read_name(name, &folder, &id, err) && file_place(path_of(j, folder, id, path), bytes, size, 0644, err);
}

/* The folder of blocks is made by their store, which may come later. */
static bool make_folder(const struct journal *j, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", j->root, blocks);
    return file_make_folder(path, err);
}

bool journal_restore_files(struct journal *j, struct error *err)
{
    sqlite3_stmt *rows;
    enum row row;
    bool ok;

    if (j->files.count && !journal_settle(j, err)) /* rows that are not synced yet have no files */
        return false;
    rows = journal_query(j, err, "select path, bytes from unsynced order by number", "");
    row = journal_step(j, rows, err);
    ok = row != ROW_THERE || make_folder(j, err);
    j->unsynced_size = 0;
    while (ok && row == ROW_THERE) {
        size_t size = (size_t)sqlite3_column_bytes(rows, 1);

        ok = restore(j, (const char *)sqlite3_column_text(rows, 0), sqlite3_column_blob(rows, 1), size, err);
        j->unsynced_size += size;
        row = journal_step(j, rows, err);
    }
    sqlite3_finalize(rows);
    return ok && row == ROW_NONE;
}

/* ---- Syncing the folders --------------------------------------------------------------------------------------------------- */

size_t journal_unsynced(const struct journal *j)
{
    return j->unsynced_size;
}

bool journal_settle(struct journal *j, struct error *err)
{
    static const char nothing[] = "insert into unsynced (path, bytes) values ('', x''); delete from unsynced where path = ''";

    return journal_begin(j, err) && journal_end(j, journal_run(j, nothing, err), err);
}

bool journal_mark(struct journal *j, int64_t *mark, struct error *err)
{
    sqlite3_stmt *statement;
    bool ok;

    if (j->files.count && !journal_settle(j, err)) /* what is in no folder yet would not be synced with it */
        return false;
    statement = journal_query(j, err, "select max(number) from unsynced", "");
    ok = journal_step(j, statement, err) == ROW_THERE;
    *mark = ok ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    j->marked_size = j->unsynced_size;
    return ok;
}

bool journal_sync_folder(const char *folder, struct error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0;

    if (!ok)
        error_set(err, ERROR_IO, NULL, "cannot sync %s: %s", folder, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool journal_synced(struct journal *j, int64_t mark, struct error *err)
{
    j->unsynced_size -= j->marked_size;
    j->marked_size = 0;
    return journal_begin_lazily(j, err) &&
           journal_end(j, journal_change(j, journal_query(j, err, "delete from unsynced where number <= ?", "i", mark), err),
                       err);
}
