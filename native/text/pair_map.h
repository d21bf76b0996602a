/* pair_map.h - a hash map from 64-bit keys (two 32-bit numbers) to 64-bit values: merges, trie edges, strings by their hash.
 *
 *     slot: [ key | value ]   open addressing, linear probing, at most half full; value UINT64_MAX means empty
 *
 * The hash is seeded at creation, so that a hostile vocabulary cannot be made to collide. Nothing depends on its order.
 */
#ifndef RONDO_TEXT_PAIR_MAP_H
#define RONDO_TEXT_PAIR_MAP_H

#include <stddef.h>
#include <stdint.h>

struct pair_map {
    struct pair_slot {
        uint64_t key, value;
    } * slots; /* owned, `capacity`, a power of two, or NULL */
    size_t count, capacity;
    uint64_t seed;
};

void pair_map_free(struct pair_map *map);
void pair_map_set(struct pair_map *map, uint64_t key, uint64_t value); /* replaces; value below UINT64_MAX */
uint64_t pair_map_get(const struct pair_map *map, uint64_t key);       /* UINT64_MAX if absent */

#endif
