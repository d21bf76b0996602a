#include "runtime/doc/did.h"

#include <string.h>

#include "native/base/base58.h"

static const char method[] = "did:tenzro:machine:", key_method[] = "did:key:";

enum { BINARY = 2 + 32, DIGITS = 47 };

const char *did_text(const struct public_key *key, char text[DID_TEXT])
{
    uint8_t binary[BINARY] = { 0xed, 0x01 };

    memcpy(binary + 2, key->bytes, sizeof key->bytes);
    memcpy(text, method, sizeof method);
    text[sizeof method - 1] = 'z';
    base58_encode(binary, sizeof binary, text + sizeof method, DID_TEXT - sizeof method);
    return text;
}

static bool decode(const char *text, const char *prefix, struct public_key *out)
{
    uint8_t binary[BINARY];
    size_t skip = strlen(prefix);

    if (strncmp(text, prefix, skip) != 0 || text[skip] != 'z')
        return false;
    text += skip + 1;
    if (strnlen(text, DIGITS + 1) != DIGITS || !base58_decode(text, DIGITS, binary, sizeof binary))
        return false;
    if (binary[0] != 0xed || binary[1] != 0x01)
        return false;
    memcpy(out->bytes, binary + 2, sizeof out->bytes);
    return true;
}

static bool parse(const char *text, const char *prefix, struct public_key *out)
{
    return decode(text, prefix, out) && public_key_valid(out);
}

static bool refuse(const char *text, struct error *err)
{
    return error_set(err, ERROR_SYNTAX, "it looks like did:tenzro:machine:z6Mk...", "\"%.100s\" is not the DID of an Ed25519 key",
                     text);
}

bool did_parse_strict(const char *text, struct public_key *out, struct error *err)
{
    return parse(text, method, out) || refuse(text, err);
}

bool did_parse_known(const char *text, struct public_key *out)
{
    return decode(text, method, out);
}

bool did_parse(const char *text, struct public_key *out, struct error *err)
{
    return parse(text, method, out) || parse(text, key_method, out) || refuse(text, err);
}

int did_compare(const struct public_key *a, const struct public_key *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}
