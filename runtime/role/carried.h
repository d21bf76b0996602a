/* carried.h - small blocks that travel in the message whose documents name them.
 *
 *     { "documents": [ <contribution> ], "blocks": [ { "cid": "bafk...", "bytes": <base64> }, ... ] }
 *
 * To a host that is far away a contribution is one round trip then, where its document, the manifests and the chunks would be three. What
 * does not fit is pushed after the answer, as the answer asks for it. An object's manifest stands before its chunks: a receiver takes only
 * what something accepted before names.
 */
#ifndef RONDO_ROLE_CARRIED_H
#define RONDO_ROLE_CARRIED_H

#include <jansson.h>

#include "runtime/store/block.h"

enum { CARRIED_MOST = 256 << 10 }; /* bytes of the blocks of one message, before base64 */

/* Appends the blocks of the object that fit, the manifest first. `*room`: bytes left; 0 from the first that does not fit. Blocks that are
 * not here are left out. */
void carried_add(const struct block_store *store, struct hash object, json_t *blocks, size_t *room);

/* Reads one. Errors: type, limit, and those of cid_parse. The caller compares bytes and id (block_put_as). */
bool carried_read(const json_t *block, struct hash *id, struct buffer *bytes, struct error *err);

#endif
