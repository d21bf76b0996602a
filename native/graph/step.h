/* step.h - one operator that is no elementwise chain, at work on memory. Internal to native/graph.
 *
 * The same function measures and runs: it first takes what working memory it needs, then returns at once when it only measures.
 *
 *     const float *x = step_operand(w, 0, axes, rank, TENSOR_F32);     copied only when it does not lie so already
 *     struct result y = step_result(w, w->id, axes, rank);
 *     if (w->measure) return true;
 *     kernel(...);
 *     step_settle(w, &y);                                              copied only when it was not written in place
 */
#ifndef RONDO_GRAPH_STEP_H
#define RONDO_GRAPH_STEP_H

#include "native/graph/cache.h"
#include "native/graph/execute.h"
#include "native/graph/place.h"
#include "native/kernel/stored.h"

enum { STEP_EXTRA = 12 /* results of an operator beside its first */ };

struct body;

struct work {
    const struct graph *g;
    const struct place *places;
    const uint8_t *stored;        /* enum tensor_type of each base node's data */
    void *const *data;            /* memory of each base node */
    const uint32_t *const *extra; /* extra[i]: STEP_EXTRA further results of node i (GRAPH_NONE: not wanted), or NULL */
    struct body *bodies;          /* of the heads */
    const uint8_t *inside;        /* nodes that are not made (inside.h) */
    const struct executor_random *random;
    const struct cache_step *cache; /* NULL: rows are whole sequences */
    const uint32_t *layer;          /* with a cache: of each attention node its number */
    struct pool *pool;
    struct error *err;
    uint32_t id;
    const struct graph_node *n;
    bool measure;
    char *scratch; /* working memory, `used` of it taken */
    size_t used;
};

typedef bool step_function(struct work *w);

/* The function of an operator; NULL for elementwise operators and sources without work. */
step_function *step_of(enum operator_code op);

/* The reader of operand k's data when that is stored as another type; NULL when it lies as the node says. */
stored_read *step_stored(const struct work *w, unsigned k);
/* The type, STORED_TYPES when it lies as the node says. */
enum stored_type step_stored_type(const struct work *w, unsigned k);

void *step_take(struct work *w, size_t bytes);

/* Operand k with the axes given (ids of names; those the operand lacks repeat), contiguous in their order, as `type`. */
const void *step_operand(struct work *w, unsigned k, const struct graph_axis *axes, unsigned rank, enum tensor_type type);
/* Operand k in its own order. */
const void *step_own(struct work *w, unsigned k);

struct result {
    void *at; /* write here: contiguous in the order asked for */
    uint32_t node;
    struct graph_axis axes[GRAPH_AXES];
    bool copied;
};

/* Where to write the result `node` (w->id, or one of w->extra; GRAPH_NONE: working memory of `axes`, 4 bytes a value). */
struct result step_result(struct work *w, uint32_t node, const struct graph_axis *axes, unsigned rank);
void step_settle(struct work *w, const struct result *r);

/* Further result `which` (1, 2) of the node at work, or GRAPH_NONE. */
uint32_t step_extra(const struct work *w, unsigned which);

/* Axis lists: those of n that are (or are not) among the `count` given. Returns how many. */
unsigned axes_with(const struct graph_node *n, const struct graph_axis *some, unsigned count, struct graph_axis *out);
unsigned axes_without(const struct graph_node *n, const struct graph_axis *some, unsigned count, struct graph_axis *out);
uint64_t axes_product(const struct graph_axis *axes, unsigned count);

/* A whole order of doubles for qsort: equal ones, -0 and +0 among them, give 0; NaN comes last, so that no library's way of sorting shows. */
static inline int order_doubles(double x, double y)
{
    return x < y ? -1 : x > y ? 1 : (x != x) - (y != y);
}

static inline const struct graph_node *step_input(const struct work *w, unsigned k)
{
    return &w->g->nodes[graph_inputs(w->g, w->n)[k]];
}

/* by file */
step_function step_reduce, step_softmax, step_argmax, step_median, step_reduce_f64; /* step_reduce.c */
step_function step_sort, step_rank, step_topk, step_cumsum;                         /* step_order.c */
bool step_products(struct work *w, const uint32_t *nodes, uint32_t count);          /* a run of them onto one result */
step_function step_dot, step_dist2;                                                 /* step_product.c */
step_function step_shift, step_pad, step_merge, step_gather, step_scatter, step_one_hot, step_concat; /* step_move.c */
step_function step_rmsnorm, step_rmsnorm_grad, step_rmsnorm_weight_grad, step_layernorm, step_layernorm_grad,
    step_layernorm_weight_grad, step_rope, step_attention, step_attention_grad, step_token_logprob,
    step_token_logprob_grad;             /* step_layer.c */
step_function step_random, step_dropout; /* step_random.c */
step_function step_factor;               /* step_factor.c */
step_function step_head, step_tied;      /* step_head.c, step_tied.c */

bool step_ids_good(struct work *w, const int32_t *ids, uint64_t count, uint64_t n); /* step_layer.c: below n each */
/* step_move.c: within `axis` each; the message is that of node n */
bool step_index_good(struct work *w, const struct graph_node *n, const int32_t *index, uint64_t count,
                     const struct graph_axis *axis);

#endif
