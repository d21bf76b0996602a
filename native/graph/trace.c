#include "native/graph/trace.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

void trace_hashes_init(struct trace_hashes *t, const struct graph *g)
{
    t->count = g->node_count;
    t->hashes = calloc(g->node_count + 1, sizeof *t->hashes);
    if (!t->hashes)
        abort();
}

void trace_hashes_free(struct trace_hashes *t)
{
    free(t->hashes);
    *t = (struct trace_hashes){ 0 };
}

void trace_hashes_see(void *context, uint32_t node, const void *bytes, size_t size)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/trace";
    struct trace_hashes *t = context;
    if (node < t->count)
        crypto_generichash_blake2b_salt_personal(t->hashes[node].bytes, sizeof t->hashes[node].bytes, bytes, size, NULL, 0, NULL,
                                                 personal);
}

uint32_t trace_first_difference(const struct trace_hashes *a, const struct trace_hashes *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (memcmp(&a->hashes[i], &b->hashes[i], sizeof a->hashes[i]) != 0)
            return i;
    return GRAPH_NONE;
}
