/* Ledger accounts and what they sign, against vectors that another chain client and a contract made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/hex.h"
#include "runtime/crypto/keccak.h"
#include "runtime/crypto/release.h"

static void unhex(const char *text, void *bytes, size_t size)
{
    assert_true(hex_decode(text, strlen(text), bytes, size));
}

/* The public development key of common test networks. */
static struct account_key development_key(void)
{
    struct account_key key;
    uint8_t bytes[32];

    unhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80", bytes, 32);
    assert_true(account_key_from_bytes(bytes, &key));
    return key;
}

/* EIP-55's own examples. */
static void address_text_has_the_capitals_of_eip_55(void **state)
{
    static const char *const good[] = { "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
                                        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
                                        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
                                        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb" };
    char text[ADDRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct address address;

        assert_true(address_parse(good[i], &address));
        assert_string_equal(address_text(address, text), good[i]);
    }
}

static void address_with_one_wrong_capital_is_refused(void **state)
{
    struct address address;

    (void)state;
    assert_true(address_parse("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", &address));
    assert_false(address_parse("0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", &address));
    assert_false(address_parse("0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", &address));
    assert_false(address_parse("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", &address));
    assert_false(address_parse("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae", &address));
}

/* Hash and signature of a type 2 transaction, made by another client with the same key (RFC 6979 nonces). */
static void signature_equals_the_vector_and_its_signer_is_recovered(void **state)
{
    struct account_key key = development_key();
    struct address address = account_address(&key), signer;
    struct hash digest;
    uint8_t r[32], s[32];
    char text[ADDRESS_TEXT];

    (void)state;
    assert_string_equal(address_text(address, text), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    unhex("878db29c309006ba4d85bad3b6820a476b75d6be16afb899178a6de28fe6d17d", digest.bytes, 32);
    unhex("52e9ca04067a0a410aacdb9bebc8ec1eb4e04196d18b07b68c2b8e11259668d5", r, 32);
    unhex("17182fe7f91d5c82f5f754ac0b120e01efd474cae558dcc68728d47c95f3e780", s, 32);
    struct account_signature signature = account_sign(&key, digest);

    assert_memory_equal(signature.bytes, r, 32);
    assert_memory_equal(signature.bytes + 32, s, 32);
    assert_int_equal(signature.bytes[64], 28);
    assert_true(account_recover(&signature, digest, &signer));
    assert_true(address_equal(address, signer));
}

static void malleable_and_malformed_signatures_are_refused(void **state)
{
    static const uint8_t order[32] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48,
                                       0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41 };
    struct account_key key = development_key();
    struct hash digest = keccak256("x", 1);
    struct account_signature good = account_sign(&key, digest), bad = good;
    struct address signer;

    (void)state;
    for (int i = 31, borrow = 0; i >= 0; i--) { /* s becomes n - s, v the other parity: the same signature again */
        int digit = order[i] - good.bytes[32 + i] - borrow;

        borrow = digit < 0;
        bad.bytes[32 + i] = (uint8_t)digit;
    }
    bad.bytes[64] = (uint8_t)(27 + 28 - good.bytes[64]);
    assert_false(account_recover(&bad, digest, &signer));
    bad = good, bad.bytes[64] = 0;
    assert_false(account_recover(&bad, digest, &signer));
    bad.bytes[64] = 29;
    assert_false(account_recover(&bad, digest, &signer));
    bad = good, memset(bad.bytes, 0, 32);
    assert_false(account_recover(&bad, digest, &signer));
    bad = good, memset(bad.bytes, 0xff, 32);
    assert_false(account_recover(&bad, digest, &signer));
}

static void key_outside_the_group_is_refused(void **state)
{
    uint8_t bytes[32] = { 0 };
    struct account_key key;

    (void)state;
    assert_false(account_key_from_bytes(bytes, &key));
    memset(bytes, 0xff, sizeof bytes);
    assert_false(account_key_from_bytes(bytes, &key));
}

/* Matched on chain by an OpenZeppelin contract. */
static void release_digest_equals_the_contracts(void **state)
{
    struct release_domain domain = { .chain = 31337 };
    struct release release = { .total = 1000, .deadline = 2000000000 };
    char text[HASH_TEXT];

    (void)state;
    assert_true(address_parse("0x5FbDB2315678afecb367f032d93F642f64180aa3", &domain.contract));
    memset(release.escrow.bytes, 0x11, 32);
    memset(release.record.bytes, 0x22, 32);
    memset(release.payout_root.bytes, 0x33, 32);
    assert_string_equal(hash_hex(release_digest(&domain, &release), text),
                        "876c6731759d6eb745f6fb7414940c90c69c4f65a295b3f709d017d2657b4037");
}

/* The bytes as the ABI specification lays out (address[], uint256[]). */
static void payout_root_is_the_hash_of_the_abi_text(void **state)
{
    static const char words[] = "0000000000000000000000000000000000000000000000000000000000000040"
                                "00000000000000000000000000000000000000000000000000000000000000a0"
                                "0000000000000000000000000000000000000000000000000000000000000002"
                                "0000000000000000000000001111111111111111111111111111111111111111"
                                "0000000000000000000000002222222222222222222222222222222222222222"
                                "0000000000000000000000000000000000000000000000000000000000000002"
                                "0000000000000000000000000000000000000000000000000000000000000007"
                                "0000000000000000000000000000000080000000000000000000000000000000";
    struct address payees[2];
    const unsigned __int128 amounts[2] = { 7, (unsigned __int128)1 << 127 };
    uint8_t bytes[(sizeof words - 1) / 2];

    (void)state;
    memset(payees[0].bytes, 0x11, 20);
    memset(payees[1].bytes, 0x22, 20);
    unhex(words, bytes, sizeof bytes);
    assert_true(hash_equal(release_payout_root(payees, amounts, 2), keccak256(bytes, sizeof bytes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_text_has_the_capitals_of_eip_55),
        cmocka_unit_test(address_with_one_wrong_capital_is_refused),
        cmocka_unit_test(signature_equals_the_vector_and_its_signer_is_recovered),
        cmocka_unit_test(malleable_and_malformed_signatures_are_refused),
        cmocka_unit_test(key_outside_the_group_is_refused),
        cmocka_unit_test(release_digest_equals_the_contracts),
        cmocka_unit_test(payout_root_is_the_hash_of_the_abi_text),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
