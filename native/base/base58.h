/* base58.h - base 58 with Bitcoin's alphabet, as DIDs use it. A leading zero byte is a leading '1'; one text for one value.
 * Work is quadratic in the size: meant for keys. */
#ifndef RONDO_BASE_BASE58_H
#define RONDO_BASE_BASE58_H

#include <stdbool.h>
#include <stddef.h>

enum { BASE58_LIMIT = 128 }; /* bytes or digits that are handled at all */

/* Writes the digits and a zero to `text`, which holds `capacity`. False when either limit is too small. */
bool base58_encode(const void *bytes, size_t size, char *text, size_t capacity);

/* Whether `length` characters at `text` are the digits of exactly `size` bytes; then they stand in `bytes`. */
bool base58_decode(const char *text, size_t length, void *bytes, size_t size);

#endif
