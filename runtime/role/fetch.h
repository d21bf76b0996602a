/* fetch.h - blocks and objects from whichever peer has them, each block checked as it arrives.
 *
 *     want: objects (by manifest) and single blocks ── GET /v1/blocks/CID from peers, several at once ──> the node's store
 *
 * Each peer is asked in turn; one that is silent, or answered with other bytes, is left alone for a while (peer.h). At first a peer has
 * seconds for a block, and three to send some of it, so that one that dribbles does not use up the time of the others; a minute when all were
 * asked in vain. What has arrived stays in the store: a fetch that was broken off, by whatever, goes on with the blocks that lack.
 */
#ifndef RONDO_ROLE_FETCH_H
#define RONDO_ROLE_FETCH_H

#include "runtime/role/node.h"

struct fetch;

/* `done` runs once, later, from the loop; err NULL when everything is in the store. */
typedef void fetch_done(void *context, const struct error *err);

struct fetch_want {
    struct hash id;
    bool object;    /* its manifest and all chunks; else the block alone */
    uint64_t limit; /* greatest size of the object, bytes, when it is less than that of the whole fetch; 0: that */
};

/* Fails with `missing` when it is not complete after `limit_ms`, with `limit` when an object is larger than it may be. */
struct fetch *fetch_start(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit,
                          unsigned limit_ms, fetch_done *done, void *context);

/* Somebody is about to push what is wanted: nobody is asked for it for `ms`. */
void fetch_expect(struct fetch *fetch, unsigned ms);

/* A block has come into the node's store in another way: fetches that wait for it go on at once. */
void fetch_arrived(struct node *node);

/* Forgets it: `done` will not run. NULL is fine. */
void fetch_cancel(struct fetch *fetch);

/* Deletes every block of what is wanted that the disk has spoiled: it is fetched again, from whoever has it. Errors: io. */
bool fetch_mend(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit, struct error *err);

/* Whether everything is in the store now. */
bool fetch_complete(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit);

#endif
