/* Payloads of any bytes: decoding either fails with a code or gives finite values that encode to the same bytes again. */
#include <stdlib.h>
#include <string.h>

#include "native/codec/payload.h"
#include "tests/fuzz/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct payload_header header;
    struct tensor t[2];
    struct error err = { 0 };
    const uint64_t dims[] = { 3, 5 };
    size_t body;

    if (!fuzz_tell("payload header", payload_read_header(bytes, size, &header, &body, &err), &err))
        return 0;
    if (!tensor_new(&t[0], "b", TENSOR_F32, 2, dims, SIZE_MAX, NULL) ||
        !tensor_new(&t[1], "a", TENSOR_F32, 1, dims, SIZE_MAX, NULL))
        abort();
    if (fuzz_tell("payload", payload_decode(bytes, size, &header, t, 2, &body, &err), &err)) {
        struct buffer again = { 0 };
        size_t start;

        /* coefficients may be larger than the values they give */
        if (payload_encode(&header, t, 2, &again, &start, &err) ? again.size != size || start != body
                                                                : header.tile == 0 || err.code != ERROR_RANGE)
            abort();
        /* the plain layouts lose nothing: equal values have equal bytes */
        if (header.bits >= 16 && header.keep == 0 && header.tile == 0 && memcmp(again.bytes, bytes, size) != 0)
            abort();
        buffer_free(&again);
    }
    tensor_free(&t[0]);
    tensor_free(&t[1]);
    return 0;
}
