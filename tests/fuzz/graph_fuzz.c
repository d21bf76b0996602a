/* Any bytes: decoding refuses them, or what it gives encodes to the same bytes. */
#include <assert.h>
#include <string.h>

#include "native/graph/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = { 0 };
    struct graph_limits limits = graph_limits_default;
    limits.nodes = 4096;
    struct graph *g = graph_decode(data, size, &limits, &err);
    if (g) {
        struct buffer b = { 0 };
        graph_encode(g, size > 4 && data[4] == 1, &b);
        assert(b.size == size && memcmp(b.bytes, data, size) == 0);
        buffer_free(&b);
        graph_free(g);
    } else {
        assert(err.code != ERROR_NONE);
    }
    return 0;
}
