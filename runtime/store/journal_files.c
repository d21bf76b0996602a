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
    size_t placed = 0;

    while (placed < j->files.count) {
        const struct unsynced_file *f = &j->files.list[placed];

        if (!file_place(path_of(j, f->folder, f->id, path), f->bytes, f->size, 0644, err))
            break;
        placed++;
    }
    unsynced_skip(&j->files, placed);
    return j->files.count == 0;
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

/* Every row, as the file it is. */
static bool each_row(struct journal *j,
                     bool (*visit)(struct journal *j, const char *folder, struct hash id, const void *bytes, size_t size,
                                   struct error *err),
                     struct error *err)
{
    sqlite3_stmt *rows = journal_query(j, err, "select path, bytes from unsynced order by number", "");
    enum row row = ROW_NONE;
    bool ok = true;

    j->unsynced_size = 0;
    while (ok && (row = journal_step(j, rows, err)) == ROW_THERE) {
        const char *name = (const char *)sqlite3_column_text(rows, 0), *folder;
        size_t size = (size_t)sqlite3_column_bytes(rows, 1);
        struct hash id;

        ok = read_name(name, &folder, &id, err) &&
             (visit(j, folder, id, sqlite3_column_blob(rows, 1), size, err) || error_at(err, "%s", name));
        j->unsynced_size += size;
    }
    journal_done(j, rows);
    return ok && row == ROW_NONE;
}

/* Also where the file looks right: the system may hold bytes that the disk did not take. What the folder does not take, on a full disk, is read
 * from here. */
static bool restore(struct journal *j, const char *folder, struct hash id, const void *bytes, size_t size, struct error *err)
{
    char path[PATH_MAX];

    (void)err;
    snprintf(path, sizeof path, "%s/%s", j->root, folder); /* that of the blocks is made by their store, which may come later */
    if (!file_make_folder(path, NULL) || !file_place(path_of(j, folder, id, path), bytes, size, 0644, NULL))
        unsynced_add(&j->files, folder, id, bytes, size);
    return true;
}

bool journal_restore_files(struct journal *j, struct error *err)
{
    if (j->files.count && !journal_settle(j, err)) /* rows that are not synced yet have no files */
        return false;
    unsynced_cut(&j->files, 0);
    return each_row(j, restore, err);
}

/* ---- A folder that is only read --------------------------------------------------------------------------------------------- */

static bool is_document(const struct journal *j, struct hash id, const void *bytes, size_t size, struct error *err)
{
    struct document d;
    bool same;

    if (!document_read_bytes(bytes, size, j->known, &d, err))
        return false;
    same = hash_equal(d.id, id);
    document_free(&d);
    return same || error_set(err, ERROR_MISMATCH, NULL, "the bytes in the journal are not what the name says");
}

static bool take(struct journal *j, const char *folder, struct hash id, const void *bytes, size_t size, struct error *err)
{
    bool good = folder == documents
                    ? is_document(j, id, bytes, size, err)
                    : hash_equal(hash_block(bytes, size), id) ||
                          error_set(err, ERROR_MISMATCH, NULL, "the bytes in the journal are not what the name says");

    if (good)
        unsynced_add(&j->files, folder, id, bytes, size);
    return good;
}

bool journal_take_files(struct journal *j, struct error *err)
{
    return each_row(j, take, err);
}

/* ---- Files that are deleted -------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    return memcmp(a, b, HASH_SIZE);
}

/* The numbers of their rows. */
static bool find_rows(struct journal *j, const char *folder, const struct hash *ids, size_t count, struct buffer *numbers,
                      struct error *err)
{
    sqlite3_stmt *rows = journal_query(j, err, "select number, path from unsynced", "");
    enum row row;

    while ((row = journal_step(j, rows, err)) == ROW_THERE) {
        int64_t number = sqlite3_column_int64(rows, 0);
        const char *its;
        struct hash id;

        if (read_name((const char *)sqlite3_column_text(rows, 1), &its, &id, NULL) && strcmp(its, folder) == 0 &&
            bsearch(&id, ids, count, sizeof *ids, ascending))
            buffer_add(numbers, &number, sizeof number);
    }
    journal_done(j, rows);
    return row == ROW_NONE;
}

static bool delete_rows(struct journal *j, const struct buffer *numbers, struct error *err)
{
    bool ok = true;

    for (size_t at = 0; ok && at < numbers->size; at += sizeof(int64_t)) {
        int64_t number;

        memcpy(&number, numbers->bytes + at, sizeof number);
        ok = journal_change(j, journal_query(j, err, "delete from unsynced where number = ?", "i", number), err);
    }
    return ok;
}

bool journal_forget_files(struct journal *j, const char *folder, const struct hash *ids, size_t count, struct error *err)
{
    struct buffer numbers = { 0 };
    bool ok = find_rows(j, folder, ids, count, &numbers, err);

    if (ok && numbers.size)
        ok = journal_begin(j, err) && journal_end(j, delete_rows(j, &numbers, err), err);
    for (size_t i = 0; ok && i < count && j->files.count; i++)
        unsynced_drop(&j->files, folder, ids[i]);
    buffer_free(&numbers);
    return ok;
}

bool journal_forget_blocks(struct journal *j, struct hash *ids, size_t count, struct error *err)
{
    if (count)
        qsort(ids, count, sizeof *ids, ascending);
    return journal_forget_files(j, blocks, ids, count, err);
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

    /* What is in no folder yet would not be synced with it. */
    if (j->files.count && (!journal_settle(j, err) || !journal_place_files(j, err)))
        return false;
    statement = journal_query(j, err, "select max(number) from unsynced", "");
    ok = journal_step(j, statement, err) == ROW_THERE;
    *mark = ok ? sqlite3_column_int64(statement, 0) : 0;
    journal_done(j, statement);
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
    journal_begin_lazily(j);
    return journal_end(j, journal_change(j, journal_query(j, err, "delete from unsynced where number <= ?", "i", mark), err),
                       err);
}
