/* base32.h - RFC 4648 base 32 in lower case without padding, as CIDs use it. One text for one value: the unused bits of the
 * last digit must be zero, capitals and impossible lengths are refused. */
#ifndef RONDO_BASE_BASE32_H
#define RONDO_BASE_BASE32_H

#include <stdbool.h>
#include <stddef.h>

/* Digits of `size` bytes, without the zero at the end. */
#define BASE32_LENGTH(size) (((size)*8 + 4) / 5)

/* Writes BASE32_LENGTH(size) digits and a zero to `text`. Returns `text`. */
const char *base32_encode(const void *bytes, size_t size, char *text);

/* Whether `length` characters at `text` are the digits of exactly `size` bytes; then they stand in `bytes`. */
bool base32_decode(const char *text, size_t length, void *bytes, size_t size);

#endif
