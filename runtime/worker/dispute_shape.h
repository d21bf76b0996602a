/* dispute_shape.h - what all disputes about steps of one shape share: the values that an opening lists, and the tensors of the state.
 *
 *     graph of the step ── places ── entries, ascending ── first tile of each
 *                                └── tensors of the state ── which value gives each, which bound node reads it
 *
 * It follows from graph and layout alone, is made once for a shape, and needs no executor and no value: a judge works with it for every
 * move about such a step.
 */
#ifndef RONDO_WORKER_DISPUTE_SHAPE_H
#define RONDO_WORKER_DISPUTE_SHAPE_H

#include "native/graph/place.h"
#include "runtime/crypto/merkle_part.h"
#include "runtime/worker/states.h"

enum { TILE_BYTES = MERKLE_TILE * MERKLE_LEAF };

struct dispute_shape {
    const struct graph *g; /* borrowed from the step that owns this */
    struct place *places;
    uint32_t *entries;  /* nodes */
    uint64_t *first;    /* of each entry: its first tile; entries + 1 of them */
    uint32_t *entry_of; /* per node, GRAPH_NONE */
    uint32_t entry_count;
    uint32_t loss;                /* entry, GRAPH_NONE: the step gives none */
    struct states states;         /* without memory: names and shapes of the optimiser's state */
    struct named_tensor *tensors; /* of the state, ascending by name, without bytes */
    uint32_t *results;            /* of each tensor: the entry that is it after the step */
    size_t tensor_count;
};

/* The shape of training steps of [rows time]; made at the first call, borrowed until the session forgets that step. Errors: those of
 * session_shape, unsupported (the step does not give a tensor of the state). */
const struct dispute_shape *dispute_shape_of(struct session *s, int64_t rows, int64_t time, double clip, struct error *err);
void dispute_shape_free(struct dispute_shape *shape);

/* Whether an output of a step is listed whatever gives it: loss, trained values, state. */
bool dispute_is_result(const char *output);

/* The state tensor of that name, or -1. */
long dispute_tensor(const struct dispute_shape *shape, const char *name);

#endif
