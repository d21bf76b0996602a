/* execute.h - runs a graph, again and again, in memory planned once.
 *
 *     struct executor *ex = executor_new(g, &(struct executor_options){ .pool = pool }, err);
 *     inputs[i]  = data of g->bound[i]           row-major, type and axes of that node
 *     outputs[i] = where g->outputs[i] goes
 *     executor_run(ex, inputs, outputs, &random, err);
 *
 * Only nodes that an output needs are computed, equal nodes once. Chains of elementwise operators run in one pass over memory. No
 * choice here changes a bit of a result: the bits are those of each operator's definition, for any number of threads.
 * A run neither allocates nor looks up a name.
 */
#ifndef RONDO_GRAPH_EXECUTE_H
#define RONDO_GRAPH_EXECUTE_H

#include "native/graph/cache.h"
#include "native/graph/graph.h"
#include "native/graph/trace.h"

struct pool;

/* Output `output` may be given the same memory as bound node `bound` (a place in g->bound): a parameter and its update. */
struct executor_alias {
    uint32_t output, bound;
};

/* What one pass over memory did: an operator by name, "chain" for a run of elementwise ones, sizes of a product behind it. */
struct executor_pass {
    char name[48];
    double seconds;
    uint64_t operations, bytes; /* multiplications and additions; read and written at least */
};
typedef void (*executor_profile)(void *context, const struct executor_pass *pass);

struct executor_options {
    struct pool *pool;                    /* borrowed (native/kernel/pool.h); NULL: the calling thread alone */
    uint64_t memory;                      /* bytes at most; 0: no limit. To stay below, products are computed again */
    uint64_t beside;                      /* of them what is not the arena's: weights and state */
    const struct executor_alias *aliases; /* copied */
    size_t alias_count;
    const uint32_t *finite; /* outputs of f32: a run ends with non_finite as soon as one of them is not; copied */
    size_t finite_count;
    /* How the data of each bound node is stored (enum tensor_type, one for each of g->bound; NULL: as the graph says). f16, bf16, q8_0,
     * q4_0, q4_1, nf4 and nf4_dq are read while they are used, never as a whole; executor_may_store tells of which nodes. */
    const uint8_t *stored;
    const struct cache *cache; /* NULL: every run is of whole sequences; else of what goes on (executor_continue). Borrowed */
    graph_trace trace;         /* NULL: none; with one, nothing is fused and every node is computed alone */
    void *trace_context;
    graph_tiles tiles; /* NULL: none; else sees the hashes of what each pass left, in their order, when a run has ended */
    void *tiles_context;
    executor_profile profile; /* NULL: none; else called after each pass */
    void *profile_context;
};

/* Keys of the random nodes of one run: a stream is (seed, round, step, layer, label). */
struct executor_random {
    uint8_t seed[32];
    uint64_t round, step;
};

/* Whether bound node `bound` (a place in g->bound) may be stored as `type`: the type of the graph, or one of those above for an f32 node
 * that only products and gather read. */
bool executor_may_store(const struct graph *g, uint32_t bound, enum tensor_type type);

/* g may be freed afterwards. Errors: limit (the plan needs more than `memory`), memory, range (an alias that names nothing),
 * unsupported (an operator that this executor has not got, or a way of storing that an operator does not take). */
struct executor *executor_new(const struct graph *g, const struct executor_options *options, struct error *err);
void executor_free(struct executor *ex);

/* `random` may be NULL when the graph draws nothing. Errors: range (an index outside its axis), missing (a needed input or an output
 * is NULL, or the seed), non_finite (an output that must be finite). Inputs must not overlap outputs, but for declared aliases. After an error outputs hold anything. */
bool executor_run(struct executor *ex, const void *const *inputs, void *const *outputs, const struct executor_random *random,
                  struct error *err);

/* Of an executor with a cache: the sequences that the rows of the next run go on with, borrowed until it ends. A run that fails leaves them
 * as long as they were. Errors: memory, shape (other rows than the graph has, more tokens than a row). */
bool executor_continue(struct executor *ex, const struct cache_step *step, struct error *err);

uint64_t executor_bytes(const struct executor *ex);      /* of the arena: peak memory beside inputs and outputs */
uint64_t executor_operations(const struct executor *ex); /* estimate: multiplications and additions of one run */
uint32_t executor_steps(const struct executor *ex);      /* passes over memory in one run */

/* Whether `count` values are all finite; the first that is not in *at. */
bool tensor_finite_f32(const float *x, uint64_t count, uint64_t *at);

#endif
