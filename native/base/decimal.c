#include "native/base/decimal.h"

#include <stddef.h>

bool amount_parse(const char *text, unsigned __int128 *out)
{
    const unsigned __int128 most = ~(unsigned __int128)0;
    unsigned __int128 value = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
        return false;
    for (; *text; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

const char *amount_text(unsigned __int128 amount, char text[AMOUNT_TEXT])
{
    char backwards[AMOUNT_TEXT];
    size_t count = 0;

    do
        backwards[count++] = (char)('0' + (int)(amount % 10));
    while (amount /= 10);
    for (size_t i = 0; i < count; i++)
        text[i] = backwards[count - 1 - i];
    text[count] = '\0';
    return text;
}

bool decimal_parse(const char *text, int64_t *billionths)
{
    bool negative = *text == '-';
    int64_t value = 0, place = DECIMAL_ONE;

    text += negative;
    if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
        return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (value > INT64_MAX / DECIMAL_ONE / 10 - 1)
            return false;
        else
            value = value * 10 + (*text - '0');
    value *= DECIMAL_ONE;
    if (*text == '.') {
        char last = '.';

        for (text++; *text >= '0' && *text <= '9' && place > 1; text++) {
            place /= 10;
            value += place * (*text - '0');
            last = *text;
        }
        if (last == '.' || last == '0')
            return false;
    }
    if (*text != '\0' || (negative && value == 0))
        return false;
    *billionths = negative ? -value : value;
    return true;
}
