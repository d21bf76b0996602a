#include "runtime/net/tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "native/base/hex.h"
#include "native/base/library.h"
#include "runtime/crypto/hash.h"
#include "runtime/crypto/sign.h"

#define GNUTLS_CALLS(CALL)                                                                                                       \
    CALL(gnutls_, free)                                                                                                          \
    CALL(gnutls_, strerror)                                                                                                      \
    CALL(gnutls_, x509_crt_deinit)                                                                                               \
    CALL(gnutls_, x509_crt_export2)                                                                                              \
    CALL(gnutls_, x509_crt_get_key_id)                                                                                           \
    CALL(gnutls_, x509_crt_init)                                                                                                 \
    CALL(gnutls_, x509_crt_set_activation_time)                                                                                  \
    CALL(gnutls_, x509_crt_set_dn_by_oid)                                                                                        \
    CALL(gnutls_, x509_crt_set_expiration_time)                                                                                  \
    CALL(gnutls_, x509_crt_set_key)                                                                                              \
    CALL(gnutls_, x509_crt_set_serial)                                                                                           \
    CALL(gnutls_, x509_crt_set_version)                                                                                          \
    CALL(gnutls_, x509_crt_sign2)                                                                                                \
    CALL(gnutls_, x509_privkey_deinit)                                                                                           \
    CALL(gnutls_, x509_privkey_export2_pkcs8)                                                                                    \
    CALL(gnutls_, x509_privkey_import_ecc_raw)                                                                                   \
    CALL(gnutls_, x509_privkey_init)

LIBRARY_CALLS(gnutls, GNUTLS_CALLS)
LIBRARY_LOAD(gnutls, LIBRARY_GNUTLS, GNUTLS_CALLS)

enum { BEFORE_S = 2 * 86400, AFTER_S = 3650 * 86400 };

static const char pin_head[] = "#sha256=";

/* RFC 8032, 5.1.5: the library takes the public point and the seed. */
static int key_make(const uint8_t secret[TLS_SECRET], gnutls_x509_privkey_t key)
{
    struct hash seed = hash_typed("rondo/tls", secret, TLS_SECRET);
    struct secret_key pair;
    int status;

    secret_key_from_seed(seed.bytes, &pair);

    struct public_key public = public_key_of(&pair);
    gnutls_datum_t x = { public.bytes, sizeof public.bytes }, k = { seed.bytes, sizeof seed.bytes };

    status = gnutls()->x509_privkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &x, NULL, &k);
    secret_key_wipe(&pair);
    sodium_memzero(&seed, sizeof seed);
    return status;
}

static int certificate_make(gnutls_x509_privkey_t key, gnutls_x509_crt_t crt)
{
    static const char name[] = "rondo";
    time_t now = time(NULL);
    uint8_t serial[16];
    int status = gnutls()->x509_crt_set_version(crt, 3);

    randombytes_buf(serial, sizeof serial);
    serial[0] = (uint8_t)((serial[0] & 0x3f) | 0x40); /* positive, of full length */
    if (status >= 0)
        status = gnutls()->x509_crt_set_serial(crt, serial, sizeof serial);
    if (status >= 0)
        status = gnutls()->x509_crt_set_activation_time(crt, now - BEFORE_S);
    if (status >= 0)
        status = gnutls()->x509_crt_set_expiration_time(crt, now + AFTER_S);
    if (status >= 0)
        status = gnutls()->x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, sizeof name - 1);
    if (status >= 0)
        status = gnutls()->x509_crt_set_key(crt, key);
    return status < 0 ? status : gnutls()->x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA512, 0);
}

static char *text_of(gnutls_datum_t datum)
{
    char *text = malloc(datum.size + 1);

    if (!text)
        abort();
    memcpy(text, datum.data, datum.size);
    text[datum.size] = '\0';
    sodium_memzero(datum.data, datum.size);
    (*gnutls()->free)(datum.data);
    return text;
}

static int export(gnutls_x509_privkey_t key, gnutls_x509_crt_t crt, struct tls_certificate *out)
{
    gnutls_datum_t text = { 0 };
    size_t size = sizeof out->fingerprint;
    int status = gnutls()->x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, out->fingerprint, &size);

    if (status >= 0 &&
        (status = gnutls()->x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &text)) >= 0)
        out->key = text_of(text);
    if (status >= 0 && (status = gnutls()->x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text)) >= 0)
        out->chain = text_of(text);
    return status;
}

bool tls_certificate_make(const uint8_t secret[TLS_SECRET], struct tls_certificate *out, struct error *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t crt = NULL;
    int status;

    *out = (struct tls_certificate){ 0 };
    status = gnutls()->x509_privkey_init(&key);
    if (status >= 0)
        status = gnutls()->x509_crt_init(&crt);
    if (status >= 0)
        status = key_make(secret, key);
    if (status >= 0)
        status = certificate_make(key, crt);
    if (status >= 0)
        status = export(key, crt, out);
    if (crt)
        gnutls()->x509_crt_deinit(crt);
    if (key)
        gnutls()->x509_privkey_deinit(key);
    if (status >= 0)
        return true;
    tls_certificate_free(out);
    return error_set(err, ERROR_FAULT, NULL, "no certificate: %s", gnutls()->strerror(status));
}

void tls_certificate_free(struct tls_certificate *c)
{
    if (c->key)
        sodium_memzero(c->key, strlen(c->key));
    free(c->key);
    free(c->chain);
    *c = (struct tls_certificate){ 0 };
}

bool tls_pin_add(const char *url, const uint8_t fingerprint[TLS_FINGERPRINT], char *out, size_t size)
{
    char digits[2 * TLS_FINGERPRINT + 1];

    hex_encode(fingerprint, TLS_FINGERPRINT, digits);
    return snprintf(out, size, "%s%s%s", url, pin_head, digits) < (int)size;
}

bool tls_pin_split(const char *url, size_t *length, bool *pinned, uint8_t fingerprint[TLS_FINGERPRINT], struct error *err)
{
    const char *fragment = strchr(url, '#');

    *pinned = fragment != NULL;
    *length = fragment ? (size_t)(fragment - url) : strlen(url);
    if (!fragment)
        return true;
    if (strncmp(fragment, pin_head, sizeof pin_head - 1) != 0 || strncasecmp(url, "https://", 8) != 0 ||
        strlen(fragment) != sizeof pin_head - 1 + 2 * TLS_FINGERPRINT ||
        !hex_decode(fragment + sizeof pin_head - 1, 2 * TLS_FINGERPRINT, fingerprint, TLS_FINGERPRINT))
        return error_set(err, ERROR_SYNTAX, "it looks like https://HOST:PORT#sha256= and 64 hexadecimal digits",
                         "%.300s: no pin of a certificate", url);
    return true;
}
