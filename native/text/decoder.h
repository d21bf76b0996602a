/* decoder.h - from the texts of tokens to text: a chain of steps over the list of them.
 *
 *     "▁Hello" "<0xE2>" "<0x82>" "<0xAC>"  ── Replace ▁ by a space, ByteFallback, Fuse, Strip ──>  "Hello€"
 *
 * Without any step the tokens are put together with spaces between, as the Hugging Face library does.
 */
#ifndef RONDO_TEXT_DECODER_H
#define RONDO_TEXT_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/buffer.h"
#include "native/text/normalizer.h"

enum { DECODER_MAX_STEPS = 16, DECODER_MAX_TEXT = 64 };

struct decoder {
    struct decoder_step {
        enum {
            DECODER_REPLACE,       /* `text` by `content` */
            DECODER_BYTE_FALLBACK, /* runs of <0xNN>, if UTF-8, else U+FFFD for each */
            DECODER_FUSE,
            DECODER_STRIP,     /* up to `start` and `stop` times `text`, a character, from the ends of each */
            DECODER_METASPACE, /* `text` is a space; dropped from the first token if `first` */
            DECODER_WORDPIECE, /* a space before each but the first, or `text` off its start */
            DECODER_SUFFIX,    /* `text` is a space, nothing in the last token */
            DECODER_MARGIN,    /* `text` off the start of the first token, if `first` of each until there is other text */
        } kind;
        char text[DECODER_MAX_TEXT], content[DECODER_MAX_TEXT];
        size_t start, stop;
        bool first, cleanup;
    } steps[DECODER_MAX_STEPS];
    size_t count;
    bool bytes;  /* ByteLevel: tokens are bytes, put together as they are; no steps */
    bool absent; /* no decoder: spaces between */
};

/* The tokens of one text, one after another in a buffer. Zero is empty; free with token_texts_free. */
struct token_texts {
    struct buffer bytes;
    size_t *ends; /* owned, `count` */
    size_t count, capacity;
};

void token_texts_free(struct token_texts *texts);
void token_texts_add(struct token_texts *texts, const void *bytes, size_t size);

/* Appends the text. Changes `texts`. */
void decoder_run(const struct decoder *d, struct token_texts *texts, struct buffer *out);

#endif
