#include <stddef.h>
#include <stdint.h>

#include "runtime/script/admit.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error err;
    admit_source("fuzz.lua@00000000", (const char *)bytes, size, &err);
    return 0;
}
