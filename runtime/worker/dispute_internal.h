/* dispute_internal.h - one step as its graph, and the values that an opening lists. For dispute.c and dispute_pick.c. */
#ifndef RONDO_WORKER_DISPUTE_INTERNAL_H
#define RONDO_WORKER_DISPUTE_INTERNAL_H

#include "native/graph/tile.h"
#include "runtime/crypto/merkle_part.h"
#include "runtime/worker/dispute.h"
#include "runtime/worker/running.h"

enum { TILE_BYTES = MERKLE_TILE * MERKLE_LEAF };

struct dispute_step {
    struct running running; /* before the step, its batch drawn; values and states are right only after dispute_step_train */
    int64_t index;          /* of the leaf; the step is index - 1 */
    const struct session_step *made; /* borrowed from the session */
    const struct graph *g;           /* made's */
    struct place *places;
    uint32_t *entries;  /* nodes */
    uint64_t *first;    /* of each entry: its first tile; entries + 1 of them */
    uint32_t *entry_of; /* per node, GRAPH_NONE */
    uint32_t entry_count;
    struct named_tensor *tensors; /* of the state; names and bytes are the training's */
    size_t tensor_count;
};

/* With `train`, at the state before the step. Otherwise only the sampler has come that far. */
bool dispute_step_new(struct dispute_step *d, struct session *s, const struct dispute_case *c, bool train,
                      const struct job_reporter *to, struct error *err);
void dispute_step_free(struct dispute_step *d);

static inline uint64_t dispute_bytes(const struct dispute_step *d, uint32_t node)
{
    return d->g->nodes[node].values * type_bytes(d->g->nodes[node].type);
}

/* Hashes of all tiles of the step as it is run here; values and states are after it. Owned. */
struct hash *dispute_tiles(struct dispute_step *d, struct error *err);

/* The tile hashes of an opening in its bytes, or NULL when it has not the shape of this step. Borrowed. */
const struct hash *dispute_read_opening(const struct dispute_step *d, const void *bytes, size_t size);

/* The root of an entry's bytes, from its tiles. */
struct hash dispute_root(const struct dispute_step *d, const struct hash *tiles, uint32_t entry);

/* The state tensor behind a bound node, or -1. */
long dispute_state_of(const struct dispute_step *d, uint32_t node);

/* Whether leaf index's batch is the one that seed and shards give. */
bool dispute_batch_right(const struct dispute_step *d, const struct dispute_case *c);

/* Fills what a verdict says of entry and tile. */
void dispute_name(const struct dispute_step *d, uint32_t entry, uint64_t tile, struct dispute_verdict *out);

#endif
