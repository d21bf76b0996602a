#include "runtime/round/regions.h"

#include <stdlib.h>

#include "runtime/round/value.h"

enum { REGIONS = 32 }; /* bits */

uint32_t regions_bit(const json_t *regions, const char *name)
{
    for (size_t i = 0; *name && i < json_array_size(regions) && i < REGIONS; i++)
        if (value_is(json_array_get(regions, i), "name", name))
            return UINT32_C(1) << i;
    return 0;
}

static void mark(struct deal_shard *by, size_t count, const json_t *spans, uint32_t only, uint32_t prefer)
{
    for (size_t i = 0; i < json_array_size(spans); i++) {
        const json_t *span = json_array_get(spans, i);
        int64_t first = json_integer_value(json_array_get(span, 0)), last = json_integer_value(json_array_get(span, 1));
        for (int64_t at = first < 0 ? 0 : first; at <= last && at < (int64_t)count; at++) {
            by[at].only |= only;
            by[at].prefer |= prefer;
        }
    }
}

struct deal_shard *regions_of_shards(const json_t *regions, const uint32_t *order, size_t count)
{
    struct deal_shard *by = calloc(count + 1, sizeof *by), *bound = calloc(count + 1, sizeof *bound);
    if (!by || !bound)
        abort();
    for (size_t i = 0; i < json_array_size(regions) && i < REGIONS; i++) {
        const json_t *region = json_array_get(regions, i);
        mark(by, count, json_object_get(region, "only"), UINT32_C(1) << i, 0);
        mark(by, count, json_object_get(region, "prefer"), 0, UINT32_C(1) << i);
    }
    for (size_t k = 0; k < count; k++)
        bound[k] = by[order[k]];
    free(by);
    return bound;
}
