/* tls.h - a server's own certificate, made from a secret each time it starts, and known by the fingerprint of its key.
 *
 *     secret of the node ── H("rondo/tls") ── Ed25519 key ── self-signed certificate ── SHA-256 of its public key: the fingerprint
 *
 *     https://10.0.0.5:7001#sha256=9f2c...   a URL with its pin: who calls it trusts this key and no authority, and whatever the name
 *
 * The fingerprint stands in the node's enrolment, which its DID signs, so no authority is asked. It is that of the key alone (SubjectPublicKeyInfo,
 * RFC 7469): the certificate around it is made anew, with new dates. An https URL without a pin is verified against the system's certificates.
 */
#ifndef RONDO_NET_TLS_H
#define RONDO_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { TLS_SECRET = 32, TLS_FINGERPRINT = 32, TLS_PIN_TEXT = 8 + 64 + 1 }; /* "#sha256=", digits, zero */

struct tls_certificate {
    char *key, *chain; /* owned: PEM */
    uint8_t fingerprint[TLS_FINGERPRINT];
};

/* Deterministic but for its dates. False with `err`: fault when the library refuses. */
bool tls_certificate_make(const uint8_t secret[TLS_SECRET], struct tls_certificate *out, struct error *err);
void tls_certificate_free(struct tls_certificate *certificate);

/* url + "#sha256=" + 64 lower-case digits, into `out`; false when it does not fit. */
bool tls_pin_add(const char *url, const uint8_t fingerprint[TLS_FINGERPRINT], char *out, size_t size);

/* The length of the URL without its pin; whether it has one, then in `fingerprint`. False (syntax) for a fragment that is no pin, and for a pin
 * on anything but https. */
bool tls_pin_split(const char *url, size_t *length, bool *pinned, uint8_t fingerprint[TLS_FINGERPRINT], struct error *err);

#endif
