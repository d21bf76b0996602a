/* What a model wrote, read for calls; what comes out is judged against itself, by which it is right unless a type says no. */
#include <stdint.h>
#include <stdlib.h>

#include "native/text/tool_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = { 0 };
    json_t *calls = tool_calls_read((const char *)data, size, &err), *accepted = NULL;
    json_t *tools =
        json_pack("[{s:{s:s, s:{s:{s:{s:s, s:{s:s}}, s:{s:s}}, s:[s]}}}]", "function", "name", "f", "parameters", "properties",
                  "x", "type", "array", "items", "type", "object", "y", "type", "number", "required", "x");

    if (calls)
        accepted = tool_calls_accepted(calls, &err);
    if (calls && !accepted)
        abort();
    if (accepted)
        tool_calls_right(tools, calls, accepted, NULL);
    json_decref(calls);
    json_decref(accepted);
    json_decref(tools);
    return 0;
}
