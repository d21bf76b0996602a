#include "runtime/crypto/merkle_part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void merkle_part_new(struct merkle_part *part, uint64_t size)
{
    *part = (struct merkle_part){ .size = size, .leaves = merkle_leaves(size) };
    part->wanted = calloc(part->leaves, 1);
    if (!part->wanted)
        abort();
}

void merkle_part_free(struct merkle_part *part)
{
    free(part->wanted);
    *part = (struct merkle_part){ 0 };
}

void merkle_part_want(struct merkle_part *part, uint64_t first_byte, uint64_t bytes)
{
    assert(bytes <= part->size && first_byte <= part->size - bytes);
    if (bytes > 0)
        for (uint64_t leaf = first_byte / MERKLE_LEAF; leaf <= (first_byte + bytes - 1) / MERKLE_LEAF; leaf++)
            part->wanted[leaf] = 1;
}

static bool any(const struct merkle_part *part, uint64_t first, uint64_t count)
{
    return memchr(part->wanted + first, 1, count) != NULL;
}

static size_t leaf_size(const struct merkle_part *part, uint64_t leaf)
{
    const uint64_t left = part->size - leaf * MERKLE_LEAF;

    return left < MERKLE_LEAF ? (size_t)left : MERKLE_LEAF;
}

/* The siblings below `count` leaves from `first`, of which one is wanted. */
static void write_siblings(const struct merkle_part *part, const uint8_t *bytes, uint64_t first, uint64_t count,
                           struct buffer *out)
{
    if (count == 1)
        return;

    const uint64_t left = merkle_split(count), at[2] = { first, first + left }, counts[2] = { left, count - left };

    for (int side = 0; side < 2; side++)
        if (any(part, at[side], counts[side])) {
            write_siblings(part, bytes, at[side], counts[side], out);
        } else {
            const uint64_t from = at[side] * MERKLE_LEAF, to = from + counts[side] * MERKLE_LEAF;
            const struct hash root = merkle_of(bytes + from, (size_t)((to < part->size ? to : part->size) - from));

            buffer_add(out, root.bytes, HASH_SIZE);
        }
}

void merkle_part_write(const struct merkle_part *part, const void *bytes, struct buffer *out)
{
    const uint8_t *from = bytes;

    for (uint64_t leaf = 0; leaf < part->leaves; leaf++)
        if (part->wanted[leaf])
            buffer_add(out, from + leaf * MERKLE_LEAF, leaf_size(part, leaf));
    if (any(part, 0, part->leaves))
        write_siblings(part, from, 0, part->leaves, out);
}

static struct hash read_subtree(const struct merkle_part *part, const uint8_t *bytes, uint64_t first, uint64_t count,
                                struct reader *in)
{
    struct hash root = { 0 };

    if (!any(part, first, count)) {
        const uint8_t *sibling = reader_bytes(in, HASH_SIZE);

        if (sibling)
            memcpy(root.bytes, sibling, HASH_SIZE);
        return root;
    }
    if (!memchr(part->wanted + first, 0, count)) { /* all of it is there: many leaves at once */
        const uint64_t from = first * MERKLE_LEAF, to = from + count * MERKLE_LEAF;

        return merkle_of(bytes + from, (size_t)((to < part->size ? to : part->size) - from));
    }

    const uint64_t left = merkle_split(count);

    root = read_subtree(part, bytes, first, left, in);
    return merkle_node(root, read_subtree(part, bytes, first + left, count - left, in));
}

bool merkle_part_read(const struct merkle_part *part, struct hash root, struct reader *in, void *to, struct error *err)
{
    uint8_t *bytes = to;

    for (uint64_t leaf = 0; in->ok && leaf < part->leaves; leaf++) {
        const uint8_t *from = part->wanted[leaf] ? reader_bytes(in, leaf_size(part, leaf)) : NULL;

        if (from)
            memcpy(bytes + leaf * MERKLE_LEAF, from, leaf_size(part, leaf));
    }
    if (!any(part, 0, part->leaves))
        return true;

    const struct hash got = in->ok ? read_subtree(part, bytes, 0, part->leaves, in) : root;

    if (!in->ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "the leaves end before they are whole");
    return hash_equal(got, root) || error_set(err, ERROR_MISMATCH, NULL, "the leaves are not of the value that was committed to");
}
