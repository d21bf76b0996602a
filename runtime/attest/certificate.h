/* certificate.h - the part of an X.509 certificate (RFC 5280) that a vendor's chain to a machine's key needs.
 *
 *     signed     [ version 3 | serial | algorithm | issuer | validity | subject | key | extensions ]
 *     algorithm  RSASSA-PSS, SHA-384, salt 48: no other
 *     signature
 *
 * Nothing else is taken: no other version, no unique ids, no extension twice, no byte behind the end. Validity is not compared with anything:
 * whether evidence stands may not depend on a clock (docs/protocol.md, section 3).
 */
#ifndef RONDO_ATTEST_CERTIFICATE_H
#define RONDO_ATTEST_CERTIFICATE_H

#include "native/base/error.h"
#include "runtime/attest/der.h"

enum { CERTIFICATE_NAME = 64, CERTIFICATE_EXTENSIONS = 32 };

/* Borrows the bytes it was read from. */
struct certificate {
    struct der whole, body, issuer, subject, key, extensions, signature;
    char name[CERTIFICATE_NAME]; /* the subject's common name */
};

bool certificate_read(struct der bytes, struct certificate *out, struct error *err);

/* The value of the extension with this OID (its content octets). False when there is none. */
bool certificate_extension(const struct certificate *c, struct der oid, struct der *value);

/* Whether `c` names `issuer` as its issuer and is signed by its key. */
bool certificate_is_from(const struct certificate *c, const struct certificate *issuer);

#endif
