#include "native/text/utf8.h"

uint32_t utf8_at(const char *at, const char *end, size_t *size)
{
    const uint8_t *b = (const uint8_t *)at;
    size_t left = (size_t)(end - at);

    *size = 1;
    if (b[0] < 0x80)
        return b[0];

    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t need = b[0] >= 0xf8 ? 0 : b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : b[0] >= 0xc2 ? 2 : 0;

    if (!need || need > left)
        return UINT32_MAX;

    uint32_t code = b[0] & (0xffu >> (need + 1));

    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        code = code << 6 | (b[i] & 0x3f);
    }
    if (code < least[need] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return UINT32_MAX;
    *size = need;
    return code;
}

uint32_t utf8_before(const char *start, const char *at, size_t *size)
{
    const char *from = at - 1;
    size_t length;

    while (from > start && ((uint8_t)*from & 0xc0) == 0x80)
        from--;

    uint32_t code = utf8_at(from, at, &length);

    *size = (size_t)(at - from);
    return code;
}

bool utf8_valid(const char *text, size_t size, size_t *fault)
{
    for (size_t at = 0, length; at < size; at += length)
        if (utf8_at(text + at, text + size, &length) == UINT32_MAX) {
            if (fault)
                *fault = at;
            return false;
        }
    return true;
}

size_t utf8_count(const char *text, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += ((uint8_t)text[i] & 0xc0) != 0x80;
    return count;
}

void utf8_add(struct buffer *out, uint32_t c)
{
    if (c < 0x80) {
        buffer_add_u8(out, (uint8_t)c);
    } else if (c < 0x800) {
        buffer_add_u8(out, (uint8_t)(0xc0 | c >> 6));
        buffer_add_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buffer_add_u8(out, (uint8_t)(0xe0 | c >> 12));
        buffer_add_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buffer_add_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else {
        buffer_add_u8(out, (uint8_t)(0xf0 | c >> 18));
        buffer_add_u8(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        buffer_add_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buffer_add_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

/* How many bytes at `at` begin a character, all that there are or up to the first that does not fit (Unicode, table 3-7). */
static size_t begun(const uint8_t *b, size_t left, size_t *need)
{
    uint8_t low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80, high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    size_t i = 1;

    *need = b[0] < 0xc2 || b[0] > 0xf4 ? 1 : b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (i < *need && i < left && b[i] >= low && b[i] <= high)
        for (i++; i < *need && i < left && (b[i] & 0xc0) == 0x80;)
            i++;
    return i;
}

size_t utf8_whole(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const uint8_t *b = (const uint8_t *)text + size - back;
        size_t need;

        if ((*b & 0xc0) == 0x80)
            continue;
        return begun(b, back, &need) == back && back < need ? size - back : size;
    }
    return size;
}

void utf8_add_lossy(struct buffer *out, const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        size_t need;

        if (utf8_at(text + at, text + size, &length) != UINT32_MAX) {
            buffer_add(out, text + at, length);
            continue;
        }
        length = begun((const uint8_t *)text + at, size - at, &need);
        buffer_add(out, "\xef\xbf\xbd", 3);
    }
}
