/* utf8.h - code points in UTF-8 (RFC 3629: shortest form, no surrogates, at most U+10FFFF). */
#ifndef RONDO_TEXT_UTF8_H
#define RONDO_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"

/* The code point at `at`; its length goes to *size (1 to 4). At bytes that are no UTF-8: UINT32_MAX and length 1. */
uint32_t utf8_at(const char *at, const char *end, size_t *size);

/* The code point that ends at `at` (start < at). In valid UTF-8 only. */
uint32_t utf8_before(const char *start, const char *at, size_t *size);

/* Whether all of it is UTF-8; where it is not, the offset of the first bad byte goes to *fault. */
bool utf8_valid(const char *text, size_t size, size_t *fault);

size_t utf8_count(const char *text, size_t size); /* code points of valid UTF-8 */
void utf8_add(struct buffer *out, uint32_t code_point);

/* Bytes before a character that has begun at the end of the text and may yet be completed. */
size_t utf8_whole(const char *text, size_t size);
/* Appends any bytes as UTF-8: U+FFFD for each longest run of bytes that begins a character and does not go on as one. */
void utf8_add_lossy(struct buffer *out, const char *text, size_t size);

#endif
