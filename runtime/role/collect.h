/* collect.h - blocks that no live part of a run needs, dropped from the oldest round on, until a folder is within its quota.
 *
 *     rounds   0 ........ below ........ the open one
 *              droppable  | kept: whatever a document or record of these rounds names
 *              kept always: what the run is made of (course_needs.h), its first and its last state, every CHECKPOINT-th state between them
 *
 * `below` is collect_below: every earlier round is settled, recomputed here where this node recomputes, and COLLECT_SPARE rounds past that,
 * for others that lag behind. A block that anything kept names stays, whoever else names it. Of an object the chunks go first and the manifest
 * last: broken off anywhere, the next time finds what is left. A run that is pinned (journal note `pin/RUN`) is left alone, and so is all that
 * other runs of the folder name, which are not over for this node.
 *
 * What is dropped is gone: `audit`, `replay` and `sync` from this folder alone then end at the first round that lacks its payloads.
 */
#ifndef RONDO_ROLE_COLLECT_H
#define RONDO_ROLE_COLLECT_H

#include "runtime/role/course.h"

enum { COLLECT_SPARE = 3, COLLECT_CHECKPOINT = 10 };

struct collection {
    uint64_t bytes, dropped_bytes; /* of all blocks before; dropped */
    uint64_t blocks, dropped_blocks;
    int64_t round; /* the newest round of which something was dropped; -1: none */
    bool pinned;
};

/* The round below which rounds may be dropped. `verified`: rounds recomputed here, below zero for a node that recomputes none. */
int64_t collect_below(const json_t *last_record, int64_t verified);

/* Rounds recomputed here, from the journal; below zero when the node is not of the panel and recomputes none. Reads node->did. */
int64_t collect_verified(const struct node *node);

/* `node` needs blocks, journal and course. Drops rounds below `below` one after another while the folder holds more than `quota` bytes.
 * `dry`: only counts. Nothing else may be writing blocks: no job, no fetch under way. */
bool collect_run(struct node *node, int64_t below, uint64_t quota, bool dry, struct collection *out, struct error *err);

/* A node's folder without loop or server: the journal refuses to be opened while a process serves it. Also after a failure it is closed. */
bool collect_open(struct node *node, const char *folder, const char *run, struct error *err);
void collect_close(struct node *node);
/* collect_below, from what the folder itself says; its key says whether the node recomputes rounds. */
bool collect_find_below(struct node *node, const char *passphrase, int64_t *below, struct error *err);

/* Rounds up to this one were dropped from the folder; below zero: none. */
int64_t collect_dropped(struct journal *journal, const char *run);

/* Bytes and number of all blocks. */
bool collect_measure(const struct block_store *blocks, uint64_t *bytes, uint64_t *count, struct error *err);

bool collect_pin(struct journal *journal, const char *run, bool pinned, struct error *err);
bool collect_pinned(struct journal *journal, const char *run);

#endif
