#include "runtime/attest/der.h"

#include <string.h>

bool der_comes(const struct der *in, uint8_t tag)
{
    return in->size && in->at[0] == tag;
}

/* 2 to 4 bytes: tag, then a length in its shortest form. 0: none of these. */
static size_t head_of(const struct der *in, size_t *length)
{
    const uint8_t *b = in->at;

    if (in->size >= 2 && b[1] < 0x80) {
        *length = b[1];
        return 2;
    }
    if (in->size >= 3 && b[1] == 0x81 && b[2] >= 0x80) {
        *length = b[2];
        return 3;
    }
    if (in->size >= 4 && b[1] == 0x82 && b[2]) {
        *length = (size_t)b[2] << 8 | b[3];
        return 4;
    }
    return 0;
}

bool der_take(struct der *in, uint8_t tag, struct der *value, struct der *whole)
{
    size_t length = 0, head = der_comes(in, tag) ? head_of(in, &length) : 0;

    if (!head || length > in->size - head)
        return false;
    if (value)
        *value = (struct der){ in->at + head, length };
    if (whole)
        *whole = (struct der){ in->at, head + length };
    in->at += head + length;
    in->size -= head + length;
    return true;
}

bool der_byte(struct der in, uint8_t *out)
{
    struct der value;

    if (!der_take(&in, DER_INTEGER, &value, NULL) || in.size || !value.size || value.size > 2)
        return false;
    if (value.size == 1 ? value.at[0] >= 0x80 : value.at[0] || value.at[1] < 0x80)
        return false;
    *out = value.at[value.size - 1];
    return true;
}

bool der_equal(struct der a, struct der b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}
