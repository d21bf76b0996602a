#include "native/text/call_scalar.h"

#include <string.h>

/* ---- texts ---- */

static bool marked(struct call_state *s, uint32_t byte)
{
    bool done = false;

    for (size_t i = 0; i < CALL_MARKS; i++) {
        const char *mark = call_marks[i];

        s->marks[i] = (uint8_t)mark[s->marks[i]] == byte ? s->marks[i] + 1 : (uint8_t)mark[0] == byte;
        if (!mark[s->marks[i]]) {
            s->marks[i] = 0;
            done = true;
        }
    }
    return done;
}

/* A byte of a character; false where UTF-8 has none (RFC 3629). */
static bool byte_of_character(struct call_state *s, uint32_t c)
{
    if (s->left > 0) {
        if (c < s->least || c > s->most)
            return false;
        s->left--;
        s->least = 0x80;
        s->most = 0xbf;
        return true;
    }
    s->least = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    s->most = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    s->left = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    s->chars++;
    return c >= 0x20 && c < 0xf5 && (c < 0x80 || c >= 0xc2);
}

bool call_character(struct call_state *s, uint32_t c)
{
    return byte_of_character(s, c) && !marked(s, c);
}

void call_text_begin(struct call_state *s, enum call_mode mode)
{
    s->mode = mode;
    s->chars = 0;
    s->escape = s->left = 0;
    s->letters = NULL;
    memset(s->marks, 0, sizeof s->marks);
}

bool call_text_feed(struct call_state *s, uint32_t c, bool *done)
{
    if (s->escape) {
        s->escape = 0;
        return c < 128 && c && strchr("\"\\/bfnrt", (int)c);
    }
    if (s->left == 0 && c == '"') {
        *done = true;
        return s->chars >= s->node->least_chars;
    }
    if (s->left == 0 && s->chars >= s->node->most_chars)
        return false;
    if (s->left == 0 && c == '\\') {
        s->escape = 1;
        s->chars++;
        memset(s->marks, 0, sizeof s->marks);
        return true;
    }
    return call_character(s, c);
}

size_t call_text_rest(const struct call_state *s)
{
    size_t missing = s->chars < s->node->least_chars ? s->node->least_chars - s->chars : 0;

    return s->left + s->escape + missing + 1U;
}

/* ---- numbers ---- */

static bool within(const struct call_node *n, bool negative, int64_t least, int64_t most)
{
    return negative ? -least >= n->low && -most <= n->high : most >= n->low && least <= n->high;
}

size_t call_digits_left(const struct call_node *n, bool negative, unsigned digits, int64_t value)
{
    int64_t power = 1;

    if (digits == 0) {
        size_t best = SIZE_MAX;

        for (int64_t first = 0; first <= 9; first++) {
            size_t left = call_digits_left(n, negative, 1, first);

            best = left != SIZE_MAX && left + 1 < best ? left + 1 : best;
        }
        return best;
    }
    for (unsigned more = 0; digits + more <= CALL_DIGITS; more++, power *= 10) {
        if (within(n, negative, value * power, value * power + power - 1))
            return more;
        if (value == 0) /* nothing stands behind a leading zero */
            break;
    }
    return SIZE_MAX;
}

enum { SIGN, WHOLE, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER };

bool call_number_whole(const struct call_state *s)
{
    int64_t value = s->negative ? -s->value : s->value;

    return s->phase == FRACTION || s->phase == POWER || (s->phase == WHOLE && value >= s->node->low && value <= s->node->high);
}

/* Whether all from this whole number to the next away from zero is within. */
static bool fraction_fits(const struct call_state *s)
{
    const struct call_node *n = s->node;

    return !n->bounded ||
           (s->negative ? -s->value - 1 >= n->low && -s->value <= n->high : s->value >= n->low && s->value + 1 <= n->high);
}

static bool feed_digit(struct call_state *s, uint32_t c)
{
    int64_t value = s->value * 10 + (c - '0');

    if (s->phase <= WHOLE) {
        if (s->digits == CALL_DIGITS || (s->digits > 0 && s->value == 0) ||
            (call_digits_left(s->node, s->negative, s->digits + 1U, value) == SIZE_MAX))
            return false;
        s->value = value;
        s->digits++;
        s->phase = WHOLE;
        return true;
    }
    if (s->digits == (s->phase >= EXPONENT ? 2 : CALL_DIGITS))
        return false;
    s->digits++;
    s->phase = s->phase >= EXPONENT ? POWER : FRACTION;
    return true;
}

bool call_number_feed(struct call_state *s, uint32_t c)
{
    bool real = s->node->kinds & CALL_NUMBER;

    if (c >= '0' && c <= '9')
        return feed_digit(s, c);
    if (c == '.' && real && s->phase == WHOLE && fraction_fits(s))
        s->phase = POINT;
    else if ((c == 'e' || c == 'E') && real && !s->node->bounded && (s->phase == WHOLE || s->phase == FRACTION))
        s->phase = EXPONENT;
    else if ((c == '-' || c == '+') && s->phase == EXPONENT)
        s->phase = EXPONENT_SIGN;
    else
        return false;
    s->digits = 0;
    return true;
}

size_t call_number_rest(const struct call_state *s)
{
    if (call_number_whole(s))
        return 0;
    if (s->phase <= WHOLE)
        return call_digits_left(s->node, s->negative, s->digits, s->value);
    return 1;
}

bool call_number_begin(struct call_state *s, uint32_t c)
{
    s->mode = CALL_DIGIT;
    s->phase = SIGN;
    s->digits = 0;
    s->value = 0;
    s->negative = c == '-';
    return s->negative ? call_digits_left(s->node, true, 0, 0) != SIZE_MAX : feed_digit(s, c);
}
