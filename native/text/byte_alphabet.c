#include "native/text/byte_alphabet.h"

#include "native/text/utf8.h"

static bool stands_for_itself(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

uint32_t byte_alphabet_code_point(uint8_t byte)
{
    if (stands_for_itself(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    return byte == 0xad ? 0x143 : 0x121u + (byte - 0x7fu);
}

static int byte_of(uint32_t code_point)
{
    if (code_point <= 0xff)
        return stands_for_itself(code_point) ? (int)code_point : -1;
    if (code_point <= 0x120)
        return (int)code_point - 0x100;
    if (code_point <= 0x142)
        return (int)code_point - 0x121 + 0x7f;
    return code_point == 0x143 ? 0xad : -1;
}

bool byte_alphabet_read(const char *text, size_t size, struct buffer *out)
{
    size_t before = out->size;
    const char *end = text + size;

    while (text < end) {
        size_t length;
        int byte = byte_of(utf8_at(text, end, &length));

        if (byte < 0) {
            out->size = before;
            return false;
        }
        buffer_add_u8(out, (uint8_t)byte);
        text += length;
    }
    return true;
}
