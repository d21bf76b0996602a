/* merkle.h - Merkle trees over 1 KiB leaves.
 *
 *                 root                  Shape of RFC 6962, section 2.1: of n leaves, the left child holds the
 *               /      \                largest power of two below n. The last leaf is never doubled.
 *          node          node
 *         /    \        /    \          leaf = H("rondo/leaf", its bytes)
 *       leaf  leaf    leaf  leaf        node = H("rondo/node", left ‖ right)
 *        |     |       |     |
 *      1 KiB 1 KiB   1 KiB 1..1024 B    No bytes at all: one empty leaf.
 *
 * An aligned group of MERKLE_TILE leaves is a 256 KiB tile, and the root of its subtree is the tile's hash.
 * So one kind of proof serves tiles (transfer, replay) and leaves (disputes; small enough for a contract).
 *
 * A root does not bind the size. Whoever commits to a root commits to the number of bytes beside it.
 */
#ifndef RONDO_CRYPTO_MERKLE_H
#define RONDO_CRYPTO_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/crypto/hash.h"

enum { MERKLE_LEAF = 1024, MERKLE_TILE = 256, MERKLE_DEPTH = 54 }; /* bytes, leaves, levels of 2^64 bytes */

/* A tree that grows leaf by leaf and keeps one subtree root for each bit set in `leaves`: O(log n) memory. */
struct merkle {
    uint64_t leaves;
    struct hash left[MERKLE_DEPTH]; /* left[h]: root of a whole subtree of 2^h leaves */
};

/* From leaf to root: the sibling at each level, lowest first. At most MERKLE_DEPTH long. */
struct merkle_proof {
    uint64_t leaf;   /* index, from 0      */
    uint64_t leaves; /* in the whole tree  */
    size_t depth;
    struct hash sibling[MERKLE_DEPTH];
};

void merkle_start(struct merkle *tree);

/* Adds one leaf. `size` is MERKLE_LEAF for every leaf but the last. */
void merkle_add(struct merkle *tree, const void *bytes, size_t size);

/* The hash of a leaf of at most MERKLE_LEAF bytes, of a node over two subtrees, and how many leaves `size` bytes have. */
struct hash merkle_leaf(const void *bytes, size_t size);
struct hash merkle_node(struct hash left, struct hash right);
uint64_t merkle_leaves(uint64_t size);

/* Where the left child of a tree of `leaves` (2 at least) ends: the largest power of two below it. */
uint64_t merkle_split(uint64_t leaves);

/* Adds one node of the lowest level whose hash the caller made, under a type of its own. */
void merkle_add_hash(struct merkle *tree, struct hash leaf);

/* The root over `count` nodes of the lowest level, 1 at least, made in place and many at once. */
struct hash merkle_join(struct hash *level, size_t count);

/* The root of what was added so far. Does not change the tree: more may be added. */
struct hash merkle_root(const struct merkle *tree);

/* The root over `size` bytes in memory: start, add all, root. */
struct hash merkle_of(const void *bytes, size_t size);

struct merkle_input {
    const void *bytes; /* borrowed */
    size_t size;
};

/* roots[i] = merkle_of(input i). Subtrees do not depend on one another: where there is enough of them, a second thread takes its share. */
void merkle_of_many(const struct merkle_input *inputs, size_t count, struct hash *roots);

/* A proof that leaf number `leaf` belongs to these bytes. The leaf must exist. O(size) hashing. */
struct merkle_proof merkle_prove(const void *bytes, size_t size, uint64_t leaf);

/* Whether `size` bytes at `bytes` are the leaf that `proof` speaks of, in the tree under `root`. A proof from outside may
 * hold anything: a wrong depth, index or count is false, never a read out of bounds. */
bool merkle_check(const struct merkle_proof *proof, struct hash root, const void *bytes, size_t size);

#endif
