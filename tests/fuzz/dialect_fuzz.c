/* Any JSON as a row of each shape: refused with a reason, or a conversation that converts to itself. */
#include <stdint.h>

#include "native/base/json.h"
#include "native/text/dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_t *row = json_read((const char *)bytes, size, 1 << 20, NULL);

    for (int shape = 0; row && shape < DIALECTS; shape++) {
        struct error err = { 0 };
        json_t *made = dialect_convert(row, (enum dialect)shape, &err), *again;

        if (!made && err.code == ERROR_NONE)
            __builtin_trap();
        if (!made)
            continue;
        again = dialect_convert(made, DIALECT_OPENAI, &err);
        if (!again || !json_equal(made, again))
            __builtin_trap();
        json_decref(again);
        json_decref(made);
    }
    json_decref(row);
    return 0;
}
