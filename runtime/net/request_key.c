#include "runtime/net/request_key.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/doc/did.h"

enum { SIGNED = 1024 };

int64_t request_key_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool request_origin(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    size_t length;

    if (!host)
        return false;
    length = (size_t)(host - url) + 3 + strcspn(host + 3, "/?#");
    if (length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)tolower((unsigned char)url[i]);
    out[length] = '\0';
    return true;
}

static size_t signed_text(const char *method, const char *origin, const char *path, int64_t ms, const char *hash,
                          char out[SIGNED])
{
    int size = snprintf(out, SIGNED, "rondo request\n%s\n%s\n%.*s\n%lld\n%s\n", method, origin, (int)strcspn(path, "?#"), path,
                        (long long)ms, hash);

    return size > 0 && size < SIGNED ? (size_t)size : 0;
}

bool request_key_make(const struct secret_key *key, const char *method, const char *url, const void *body, size_t size,
                      char out[REQUEST_KEY_TEXT])
{
    char origin[300], hash[HASH_TEXT] = "-", text[SIGNED], did[DID_TEXT],
                      encoded[sodium_base64_ENCODED_LEN(SIGNATURE_SIZE, sodium_base64_VARIANT_ORIGINAL)];
    const char *path = strstr(url, "://");
    struct public_key public = public_key_of(key);
    int64_t now = request_key_now();
    struct signature signature;
    size_t length;

    if (!path || !request_origin(url, origin, sizeof origin))
        return false;
    path += 3 + strcspn(path + 3, "/?#");
    if (size)
        hash_hex(hash_block(body, size), hash);
    length = signed_text(method, origin, path, now, hash, text);
    if (!length)
        return false;
    signature = sign_message(key, text, length);
    sodium_bin2base64(encoded, sizeof encoded, signature.bytes, sizeof signature.bytes, sodium_base64_VARIANT_ORIGINAL);
    return snprintf(out, REQUEST_KEY_TEXT, "Rondo %s %lld %s %s", did_text(&public, did), (long long)now, hash, encoded) <
           REQUEST_KEY_TEXT;
}

/* The parts between the spaces. */
struct parts {
    char did[DID_TEXT], ms[24], hash[HASH_TEXT], signature[100];
};

static bool split(const char *value, struct parts *out)
{
    char end;

    return strnlen(value, REQUEST_KEY_TEXT) < REQUEST_KEY_TEXT &&
           sscanf(value, "Rondo %67s %23s %64s %99s%c", out->did, out->ms, out->hash, out->signature, &end) == 4;
}

bool request_key_parse(const char *value, struct request_key *out)
{
    struct parts parts;

    if (!split(value, &parts) || !did_parse_known(parts.did, &out->key))
        return false;
    out->has_body = strcmp(parts.hash, "-") != 0;
    return !out->has_body || hash_parse(parts.hash, &out->body);
}

bool request_key_verify(const char *value, const char *method, const char *origin, const char *path, int64_t now_ms)
{
    struct parts parts;
    struct public_key key;
    struct signature signature;
    char text[SIGNED], *end;
    size_t size, length;

    if (!split(value, &parts) || !did_parse_known(parts.did, &key) ||
        sodium_base642bin(signature.bytes, sizeof signature.bytes, parts.signature, strlen(parts.signature), NULL, &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) ||
        size != sizeof signature.bytes)
        return false;

    long long ms = strtoll(parts.ms, &end, 10);

    if (*end || ms > now_ms + REQUEST_KEY_MS || ms < now_ms - REQUEST_KEY_MS)
        return false;
    length = signed_text(method, origin, path, ms, parts.hash, text);
    return length && sign_verify(&key, &signature, text, length);
}
