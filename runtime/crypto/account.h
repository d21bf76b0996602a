/* account.h - ledger accounts: secp256k1 keys, addresses, signatures whose signer can be recovered.
 *
 *     address    last 20 bytes of keccak256(public key without its 0x04); text "0x" and 40 digits, capitals by EIP-55
 *     signature  r (32) ‖ s (32) ‖ v (27 or 28), s in the lower half of the group (EIP-2); any other is refused
 *
 * Signing is deterministic (RFC 6979).
 */
#ifndef RONDO_CRYPTO_ACCOUNT_H
#define RONDO_CRYPTO_ACCOUNT_H

#include "native/base/error.h"
#include "runtime/crypto/hash.h"

enum { ADDRESS_SIZE = 20, ADDRESS_TEXT = 43, ACCOUNT_SIGNATURE_SIZE = 65 };

struct address {
    uint8_t bytes[ADDRESS_SIZE];
};

struct account_key {
    uint8_t bytes[32];
};

struct account_signature {
    uint8_t bytes[ACCOUNT_SIGNATURE_SIZE];
};

void account_key_new(struct account_key *out);
/* False when the bytes are zero or not below the group order. */
bool account_key_from_bytes(const uint8_t bytes[32], struct account_key *out);
void account_key_wipe(struct account_key *key);
struct address account_address(const struct account_key *key);

const char *address_text(struct address address, char text[ADDRESS_TEXT]);
/* Accepts all lower case, or exactly the capitals of EIP-55. */
bool address_parse(const char *text, struct address *out);
bool address_equal(struct address a, struct address b);
int address_compare(struct address a, struct address b);
bool address_is_zero(struct address address);

struct account_signature account_sign(const struct account_key *key, struct hash digest);
/* The address that signed the digest; false for anything that is not a canonical signature. */
bool account_recover(const struct account_signature *signature, struct hash digest, struct address *out);

#endif
