/* charsmap.h - SentencePiece's map of character sequences (precompiled_charsmap): a double array and the texts to put.
 *
 *     [ size of the array in bytes, u32 ][ units, u32 each ][ texts, each with a zero after it ]
 *
 * The array is walked by a byte at a time (Darts: a unit holds a label, whether it ends a key, and the offset to the next).
 */
#ifndef RONDO_TEXT_CHARSMAP_H
#define RONDO_TEXT_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/text/aligned.h"

struct charsmap {
    uint32_t *units; /* owned */
    size_t unit_count;
    char *texts; /* owned, valid UTF-8, a zero at the end */
    size_t texts_size;
};

/* From the blob's bytes. Errors: syntax. */
bool charsmap_read(struct charsmap *map, const uint8_t *bytes, size_t size, struct error *err);
void charsmap_free(struct charsmap *map);

/* Appends the text as Hugging Face maps it: whole grapheme clusters below 6 bytes, else characters, by the shortest key that
 * they start with. `longest`: as SentencePiece does, by the longest key at each place. Stops when there are more than `limit` bytes. */
void charsmap_apply(const struct charsmap *map, bool longest, const char *text, size_t size, struct origin origin, size_t limit,
                    struct aligned *out);

#endif
