/* piece_cache.h - the tokens of short pieces of the text that is being encoded: most pieces come again.
 *
 * A table of one place a hash; a new piece takes the place of the old. It lives for one call, and only where the text is long
 * enough to fill it.
 */
#ifndef RONDO_TEXT_PIECE_CACHE_H
#define RONDO_TEXT_PIECE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "native/text/tokens.h"

struct piece_cache {
    struct piece_entry *entries; /* owned; NULL: off */
    size_t mask;
};

void piece_cache_start(struct piece_cache *c, size_t text_size); /* zero before */
void piece_cache_free(struct piece_cache *c);

/* Appends the tokens of a piece that begins at `start`, if they are known. */
bool piece_cache_get(const struct piece_cache *c, const char *piece, size_t size, uint32_t start, struct tokens *out);
/* Keeps the tokens that a piece gave: those from `first`. */
void piece_cache_put(struct piece_cache *c, const char *piece, size_t size, uint32_t start, const struct tokens *tokens,
                     size_t first);

#endif
