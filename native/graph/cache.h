/* cache.h - keys and values of tokens that came before, so that a graph over new tokens goes on with a sequence.
 *
 *     page      64 tokens: of every attention of the graph, in order, keys [64 heads width] and values [64 heads width]
 *     sequence  length, pages: full ones may be shared with other sequences, the last one is its own
 *
 *     struct cache *cache = cache_new(graph, "time", err);                      of any shape of the same model
 *     struct cache_sequence *s = cache_sequence_new(cache);
 *     executor_continue(ex, &(struct cache_step){ &s, &count, 1 }, err);        count new tokens, the first of the row
 *     executor_run(ex, ...);                                                    afterwards the sequence is longer by count
 *
 * Rows of the graph are sequences; tokens of a row from `count` on are padding, and their results mean nothing. The caller binds
 * positions, which go on from the sequence's length; segments are not looked at: a row is one sequence. Because an attention's
 * key blocks start at key 0 whatever the number of queries, every result has the bits that the whole sequence at once would give.
 */
#ifndef RONDO_GRAPH_CACHE_H
#define RONDO_GRAPH_CACHE_H

#include "native/graph/graph.h"

struct cache;
struct cache_sequence;

/* What the graph's attentions keep of a token along `axis`. Errors: unsupported, when a result at one token needs earlier ones in another
 * way than by causal attention over `axis` (names the operator), or the row's axis does not lead. */
struct cache *cache_new(const struct graph *g, const char *axis, struct error *err);
void cache_free(struct cache *cache); /* after its sequences */

struct cache_sequence *cache_sequence_new(struct cache *cache);
void cache_sequence_free(struct cache_sequence *s);
/* Another sequence that begins with the first `length` tokens of this one, all of them at most; their pages are shared until one writes. */
struct cache_sequence *cache_sequence_copy(const struct cache_sequence *s, size_t length);
size_t cache_sequence_length(const struct cache_sequence *s);

uint64_t cache_bytes(const struct cache *cache); /* of all pages now */

/* The new tokens of a run: `rows` sequences, counts[i] tokens of row i (0: none, the sequence may be NULL). */
struct cache_step {
    struct cache_sequence *const *sequences;
    const uint32_t *counts;
    size_t rows;
};

/* For the executor: room for the new tokens; what attention `layer` adds; where its keys and values then are (one pointer a page); and
 * the new length. */
bool cache_fits(const struct cache *cache, const struct graph *g, struct error *err);
bool cache_begin(const struct cache_step *step, struct error *err);
void cache_add(struct cache_sequence *s, uint32_t layer, const float *k, const float *v, uint32_t count);
void cache_pages(struct cache_sequence *s, uint32_t layer, const float *const **k, const float *const **v);
void cache_end(const struct cache_step *step);

#endif
