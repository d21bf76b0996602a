#include "native/base/base58.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

bool base58_encode(const void *bytes, size_t size, char *text, size_t capacity)
{
    const uint8_t *from = bytes;
    uint8_t little[BASE58_LIMIT * 2]; /* base 58, least first */
    size_t count = 0, zeros = 0;

    if (size > BASE58_LIMIT)
        return false;
    while (zeros < size && from[zeros] == 0)
        zeros++;
    for (size_t i = zeros; i < size; i++) {
        uint32_t carry = from[i];

        for (size_t j = 0; j < count; j++, carry /= 58) {
            carry += (uint32_t)little[j] << 8;
            little[j] = (uint8_t)(carry % 58);
        }
        for (; carry; carry /= 58)
            little[count++] = (uint8_t)(carry % 58);
    }
    if (zeros + count + 1 > capacity)
        return false;
    memset(text, '1', zeros);
    for (size_t i = 0; i < count; i++)
        text[zeros + i] = digits[little[count - 1 - i]];
    text[zeros + count] = '\0';
    return true;
}

bool base58_decode(const char *text, size_t length, void *bytes, size_t size)
{
    uint8_t little[BASE58_LIMIT]; /* base 256, least first */
    uint8_t *to = bytes;
    size_t count = 0, zeros = 0;

    if (length > BASE58_LIMIT || size > BASE58_LIMIT)
        return false;
    while (zeros < length && text[zeros] == '1')
        zeros++;
    for (size_t i = zeros; i < length; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

        if (!digit)
            return false;

        uint32_t carry = (uint32_t)(digit - digits);

        for (size_t j = 0; j < count; j++, carry >>= 8) {
            carry += little[j] * 58u;
            little[j] = (uint8_t)carry;
        }
        if (carry)
            little[count++] = (uint8_t)carry; /* fewer bytes than digits: never past the end */
    }
    if (zeros + count != size)
        return false;
    memset(to, 0, zeros);
    for (size_t i = 0; i < count; i++)
        to[zeros + i] = little[count - 1 - i];
    return true;
}
