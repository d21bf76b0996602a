/* Which Ed25519 signatures are accepted, and that keys lie safely on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/crypto/sign.h"

static void unhex(const char *text, void *bytes, size_t size)
{
    assert_true(hex_decode(text, strlen(text), bytes, size));
}

static void library_passes_its_self_test(void **state)
{
    struct error err;

    (void)state;
    assert_true(sign_self_test(&err));
}

/* RFC 8032, section 7.1, test 2. */
static void signature_equals_the_vector_of_the_rfc(void **state)
{
    uint8_t seed[32], expected[64], message = 0x72;
    struct secret_key key;

    (void)state;
    unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", seed, 32);
    unhex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d29"
          "1612bb0c00",
          expected, 64);
    secret_key_from_seed(seed, &key);
    struct signature signature = sign_message(&key, &message, 1);
    struct public_key public = public_key_of(&key);

    assert_memory_equal(signature.bytes, expected, 64);
    assert_true(sign_verify(&public, &signature, &message, 1));
    message ^= 1;
    assert_false(sign_verify(&public, &signature, &message, 1));
}

/* Chalkias, Garillot, Nikolaenko: Taming the many EdDSAs (2020), table 6, cases 0 to 9. Libraries disagree on all of them;
 * every one has a small-order, mixed-order or non-canonical part, or an S above the group order. */
static const char *const odd[][3] = {
    { "8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000"
      "000000" },
    { "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b454"
      "50ac04" },
    { "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
      "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833"
      "ca260e" },
    { "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
      "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
      "9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a9"
      "8bd009" },
    { "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
      "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
      "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940"
      "551a09" },
    { "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
      "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
      "21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586"
      "687405" },
    { "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
      "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
      "e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369b"
      "a3a514" },
    { "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
      "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
      "8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e8"
      "9a8c22" },
    { "fdaebc429f4a735932a160da1301080c13280eea8bc280d1b392c6b9e6ba3a5a",
      "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f454d370c8d9fc323a41450f8d513eafeb5b0697390c1e505a0d4ddc71f"
      "566607" },
    { "84b698d39be126ff55fe45079e6c8bf64a0d7db6994560b4e96b7021eb39c1a1",
      "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f084d5b99c2a9463d9c8bd5026916996984eeec87ddf1d3be329006ace1"
      "b37b09" },
};

static void signatures_on_which_libraries_disagree_are_all_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        uint8_t message[32];
        struct public_key key;
        struct signature signature;

        unhex(odd[i][0], message, 32);
        unhex(odd[i][1], key.bytes, 32);
        unhex(odd[i][2], signature.bytes, 64);
        assert_false(sign_verify(&key, &signature, message, 32));
    }
}

/* The same paper, table 1: every text of the eight points of small order, canonical or not. */
static void keys_of_small_order_are_refused(void **state)
{
    static const char *const small[] = {
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };

    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        struct public_key key;

        unhex(small[i], key.bytes, 32);
        assert_false(public_key_valid(&key));
    }
}

/* S + L satisfies the same equation. */
static void second_form_of_s_is_refused(void **state)
{
    static const uint8_t order[32] = { 0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                       0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10 };
    struct secret_key key;

    (void)state;
    secret_key_new(&key);
    struct public_key public = public_key_of(&key);
    struct signature signature = sign_message(&key, "x", 1);

    assert_true(sign_verify(&public, &signature, "x", 1));
    for (unsigned i = 0, carry = 0; i < 32; i++) {
        carry += signature.bytes[32 + i] + order[i];
        signature.bytes[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_false(sign_verify(&public, &signature, "x", 1));
}

static void one_flipped_bit_anywhere_is_refused(void **state)
{
    uint8_t seed[32] = "one flipped bit";
    struct secret_key key;

    (void)state;
    secret_key_from_seed(seed, &key);
    struct public_key public = public_key_of(&key);
    struct signature good = sign_message(&key, "message", 7);

    for (size_t bit = 0; bit < 512; bit++) {
        struct signature bad = good;

        bad.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(sign_verify(&public, &bad, "message", 7));
    }
}

static char folder[] = "/tmp/rondo_sign_XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/key", mkdtemp(folder));
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void key_file_is_read_back_and_never_overwritten(void **state)
{
    struct key_pair pair, again;
    struct error err;
    struct stat st;

    (void)state;
    key_pair_new(&pair);
    assert_true(keyfile_write(path, &pair, NULL, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(keyfile_read(path, NULL, &again, &err));
    assert_memory_equal(&pair, &again, sizeof pair);
    assert_false(keyfile_write(path, &pair, NULL, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);

    chmod(path, 0640);
    assert_false(keyfile_read(path, NULL, &again, &err));
    assert_int_equal(err.code, ERROR_REFUSED);
    assert_non_null(strstr(err.hint, "chmod 600"));
    unlink(path);
}

static void key_file_with_a_passphrase_opens_only_with_it(void **state)
{
    struct key_pair pair, again;
    struct error err;
    struct buffer text = { 0 };
    char seed[65];

    (void)state;
    key_pair_derive("seed", "syncer-1", &pair);
    assert_true(keyfile_write(path, &pair, "correct horse", &err));
    assert_true(file_read(path, 4096, &text, &err));
    assert_null(strstr(buffer_text(&text), hex_encode(pair.identity.bytes, 32, seed)));
    buffer_free(&text);
    assert_false(keyfile_read(path, NULL, &again, &err));
    assert_int_equal(err.code, ERROR_REFUSED);
    assert_false(keyfile_read(path, "wrong", &again, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    assert_true(keyfile_read(path, "correct horse", &again, &err));
    assert_memory_equal(&pair, &again, sizeof pair);
    unlink(path);
}

static void key_file_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "{}",
                                       "[1]",
                                       "{\"kind\":\"rondo-key\",\"version\":1}",
                                       "{\"kind\":\"rondo-key\",\"version\":1,\"sealed\":1}",
                                       "{\"kind\":\"rondo-key\",\"version\":1,\"seed\":\"00\",\"account\":\"00\"}" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct key_pair pair;
        struct error err;

        assert_true(file_write(path, bad[i], strlen(bad[i]), 0600, &err));
        assert_false(keyfile_read(path, "x", &pair, &err));
        assert_int_equal(error_status(err.code), 3);
    }
    unlink(path);
}

static void test_keys_follow_from_seed_and_name(void **state)
{
    struct key_pair one, two;

    (void)state;
    key_pair_derive("7", "syncer-1", &one);
    key_pair_derive("7", "syncer-1", &two);
    assert_memory_equal(&one, &two, sizeof one);
    key_pair_derive("7", "syncer-2", &two);
    assert_memory_not_equal(&one, &two, sizeof one);
    key_pair_derive("7s", "yncer-1", &two);
    assert_memory_not_equal(&one, &two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_passes_its_self_test),
        cmocka_unit_test(signature_equals_the_vector_of_the_rfc),
        cmocka_unit_test(signatures_on_which_libraries_disagree_are_all_refused),
        cmocka_unit_test(keys_of_small_order_are_refused),
        cmocka_unit_test(second_form_of_s_is_refused),
        cmocka_unit_test(one_flipped_bit_anywhere_is_refused),
        cmocka_unit_test(key_file_is_read_back_and_never_overwritten),
        cmocka_unit_test(key_file_with_a_passphrase_opens_only_with_it),
        cmocka_unit_test(key_file_that_is_none_is_refused),
        cmocka_unit_test(test_keys_follow_from_seed_and_name),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, make_folder, drop_folder);
}
