#include "runtime/attest/signature.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>

#include "native/base/library.h"

#define CRYPTO_CALLS(CALL)                                                                                                       \
    CALL(, d2i_PUBKEY)                                                                                                           \
    CALL(ERR_, clear_error)                                                                                                      \
    CALL(EVP_, DigestVerify)                                                                                                     \
    CALL(EVP_, DigestVerifyInit)                                                                                                 \
    CALL(EVP_, MD_CTX_free)                                                                                                      \
    CALL(EVP_, MD_CTX_new)                                                                                                       \
    CALL(EVP_, PKEY_CTX_set_rsa_mgf1_md)                                                                                         \
    CALL(EVP_, PKEY_CTX_set_rsa_padding)                                                                                         \
    CALL(EVP_, PKEY_CTX_set_rsa_pss_saltlen)                                                                                     \
    CALL(EVP_, PKEY_free)                                                                                                        \
    CALL(EVP_, sha384)

LIBRARY_CALLS(crypto, CRYPTO_CALLS)
LIBRARY_LOAD(crypto, LIBRARY_CRYPTO, CRYPTO_CALLS)

enum { RSA_MODULUS = 512, SALT = 48 };

/* RFC 8017 and RFC 5480: all that stands around the numbers. */
static const uint8_t rsa_head[] = { 0x30, 0x82, 0x02, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48,
                                    0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82, 0x02,
                                    0x0f, 0x00, 0x30, 0x82, 0x02, 0x0a, 0x02, 0x82, 0x02, 0x01, 0x00 };
static const uint8_t rsa_tail[] = { 0x02, 0x03, 0x01, 0x00, 0x01 };
static const uint8_t p384_head[] = { 0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02,
                                     0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22, 0x03, 0x62, 0x00, 0x04 };
static const uint8_t p384_order[P384_SIZE] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                               0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                               0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf, 0x58, 0x1a, 0x0d, 0xb2,
                                               0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73 };

bool signature_key_is_rsa(struct der key)
{
    return key.size == sizeof rsa_head + RSA_MODULUS + sizeof rsa_tail && memcmp(key.at, rsa_head, sizeof rsa_head) == 0 &&
           key.at[sizeof rsa_head] >= 0x80 && memcmp(key.at + sizeof rsa_head + RSA_MODULUS, rsa_tail, sizeof rsa_tail) == 0;
}

bool signature_key_is_p384(struct der key)
{
    return key.size == sizeof p384_head + 2 * P384_SIZE && memcmp(key.at, p384_head, sizeof p384_head) == 0;
}

static bool use_pss(EVP_PKEY_CTX *settings)
{
    return crypto()->PKEY_CTX_set_rsa_padding(settings, RSA_PKCS1_PSS_PADDING) > 0 &&
           crypto()->PKEY_CTX_set_rsa_pss_saltlen(settings, SALT) > 0 &&
           crypto()->PKEY_CTX_set_rsa_mgf1_md(settings, crypto()->sha384()) > 0;
}

static bool stands(struct der key, bool pss, struct der message, struct der signature)
{
    const unsigned char *at = key.at;
    EVP_PKEY *public = crypto()->d2i_PUBKEY(NULL, &at, (long)key.size);
    EVP_MD_CTX *verifier = public ? crypto()->MD_CTX_new() : NULL;
    EVP_PKEY_CTX *settings = NULL; /* the verifier's */
    bool good = verifier && crypto()->DigestVerifyInit(verifier, &settings, crypto()->sha384(), NULL, public) > 0 &&
                (!pss || use_pss(settings)) &&
                crypto()->DigestVerify(verifier, signature.at, signature.size, message.at, message.size) == 1;

    crypto()->MD_CTX_free(verifier);
    crypto()->PKEY_free(public);
    crypto()->clear_error();
    return good;
}

bool signature_rsa_stands(struct der key, struct der message, struct der signature)
{
    return signature_key_is_rsa(key) && signature.size == RSA_MODULUS && stands(key, true, message, signature);
}

static bool in_range(const uint8_t number[P384_SIZE])
{
    static const uint8_t zero[P384_SIZE];

    return memcmp(number, zero, P384_SIZE) > 0 && memcmp(number, p384_order, P384_SIZE) < 0;
}

/* Appends an INTEGER in its shortest form. */
static size_t put_integer(uint8_t *out, const uint8_t number[P384_SIZE])
{
    size_t zeros = 0, size;

    while (zeros < P384_SIZE - 1 && !number[zeros])
        zeros++;
    const bool high = number[zeros] >= 0x80;

    size = P384_SIZE - zeros + high;
    out[0] = DER_INTEGER;
    out[1] = (uint8_t)size;
    out[2] = 0;
    memcpy(out + 2 + high, number + zeros, P384_SIZE - zeros);
    return 2 + size;
}

bool signature_p384_stands(struct der key, struct der message, const uint8_t r[P384_SIZE], const uint8_t s[P384_SIZE])
{
    uint8_t pair[2 + 2 * (3 + P384_SIZE)] = { DER_SEQUENCE };
    size_t size = 2;

    if (!signature_key_is_p384(key) || !in_range(r) || !in_range(s))
        return false;
    size += put_integer(pair + size, r);
    size += put_integer(pair + size, s);
    pair[1] = (uint8_t)(size - 2); /* below 128 */
    return stands(key, false, message, (struct der){ pair, size });
}
