/* finite.h - where a run first leaves the finite numbers: for the message when training does. */
#ifndef RONDO_GRAPH_FINITE_H
#define RONDO_GRAPH_FINITE_H

#include "native/graph/execute.h"

/* Runs g once more, node by node and writing nowhere else, and gives the first node with a NaN, or when there is none the first with an
 * infinity; a bound node counts as first of all. GRAPH_NONE when all is finite or the run fails (for want of memory: nothing is fused).
 * Arguments as of executor_new and executor_run. */
uint32_t finite_first_fault(const struct graph *g, struct pool *pool, const uint8_t *stored, const void *const *inputs,
                            const struct executor_random *random);

/* The parameter nearest before node i by operands (itself when it is one); GRAPH_NONE when there is none. */
uint32_t finite_nearest_parameter(const struct graph *g, uint32_t node);

#endif
