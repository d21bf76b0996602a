#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "runtime/crypto/merkle_part.h"

/* The definition, as short as it can be: what the fast code must equal. */
static struct hash model(const uint8_t *bytes, size_t size)
{
    static const unsigned char leaf[16] = "rondo/leaf", node[16] = "rondo/node";
    struct hash out, pair[2];
    size_t left = MERKLE_LEAF;

    if (size <= MERKLE_LEAF) {
        crypto_generichash_blake2b_salt_personal(out.bytes, 32, bytes, size, NULL, 0, NULL, leaf);
        return out;
    }
    while (left * 2 < size)
        left *= 2;
    pair[0] = model(bytes, left);
    pair[1] = model(bytes + left, size - left);
    crypto_generichash_blake2b_salt_personal(out.bytes, 32, (const void *)pair, 64, NULL, 0, NULL, node);
    return out;
}

enum { MOST = 900 * MERKLE_LEAF };
static const size_t sizes[] = {
    0, 1, 1023, 1024, 1025, 2048, 3000, 7169, 65536, 66559, 262143, 262144, 262145, 300 * MERKLE_LEAF, 800 * MERKLE_LEAF + 7, MOST
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint8_t *noise(void)
{
    uint8_t *bytes = malloc(MOST);
    static const unsigned char seed[randombytes_SEEDBYTES] = "merkle_test";

    randombytes_buf_deterministic(bytes, MOST, seed);
    return bytes;
}

static void root_equals_the_definition_at_every_awkward_size(void **state)
{
    uint8_t *bytes = noise();

    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        assert_true(hash_equal(merkle_of(bytes, sizes[i]), model(bytes, sizes[i])));
    free(bytes);
}

static void tile_hash_is_a_node_of_the_whole_tree(void **state)
{
    enum { TILE = MERKLE_TILE * MERKLE_LEAF, SIZE = 300 * MERKLE_LEAF };
    uint8_t *bytes = noise();
    struct merkle_proof proof = merkle_prove(bytes, SIZE, 0);

    (void)state; /* 300 leaves: the right child is what follows the first tile */
    assert_true(hash_equal(proof.sibling[proof.depth - 1], merkle_of(bytes + TILE, SIZE - TILE)));
    free(bytes);
}

static void every_leaf_can_be_proved_and_no_other_bytes(void **state)
{
    uint8_t *bytes = noise();

    (void)state;
    for (size_t i = 1; i < SIZES; i++) {
        struct hash root = merkle_of(bytes, sizes[i]);

        for (size_t at = 0; at < sizes[i]; at += 37 * MERKLE_LEAF) {
            size_t size = sizes[i] - at < MERKLE_LEAF ? sizes[i] - at : MERKLE_LEAF;
            struct merkle_proof proof = merkle_prove(bytes, sizes[i], at / MERKLE_LEAF);

            assert_true(merkle_check(&proof, root, bytes + at, size));
            bytes[at] ^= 1;
            assert_false(merkle_check(&proof, root, bytes + at, size));
            bytes[at] ^= 1;
        }
    }
    free(bytes);
}

static void proof_from_outside_with_wrong_numbers_is_refused(void **state)
{
    uint8_t *bytes = noise();
    struct hash root = merkle_of(bytes, MOST);
    const struct merkle_proof good = merkle_prove(bytes, MOST, 5);
    struct merkle_proof bad;

    (void)state;
    bad = good, bad.leaf = good.leaves;
    assert_false(merkle_check(&bad, root, bytes + 5 * MERKLE_LEAF, MERKLE_LEAF));
    bad = good, bad.depth = SIZE_MAX;
    assert_false(merkle_check(&bad, root, bytes + 5 * MERKLE_LEAF, MERKLE_LEAF));
    bad = good, bad.leaves = UINT64_MAX;
    assert_false(merkle_check(&bad, root, bytes + 5 * MERKLE_LEAF, MERKLE_LEAF));
    bad = good, bad.leaf = 4;
    assert_false(merkle_check(&bad, root, bytes + 5 * MERKLE_LEAF, MERKLE_LEAF));
    free(bytes);
}

static void parts_large_enough_for_two_threads_have_the_roots_of_one(void **state)
{
    enum { LARGE = 9000 * MERKLE_LEAF + 77 };
    static const unsigned char seed[randombytes_SEEDBYTES] = "merkle_test";
    uint8_t *bytes = malloc(LARGE);
    const struct merkle_input parts[] = {
        { bytes, LARGE }, { NULL, 0 }, { bytes + 5, 1 }, { bytes, 1024 * MERKLE_LEAF }, { bytes + 3, 1700 * MERKLE_LEAF + 1 },
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    struct hash roots[PARTS];

    (void)state;
    randombytes_buf_deterministic(bytes, LARGE, seed);
    merkle_of_many(parts, PARTS, roots);
    for (size_t i = 0; i < PARTS; i++)
        assert_true(hash_equal(roots[i], model(parts[i].bytes, parts[i].size)));
    free(bytes);
}

/* A few ranges of bytes, drawn; of every size and with none wanted at all. */
static void want_some(struct merkle_part *part, uint32_t turn)
{
    for (uint32_t i = 0; i < turn % 4 && part->size > 0; i++) {
        const uint64_t first = (uint64_t)randombytes_uniform((uint32_t)part->size);

        merkle_part_want(part, first, 1 + randombytes_uniform((uint32_t)(part->size - first < 5000 ? part->size - first : 5000)));
    }
}

static void any_leaves_are_proved_together_and_no_other_bytes(void **state)
{
    uint8_t *bytes = noise(), *got = malloc(MOST);
    struct error err = { 0 };

    (void)state;
    for (uint32_t turn = 0; turn < 8 * SIZES; turn++) {
        const size_t size = sizes[turn % SIZES];
        const struct hash root = merkle_of(bytes, size);
        struct merkle_part part;
        struct buffer proof = { 0 };
        bool wanted = false;

        merkle_part_new(&part, size);
        want_some(&part, turn / SIZES);
        merkle_part_write(&part, bytes, &proof);

        struct reader in = reader_of(proof.bytes, proof.size);

        assert_true(merkle_part_read(&part, root, &in, got, &err) && reader_left(&in) == 0);
        for (uint64_t leaf = 0; leaf < part.leaves; leaf++) {
            const size_t at = (size_t)leaf * MERKLE_LEAF, end = at + MERKLE_LEAF < size ? at + MERKLE_LEAF : size;

            wanted |= part.wanted[leaf];
            assert_true(!part.wanted[leaf] || size == 0 || memcmp(got + at, bytes + at, end - at) == 0);
        }
        for (size_t i = 0; wanted && i < proof.size; i += 1 + proof.size / 50) {
            proof.bytes[i] ^= 4;
            in = reader_of(proof.bytes, proof.size);
            assert_false(merkle_part_read(&part, root, &in, got, &err));
            proof.bytes[i] ^= 4;
            in = reader_of(proof.bytes, i);
            assert_false(merkle_part_read(&part, root, &in, got, &err));
        }
        buffer_free(&proof);
        merkle_part_free(&part);
    }
    free(bytes);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_large_enough_for_two_threads_have_the_roots_of_one),
        cmocka_unit_test(root_equals_the_definition_at_every_awkward_size),
        cmocka_unit_test(tile_hash_is_a_node_of_the_whole_tree),
        cmocka_unit_test(every_leaf_can_be_proved_and_no_other_bytes),
        cmocka_unit_test(any_leaves_are_proved_together_and_no_other_bytes),
        cmocka_unit_test(proof_from_outside_with_wrong_numbers_is_refused),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
