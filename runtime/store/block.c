#include "runtime/store/block.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"

static const char *path_of(const struct block_store *store, struct hash id, char path[PATH_MAX])
{
    char cid[CID_TEXT];

    snprintf(path, PATH_MAX, "%s/%s", store->folder, cid_text(id, cid));
    return path;
}

bool block_store_open(const char *folder, struct block_store *out, struct error *err)
{
    out->unsynced = NULL;
    if (snprintf(out->folder, sizeof out->folder, "%s", folder) >= (int)sizeof out->folder)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", folder);
    return file_make_folder(folder, err);
}

bool block_put_hashed(const struct block_store *store, struct hash id, const void *bytes, size_t size, struct error *err)
{
    char path[PATH_MAX];
    struct buffer there = { 0 };
    struct error fault = { 0 };

    if (size > BLOCK_SIZE)
        return error_set(err, ERROR_LIMIT, "store it as an object", "%zu bytes, a block holds at most %d", size, BLOCK_SIZE);
    path_of(store, id, path);
    if (file_exists(path)) {
        bool good = block_get(store, id, &there, &fault);

        buffer_free(&there);
        if (good)
            return true;
        if (fault.code != ERROR_DAMAGED && fault.code != ERROR_MISSING) { /* no descriptor is left, say: it may be good */
            if (err)
                *err = fault;
            return false;
        }
    } /* a copy that the disk has spoiled is replaced by the good one */
    if (file_write(path, bytes, size, 0644, err))
        return true;
    unlink(path); /* its name may be there and not be synced: the next one would take it for stored */
    return false;
}

bool block_put(const struct block_store *store, const void *bytes, size_t size, struct hash *id, struct error *err)
{
    *id = hash_block(bytes, size);
    return block_put_hashed(store, *id, bytes, size, err);
}

static bool mismatch(struct hash id, enum error_code code, const char *hint, struct error *err)
{
    char cid[CID_TEXT];

    return error_set(err, code, hint, "the bytes of block %s are not what its name says", cid_text(id, cid));
}

bool block_put_as(const struct block_store *store, struct hash id, const void *bytes, size_t size, struct error *err)
{
    if (!hash_equal(hash_block(bytes, size), id))
        return mismatch(id, ERROR_MISMATCH, NULL, err);
    return block_put_hashed(store, id, bytes, size, err);
}

/* Blocks of one size are hashed together: most are as large as blocks get. */
static void check_arrived(struct block_arrival *list, size_t count)
{
    bool seen[BLOCK_TOGETHER] = { false };

    for (size_t i = 0; i < count; i++) {
        const void *inputs[BLOCK_TOGETHER];
        struct hash ids[BLOCK_TOGETHER];
        size_t of[BLOCK_TOGETHER], same = 0;

        for (size_t j = i; j < count && !seen[i]; j++)
            if (list[j].size == list[i].size && !seen[j])
                inputs[same] = list[j].bytes, of[same++] = j;
        hash_blocks(inputs, list[i].size, same, ids);
        for (size_t j = 0; j < same; j++) {
            list[of[j]].good = hash_equal(ids[j], list[of[j]].id);
            seen[of[j]] = true;
        }
    }
}

static bool stands_before(const struct block_arrival *list, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (list[j].good && hash_equal(list[j].id, list[i].id))
            return true;
    return false;
}

static bool sync_names(const struct block_store *store)
{
    int fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* After a fault: bytes of what is in its place are synced. Where all are, their folder is what was not, and none may be there for the next to find;
 * else it was not reached, and those that the disk took stay, for a fetch that goes on later. */
static void keep_placed(const struct block_store *store, const struct file_piece *pieces, size_t count)
{
    size_t placed = 0;

    for (size_t i = 0; i < count; i++)
        placed += file_exists(pieces[i].path);
    if (placed < count && sync_names(store))
        return;
    for (size_t i = 0; i < count; i++)
        unlink(pieces[i].path);
}

bool block_put_arrived(const struct block_store *store, struct block_arrival *list, size_t count, struct error *err)
{
    struct file_piece pieces[BLOCK_TOGETHER] = { 0 };
    char *paths = malloc(count * PATH_MAX + 1);
    size_t used = 0;

    _Static_assert((int)BLOCK_TOGETHER <= (int)FILE_TOGETHER, "one write for all");
    assert(count <= BLOCK_TOGETHER);
    if (!paths)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu paths", count);
    check_arrived(list, count);
    for (size_t i = 0; i < count; i++) {
        char *path = paths + used * PATH_MAX;

        list[i].good = list[i].good && list[i].size <= BLOCK_SIZE;
        if (list[i].good && !stands_before(list, i) && !file_exists(path_of(store, list[i].id, path)))
            pieces[used++] = (struct file_piece){ path, list[i].bytes, list[i].size };
    }

    bool ok = file_write_all(pieces, used, 0644, err);

    if (!ok)
        keep_placed(store, pieces, used);
    free(paths);
    return ok;
}

bool block_get(const struct block_store *store, struct hash id, struct buffer *out, struct error *err)
{
    const struct unsynced_file *fresh = unsynced_find(store->unsynced, "blocks", id);
    char path[PATH_MAX], cid[CID_TEXT];
    size_t before = out->size;

    if (fresh) {
        buffer_add(out, fresh->bytes, fresh->size);
        return true;
    }
    if (!file_exists(path_of(store, id, path)))
        return error_set(err, ERROR_MISSING, "it has to be fetched from a peer", "block %s is not here", cid_text(id, cid));

    struct error fault = { 0 };
    const bool read = file_read(path, BLOCK_SIZE, out, &fault);

    if (read && hash_equal(hash_block(out->bytes + before, out->size - before), id))
        return true;
    out->size = before;
    if (!read && fault.code != ERROR_LIMIT) { /* too long is another file than was written */
        if (err)
            *err = fault;
        return false;
    }
    mismatch(id, ERROR_DAMAGED, "delete the file; it is fetched again", err);
    return error_at(err, "%s", path);
}

bool block_open(const struct block_store *store, struct hash id, int *fd, struct stat *about, struct error *err)
{
    char path[PATH_MAX], cid[CID_TEXT];

    *fd = open(path_of(store, id, path), O_RDONLY | O_CLOEXEC);
    if (*fd >= 0 && fstat(*fd, about) == 0)
        return true;
    if (*fd >= 0)
        close(*fd);
    else if (errno == ENOENT)
        return error_set(err, ERROR_MISSING, "it has to be fetched from a peer", "block %s is not here", cid_text(id, cid));
    error_set(err, ERROR_IO, NULL, "cannot open: %s", strerror(errno));
    return error_at(err, "%s", path);
}

bool block_has(const struct block_store *store, struct hash id)
{
    char path[PATH_MAX];

    return unsynced_find(store->unsynced, "blocks", id) || file_exists(path_of(store, id, path));
}

bool block_delete(const struct block_store *store, struct hash id, struct error *err)
{
    char path[PATH_MAX];

    if (unlink(path_of(store, id, path)) == 0 || errno == ENOENT)
        return true;
    error_set(err, ERROR_IO, NULL, "cannot delete: %s", strerror(errno));
    return error_at(err, "%s", path);
}

bool block_each(const struct block_store *store, bool (*visit)(void *context, struct hash id), void *context, struct error *err)
{
    DIR *folder = opendir(store->folder);

    if (!folder) {
        error_set(err, ERROR_IO, NULL, "cannot list: %s", strerror(errno));
        return error_at(err, "%s", store->folder);
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct hash id;

        if (cid_parse(entry->d_name, &id, NULL) && !visit(context, id))
            break;
    }
    closedir(folder);
    return true;
}
