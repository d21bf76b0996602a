#include "native/text/pair_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static size_t slot_of(const struct pair_map *map, uint64_t key)
{
    uint64_t h = key ^ map->seed; /* the finaliser of MurmurHash3 */

    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u + map->seed;
    h ^= h >> 33;
    return (size_t)h & (map->capacity - 1);
}

static void put(struct pair_map *map, uint64_t key, uint64_t value)
{
    size_t i = slot_of(map, key);

    while (map->slots[i].value != UINT64_MAX && map->slots[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    map->count += map->slots[i].value == UINT64_MAX;
    map->slots[i] = (struct pair_slot){ key, value };
}

static void grow(struct pair_map *map)
{
    struct pair_slot *old = map->slots;
    size_t old_capacity = map->capacity;

    if (!old && getrandom(&map->seed, sizeof map->seed, 0) != sizeof map->seed)
        map->seed = (uint64_t)(uintptr_t)map; /* still unlike the last run's where addresses are randomised */
    map->capacity = old ? old_capacity * 2 : 64;
    map->slots = malloc(map->capacity * sizeof *map->slots);
    if (!map->slots)
        abort();
    memset(map->slots, 0xff, map->capacity * sizeof *map->slots);
    map->count = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].value != UINT64_MAX)
            put(map, old[i].key, old[i].value);
    free(old);
}

void pair_map_free(struct pair_map *map)
{
    free(map->slots);
    *map = (struct pair_map){ 0 };
}

void pair_map_set(struct pair_map *map, uint64_t key, uint64_t value)
{
    assert(value != UINT64_MAX);
    if (map->count * 2 >= map->capacity)
        grow(map);
    put(map, key, value);
}

uint64_t pair_map_get(const struct pair_map *map, uint64_t key)
{
    if (!map->slots)
        return UINT64_MAX;

    size_t i = slot_of(map, key);

    while (map->slots[i].value != UINT64_MAX && map->slots[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return map->slots[i].value;
}
