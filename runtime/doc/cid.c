#include "runtime/doc/cid.h"

#include <string.h>

#include "native/base/base32.h"

/* version 1 | codec raw 0x55 | multihash blake2b-256 0xb220 as a varint | its length */
static const uint8_t head[6] = { 0x01, 0x55, 0xa0, 0xe4, 0x02, 0x20 };

enum { BINARY = sizeof head + HASH_SIZE };

const char *cid_text(struct hash hash, char text[CID_TEXT])
{
    uint8_t binary[BINARY];

    _Static_assert(CID_TEXT == 1 + BASE32_LENGTH(BINARY) + 1, "a CID's text");
    memcpy(binary, head, sizeof head);
    memcpy(binary + sizeof head, hash.bytes, HASH_SIZE);
    text[0] = 'b';
    base32_encode(binary, sizeof binary, text + 1);
    return text;
}

bool cid_parse(const char *text, struct hash *out, struct error *err)
{
    uint8_t binary[BINARY];
    size_t length = strnlen(text, CID_TEXT);

    if (length != CID_TEXT - 1 || text[0] != 'b' || !base32_decode(text + 1, length - 1, binary, sizeof binary))
        return error_set(err, ERROR_SYNTAX, "a CID here has 62 characters and begins with bafk2bza",
                         "\"%.80s\" is not a content id", text);
    if (memcmp(binary, head, sizeof head) != 0)
        return error_set(err, ERROR_UNSUPPORTED, "only raw blocks under BLAKE2b-256 are used",
                         "\"%.80s\" is a content id of another kind", text);
    memcpy(out->bytes, binary + sizeof head, HASH_SIZE);
    return true;
}
