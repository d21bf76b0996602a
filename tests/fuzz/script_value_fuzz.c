/* What a script's process answers: a value that is read must be written again to the same bytes, as far as JSON keeps them. */
#include <stddef.h>
#include <stdint.h>

#include "runtime/script/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct reader in = reader_of(bytes, size);
    struct buffer out = { 0 };
    json_t *value = value_read(&in, NULL);
    if (value)
        value_write(&out, value, NULL);
    json_decref(value);
    buffer_free(&out);
    return 0;
}
