/* tokens.h - what encoding a text gives: ids, each with the end of its bytes in the text. */
#ifndef RONDO_TEXT_TOKENS_H
#define RONDO_TEXT_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* Ids with the place in the text where each ends: token i covers bytes [ends[i-1], ends[i]), so that spans of the text
 * become spans of tokens. Zero is empty; free with tokens_free. */
struct tokens {
    uint32_t *ids, *ends; /* owned, `count` each */
    size_t count, capacity;
};

void tokens_free(struct tokens *tokens);
void tokens_add(struct tokens *tokens, uint32_t id, uint32_t end);

#endif
