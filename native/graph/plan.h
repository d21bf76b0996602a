/* plan.h - in what order a graph is computed and where each value lies. Internal to native/graph.
 *
 *     steps     0: chain {3 4 6}   1: dot 7   2: chain {8}          a chain is a run of elementwise operators (chain.h)
 *               3: products {9 11}                            and so is a run of products onto one another
 *     memory    |--4--|--6--|----7----|  8 lies where 4 lay         a value lives from the step that makes it to the last that reads
 *                                                                   it; one arena for all, offsets worked out here
 *
 * Steps follow ascending ids but for chains, which wait for more operators of their shape until something else needs a value of
 * theirs. Nothing in it depends on threads.
 */
#ifndef RONDO_GRAPH_PLAN_H
#define RONDO_GRAPH_PLAN_H

#include "native/graph/chain.h"
#include "native/graph/execute.h"
#include "native/graph/inside.h"
#include "native/graph/step.h"

enum storage { STORAGE_NONE, STORAGE_BOUND, STORAGE_FIXED, STORAGE_ARENA, STORAGE_OUTPUT };

struct plan_step {
    uint32_t node;       /* the operator, or the last of the chain */
    struct chain *chain; /* owned; NULL: one operator, or products */
    uint32_t *nodes;     /* of a chain or of products: the nodes, and below whether each is kept; owned */
    bool *kept;
    uint32_t count;
    uint64_t scratch, scratch_bytes; /* working memory in the arena */
};

/* An output that is not written where it is made: a view, an input, a second name. */
struct plan_copy {
    uint32_t output, node;
};

struct plan {
    struct graph *g; /* compact; owned */
    struct place *places;
    struct plan_step *steps;
    uint32_t step_count;
    struct plan_copy *copies; /* in order: those that read inputs first */
    uint32_t copy_count;
    uint8_t *stored;     /* enum tensor_type of a bound node's data, of others that of the node */
    uint8_t *storage;    /* enum storage, one a node */
    uint64_t *offset;    /* in the arena, or in the memory of fixed values */
    uint32_t *written;   /* of a STORAGE_OUTPUT node: the output */
    uint32_t **extra;    /* result nodes of an operator, or NULL */
    uint8_t *inside;     /* nodes that are not made (inside.h); owned */
    struct body *bodies; /* of the heads (body.h); owned */
    uint32_t body_count;
    uint64_t arena, fixed; /* bytes */
    /* Steps that make and last read each value; last is step_count for what copies read. Of a bound node `first` says whether it is
     * read at all. */
    uint32_t *first, *last;
};

static inline bool plan_is_product(const struct graph_node *n)
{
    return n->type == TENSOR_F32 && (n->op == OPERATOR_DOT || n->op == OPERATOR_DOT_ONTO || n->op == OPERATOR_LOW_RANK);
}

/* Takes over `g` and the bodies of its heads. Aliases name outputs and bound nodes of g. */
bool plan_make(struct plan *p, struct graph *g, struct body *bodies, uint32_t body_count, const struct executor_options *o,
               struct error *err);
void plan_free(struct plan *p);

/* plan_memory.c: storage, offsets and sizes, once the steps are known. */
void plan_memory(struct plan *p, const struct executor_options *o);

/* Runs (or measures) a step that is no chain; w is set up for its node. */
bool plan_step_run(const struct plan_step *s, struct work *w);

/* plan_run.c: what a run of the plan needs beside it; data[i] is the memory of node i. */
struct plan_run {
    struct pool *pool;
    void **data;
    char *arena;
    const struct executor_random *random;
    const struct cache_step *cache;
    const uint32_t *layer;
};
void plan_fixed_filled(const struct plan *p, char *fixed, void **data); /* tables and constants */
void plan_arena_given(const struct plan *p, char *arena, void **data);  /* what lies in the arena */
bool plan_step_at(const struct plan *p, const struct plan_step *s, const struct plan_run *run, struct error *err); /* one step */
void plan_copied(const struct plan *p, const struct plan_copy *c, const struct plan_run *run, void *to);

uint64_t plan_bytes(const struct plan *p, uint32_t node); /* of its values, rounded up to 64 */

#endif
