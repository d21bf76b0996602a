/* Any bytes as a compressed file: refused, or at most what the limit says. */
#include "native/text/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { LIMIT = 1 << 20 };
    struct buffer out = { 0 };

    unpack(bytes, size, LIMIT, &out, NULL);
    if (out.size > LIMIT)
        __builtin_trap();
    buffer_free(&out);
    return 0;
}
