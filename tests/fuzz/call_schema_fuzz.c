/* Any JSON as the tools of a conversation: refused with a reason, or every way through the schema ends in time in JSON that can be read. */
#include <stdint.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/json.h"
#include "native/text/call_automaton.h"
#include "native/text/tool_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MORE = 64 }; /* bytes beyond the shortest call */

/* A way through, by bytes of the input; the text of it into `out`. */
static void walk(const struct call_grammar *g, const uint8_t *bytes, size_t size, struct buffer *out)
{
    struct call_memory memory = { 0 };
    struct call_state s = call_begin(g);
    size_t left = call_rest(g, &s) + MORE;

    for (size_t i = 0; !call_ended(g, &s); i++, left--) {
        unsigned first = bytes[i % size] + 31 * (unsigned)(i / size), tried = 0;

        if (left == 0)
            __builtin_trap();
        for (; tried < 256; tried++) {
            struct call_state next = s;
            struct call_mark mark = call_memory_mark(&memory);
            uint8_t byte = (uint8_t)(first + tried);

            if (call_feed(g, &memory, &next, byte) && call_rest(g, &next) < left) {
                buffer_add_u8(out, byte);
                s = next;
                break;
            }
            call_memory_back(&memory, mark);
        }
        if (tried == 256)
            __builtin_trap();
    }
    call_memory_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uint32_t head[] = { '{', '"', 'n', 'a', 'm', 'e', '"', ':', '"' },
                    middle[] = { '"', ',', '"', 'a', 'r', 'g', 'u', 'm', 'e', 'n', 't', 's', '"', ':' }, tail[] = { '}' };
    const struct call_form form = { { head, 9 }, { middle, 14 }, { tail, 1 }, { 0 }, { 0 } };
    json_t *tools = json_read((const char *)bytes, size, 1 << 20, NULL), *calls;
    struct call_schema schema = { 0 };
    struct call_grammar g;
    struct error err = { 0 };
    struct buffer text = { 0 };

    if (tools && !call_schema_read(&schema, tools, &err)) {
        if (err.code == ERROR_NONE)
            __builtin_trap();
    } else if (tools && call_grammar_of(&g, &form, &schema, &err) && g.shortest < 1 << 12) {
        walk(&g, bytes, size, &text);
        calls = tool_calls_read((const char *)text.bytes, text.size, &err);
        if (json_array_size(calls) != 1)
            __builtin_trap();
        json_decref(calls);
    }
    buffer_free(&text);
    call_schema_free(&schema);
    json_decref(tools);
    return 0;
}
