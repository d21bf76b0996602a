#include "runtime/crypto/merkle.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct hash merkle_leaf(const void *bytes, size_t size)
{
    assert(size <= MERKLE_LEAF);
    return hash_typed("rondo/leaf", bytes, size);
}

struct hash merkle_node(struct hash left, struct hash right)
{
    struct hash pair[2] = { left, right };
    return hash_typed("rondo/node", pair, sizeof pair);
}

uint64_t merkle_leaves(uint64_t size)
{
    return size == 0 ? 1 : (size - 1) / MERKLE_LEAF + 1;
}

void merkle_start(struct merkle *tree)
{
    tree->leaves = 0;
}

/* A new leaf closes as many subtrees as `leaves` has trailing ones: the carries of a binary counter. */
void merkle_add_hash(struct merkle *tree, struct hash leaf)
{
    struct hash carry = leaf;
    size_t height = 0;

    for (uint64_t bits = tree->leaves; bits & 1; bits >>= 1)
        carry = merkle_node(tree->left[height++], carry);
    tree->left[height] = carry;
    tree->leaves++;
}

void merkle_add(struct merkle *tree, const void *bytes, size_t size)
{
    merkle_add_hash(tree, merkle_leaf(bytes, size));
}

/* The open subtrees hang to the right of one another, the smallest lowest. */
struct hash merkle_root(const struct merkle *tree)
{
    if (tree->leaves == 0)
        return merkle_leaf(NULL, 0);

    size_t height = (size_t)__builtin_ctzll(tree->leaves);
    struct hash root = tree->left[height];

    for (uint64_t bits = tree->leaves >> height >> 1; bits; bits >>= 1)
        if (height++, bits & 1)
            root = merkle_node(tree->left[height], root);
    return root;
}

/* Pairing level by level, with the last node of an odd level moved up, gives the shape that splitting at powers of two does. */
struct hash merkle_join(struct hash *level, size_t count)
{
    assert(count > 0);
    while (count > 1) {
        const size_t pairs = count / 2;

        hash_many("rondo/node", level, 2 * HASH_SIZE, pairs, level);
        if (count % 2)
            level[pairs] = level[count - 1];
        count = pairs + count % 2;
    }
    return level[0];
}

/* Adds the root of a whole aligned subtree of 2^height leaves; nothing lower may be open. */
static void add_subtree(struct merkle *tree, struct hash root, size_t height)
{
    for (uint64_t bits = tree->leaves >> height; bits & 1; bits >>= 1)
        root = merkle_node(tree->left[height++], root);
    tree->left[height] = root;
}

/* Leaves hashed together at most: the more, the fuller the vectors of the levels above. */
enum { PART_HEIGHT = 10, PART = 1 << PART_HEIGHT };

/* The root of a whole subtree: its leaves at once, then level by level, in place. */
static struct hash hash_subtree(const uint8_t *bytes, size_t height)
{
    struct hash level[PART];

    hash_many("rondo/leaf", bytes, MERKLE_LEAF, (size_t)1 << height, level);
    return merkle_join(level, (size_t)1 << height);
}

/* As many whole parts as there are, then ever smaller subtrees: the tensors of adapters are shorter than a tile. */
static struct hash hash_alone(const uint8_t *from, size_t size)
{
    enum { LEAST_HEIGHT = 2 };
    struct merkle tree;
    size_t at = 0;

    merkle_start(&tree);
    for (size_t height = PART_HEIGHT; height >= LEAST_HEIGHT; height--)
        for (; (size - at) / MERKLE_LEAF >= (size_t)1 << height; at += (size_t)MERKLE_LEAF << height) {
            add_subtree(&tree, hash_subtree(from + at, height), height);
            tree.leaves += (uint64_t)1 << height;
        }
    for (; at < size; at += MERKLE_LEAF)
        merkle_add(&tree, from + at, size - at < MERKLE_LEAF ? size - at : MERKLE_LEAF);
    return merkle_root(&tree);
}

/* --- two threads -------------------------------------------------------------------------------------------------------- */

enum { PART_BYTES = PART * MERKLE_LEAF, WORTH_A_THREAD = 4 * PART_BYTES };

/* A whole subtree of PART leaves, or the last leaves of an input. */
struct part {
    const uint8_t *bytes;
    size_t size;
    struct hash root;
};

struct parts {
    struct part *part; /* owned */
    size_t count;
    atomic_size_t next;
};

static void *hash_parts(void *context)
{
    struct parts *p = context;

    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->count;)
        p->part[i].root = hash_alone(p->part[i].bytes, p->part[i].size);
    return NULL;
}

static size_t part_count(size_t size)
{
    return size == 0 ? 1 : (size - 1) / PART_BYTES + 1;
}

static void cut(const struct merkle_input *inputs, size_t count, struct parts *p)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = inputs[i].bytes;

        for (size_t at = 0, left = part_count(inputs[i].size); left > 0; left--, at += PART_BYTES)
            p->part[p->count++] = (struct part){ .bytes = from + at, .size = left > 1 ? PART_BYTES : inputs[i].size - at };
    }
}

/* The tree over the roots of parts has the shape of the tree over leaves: a whole part never straddles a split. */
static void join(const struct merkle_input *inputs, size_t count, const struct part *part, struct hash *roots)
{
    for (size_t i = 0; i < count; i++) {
        struct merkle tree;

        merkle_start(&tree);
        for (size_t left = part_count(inputs[i].size); left > 0; left--)
            merkle_add_hash(&tree, part++->root);
        roots[i] = merkle_root(&tree);
    }
}

void merkle_of_many(const struct merkle_input *inputs, size_t count, struct hash *roots)
{
    struct parts p = { 0 };
    size_t parts = 0, size = 0;
    pthread_t helper;

    for (size_t i = 0; i < count; i++)
        parts += part_count(inputs[i].size), size += inputs[i].size;
    if (size >= WORTH_A_THREAD)
        p.part = malloc(parts * sizeof *p.part);
    if (!p.part) { /* small, or no memory: one after another needs none */
        for (size_t i = 0; i < count; i++)
            roots[i] = hash_alone(inputs[i].bytes, inputs[i].size);
        return;
    }
    cut(inputs, count, &p);

    const bool helped = pthread_create(&helper, NULL, hash_parts, &p) == 0;

    hash_parts(&p);
    if (helped)
        pthread_join(helper, NULL);
    join(inputs, count, p.part, roots);
    free(p.part);
}

struct hash merkle_of(const void *bytes, size_t size)
{
    struct hash root;

    merkle_of_many(&(struct merkle_input){ bytes, size }, 1, &root);
    return root;
}

uint64_t merkle_split(uint64_t leaves)
{
    return UINT64_C(1) << (63 - __builtin_clzll(leaves - 1));
}

struct merkle_proof merkle_prove(const void *bytes, size_t size, uint64_t leaf)
{
    struct merkle_proof proof = { .leaf = leaf, .leaves = merkle_leaves(size) };
    struct hash path[MERKLE_DEPTH]; /* root first */
    size_t depth = 0;
    const uint8_t *from = bytes;

    assert(leaf < proof.leaves);
    for (uint64_t leaves = proof.leaves, index = leaf; leaves > 1;) {
        uint64_t left = merkle_split(leaves);
        size_t cut = (size_t)left * MERKLE_LEAF;

        if (index < left) {
            path[depth++] = merkle_of(from + cut, size - cut);
            leaves = left, size = cut;
        } else {
            path[depth++] = merkle_of(from, cut);
            leaves -= left, index -= left, from += cut, size -= cut;
        }
    }
    for (proof.depth = depth; depth > 0; depth--)
        proof.sibling[proof.depth - depth] = path[depth - 1];
    return proof;
}

bool merkle_check(const struct merkle_proof *proof, struct hash root, const void *bytes, size_t size)
{
    if (proof->leaf >= proof->leaves || proof->depth > MERKLE_DEPTH || size > MERKLE_LEAF)
        return false;

    /* On which side the path turns, root first; the proof lists siblings leaf first. */
    bool turns_right[MERKLE_DEPTH];
    size_t depth = 0;

    for (uint64_t leaves = proof->leaves, index = proof->leaf; leaves > 1; depth++) {
        uint64_t left = merkle_split(leaves);

        if (depth == proof->depth)
            return false;
        turns_right[depth] = index >= left;
        index -= turns_right[depth] ? left : 0;
        leaves = turns_right[depth] ? leaves - left : left;
    }
    if (depth != proof->depth)
        return false;

    struct hash here = merkle_leaf(bytes, size);

    for (size_t i = 0; i < depth; i++)
        here = turns_right[depth - 1 - i] ? merkle_node(proof->sibling[i], here) : merkle_node(here, proof->sibling[i]);
    return hash_equal(here, root);
}
