/* normalizer.h - the changes a text goes through before it is split: a chain of steps, each keeping the places in the
 * original (aligned.h).
 *
 *     NFC NFD NFKC NFKD   normal forms, as of Unicode 9 (unicode.h)       Lowercase   one character at a time
 *     Replace             matches of a text or expression by a text      Prepend     a text before one that is not empty
 *     Strip               white space at the ends                         StripAccents   combining marks
 *     Precompiled         SentencePiece's map of characters (charsmap.h)  BertNormalizer
 */
#ifndef RONDO_TEXT_NORMALIZER_H
#define RONDO_TEXT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"
#include "native/text/aligned.h"
#include "native/text/charsmap.h"
#include "native/text/pattern.h"

enum { NORMALIZER_MAX_STEPS = 16, NORMALIZER_MAX_CONTENT = 256 };

struct normalizer {
    struct normalizer_step {
        enum {
            NORMALIZER_NFC,
            NORMALIZER_NFD,
            NORMALIZER_NFKC,
            NORMALIZER_NFKD,
            NORMALIZER_LOWERCASE,
            NORMALIZER_STRIP_ACCENTS,
            NORMALIZER_STRIP,
            NORMALIZER_PREPEND,
            NORMALIZER_REPLACE,
            NORMALIZER_CHARSMAP,
            NORMALIZER_BERT,
        } kind;
        struct pattern *pattern; /* of Replace, owned; NULL where it is one plain byte, `byte` */
        char byte;
        char content[NORMALIZER_MAX_CONTENT]; /* of Replace and Prepend */
        size_t content_size;
        struct charsmap charsmap; /* owned */
        bool longest;             /* ... applied as SentencePiece does */
        bool bert;                /* of StripAccents: those that BertNormalizer knows */
        bool clean, chinese;      /* of BertNormalizer: controls out, ideographs apart */
        bool left, right;         /* of Strip */
    } steps[NORMALIZER_MAX_STEPS];
    size_t count;
};

/* A new step at the end, to be filled. NULL with `err` (limit). */
struct normalizer_step *normalizer_add(struct normalizer *n, struct error *err);
void normalizer_free(struct normalizer *n);

/* Changes valid UTF-8. The result is borrowed: `text` itself, or inside `work`, two buffers kept from text to text.
 * Errors: limit (growth beyond 16 times and a few thousand bytes; an expression that runs too long). */
struct normalizer_work {
    struct aligned text[2];
    struct pattern_search *search; /* made when first needed */
};
struct normalized {
    const char *text;
    size_t size;
    struct origin origin;
};

void normalizer_work_free(struct normalizer_work *work);
bool normalizer_apply(const struct normalizer *n, struct normalizer_work *work, struct normalized *text, struct error *err);

#endif
