/* encoding.h - what both targets of tokenizers do with a file that loads: encode a text that has something of everything, and decode. */
#ifndef RONDO_FUZZ_ENCODING_H
#define RONDO_FUZZ_ENCODING_H

#include "native/text/tokenizer.h"

/* Ids are those of tokens, their ends rise within the text, and the ids decode. Frees the tokenizer; NULL: it did not load. */
static inline int encoding_check(struct tokenizer *t)
{
    static const char text[] =
        "Hello <|end|> <s> the  world's 123\n\n\t\xc3\xa9\xef\xac\x81\xe6\xbc\xa2\xf0\x9f\x98\x80 e\xcc\x81 "
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
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

#endif
