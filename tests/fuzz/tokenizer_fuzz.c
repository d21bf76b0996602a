/* A tokenizer.json of any bytes. */
#include "tests/fuzz/encoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return encoding_check(tokenizer_read((const char *)bytes, size, NULL));
}
