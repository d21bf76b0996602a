/* chain.h - a run of elementwise operators over one shape, in one pass over memory. Internal to native/graph.
 *
 *     m' = 0.9 m + 0.1 g        v' = ...       p' = p - lr m' / (sqrt(v') + eps)
 *
 *     for each block of 1024 elements: load what is strided or scalar into registers of 1024 values, run each operator on the block,
 *     write what is needed outside. Elements do not meet, so blocks, threads and fusing change no bit.
 */
#ifndef RONDO_GRAPH_CHAIN_H
#define RONDO_GRAPH_CHAIN_H

#include "native/graph/place.h"

struct chain;

/* `nodes`: ascending, elementwise, equal axes in equal order; kept[i] says whether nodes[i] is written to memory. Borrows g and places
 * for the call only. */
struct chain *chain_new(const struct graph *g, const struct place *places, const uint32_t *nodes, const bool *kept,
                        uint32_t count);
void chain_free(struct chain *c);

/* data[i] is the memory of node i (of base nodes). */
void chain_run(const struct chain *c, struct pool *pool, void *const *data);

/* The slots that read memory: the base node of slot i, or GRAPH_NONE. */
uint32_t chain_slots(const struct chain *c);
uint32_t chain_read(const struct chain *c, uint32_t i);

/* Whether node `written` may be written over the memory of node `base`: both have equal bytes, base is only read at the very position
 * that is written, and not after the writing. */
bool chain_may_replace(const struct chain *c, uint32_t written, uint32_t base);

enum { CHAIN_NODES = 64 /* at most in one chain */ };

#endif
