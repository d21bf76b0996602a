/* Lanes of BLAKE2b against libsodium, one input at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/blake2b.h"

enum { MOST = 3 * 1024, INPUTS = 19 };

static uint8_t bytes[(MOST + 5) * INPUTS];

static const size_t lanes[] = { 1, 2, 4, 8 };

static int fill(void **state)
{
    static const unsigned char seed[randombytes_SEEDBYTES] = "blake2b_test";

    (void)state;
    randombytes_buf_deterministic(bytes, sizeof bytes, seed);
    return 0;
}

static void personal_of(size_t number, uint8_t personal[BLAKE2B_PERSONAL])
{
    unsigned char seed[randombytes_SEEDBYTES] = "personal";

    seed[8] = (unsigned char)number, seed[9] = (unsigned char)(number >> 8);
    randombytes_buf_deterministic(personal, BLAKE2B_PERSONAL, seed);
    if (number == 0)
        memset(personal, 0, BLAKE2B_PERSONAL); /* none at all */
}

static void assert_many(size_t width, const uint8_t *personal, size_t stride, size_t size, size_t count)
{
    uint8_t out[INPUTS][BLAKE2B_SIZE], want[BLAKE2B_SIZE];

    memset(out, 0xcc, sizeof out);
    blake2b_many_by(width, personal, bytes, stride, size, count, out[0]);
    for (size_t i = 0; i < INPUTS; i++) {
        memset(want, 0xcc, sizeof want); /* what is not asked for is not written */
        if (i < count)
            crypto_generichash_blake2b_salt_personal(want, sizeof want, bytes + i * stride, size, NULL, 0, NULL, personal);
        assert_memory_equal(out[i], want, sizeof want);
    }
}

static void every_length_gives_what_libsodium_gives(void **state)
{
    uint8_t personal[BLAKE2B_PERSONAL];

    (void)state;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes && lanes[i] <= blake2b_lanes(); i++)
        for (size_t size = 0; size <= MOST; size++) {
            personal_of(size, personal);
            assert_many(lanes[i], personal, size + size % 6, size, lanes[i] + (size % 3 == 0));
        }
}

static void every_count_of_inputs_is_hashed_and_no_more(void **state)
{
    static const size_t sizes[] = { 0, 1, 64, 127, 128, 129, 1024 };
    uint8_t personal[BLAKE2B_PERSONAL];

    (void)state;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes && lanes[i] <= blake2b_lanes(); i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t count = 0; count <= INPUTS; count++) {
                personal_of(count, personal);
                assert_many(lanes[i], personal, sizes[s], sizes[s], count);
            }
}

static void a_level_of_a_tree_may_replace_the_one_below(void **state)
{
    enum { PAIR = 2 * BLAKE2B_SIZE };
    uint8_t level[INPUTS * PAIR], want[INPUTS][BLAKE2B_SIZE], personal[BLAKE2B_PERSONAL];

    (void)state;
    personal_of(1, personal);
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes && lanes[i] <= blake2b_lanes(); i++) {
        memcpy(level, bytes, sizeof level);
        blake2b_many_by(1, personal, bytes, PAIR, PAIR, INPUTS, want[0]);
        blake2b_many_by(lanes[i], personal, level, PAIR, PAIR, INPUTS, level);
        assert_memory_equal(level, want, sizeof want);
    }
}

static void lanes_are_chosen_by_the_machine(void **state)
{
    uint8_t out[INPUTS][BLAKE2B_SIZE], want[INPUTS][BLAKE2B_SIZE], personal[BLAKE2B_PERSONAL];

    (void)state;
    personal_of(7, personal);
    blake2b_many(personal, bytes, 1000, 1000, INPUTS, out[0]);
    blake2b_many_by(1, personal, bytes, 1000, 1000, INPUTS, want[0]);
    assert_memory_equal(out, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_gives_what_libsodium_gives),
        cmocka_unit_test(every_count_of_inputs_is_hashed_and_no_more),
        cmocka_unit_test(a_level_of_a_tree_may_replace_the_one_below),
        cmocka_unit_test(lanes_are_chosen_by_the_machine),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
