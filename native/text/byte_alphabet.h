/* byte_alphabet.h - the 256 printable characters that stand for bytes in byte-level vocabularies (GPT-2, encoder.py).
 *
 * Bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF are the code point of the same value; the other 68, in order, are U+0100 on:
 * a space is written "Ġ" (U+0120), a newline "Ċ" (U+010A).
 */
#ifndef RONDO_TEXT_BYTE_ALPHABET_H
#define RONDO_TEXT_BYTE_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"

/* Appends the bytes that `text` stands for. false, with nothing appended, if a character is not in the alphabet. */
bool byte_alphabet_read(const char *text, size_t size, struct buffer *out);

uint32_t byte_alphabet_code_point(uint8_t byte);

#endif
