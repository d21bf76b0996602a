#include "runtime/crypto/account.h"

#include <assert.h>
#include <secp256k1.h>
#include <secp256k1_recovery.h>
#include <sodium.h>
#include <string.h>

#include "native/base/hex.h"
#include "runtime/crypto/keccak.h"

/* Signing needs tables that are blinded against timing; verification does not and uses the library's constant context. */
static secp256k1_context *signing_context(void)
{
    secp256k1_context *context = secp256k1_context_create(SECP256K1_CONTEXT_SIGN);
    uint8_t blind[32];

    randombytes_buf(blind, sizeof blind);
    if (!secp256k1_context_randomize(context, blind))
        assert(!"randomising cannot fail");
    sodium_memzero(blind, sizeof blind);
    return context;
}

bool account_key_from_bytes(const uint8_t bytes[32], struct account_key *out)
{
    if (!secp256k1_ec_seckey_verify(secp256k1_context_static, bytes))
        return false;
    memcpy(out->bytes, bytes, sizeof out->bytes);
    return true;
}

void account_key_new(struct account_key *out)
{
    uint8_t bytes[32];

    do
        randombytes_buf(bytes, sizeof bytes);
    while (!account_key_from_bytes(bytes, out));
    sodium_memzero(bytes, sizeof bytes);
}

void account_key_wipe(struct account_key *key)
{
    sodium_memzero(key->bytes, sizeof key->bytes);
}

static struct address address_of(const secp256k1_pubkey *public)
{
    uint8_t bytes[65];
    size_t size = sizeof bytes;
    struct address out;

    secp256k1_ec_pubkey_serialize(secp256k1_context_static, bytes, &size, public, SECP256K1_EC_UNCOMPRESSED);
    struct hash digest = keccak256(bytes + 1, 64);

    memcpy(out.bytes, digest.bytes + 12, sizeof out.bytes);
    return out;
}

struct address account_address(const struct account_key *key)
{
    secp256k1_context *context = signing_context();
    secp256k1_pubkey public = { 0 };
    int ok = secp256k1_ec_pubkey_create(context, &public, key->bytes);

    assert(ok);
    (void)ok;
    secp256k1_context_destroy(context);
    return address_of(&public);
}

const char *address_text(struct address address, char text[ADDRESS_TEXT])
{
    memcpy(text, "0x", 2);
    hex_encode(address.bytes, ADDRESS_SIZE, text + 2);

    struct hash digest = keccak256(text + 2, 2 * ADDRESS_SIZE);

    for (size_t i = 0; i < 2 * ADDRESS_SIZE; i++) {
        unsigned nibble = i % 2 ? digest.bytes[i / 2] & 15u : digest.bytes[i / 2] >> 4;

        if (text[2 + i] >= 'a' && nibble >= 8)
            text[2 + i] = (char)(text[2 + i] - 'a' + 'A');
    }
    return text;
}

bool address_parse(const char *text, struct address *out)
{
    char lower[ADDRESS_TEXT], exact[ADDRESS_TEXT];

    if (strlen(text) != ADDRESS_TEXT - 1 || text[0] != '0' || text[1] != 'x')
        return false;
    for (size_t i = 0; i < ADDRESS_TEXT; i++)
        lower[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
    if (!hex_decode(lower + 2, 2 * ADDRESS_SIZE, out->bytes, ADDRESS_SIZE))
        return false;
    return strcmp(text, lower) == 0 || strcmp(text, address_text(*out, exact)) == 0;
}

bool address_equal(struct address a, struct address b)
{
    return address_compare(a, b) == 0;
}

int address_compare(struct address a, struct address b)
{
    return memcmp(a.bytes, b.bytes, ADDRESS_SIZE);
}

bool address_is_zero(struct address address)
{
    return sodium_is_zero(address.bytes, ADDRESS_SIZE);
}

struct account_signature account_sign(const struct account_key *key, struct hash digest)
{
    secp256k1_context *context = signing_context();
    secp256k1_ecdsa_recoverable_signature signature;
    struct account_signature out;
    int id = 0;
    int ok = secp256k1_ecdsa_sign_recoverable(context, &signature, digest.bytes, key->bytes, NULL, NULL);

    assert(ok);
    (void)ok;
    secp256k1_ecdsa_recoverable_signature_serialize_compact(context, out.bytes, &id, &signature);
    assert(id < 2); /* r above the group order: once in 2^127 */
    out.bytes[64] = (uint8_t)(27 + id);
    secp256k1_context_destroy(context);
    return out;
}

bool account_recover(const struct account_signature *signature, struct hash digest, struct address *out)
{
    const secp256k1_context *context = secp256k1_context_static;
    secp256k1_ecdsa_recoverable_signature recoverable;
    secp256k1_ecdsa_signature plain, low;
    secp256k1_pubkey public;
    uint8_t v = signature->bytes[64];

    if (v != 27 && v != 28)
        return false;
    if (!secp256k1_ecdsa_recoverable_signature_parse_compact(context, &recoverable, signature->bytes, v - 27))
        return false;
    secp256k1_ecdsa_recoverable_signature_convert(context, &plain, &recoverable);
    if (secp256k1_ecdsa_signature_normalize(context, &low, &plain))
        return false; /* s was in the upper half */
    if (!secp256k1_ecdsa_recover(context, &public, &recoverable, digest.bytes))
        return false;
    *out = address_of(&public);
    return true;
}
