/* The hashes of tiles are those of each tile alone, whatever waits for what, and come in the order in which values were added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/graph/trace.h"
#include "native/kernel/pool.h"

enum { VALUES = 90, MOST = 40 * TRACE_TILE };

static const uint64_t sizes[] = {
    4,    4096, TRACE_TILE, 36864, 3 * TRACE_TILE + 8, MOST, 17 * TRACE_TILE, 24 * TRACE_TILE - 4, 98304, 12, 7 * TRACE_TILE, 100,
    1000, 40,   12288,      16,    TRACE_TILE
};

struct seen {
    const uint8_t *bytes;
    uint32_t count, first;
};

static uint64_t size_of(uint32_t value)
{
    return sizes[value * 7 % (sizeof sizes / sizeof *sizes)];
}

static void value_seen(void *context, uint32_t node, const struct graph_hash *tiles, uint64_t count)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/trace";
    struct seen *s = context;
    const uint64_t size = size_of(node);
    assert_int_equal(node, s->first + s->count++);
    assert_int_equal(count, trace_tile_count(size));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = i * TRACE_TILE, length = size - at < TRACE_TILE ? size - at : TRACE_TILE;
        uint8_t want[32];
        crypto_generichash_blake2b_salt_personal(want, sizeof want, s->bytes + node + at, length, NULL, 0, NULL, personal);
        assert_memory_equal(want, tiles[i].bytes, sizeof want);
    }
}

static void every_tile_has_the_hash_that_it_has_alone(void **state)
{
    uint8_t *bytes = malloc(MOST + VALUES);
    uint64_t tiles = 0;
    (void)state;
    assert_true(sodium_init() >= 0);
    for (uint32_t i = 0; i < MOST + VALUES; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 11);
    for (uint32_t i = 0; i < VALUES; i++)
        tiles += trace_tile_count(size_of(i));
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);
        struct trace_tiles *t = trace_tiles_new(VALUES, tiles);
        struct seen all = { bytes, 0, 0 }, some = { bytes, 0, 3 }, none = { bytes, 0, 0 };
        assert_non_null(t);
        for (uint32_t i = 0; i < VALUES; i++)
            trace_tiles_add(t, pool, i, bytes + i, size_of(i));
        trace_tiles_end(t, pool, value_seen, &all);
        assert_int_equal(all.count, VALUES);
        for (uint32_t i = 3; i < 9; i++) /* used again */
            trace_tiles_add(t, pool, i, bytes + i, size_of(i));
        trace_tiles_end(t, pool, value_seen, &some);
        assert_int_equal(some.count, 6);
        trace_tiles_end(t, pool, value_seen, &none);
        assert_int_equal(none.count, 0);
        trace_tiles_free(t);
        pool_free(pool);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_has_the_hash_that_it_has_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
