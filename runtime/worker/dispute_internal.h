/* dispute_internal.h - one step as its graph, and the values that an opening lists. For dispute.c and dispute_pick.c. */
#ifndef RONDO_WORKER_DISPUTE_INTERNAL_H
#define RONDO_WORKER_DISPUTE_INTERNAL_H

#include "native/graph/tile.h"
#include "runtime/crypto/merkle_part.h"
#include "runtime/worker/dispute.h"
#include "runtime/worker/dispute_shape.h"
#include "runtime/worker/running.h"

struct dispute_step {
    struct running running; /* its batch is that of the step; values and states: see dispute_load */
    bool loaded;
    int64_t index;                     /* of the leaf; the step is index - 1 */
    const json_t *carry;               /* of the case; borrowed */
    struct hash batch;                 /* what a leaf must say of it */
    const struct dispute_shape *shape; /* borrowed, as what follows of it */
    const struct graph *g;
    const struct place *places;
    const uint32_t *entries, *entry_of;
    const uint64_t *first;
    uint32_t entry_count;
    const struct named_tensor *tensors; /* of the state: without bytes until it is loaded */
    size_t tensor_count;
    struct named_tensor *own; /* the same with bytes: the training's */
};

/* With `train`, at the state before the step. Otherwise only the sampler has come that far, and nothing is loaded. */
bool dispute_step_new(struct dispute_step *d, struct session *s, const struct dispute_case *c, bool train,
                      const struct job_reporter *to, struct error *err);
void dispute_step_free(struct dispute_step *d);

/* The start state with what the optimiser begins with, once. What a judge needs of it is asked for at step 1 alone. */
bool dispute_load(struct dispute_step *d, struct error *err);

static inline uint64_t dispute_bytes(const struct dispute_step *d, uint32_t node)
{
    return d->g->nodes[node].values * type_bytes(d->g->nodes[node].type);
}

/* Hashes of all tiles of the step as it is run here; values and states are after it. Where the step cannot be done (failure.h), those of what was
 * computed up to then, zeros for the rest: no tile has that hash. Owned. */
struct hash *dispute_tiles(struct dispute_step *d, struct error *err);

/* The tile hashes of an opening in its bytes, or NULL when it has not the shape of this step. Borrowed. */
const struct hash *dispute_read_opening(const struct dispute_step *d, const void *bytes, size_t size);

/* The root of an entry's bytes, from its tiles. */
struct hash dispute_root(const struct dispute_step *d, const struct hash *tiles, uint32_t entry);

/* Whether leaf index's batch is the one that seed and shards give. */
bool dispute_batch_right(const struct dispute_step *d, const struct dispute_case *c);

/* The pick of that tile, with d at the state before the step, where it is again afterwards. */
bool dispute_write_pick(struct dispute_step *d, uint32_t entry, uint64_t tile, struct buffer *out, struct error *err);

/* Fills what a verdict says of entry and tile. */
void dispute_name(const struct dispute_step *d, uint32_t entry, uint64_t tile, struct dispute_verdict *out);

#endif
