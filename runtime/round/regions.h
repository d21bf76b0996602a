/* regions.h - where the shards of a run may be trained: `dataset.regions` of the spec.
 *
 *     [ { "name": "eu", "only": [ [0, 3] ], "prefer": [ [8, 9] ] }, { "name": "us" } ]      spans of shards, both ends among them, ascending
 *
 * A shard in `only` of some regions is dealt to their trainers alone; one in `prefer` goes to them first, up to their share. A trainer's
 * region is what its enrolment says.
 */
#ifndef RONDO_ROUND_REGIONS_H
#define RONDO_ROUND_REGIONS_H

#include <jansson.h>

#include "runtime/round/deal.h"

/* The bit of that name; 0 where `regions` (NULL: none) has no such. */
uint32_t regions_bit(const json_t *regions, const char *name);

/* What binds order[0], order[1], ...: the shards 0 to count - 1 in some order. The caller frees it. */
struct deal_shard *regions_of_shards(const json_t *regions, const uint32_t *order, size_t count);

#endif
