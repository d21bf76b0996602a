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

#include "native/text/pair_map.h"

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

/* The next token at or after `from`; `done` is the end of the one before, beyond which no white space is taken. `flags` are the
 * tokens' (tokenizer_build.h). With `special` false, special ones are passed over, as is what lies within them. *next is where to
 * go on. false if there is none. */
bool added_tokens_find(const struct added_tokens *a, const uint8_t *flags, bool special, const char *text, size_t size,
                       size_t from, size_t done, struct added_match *match, size_t *next);

#endif
