/* A template and a context of any bytes, cut at the first zero byte: parsing and rendering either fail with a code or end
 * within their limits. Without a zero the context is a fixed conversation. */
#include <string.h>

#include "native/base/json.h"
#include "native/text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char CONTEXT[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9 <b>\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
    "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1, 2.5, "
    "null]}\"}}]}],\"tools\":[{\"function\":{\"name\":\"f\"}}],\"n\":3}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct template_options options = { .date = { 2026, 11, 29 } };
    const uint8_t *zero = size ? memchr(bytes, 0, size) : NULL;
    size_t source = zero ? (size_t)(zero - bytes) : size;
    struct template *t = template_new((const char *)bytes, source, NULL);
    json_t *context = zero ? json_read((const char *)zero + 1, size - source - 1, 1 << 16, NULL)
                           : json_read(CONTEXT, sizeof CONTEXT - 1, 1 << 16, NULL);
    struct template_output out = { 0 };

    if (t && context && template_render(t, context, &options, &out, NULL)) {
        for (size_t i = 0; i < out.message_count; i++)
            if (out.messages[i].start > out.messages[i].end || out.messages[i].end > out.text.size)
                __builtin_trap();
        template_output_free(&out);
    }
    json_decref(context);
    template_free(t);
    return 0;
}
