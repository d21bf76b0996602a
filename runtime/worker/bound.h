/* bound.h - what a traced graph may touch.
 *
 * Traces come from a script's process and are hostile: an index, a name or a size in them is checked here before memory is
 * given to a graph. Each fault is the script's.
 */
#ifndef RONDO_WORKER_BOUND_H
#define RONDO_WORKER_BOUND_H

#include "native/graph/graph.h"
#include "runtime/script/host.h"
#include "runtime/worker/layout.h"

/* The trace's graph of this index; NULL with `err`. Borrowed. */
const struct graph *bound_graph(const struct script_trace *trace, const json_t *index, struct error *err);

/* The trained parameter of this name; NULL with `err`. Borrowed. */
const struct layout_parameter *bound_parameter(const struct layout *l, const json_t *name, struct error *err);

/* Whether the result of a node takes exactly `bytes`. Error: shape. */
bool bound_fits(const struct graph *g, uint32_t node, uint64_t bytes, struct error *err);

#endif
