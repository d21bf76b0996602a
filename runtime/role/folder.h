/* folder.h - a node's folder as files: is every one of them what it should be, and a copy that is safe to go on from.
 *
 *     HOME/nodes/NAME/  key.json  node.db  documents/CID  blocks/CID  models/CID/
 *
 * No process may serve the folder meanwhile (conflict). Nothing is fetched: what is damaged or gone is fetched again by the node, or
 * by rondo sync.
 */
#ifndef RONDO_ROLE_FOLDER_H
#define RONDO_ROLE_FOLDER_H

#include <jansson.h>

#include "native/base/error.h"

struct folder_progress {
    void (*told)(void *context, const char *what, int64_t done); /* may be NULL */
    void *context;
};

/* Looks at every file. { "checked": { blocks, documents, models }, "findings": [ { place, problem, repair, repaired } ] }; new reference.
 * `repair`: what only takes room or cannot be used is removed, what the index lacks is put into it. NULL with `err` when it cannot
 * go on. */
json_t *folder_check(const char *folder, const char *passphrase, bool repair, const struct folder_progress *progress,
                     struct error *err);

/* Copies a node's folder to `to`, a new folder or an earlier copy of the same node: what it has is not written again. Each block and document
 * is checked on the way; a damaged one ends it (mismatch). `with_key`: the secrets, too. The copy's journal does not say which round was open, so a
 * syncer that is started on it enrols anew and signs only after a record has listed that.
 * { "copied": { blocks, documents }, "kept": { ... } }; new reference. NULL with `err`. */
json_t *folder_backup(const char *folder, const char *to, bool with_key, const struct folder_progress *progress,
                      struct error *err);

#endif
