/* unsynced.h - small files that stand in the journal and are not in their folders yet: read as if they were.
 *
 *     put ──> row in the database ── commit, synced ──> file in its folder ── the whole folder synced, some time later ──> row deleted
 *                                       └ a crash from here on: the next start writes it again from the row
 *
 * One sync of the database's log stands for those of many files and of their folders.
 */
#ifndef RONDO_STORE_UNSYNCED_H
#define RONDO_STORE_UNSYNCED_H

#include "runtime/crypto/hash.h"

struct unsynced_file {
    const char *folder; /* "blocks" or "documents" */
    struct hash id;
    uint8_t *bytes; /* owned */
    size_t size;
};

struct unsynced {
    struct unsynced_file *list;
    size_t count, capacity;
};

void unsynced_add(struct unsynced *u, const char *folder, struct hash id, const void *bytes, size_t size); /* copied */
/* NULL when it is not there; borrowed until the next change. */
const struct unsynced_file *unsynced_find(const struct unsynced *u, const char *folder, struct hash id);
void unsynced_cut(struct unsynced *u, size_t count);  /* the first `count` stay */
void unsynced_skip(struct unsynced *u, size_t count); /* the first `count` go */
void unsynced_drop(struct unsynced *u, const char *folder, struct hash id);
void unsynced_free(struct unsynced *u);

#endif
