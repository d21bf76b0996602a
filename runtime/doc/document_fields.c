#include "runtime/doc/document_fields.h"

#include <stdio.h>
#include <string.h>

#include "native/base/hex.h"

const char *document_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t document_integer(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

struct hash document_cid(const json_t *object, const char *name)
{
    const char *text = document_text(object, name);
    struct hash hash;

    return text && cid_parse(text, &hash, NULL) ? hash : (struct hash){ { 0 } };
}

struct hash document_hash(const json_t *object, const char *name)
{
    const char *text = document_text(object, name);
    struct hash hash;

    return text && hash_parse(text, &hash) ? hash : (struct hash){ { 0 } };
}

bool document_did(const json_t *object, const char *name, struct public_key *out)
{
    const char *text = document_text(object, name);

    return text && did_parse_strict(text, out, NULL);
}

json_t *document_json_cid(struct hash hash)
{
    char text[CID_TEXT];

    return json_string(cid_text(hash, text));
}

json_t *document_json_hash(struct hash hash)
{
    char text[HASH_TEXT];

    return json_string(hash_hex(hash, text));
}

json_t *document_json_did(const struct public_key *key)
{
    char text[DID_TEXT];

    return json_string(did_text(key, text));
}

json_t *document_json_float(float value)
{
    uint32_t bits;
    char text[9];

    memcpy(&bits, &value, sizeof bits);
    snprintf(text, sizeof text, "%08x", bits);
    return json_string(text);
}

float document_float(const json_t *text)
{
    uint8_t bytes[4] = { 0 };
    uint32_t bits;
    float value;

    hex_decode(json_string_value(text), json_string_length(text), bytes, sizeof bytes);
    bits = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    memcpy(&value, &bits, sizeof value);
    return value;
}
