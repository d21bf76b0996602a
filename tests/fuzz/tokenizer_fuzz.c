/* A tokenizer.json of any bytes; what loads encodes a text, and the offsets of its tokens rise. */
#include <string.h>

#include "native/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char text[] = "Hello <|end|> the  world's 123\n\n\t\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80 "
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct tokenizer *t = tokenizer_read((const char *)bytes, size, NULL);
    struct tokens tokens = { 0 };
    struct buffer back = { 0 };

    if (!t)
        return 0;
    if (tokenizer_encode(t, text, sizeof text - 1, true, &tokens, NULL)) {
        tokenizer_surround(t, &tokens);
        for (size_t i = 0; i < tokens.count; i++)
            if (tokens.ids[i] >= tokenizer_size(t) || tokens.ends[i] > sizeof text - 1 ||
                (i && tokens.ends[i] < tokens.ends[i - 1]))
                __builtin_trap();
        if (!tokenizer_decode(t, tokens.ids, tokens.count, true, &back, NULL))
            __builtin_trap();
    }
    buffer_free(&back);
    tokens_free(&tokens);
    tokenizer_free(t);
    return 0;
}
