#include "runtime/role/carried.h"

#include <sodium.h>
#include <stdlib.h>

#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"

static void add_block(const struct block_store *store, struct hash id, json_t *blocks, size_t *room)
{
    struct buffer bytes = { 0 };
    char cid[CID_TEXT];

    if (*room && block_get(store, id, &bytes, NULL)) {
        if (bytes.size <= *room) {
            size_t capacity = sodium_base64_ENCODED_LEN(bytes.size, sodium_base64_VARIANT_ORIGINAL);
            char *text = malloc(capacity);

            if (!text)
                abort();
            sodium_bin2base64(text, capacity, bytes.bytes, bytes.size, sodium_base64_VARIANT_ORIGINAL);
            json_array_append_new(blocks, json_pack("{s:s, s:s}", "cid", cid_text(id, cid), "bytes", text));
            free(text);
            *room -= bytes.size;
        } else {
            *room = 0;
        }
    }
    buffer_free(&bytes);
}

void carried_add(const struct block_store *store, struct hash object, json_t *blocks, size_t *room)
{
    struct manifest m;

    add_block(store, object, blocks, room);
    if (!*room || !object_manifest(store, object, NULL, UINT64_MAX, &m, NULL))
        return;
    for (size_t i = 0; i < m.count && *room; i++)
        add_block(store, m.chunks[i], blocks, room);
    manifest_free(&m);
}

bool carried_read(const json_t *block, struct hash *id, struct buffer *bytes, struct error *err)
{
    const json_t *text = json_object_get(block, "bytes");
    const char *cid = document_text(block, "cid"), *from = json_string_value(text), *end;
    size_t length = json_string_length(text), size;

    if (!cid || !from)
        return error_set(err, ERROR_TYPE, NULL, "a carried block is a cid and its bytes in base64");
    if (length / 4 * 3 > CARRIED_MOST + 2)
        return error_set(err, ERROR_LIMIT, "push it when the answer asks for it", "a carried block has at most %d bytes",
                         CARRIED_MOST);
    if (!cid_parse(cid, id, err))
        return false;
    buffer_reserve(bytes, length / 4 * 3 + 1);
    if (sodium_base642bin(bytes->bytes, length / 4 * 3 + 1, from, length, NULL, &size, &end, sodium_base64_VARIANT_ORIGINAL) !=
            0 ||
        end != from + length)
        return error_set(err, ERROR_TYPE, NULL, "the bytes of block %s are no base64", cid);
    bytes->size = size;
    return true;
}
