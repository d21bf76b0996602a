#include "runtime/script/admit.h"

#include <stdint.h>
#include <string.h>

struct lexer {
    const char *name;
    const unsigned char *at, *end;
    unsigned line;
    int depth, constants;
    struct error *err;
};

static bool refuse(struct lexer *x, enum error_code code, const char *hint, const char *what)
{
    error_set(x->err, code, hint, "%s", what);
    return error_at(x->err, "%s:%u", x->name, x->line);
}

static int peek(const struct lexer *x, size_t ahead)
{
    return (size_t)(x->end - x->at) > ahead ? x->at[ahead] : 0;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void advance(struct lexer *x)
{
    if (*x->at++ == '\n')
        x->line++;
}

/* One scalar value of UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. 0 when it is none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
               : (s[0] & 0xF0) == 0xE0       ? 3
               : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                             : 0;
    if (n < 2 || n > left)
        return n > left ? 0 : n;
    uint32_t c = s[0] & (0x7F >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3F);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : n;
}

static bool admit_bytes(struct lexer *x, size_t size)
{
    if (size > ADMIT_BYTES)
        return refuse(x, ERROR_LIMIT, "move parts into modules and import them", "the file is longer than 64 KiB");
    if (size && x->at[0] == 0x1B)
        return refuse(x, ERROR_SYNTAX, "give the source", "bytecode is not accepted");
    unsigned line = x->line;
    const unsigned char *start = x->at;
    for (; x->at < x->end; advance(x)) {
        int c = *x->at;
        if ((c < 32 && c != '\n' && c != '\t' && !(c == '\r' && peek(x, 1) == '\n')) || c == 127)
            return refuse(x, ERROR_SYNTAX, NULL, "a control character");
        if (c < 0x80)
            continue;
        size_t n = utf8_length(x->at, (size_t)(x->end - x->at));
        if (!n)
            return refuse(x, ERROR_SYNTAX, "save the file as UTF-8", "bytes that are not UTF-8");
        x->at += n - 1;
    }
    x->at = start;
    x->line = line;
    return true;
}

static bool constant(struct lexer *x)
{
    return ++x->constants <= ADMIT_CONSTANTS || refuse(x, ERROR_LIMIT, NULL, "more than 4096 constants");
}

/* "[[ ... ]]", "[=[ ... ]=]"; x->at is at the first bracket. Nesting at level 0 is an error in Lua 5.1. */
static bool long_text(struct lexer *x, size_t level)
{
    unsigned first = x->line;
    x->at += level + 2;
    for (; x->at < x->end; advance(x)) {
        if (level == 0 && peek(x, 0) == '[' && peek(x, 1) == '[')
            return refuse(x, ERROR_SYNTAX, "use [=[ ... ]=]", "[[ inside [[ ... ]]");
        if (*x->at != ']')
            continue;
        size_t n = 0;
        while (peek(x, n + 1) == '=')
            n++;
        if (n == level && peek(x, n + 1) == ']') {
            x->at += level + 2;
            return true;
        }
    }
    x->line = first;
    return refuse(x, ERROR_SYNTAX, NULL, "a long bracket that is never closed");
}

/* Level of a long bracket that opens here, or -1. */
static int long_level(const struct lexer *x)
{
    size_t n = 0;
    while (peek(x, n + 1) == '=')
        n++;
    return peek(x, 0) == '[' && peek(x, n + 1) == '[' && n <= 8 ? (int)n : -1;
}

static bool comment(struct lexer *x)
{
    x->at += 2;
    int level = long_level(x);
    if (level >= 0)
        return long_text(x, (size_t)level);
    while (x->at < x->end && *x->at != '\n')
        x->at++;
    return true;
}

static bool escape(struct lexer *x)
{
    int c = peek(x, 1);
    if (is_digit(c)) {
        int value = 0, n = 0;
        for (; n < 3 && is_digit(peek(x, (size_t)n + 1)); n++)
            value = value * 10 + peek(x, (size_t)n + 1) - '0';
        if (value > 255)
            return refuse(x, ERROR_SYNTAX, NULL, "an escape above \\255");
        x->at += n + 1;
        return true;
    }
    if (!c || !strchr("abfnrtv\\\"'\n", c))
        return refuse(x, ERROR_SYNTAX, "Lua 5.1 knows \\a \\b \\f \\n \\r \\t \\v \\\\ \\\" \\' and \\ddd",
                      "an unknown escape in a string");
    x->at++;
    advance(x);
    return true;
}

static bool quoted(struct lexer *x)
{
    int quote = *x->at++;
    while (x->at < x->end && *x->at != quote) {
        if (*x->at == '\n')
            break;
        if (*x->at != '\\')
            x->at++;
        else if (!escape(x))
            return false;
    }
    if (peek(x, 0) != quote)
        return refuse(x, ERROR_SYNTAX, NULL, "a string that is never closed");
    x->at++;
    return constant(x);
}

/* digits [. digits] [e [sign] digits], . digits ..., or 0x hexdigits; nothing may follow at once. */
static bool number(struct lexer *x)
{
    const unsigned char *start = x->at;
    bool ok;
    if (peek(x, 0) == '0' && (peek(x, 1) | 32) == 'x') {
        x->at += 2;
        const unsigned char *digits = x->at;
        while (is_hex(peek(x, 0)))
            x->at++;
        ok = x->at > digits;
    } else {
        while (is_digit(peek(x, 0)))
            x->at++;
        if (peek(x, 0) == '.' && peek(x, 1) != '.')
            for (x->at++; is_digit(peek(x, 0));)
                x->at++;
        ok = true;
        if ((peek(x, 0) | 32) == 'e') {
            x->at++;
            if (peek(x, 0) == '+' || peek(x, 0) == '-')
                x->at++;
            ok = is_digit(peek(x, 0));
            while (is_digit(peek(x, 0)))
                x->at++;
        }
    }
    if (!ok || is_letter(peek(x, 0)) || is_digit(peek(x, 0)) || (peek(x, 0) == '.' && peek(x, 1) != '.') || x->at - start > 64)
        return refuse(x, ERROR_SYNTAX, "Lua 5.1: 12, 0.5, 1e-3, 0xff; no suffix", "a malformed number");
    return constant(x);
}

static bool deeper(struct lexer *x, int by)
{
    x->depth += by;
    return x->depth <= ADMIT_DEPTH || refuse(x, ERROR_LIMIT, NULL, "brackets and blocks nested deeper than 64");
}

static bool word(struct lexer *x)
{
    static const char *const open[] = { "function", "do", "then", "repeat", NULL };
    static const char *const close[] = { "end", "until", "elseif", NULL };
    static const char *const later[] = { "goto", "continue", "const", NULL };
    char text[16];
    const unsigned char *start = x->at;
    while (is_letter(peek(x, 0)) || is_digit(peek(x, 0)))
        x->at++;
    size_t n = (size_t)(x->at - start);
    if (n > 128)
        return refuse(x, ERROR_LIMIT, NULL, "a name longer than 128 characters");
    if (n >= sizeof text)
        return true;
    memcpy(text, start, n);
    text[n] = 0;
    for (size_t i = 0; later[i]; i++)
        if (!strcmp(text, later[i]))
            return refuse(x, ERROR_SYNTAX, "not in Lua 5.1; choose another name", "goto, continue and const are reserved");
    for (size_t i = 0; open[i]; i++)
        if (!strcmp(text, open[i]))
            return deeper(x, 1);
    for (size_t i = 0; close[i]; i++)
        if (!strcmp(text, close[i]))
            return deeper(x, -1);
    return true;
}

static bool operator_(struct lexer *x)
{
    int c = peek(x, 0), next = peek(x, 1);
    if (c == '~' && next == '=') {
        x->at += 2;
        return true;
    }
    if (strchr("+-*/%^", c) && next == '=')
        return refuse(x, ERROR_SYNTAX, "write x = x + y", "compound assignment is not Lua 5.1");
    if (!strchr("+-*/%^#=<>(){}[];:,.", c))
        return refuse(x, ERROR_SYNTAX, NULL, "a character that is no part of Lua 5.1");
    x->at++;
    if (strchr("({[", c))
        return deeper(x, 1);
    return !strchr(")}]", c) || deeper(x, -1);
}

static bool token(struct lexer *x)
{
    int c = *x->at;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance(x);
        return true;
    }
    if (c == '-' && peek(x, 1) == '-')
        return comment(x);
    if (c == '[' && long_level(x) >= 0)
        return constant(x) && long_text(x, (size_t)long_level(x));
    if (c == '"' || c == '\'')
        return quoted(x);
    if (is_digit(c) || (c == '.' && is_digit(peek(x, 1))))
        return number(x);
    return is_letter(c) ? word(x) : operator_(x);
}

bool admit_source(const char *name, const char *source, size_t size, struct error *err)
{
    struct lexer x = { name, (const unsigned char *)source, (const unsigned char *)source + size, 1, 0, 0, err };
    if (!admit_bytes(&x, size))
        return false;
    while (x.at < x.end)
        if (!token(&x))
            return false;
    return true;
}
