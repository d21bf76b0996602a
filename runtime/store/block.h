/* block.h - content-addressed blocks: at most 1 MiB each, one file each, named by CID.
 *
 *     HOME/nodes/NAME/blocks/bafk2bza...
 *
 * A block is written whole or not at all (file_write), and hashed again whenever it is read: a changed byte is an error that
 * names the block, never data. Its code is `damaged`, which says something of this disk and nothing of whoever made the block; `mismatch` is
 * for bytes that another gave.
 */
#ifndef RONDO_STORE_BLOCK_H
#define RONDO_STORE_BLOCK_H

#include <sys/stat.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/doc/cid.h"
#include "runtime/store/unsynced.h"

enum { BLOCK_SIZE = 1 << 20 };

struct block_store {
    char folder[4000];
    const struct unsynced *unsynced; /* blocks that are not in the folder yet, or NULL */
};

/* Makes the folder when it is missing. */
bool block_store_open(const char *folder, struct block_store *out, struct error *err);

/* Stores bytes and says their id. Storing what is there already is cheap and fine. Errors: limit, io. */
bool block_put(const struct block_store *store, const void *bytes, size_t size, struct hash *id, struct error *err);

/* The same for bytes that the caller has hashed: many blocks are hashed faster together (hash_many). */
bool block_put_hashed(const struct block_store *store, struct hash id, const void *bytes, size_t size, struct error *err);

/* Stores bytes that must have this id. Error: mismatch. */
bool block_put_as(const struct block_store *store, struct hash id, const void *bytes, size_t size, struct error *err);

/* Some blocks that have arrived. `good`, which is set: the bytes have this id, and are stored. */
struct block_arrival {
    struct hash id;
    const void *bytes;
    size_t size;
    bool good;
};
enum { BLOCK_TOGETHER = 16 };

/* Checks all, many at once, and stores those that are right with one sync of the folder. False with `err` (io): none may be taken as
 * stored by this call; what a full disk took of them is there (block_has). */
bool block_put_arrived(const struct block_store *store, struct block_arrival *list, size_t count, struct error *err);

/* Appends the block to `out`. Errors: missing; damaged when the file is not what its name says; io. */
bool block_get(const struct block_store *store, struct hash id, struct buffer *out, struct error *err);

/* The block's file, open for reading, and what the system says of it; nothing is checked. The caller closes it. Errors: missing, io. */
bool block_open(const struct block_store *store, struct hash id, int *fd, struct stat *about, struct error *err);

bool block_has(const struct block_store *store, struct hash id);
/* The file alone: journal_forget_blocks is for what stands in the journal. */
bool block_delete(const struct block_store *store, struct hash id, struct error *err);

/* Calls `visit` for each block, in no order, until it returns false. Names that are no CIDs are left out. */
bool block_each(const struct block_store *store, bool (*visit)(void *context, struct hash id), void *context, struct error *err);

#endif
