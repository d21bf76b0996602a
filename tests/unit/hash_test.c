/* Hashes with types and the roots made of them. The expected values come from Python's hashlib.blake2b (person=type). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/crypto/keccak.h"
#include "runtime/crypto/root.h"

static void assert_hash(struct hash hash, const char *hex)
{
    char text[HASH_TEXT];

    assert_string_equal(hash_hex(hash, text), hex);
}

static void block_hash_is_plain_blake2b(void **state)
{
    (void)state;
    assert_hash(hash_block("", 0), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    assert_hash(hash_block("abc", 3), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void type_changes_the_hash(void **state)
{
    (void)state;
    assert_hash(hash_typed("rondo/seed", "abc", 3), "78e58a428f3492298eda717c735c7809a4dadcdad1143dccd95f01e811c57b53");
    assert_false(hash_equal(hash_typed("rondo/seed", "abc", 3), hash_typed("rondo/leaf", "abc", 3)));
}

static void many_at_once_equal_one_by_one(void **state)
{
    static uint8_t bytes[9 * 1024];
    static const size_t sizes[] = { 0, 1, 63, 64, 127, 128, 129, 255, 256, 257, 1000, 1024 };
    static const unsigned char seed[randombytes_SEEDBYTES] = "hash_test";

    (void)state;
    randombytes_buf_deterministic(bytes, sizeof bytes, seed);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t count = 0; count <= 9; count++) {
            struct hash out[9];

            hash_many("rondo/leaf", bytes, sizes[s], count, out);
            for (size_t i = 0; i < count; i++)
                assert_true(hash_equal(out[i], hash_typed("rondo/leaf", bytes + i * sizes[s], sizes[s])));
        }
}

static void parts_with_the_same_bytes_in_a_row_differ(void **state)
{
    struct hasher one, two;

    (void)state;
    hash_start(&one, "rondo/seed");
    hash_text(&one, "ab"), hash_text(&one, "c");
    hash_start(&two, "rondo/seed");
    hash_text(&two, "a"), hash_text(&two, "bc");
    assert_false(hash_equal(hash_end(&one), hash_end(&two)));
}

static void hash_text_is_read_back_and_nothing_else(void **state)
{
    struct hash hash = hash_block("abc", 3), again;
    char text[HASH_TEXT];

    (void)state;
    hash_hex(hash, text);
    assert_true(hash_parse(text, &again) && hash_equal(hash, again));
    text[0] = 'B';
    assert_false(hash_parse(text, &again));
    assert_false(hash_parse("bddd", &again));
}

static void keccak_uses_the_original_padding(void **state)
{
    char long_text[200];

    (void)state;
    assert_hash(keccak256("", 0), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    assert_hash(keccak256("abc", 3), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    memset(long_text, 'a', sizeof long_text); /* 135, 136 and 137 stand around the rate; values from an independent Python text */
    assert_hash(keccak256(long_text, 135), "34367dc248bbd832f4e3e69dfaac2f92638bd0bbd18f2912ba4ef454919cf446");
    assert_hash(keccak256(long_text, 136), "a6c4d403279fe3e0af03729caada8374b5ca54d8065329a3ebcaeb4b60aa386e");
    assert_hash(keccak256(long_text, 137), "d869f639c7046b4929fc92a4d988a8b22c55fbadb802c0c66ebcd484f1915f39");
}

static const float six[6] = { 0, 1, 2, 3, 4, 5 };
static const int32_t seven = 7;

static void state_root_is_the_tree_over_entries_in_name_order(void **state)
{
    struct named_tensor tensors[2] = { { .name = "a", .code = CODE_F32, .rank = 2, .dims = { 2, 3 }, .bytes = six },
                                       { .name = "b", .code = CODE_I32, .rank = 0, .bytes = &seven } };
    struct hash root;
    struct error err;

    (void)state;
    assert_true(root_of_state(tensors, 2, &root, &err));
    assert_hash(root, "7bb6eb6b26e0707b3899a249dc723cad8e64dfbe0bddf225162a16dd711a9c79");
    assert_true(root_of_state(NULL, 0, &root, &err));
    assert_hash(root, "7c6007f64cad19eb6474f8ef7df233fcb59266f4ceac946a6039c62ae7c8a2ec");
    tensors[0].dims[0] = 3, tensors[0].dims[1] = 2;
    assert_true(root_of_state(tensors, 2, &root, &err));
    assert_false(hash_equal(root, root_empty()));
}

static void state_roots_of_any_number_of_tensors_are_those_of_their_entries(void **state)
{
    enum { MOST = 70 };
    static char names[MOST][32];
    struct named_tensor tensors[MOST];
    struct error err;

    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "%02zu%.*s", i, (int)(i * 7 % 11), "abcdefghijkl");
        tensors[i] =
            (struct named_tensor){ .name = names[i], .code = CODE_F32, .rank = i % 4, .dims = { 1 + i % 6, 1, 1 }, .bytes = six };
    }
    for (size_t count = 0; count <= MOST; count++) {
        struct merkle tree;
        struct hash root;

        merkle_start(&tree);
        for (size_t i = 0; i < count; i++) {
            uint64_t values, size;

            assert_true(named_tensor_size(&tensors[i], &values, &size));
            merkle_add_hash(&tree, root_entry(&tensors[i], merkle_of(six, (size_t)size)));
        }
        assert_true(root_of_state(tensors, count, &root, &err));
        assert_true(hash_equal(root, merkle_root(&tree)));
    }
}

static void state_out_of_order_or_too_large_is_refused(void **state)
{
    struct named_tensor tensors[2] = { { .name = "b", .code = CODE_I32, .bytes = &seven },
                                       { .name = "a", .code = CODE_I32, .bytes = &seven } };
    struct hash root;
    struct error err;

    (void)state;
    assert_false(root_of_state(tensors, 2, &root, &err));
    assert_int_equal(err.code, ERROR_RANGE);
    tensors[1].name = "b";
    assert_false(root_of_state(tensors, 2, &root, &err));
    assert_int_equal(err.code, ERROR_DUPLICATE);
    tensors[0] =
        (struct named_tensor){ .name = "b", .code = CODE_F64, .rank = 2, .dims = { UINT64_C(1) << 32, UINT64_C(1) << 32 } };
    assert_false(root_of_state(tensors, 1, &root, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_hash_is_plain_blake2b),
        cmocka_unit_test(type_changes_the_hash),
        cmocka_unit_test(many_at_once_equal_one_by_one),
        cmocka_unit_test(parts_with_the_same_bytes_in_a_row_differ),
        cmocka_unit_test(hash_text_is_read_back_and_nothing_else),
        cmocka_unit_test(keccak_uses_the_original_padding),
        cmocka_unit_test(state_root_is_the_tree_over_entries_in_name_order),
        cmocka_unit_test(state_roots_of_any_number_of_tensors_are_those_of_their_entries),
        cmocka_unit_test(state_out_of_order_or_too_large_is_refused),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
