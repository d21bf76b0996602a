/* dispute_fit.h - whether a trainer could answer for a step of a spec, before anybody signs it.
 *
 *     a step                          what training holds: weights, state, arena; matrices that are read once need not be made
 *     the same, traced for an opening every value of its graph is made, an expert's picked matrices among them
 *     opening, pick                   objects of at most DISPUTE_OBJECT bytes
 *
 * Who trains with less memory than a traced step takes, or whose opening is larger than may be sent, loses the first dispute by silence; where a
 * pick is larger, no challenger can show that a tile is wrong.
 */
#ifndef RONDO_WORKER_DISPUTE_FIT_H
#define RONDO_WORKER_DISPUTE_FIT_H

#include "runtime/worker/dispute.h"

struct dispute_fit {
    int64_t rows, time;        /* of the largest batch among the first of the round */
    uint64_t step, traced;     /* bytes of memory */
    uint64_t allowed;          /* what this worker may take */
    uint64_t opening, pick;    /* bytes of the objects; of picks the largest that the first or last tile of a value gives */
    const char *operator_name; /* static: of the value with that pick */
};

/* Looks at the batches that `context` and `shards` begin with; nothing is computed. Of steps that are not disputed by tiles all is 0. Errors: those
 * of a step's batch and graph. */
bool dispute_fit(struct session *s, const json_t *context, const json_t *shards, struct dispute_fit *out, struct error *err);

/* The job { context, shards }: the same as JSON, with `limit` of the objects. */
json_t *job_fit(struct session *s, const json_t *job, struct error *err);

#endif
