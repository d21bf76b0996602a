#include "native/base/base32.h"

#include <stdint.h>

static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

const char *base32_encode(const void *bytes, size_t size, char *text)
{
    const uint8_t *from = bytes;
    uint32_t bits = 0;
    size_t held = 0, at = 0;

    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | from[i];
        for (held += 8; held >= 5; held -= 5)
            text[at++] = digits[bits >> (held - 5) & 31];
        bits &= (1u << held) - 1;
    }
    if (held)
        text[at++] = digits[bits << (5 - held) & 31];
    text[at] = '\0';
    return text;
}

bool base32_decode(const char *text, size_t length, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    uint32_t bits = 0;
    size_t held = 0, at = 0;

    if (length != BASE32_LENGTH(size))
        return false;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        const bool letter = c >= 'a' && c <= 'z';

        if (!letter && (c < '2' || c > '7'))
            return false;
        bits = bits << 5 | (uint32_t)(letter ? c - 'a' : c - '2' + 26);
        held += 5;
        if (held >= 8) {
            held -= 8;
            to[at++] = (uint8_t)(bits >> held);
            bits &= (1u << held) - 1;
        }
    }
    return bits == 0;
}
