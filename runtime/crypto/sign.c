#include "runtime/crypto/sign.h"

#include <sodium.h>
#include <string.h>

void secret_key_new(struct secret_key *out)
{
    uint8_t seed[SIGN_SEED];

    randombytes_buf(seed, sizeof seed);
    secret_key_from_seed(seed, out);
    sodium_memzero(seed, sizeof seed);
}

void secret_key_from_seed(const uint8_t seed[SIGN_SEED], struct secret_key *out)
{
    uint8_t public[32];

    crypto_sign_ed25519_seed_keypair(public, out->bytes, seed);
}

void secret_key_wipe(struct secret_key *key)
{
    sodium_memzero(key->bytes, sizeof key->bytes);
}

struct public_key public_key_of(const struct secret_key *key)
{
    struct public_key out;

    memcpy(out.bytes, key->bytes + SIGN_SEED, sizeof out.bytes);
    return out;
}

bool public_key_valid(const struct public_key *key)
{
    return crypto_core_ed25519_is_valid_point(key->bytes) == 1;
}

bool public_key_equal(const struct public_key *a, const struct public_key *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct signature sign_message(const struct secret_key *key, const void *bytes, size_t size)
{
    struct signature out;

    crypto_sign_ed25519_detached(out.bytes, NULL, bytes, size, key->bytes);
    return out;
}

bool sign_verify(const struct public_key *key, const struct signature *signature, const void *bytes, size_t size)
{
    return public_key_valid(key) && sign_verify_valid(key, signature, bytes, size);
}

bool sign_verify_valid(const struct public_key *key, const struct signature *signature, const void *bytes, size_t size)
{
    return crypto_core_ed25519_is_valid_point(signature->bytes) == 1 &&
           crypto_sign_ed25519_verify_detached(signature->bytes, bytes, size, key->bytes) == 0;
}

/* The base point plus (0, -1), the point of order two. */
static const uint8_t mixed_order[32] = { 0x95, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99,
                                         0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99,
                                         0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99 };

/* RFC 8032, section 7.1, test 1: the empty message. */
static const struct public_key known_key = { { 0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                                               0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                                               0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a } };
static const struct signature known_signature = { { 0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc, 0x80,
                                                    0x6e, 0x82, 0x8a, 0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73,
                                                    0xe0, 0x65, 0x22, 0x49, 0x01, 0x55, 0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b,
                                                    0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b, 0xd2, 0x5b, 0xf5, 0xf0,
                                                    0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b } };

bool sign_self_test(struct error *err)
{
    const char *hint = "update libsodium (Debian 12: 1.0.18-1+deb12u1 or later)";

    if (sodium_init() < 0)
        return error_set(err, ERROR_FAULT, hint, "libsodium does not start");
    if (crypto_core_ed25519_is_valid_point(mixed_order) != 0)
        return error_set(err, ERROR_FAULT, hint, "libsodium accepts a point of mixed order (CVE-2025-69277)");
    if (!sign_verify(&known_key, &known_signature, "", 0))
        return error_set(err, ERROR_FAULT, hint, "libsodium refuses a valid signature");
    return true;
}
