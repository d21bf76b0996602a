/* dispute_reads.h - what of a step must be there to compute one of its tiles again.
 *
 *     token_logprob   tiles[0]     reads all logits, 189 MB           -> not shown: tiles[1] makes them
 *     dot             tiles[1]     reads hidden states, 2.4 MB        -> shown, with proofs
 *                                        a frozen table, 113 MB       -> known to everybody
 *
 * The parts of an operand are shown (dispute.h), unless they are more than `above` bytes and what makes the operand reads less: then
 * the judge makes it, whole. It is not held to the trace: where the trainer's own is another, that is wrong as well, and so is what it gave of it.
 * All follows from the graph, so challenger and judge find the same.
 */
#ifndef RONDO_WORKER_DISPUTE_READS_H
#define RONDO_WORKER_DISPUTE_READS_H

#include "native/graph/tile.h"
#include "runtime/worker/dispute_shape.h"

struct dispute_reads {
    struct tile *
        tiles; /* [0]: the tile; the others whole values, ascending by node, each made of what is shown, known or made before; owned */
    size_t count;
};

/* Elements first .. first + count - 1 of a node. Errors: range. */
bool dispute_reads_new(const struct dispute_shape *shape, uint32_t node, uint64_t first, uint64_t count, uint64_t above,
                       struct dispute_reads *out, struct error *err);
void dispute_reads_free(struct dispute_reads *reads);

/* Whether the judge makes this operand. */
bool dispute_reads_makes(const struct dispute_reads *reads, uint32_t base);

/* Whether a challenger shows bytes of this base: of what the trainer said. */
bool dispute_is_shown(const struct dispute_shape *shape, uint32_t base);

#endif
