#include "runtime/role/expected.h"

#include <stdlib.h>

#include "runtime/role/fetch.h"
#include "runtime/store/object.h"

/* Of those that are no members a node may have missed the record that takes them in; but their keys may cost nothing. */
enum { STRANGERS_MOST = 8192 };

struct expected_block {
    struct hash id;
    bool manifest;
    uint64_t limit; /* of a manifest's object, bytes */
    int64_t round;
    bool member; /* its signer is one */
};

struct expected {
    struct expected_block *list;
    size_t count;
    size_t strangers; /* blocks expected of those that are no members since the last round was decided */
};

struct expected *expected_new(void)
{
    return calloc(1, sizeof(struct expected));
}

void expected_free(struct expected *e)
{
    if (e)
        free(e->list);
    free(e);
}

static struct expected_block *expected_find(const struct expected *e, struct hash id)
{
    for (size_t i = 0; i < e->count; i++)
        if (hash_equal(e->list[i].id, id))
            return &e->list[i];
    return NULL;
}

static void expect(struct node *node, struct expected_block block, json_t *missing)
{
    struct expected *e = node->expected;
    struct expected_block *known = expected_find(e, block.id);
    char cid[CID_TEXT];

    json_array_append_new(missing, json_string(cid_text(block.id, cid)));
    if (known)
        known->round = block.round > known->round ? block.round : known->round;
    if (known || (!block.member && e->strangers == STRANGERS_MOST))
        return;
    e->strangers += !block.member;
    e->list = realloc(e->list, (e->count + 1) * sizeof *e->list);
    e->list[e->count++] = block;
}

void expected_object(struct node *node, struct hash id, uint64_t limit, int64_t round, bool member, json_t *missing)
{
    struct manifest m;
    struct error err = { 0 };

    if (!block_has(&node->blocks, id)) {
        expect(node, (struct expected_block){ id, true, limit, round, member }, missing);
        return;
    }
    if (!object_manifest(&node->blocks, id, NULL, limit, &m, &err))
        return; /* the check of the contribution says why it is refused */
    for (size_t i = 0; i < m.count; i++)
        if (!block_has(&node->blocks, m.chunks[i]))
            expect(node, (struct expected_block){ m.chunks[i], false, 0, round, member }, missing);
    manifest_free(&m);
}

void expected_expire(struct expected *e, int64_t round)
{
    size_t kept = 0;

    for (size_t i = 0; i < e->count; i++)
        if (e->list[i].round >= round)
            e->list[kept++] = e->list[i];
    e->count = kept;
    e->strangers = 0;
}

/* Whatever came before is there already: only a copy that the disk has spoiled is written over. */
static bool store(struct node *node, struct hash id, const void *bytes, size_t size, struct error *err)
{
    if (block_has(&node->blocks, id) || size > BLOCK_SIZE)
        return block_put_as(&node->blocks, id, bytes, size, err);
    if (hash_equal(hash_block(bytes, size), id))
        return journal_put_block(node->journal, id, bytes, size, err);
    return error_set(err, ERROR_MISMATCH, NULL, "the bytes of a block are not what its name says");
}

bool expected_take(struct node *node, struct hash id, const void *bytes, size_t size, json_t *missing, struct error *err)
{
    struct expected *e = node->expected;
    struct expected_block *at = expected_find(e, id), block;

    if (!at && !block_has(&node->blocks, id))
        return error_set(err, ERROR_REFUSED, "send the document that names it first", "no accepted document names this block");
    if (!store(node, id, bytes, size, err))
        return false;
    fetch_arrived(node);
    if (!at)
        return true;
    block = *at;
    *at = e->list[--e->count];
    if (block.manifest)
        expected_object(node, id, block.limit, block.round, block.member, missing);
    return true;
}
