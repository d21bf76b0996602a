/* A carried block of any bytes: refused with a code, or an id and at most CARRIED_MOST bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "native/base/json.h"
#include "runtime/role/carried.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error err = { 0 };
    struct buffer block = { 0 };
    struct hash id;
    json_t *json = json_read((const char *)bytes, size, 1 << 20, &err);

    if (json && carried_read(json, &id, &block, &err) ? block.size > CARRIED_MOST + 2 : err.code == ERROR_NONE)
        abort();
    buffer_free(&block);
    json_decref(json);
    return 0;
}
