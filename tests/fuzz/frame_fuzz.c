/* What a worker says, of any bytes and in any pieces: frames are taken whole, in order, and nothing is read past an end. */
#include <assert.h>
#include <stdlib.h>

#include "runtime/worker/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct buffer in = { 0 }, payload = { 0 };
    struct error err = { 0 };
    size_t piece = size ? bytes[0] % 7 + 1 : 1, taken = 0;
    json_t *value;

    for (size_t at = 1; at < size && err.code == ERROR_NONE; at += piece) {
        buffer_add(&in, bytes + at, size - at < piece ? size - at : piece);
        while (frame_take(&in, &value, &payload, &err)) {
            taken += FRAME_HEAD + payload.size;
            json_decref(value);
            buffer_clear(&payload);
        }
    }
    assert(taken + in.size <= size);
    buffer_free(&in);
    buffer_free(&payload);
    return 0;
}
