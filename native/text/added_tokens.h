/* added_tokens.h - tokens that are looked for in the text before anything else: `<|im_end|>`.
 *
 * A trie of their texts; at each place the longest wins. Kept in two sets: of the text as it is, and of normalised text.
 *
 *     trie   (node << 8 | byte) -> node        ids   node -> token that ends there
 */
#ifndef RONDO_TEXT_ADDED_TOKENS_H
#define RONDO_TEXT_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/text/aligned.h"
#include "native/text/pair_map.h"
#include "native/text/text_range.h"

struct added_tokens {
    struct pair_map edges, ids; /* owned */
    uint32_t nodes;
    bool first[256]; /* bytes a token begins with */
};

void added_tokens_add(struct added_tokens *a, const char *text, size_t size, uint32_t id); /* the first of equal texts stays */
void added_tokens_free(struct added_tokens *a);

/* A place of text[0..size) that a token takes, white space that it takes along included. */
struct added_match {
    uint32_t id;
    size_t start, end;
};

/* Where special tokens are looked for: nowhere, or everywhere but within `plain`, ascending ranges of the text that `origin` leads to. */
struct added_where {
    bool special;
    const struct text_range *plain; /* borrowed */
    size_t plain_count;
    struct origin origin;
};

/* The next token at or after `from`; `done` is the end of the one before, beyond which no white space is taken. `flags` are the
 * tokens' (tokenizer_build.h). Special ones that do not count are passed over, as is what lies within them. *next is where to
 * go on. false if there is none. */
bool added_tokens_find(const struct added_tokens *a, const uint8_t *flags, const struct added_where *where, const char *text,
                       size_t size, size_t from, size_t done, struct added_match *match, size_t *next);

#endif
