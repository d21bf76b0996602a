/* aligned.h - text that was changed, with the place in the original where the source of each byte ends.
 *
 *     original   "Ａ b"     bytes 0-3 1-4 ...
 *     text       "a▁b"      ends  3   4 4 4   5
 *
 * So the end of a token in the changed text is a place in the original.
 */
#ifndef RONDO_TEXT_ALIGNED_H
#define RONDO_TEXT_ALIGNED_H

#include "native/base/buffer.h"

/* Where a piece of text comes from. */
struct origin {
    const uint32_t *ends; /* borrowed, one a byte; NULL: unchanged, byte i ends at start + i + 1 */
    uint32_t start;
};

/* The place in the original after `size` bytes of the piece. */
static inline uint32_t origin_at(struct origin o, size_t size)
{
    return size == 0 ? o.start : o.ends ? o.ends[size - 1] : o.start + (uint32_t)size;
}

static inline struct origin origin_from(struct origin o, size_t skip)
{
    return (struct origin){ o.ends ? o.ends + skip : NULL, origin_at(o, skip) };
}

/* Zero is empty; free with aligned_free. */
struct aligned {
    struct buffer text;
    uint32_t *ends; /* owned, `capacity` */
    size_t capacity;
};

void aligned_free(struct aligned *a);
void aligned_clear(struct aligned *a);
void aligned_add(struct aligned *a, const void *bytes, size_t size, uint32_t end);       /* all from one place */
void aligned_copy(struct aligned *a, const char *text, size_t size, struct origin from); /* byte for byte */
void aligned_add_code_point(struct aligned *a, uint32_t code_point, uint32_t end);

#endif
