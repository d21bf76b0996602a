/* sign.h - Ed25519 keys and signatures (RFC 8032), with an acceptance rule of our own.
 *
 * Libraries disagree about odd signatures, and one library about itself from version to version; a network that accepts on one
 * machine and refuses on another splits. Accepted is: S canonical (below the group order), A and R canonical encodings of points
 * of the prime-order subgroup, and then the equation. Under that rule the cofactorless and the cofactored equation agree.
 * Batch verification is not used.
 */
#ifndef RONDO_CRYPTO_SIGN_H
#define RONDO_CRYPTO_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { SIGN_SEED = 32, SIGNATURE_SIZE = 64 };

struct public_key {
    uint8_t bytes[32];
};

struct secret_key {
    uint8_t bytes[64]; /* seed, then public key */
};

struct signature {
    uint8_t bytes[SIGNATURE_SIZE];
};

void secret_key_new(struct secret_key *out); /* from the system's randomness */
void secret_key_from_seed(const uint8_t seed[SIGN_SEED], struct secret_key *out);
void secret_key_wipe(struct secret_key *key);
struct public_key public_key_of(const struct secret_key *key);

/* A canonical point of the prime-order subgroup. */
bool public_key_valid(const struct public_key *key);
bool public_key_equal(const struct public_key *a, const struct public_key *b);

struct signature sign_message(const struct secret_key *key, const void *bytes, size_t size);
bool sign_verify(const struct public_key *key, const struct signature *signature, const void *bytes, size_t size);
/* The same under a key that public_key_valid was asked about before. */
bool sign_verify_valid(const struct public_key *key, const struct signature *signature, const void *bytes, size_t size);

/* Starts the library and checks that it refuses a point of mixed order (CVE-2025-69277) and accepts a known signature. To be
 * called once at start; a library that fails must not be used. */
bool sign_self_test(struct error *err);

#endif
