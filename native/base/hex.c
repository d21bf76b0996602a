#include "native/base/hex.h"

#include <stdint.h>

const char *hex_encode(const void *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[from[i] >> 4];
        text[2 * i + 1] = digits[from[i] & 15];
    }
    text[2 * size] = '\0';
    return text;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_decode(const char *text, size_t length, void *bytes, size_t size)
{
    uint8_t *to = bytes;

    if (length / 2 != size || length % 2)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
