#include "runtime/round/regions.h"

#include <stdbool.h>
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

static bool inside(const json_t *spans, uint32_t shard)
{
    for (size_t i = 0; i < json_array_size(spans); i++) {
        const json_t *span = json_array_get(spans, i);
        if (shard >= json_integer_value(json_array_get(span, 0)) && shard <= json_integer_value(json_array_get(span, 1)))
            return true;
    }
    return false;
}

struct deal_shard *regions_of_shards(const json_t *regions, const uint32_t *shards, size_t count)
{
    struct deal_shard *bound = calloc(count + 1, sizeof *bound);
    if (!bound)
        abort();
    for (size_t i = 0; i < json_array_size(regions) && i < REGIONS; i++) {
        const json_t *region = json_array_get(regions, i), *only = json_object_get(region, "only"),
                     *prefer = json_object_get(region, "prefer");
        for (size_t k = 0; (only || prefer) && k < count; k++) {
            bound[k].only |= (uint32_t)inside(only, shards[k]) << i;
            bound[k].prefer |= (uint32_t)inside(prefer, shards[k]) << i;
        }
    }
    return bound;
}
