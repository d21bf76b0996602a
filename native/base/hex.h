/* hex.h - bytes as lower-case hexadecimal digits. One text for one value: capitals and odd lengths are refused. */
#ifndef RONDO_BASE_HEX_H
#define RONDO_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Writes 2 * size digits and a zero to `text`. Returns `text`. */
const char *hex_encode(const void *bytes, size_t size, char *text);

/* Whether `length` characters at `text` are the digits of exactly `size` bytes; then they stand in `bytes`. */
bool hex_decode(const char *text, size_t length, void *bytes, size_t size);

#endif
