/* object.h - anything larger than a block: a manifest that lists chunks.
 *
 *     manifest (a block, canonical JSON)
 *       { "chunk": 1048576, "chunks": [ "bafk...", ... ], "media": "application/vnd.rondo.state", "size": N, "version": 1 }
 *     the manifest's CID names the object; every chunk but the last has `chunk` bytes
 *
 * A reader checks size, count and media type before it asks for the first chunk, and each chunk before it uses it. A manifest
 * is itself a block, so an object has at most about 16,000 chunks.
 */
#ifndef RONDO_STORE_OBJECT_H
#define RONDO_STORE_OBJECT_H

#include "runtime/store/block.h"

enum { OBJECT_MEDIA = 64 };

#define MODEL_MEDIA "application/vnd.rondo.model" /* a file of a model or an adapter */

struct manifest {
    char media[OBJECT_MEDIA];
    uint64_t size;
    uint32_t chunk;
    size_t count;
    struct hash *chunks; /* owned */
};

void manifest_free(struct manifest *m);
/* From the bytes of its block, as hostile input. `media` NULL: any. `limit`: greatest size of the object. */
bool manifest_parse(const void *bytes, size_t size, const char *media, uint64_t limit, struct manifest *out, struct error *err);

/* Cuts, stores all chunks and the manifest. `*id` names the object. */
bool object_put(const struct block_store *store, const char *media, const void *bytes, size_t size, struct hash *id,
                struct error *err);
bool object_put_file(const struct block_store *store, const char *media, const char *path, struct hash *id, struct error *err);

/* The id that object_put would give, without storing. */
bool object_id(const char *media, const void *bytes, size_t size, struct hash *id, struct error *err);

/* The manifest, from the store. Error: missing when its block is not there. */
bool object_manifest(const struct block_store *store, struct hash id, const char *media, uint64_t limit, struct manifest *out,
                     struct error *err);

/* Which chunks the store lacks: fills `missing` (owned by the caller, free) with *count ids, ascending, each once. */
bool object_missing(const struct block_store *store, const struct manifest *m, struct hash **missing, size_t *count,
                    struct error *err);

/* The whole object in memory, appended to `out`, or written to a file (atomically). */
bool object_get(const struct block_store *store, struct hash id, const char *media, uint64_t limit, struct buffer *out,
                struct error *err);
/* To a file only an object of the chunks that object_put makes; errors: range, of another. */
bool object_get_file(const struct block_store *store, struct hash id, const char *media, uint64_t limit, const char *path,
                     struct error *err);

/* Whether the file holds the bytes of that object, which need not be stored. Errors: damaged (it does not), missing, io. */
bool object_is_file(const char *media, struct hash id, const char *path, struct error *err);

#endif
