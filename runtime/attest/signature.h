/* signature.h - the two signatures of machine evidence, by libcrypto, which is loaded with the first of them (native/base/library.h).
 *
 * The library gets numbers whose form was looked at here, and says yes or no: no certificate reaches it.
 */
#ifndef RONDO_ATTEST_SIGNATURE_H
#define RONDO_ATTEST_SIGNATURE_H

#include "runtime/attest/der.h"

enum { P384_SIZE = 48 };

/* Whether a SubjectPublicKeyInfo is, byte for byte, one of an RSA key of 4096 bits with the exponent 65537, or of a point of P-384. */
bool signature_key_is_rsa(struct der key);
bool signature_key_is_p384(struct der key);

/* RSASSA-PSS with SHA-384, MGF1 with SHA-384, 48 bytes of salt (RFC 8017). */
bool signature_rsa_stands(struct der key, struct der message, struct der signature);

/* ECDSA with SHA-384; r and s big-endian, each from 1 to the order less 1. */
bool signature_p384_stands(struct der key, struct der message, const uint8_t r[P384_SIZE], const uint8_t s[P384_SIZE]);

#endif
