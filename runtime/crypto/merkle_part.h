/* merkle_part.h - some leaves of a tree, with what proves all of them at once.
 *
 *               root            Leaves 2 and 3 asked for: their bytes, then the hashes of the subtrees that hold none of them,
 *              /    \           in the order of a walk from the left: a, b.
 *            o        b
 *          /   \      ...       Who checks knows the root, the size and which leaves they are, so none of these is written.
 *         a     o
 *        / \   / \
 *       0   1 2   3
 */
#ifndef RONDO_CRYPTO_MERKLE_PART_H
#define RONDO_CRYPTO_MERKLE_PART_H

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/crypto/merkle.h"

/* Which leaves of a tree over `size` bytes: one flag each. */
struct merkle_part {
    uint64_t size, leaves;
    uint8_t *wanted; /* owned */
};

void merkle_part_new(struct merkle_part *part, uint64_t size);
void merkle_part_free(struct merkle_part *part);

/* Wants the leaves that hold these bytes. They must be inside. */
void merkle_part_want(struct merkle_part *part, uint64_t first_byte, uint64_t bytes);

/* Appends the wanted leaves of `bytes` and their proof. */
void merkle_part_write(const struct merkle_part *part, const void *bytes, struct buffer *out);

/* Reads them back from hostile bytes: every wanted leaf goes to its place in `to` (part->size bytes, else left alone). Errors: truncated,
 * mismatch (another root than `root`); `to` then holds anything. */
bool merkle_part_read(const struct merkle_part *part, struct hash root, struct reader *in, void *to, struct error *err);

#endif
