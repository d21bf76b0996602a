/* request_key.h - a request that says whose it is: one header, signed by the key of a machine.
 *
 *     Authorization: Rondo <did> <ms since 1970> <hash of the body, hexadecimal, or -> <signature, base64>
 *
 * signed:  "rondo request" LF method LF origin LF path LF ms LF hash LF      (path without its query; origin "https://10.0.0.5:7001")
 *
 * It gives no rights: documents and blocks prove themselves. It says whom to hold to account when an address has sent too much, so that
 * others behind the same address are heard (sender.h), and is looked at only then. Bound to origin and body, and to REQUEST_KEY_MS, it is of
 * no use to whoever reads it.
 */
#ifndef RONDO_NET_REQUEST_KEY_H
#define RONDO_NET_REQUEST_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/crypto/hash.h"
#include "runtime/crypto/sign.h"

enum { REQUEST_KEY_TEXT = 320, REQUEST_KEY_MS = 120000 };

struct request_key {
    struct public_key key;
    bool has_body;
    struct hash body;
};

/* Milliseconds since 1970, of this machine. */
int64_t request_key_now(void);

/* scheme://host:port of a URL in lower case, without what follows. False when it does not fit. */
bool request_origin(const char *url, char *out, size_t size);

/* The header's value for a request to `url`. False when the URL is not one. */
bool request_key_make(const struct secret_key *key, const char *method, const char *url, const void *body, size_t size,
                      char out[REQUEST_KEY_TEXT]);

/* Reads key and hash out of a header's value, nothing verified. */
bool request_key_parse(const char *value, struct request_key *out);

/* Whether the value is that key's word for this request. */
bool request_key_verify(const char *value, const char *method, const char *origin, const char *path, int64_t now_ms);

#endif
