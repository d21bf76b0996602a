#include "native/text/template_lexer.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/utf8.h"

struct lexer {
    struct arena *a;
    const char *at, *end;
    struct template_token *tokens;
    size_t count, capacity;
    char brackets[64]; /* closing brackets due */
    unsigned depth;
    bool line_start; /* the text after the last tag begins a line */
};

bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

void strip_left(const char **start, const char *end)
{
    size_t length;

    while (*start < end && is_space(utf8_at(*start, end, &length)))
        *start += length;
}

void strip_right(const char *start, const char **end)
{
    size_t length;

    while (*end > start && is_space(utf8_before(start, *end, &length)))
        *end -= length;
}

static struct template_token *add(struct lexer *l, enum token_kind kind, const char *bytes, size_t size)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 64;
        struct template_token *tokens = arena_array(l->a, capacity, sizeof *tokens);

        if (l->count)
            memcpy(tokens, l->tokens, l->count * sizeof *tokens);
        l->tokens = tokens;
        l->capacity = capacity;
    }

    struct template_token *t = &l->tokens[l->count++];

    *t = (struct template_token){ .kind = kind, .line = l->a->line, .text = { bytes, size } };
    return t;
}

static void count_lines(struct lexer *l, const char *from, const char *to)
{
    for (; from < to; from++)
        l->a->line += *from == '\n';
}

static bool starts(const struct lexer *l, const char *text)
{
    size_t size = strlen(text);

    return (size_t)(l->end - l->at) >= size && !memcmp(l->at, text, size);
}

static _Noreturn void fail(struct lexer *l, const char *message)
{
    template_raise(l->a, ERROR_SYNTAX, "%s", message);
}

/* ---- inside a tag ---- */

static void add_code(struct lexer *l, struct buffer *out, const char **at, const char *end, unsigned digits)
{
    uint32_t code = 0;

    for (unsigned i = 0; i < digits; i++, (*at)++) {
        char c = *at < end ? *(*at) : 0;
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;

        if (digit < 0)
            fail(l, "a truncated escape in a string");
        code = code << 4 | (uint32_t)digit;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        fail(l, "an escape in a string that is no character");
    utf8_add(out, code);
}

static void read_escape(struct lexer *l, struct buffer *out, const char **at, const char *end)
{
    static const char from[] = "ntrabfv\\'\"", to[] = "\n\t\r\a\b\f\v\\'\"";
    char c = *(*at)++;
    const char *simple = c ? strchr(from, c) : NULL;

    if (simple) {
        buffer_add_u8(out, (uint8_t)to[simple - from]);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        add_code(l, out, at, end, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c >= '0' && c <= '7') {
        uint32_t code = (uint32_t)(c - '0');

        for (int i = 0; i < 2 && *at < end && **at >= '0' && **at <= '7'; i++)
            code = code << 3 | (uint32_t)(*(*at)++ - '0');
        utf8_add(out, code);
    } else if (c == 'N' && *at < end && **at == '{') {
        template_raise(l->a, ERROR_UNSUPPORTED, "characters by name (\\N) are not offered");
    } else if (c != '\n') {
        buffer_add_u8(out, '\\');
        buffer_add_u8(out, (uint8_t)c);
    }
}

static void read_string(struct lexer *l)
{
    char quote = *l->at;
    const char *start = ++l->at, *at = start;
    bool escapes = false;

    while (at < l->end && *at != quote) {
        escapes |= *at == '\\';
        at += *at == '\\' ? 2 : 1;
    }
    if (at >= l->end)
        fail(l, "a string without an end");

    struct template_token *t = add(l, TOKEN_VALUE, start, (size_t)(at - start));

    count_lines(l, start, at);
    l->at = at + 1;
    if (!escapes) {
        t->value = value_string(l->a, start, (size_t)(at - start));
        return;
    }

    struct buffer *text = arena_buffer(l->a);
    const char *from = start;

    while (from < at) {
        if (*from == '\\' && from + 1 < at) {
            from++;
            read_escape(l, text, &from, at);
        } else {
            buffer_add_u8(text, (uint8_t)*from++);
        }
    }
    t->value = value_buffer(l->a, text);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (uint8_t)c >= 0x80;
}

/* 12, 1_000, 0xff, 0o17, 0b1, 1.5, 1e3; `1.x` is an int and a dot. */
static void read_number(struct lexer *l)
{
    char digits[64];
    size_t size = 0;
    const char *at = l->at;
    int base = 10;
    bool real = false;

    if (*at == '0' && at + 1 < l->end && strchr("xXoObB", at[1])) {
        base = (at[1] | 32) == 'x' ? 16 : (at[1] | 32) == 'o' ? 8 : 2;
        at += 2;
    }
    for (; at < l->end; at++) {
        bool sign = base == 10 && (*at == '+' || *at == '-') && (at[-1] | 32) == 'e' && real;
        bool dot = base == 10 && *at == '.' && !real && at + 1 < l->end && is_digit(at[1]);
        bool power = base == 10 && (*at | 32) == 'e' && at + 1 < l->end &&
                     (is_digit(at[1]) || ((at[1] == '+' || at[1] == '-') && at + 2 < l->end && is_digit(at[2])));

        if (!is_digit(*at) && *at != '_' && !sign && !dot && !power && !(base == 16 && (*at | 32) >= 'a' && (*at | 32) <= 'f'))
            break;
        real |= dot || power;
        if (*at != '_' && size + 1 < sizeof digits)
            digits[size++] = *at;
        else if (*at != '_')
            fail(l, "a number with too many digits");
    }
    digits[size] = 0;

    struct template_token *t = add(l, TOKEN_VALUE, l->at, (size_t)(at - l->at));

    if (real) {
        t->value = value_float(strtod(digits, NULL));
    } else {
        char *end;
        unsigned long long number = strtoull(digits, &end, base);

        if (number > INT64_MAX || *end || !size)
            fail(l, "a number that is none, or too large");
        t->value = value_int((int64_t)number);
    }
    l->at = at;
}

static void read_operator(struct lexer *l)
{
    static const char *const two[] = { "//", "**", "==", "!=", ">=", "<=" };
    char c = *l->at;
    size_t size = 1;

    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (starts(l, two[i]))
            size = 2;
    if (size == 1 && (!c || !strchr("+-/*%~[](){}><=.:|,;", c)))
        template_raise(l->a, ERROR_SYNTAX, "unexpected character '%c'", c >= 0x20 && c < 0x7f ? c : '?');
    if (c == '(' || c == '[' || c == '{') {
        if (l->depth == sizeof l->brackets)
            template_raise(l->a, ERROR_LIMIT, "brackets nested deeper than %zu", sizeof l->brackets);
        l->brackets[l->depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (!l->depth || l->brackets[--l->depth] != c)
            template_raise(l->a, ERROR_SYNTAX, "unexpected '%c'", c);
    }
    add(l, TOKEN_OPERATOR, l->at, size);
    l->at += size;
}

/* After the end of a tag: what white space goes. */
static void after_tag(struct lexer *l, char sign, bool trim)
{
    const char *from = l->at;

    if (sign == '-')
        strip_left(&l->at, l->end);
    else if (sign != '+' && trim && l->at < l->end && *l->at == '\n')
        l->at++;
    count_lines(l, from, l->at);
    l->line_start = l->at > from && l->at[-1] == '\n';
}

/* Whether a tag ends here, `close` or a sign and `close`. */
static bool tag_ends(struct lexer *l, const char *close, bool plus, char *sign)
{
    size_t left = (size_t)(l->end - l->at);

    *sign = 0;
    if (l->depth)
        return false;
    if (starts(l, close)) {
        l->at += 2;
        return true;
    }
    if (left >= 3 && (*l->at == '-' || (plus && *l->at == '+')) && !memcmp(l->at + 1, close, 2)) {
        *sign = *l->at;
        l->at += 3;
        return true;
    }
    return false;
}

static void lex_tag(struct lexer *l, const char *close, bool block)
{
    char sign;

    l->depth = 0;
    for (;;) {
        const char *from = l->at;

        strip_left(&l->at, l->end);
        count_lines(l, from, l->at);
        if (l->at >= l->end)
            fail(l, "a tag without an end");
        if (tag_ends(l, close, block, &sign))
            break;
        if (*l->at == '"' || *l->at == '\'') {
            read_string(l);
        } else if (is_digit(*l->at)) {
            read_number(l);
        } else if (is_name(*l->at)) {
            const char *start = l->at;

            while (l->at < l->end && is_name(*l->at))
                l->at++;
            add(l, TOKEN_NAME, start, (size_t)(l->at - start));
        } else {
            read_operator(l);
        }
    }
    add(l, TOKEN_END, l->at, 0);
    after_tag(l, sign, block);
}

/* ---- between tags ---- */

/* The text before a tag; `sign` follows the tag's opening. */
static void add_text(struct lexer *l, const char *start, const char *end, char sign, bool block)
{
    const char *last = end;

    if (sign == '-') {
        strip_right(start, &last);
    } else if (sign != '+' && block) {
        const char *line = end;

        while (line > start && line[-1] != '\n')
            line--;
        if (line > start || l->line_start) {
            const char *rest = line;

            strip_left(&rest, end);
            if (rest == end)
                last = line;
        }
    }
    if (last > start)
        add(l, TOKEN_TEXT, start, (size_t)(last - start));
    count_lines(l, start, end);
}

static void skip_comment(struct lexer *l)
{
    const char *start = l->at;

    while (l->at < l->end && !starts(l, "#}"))
        l->at++;
    if (l->at >= l->end)
        fail(l, "a comment without an end");

    char sign = l->at > start && (l->at[-1] == '-' || l->at[-1] == '+') ? l->at[-1] : 0;

    count_lines(l, start, l->at);
    l->at += 2;
    after_tag(l, sign, true);
}

/* `{% NAME %}` at the cursor, with its signs: its size, 0 if it is not there. */
static size_t bare_tag(const struct lexer *l, const char *at, const char *name, char *open, char *close)
{
    const char *from = at + 2;
    size_t size = strlen(name);

    *open = *close = 0;
    if (l->end - at < 4 || memcmp(at, "{%", 2))
        return 0;
    if (*from == '-' || *from == '+')
        *open = *from++;
    strip_left(&from, l->end);
    if ((size_t)(l->end - from) < size + 2 || memcmp(from, name, size))
        return 0;
    from += size;
    strip_left(&from, l->end);
    if (from < l->end && (*from == '-' || *from == '+'))
        *close = *from++;
    return l->end - from >= 2 && !memcmp(from, "%}", 2) ? (size_t)(from + 2 - at) : 0;
}

static bool lex_raw(struct lexer *l)
{
    char open, close;
    size_t size = bare_tag(l, l->at, "raw", &open, &close);

    if (!size)
        return false;
    l->at += size;
    after_tag(l, close, false);

    const char *start = l->at;

    for (; l->at < l->end; l->at++) {
        size = bare_tag(l, l->at, "endraw", &open, &close);
        if (size) {
            add_text(l, start, l->at, open, true);
            l->at += size;
            after_tag(l, close, true);
            return true;
        }
    }
    fail(l, "raw without endraw");
}

static void lex_all(struct lexer *l)
{
    const char *start = l->at;

    while (l->at < l->end) {
        if (*l->at != '{' || l->end - l->at < 2 || !strchr("{%#", l->at[1]) || !l->at[1]) {
            l->at++;
            continue;
        }

        char kind = l->at[1], sign = l->end - l->at > 2 ? l->at[2] : 0;

        sign = sign == '-' || sign == '+' ? sign : 0;
        add_text(l, start, l->at, sign, kind != '{');
        if (kind == '%' && lex_raw(l)) {
            start = l->at;
            continue;
        }
        l->at += sign ? 3 : 2;
        if (kind == '#') {
            skip_comment(l);
        } else {
            add(l, kind == '{' ? TOKEN_PRINT : TOKEN_BLOCK, l->at, 0);
            lex_tag(l, kind == '{' ? "}}" : "%}", kind == '%');
        }
        start = l->at;
    }
    if (l->end > start)
        add(l, TOKEN_TEXT, start, (size_t)(l->end - start));
    add(l, TOKEN_STOP, l->end, 0);
}

struct template_token *template_lex(struct arena *a, const char *source, size_t size)
{
    struct lexer l = { .a = a, .line_start = true };
    char *clean = arena_new(a, size);
    size_t kept = 0;

    for (size_t i = 0; i < size; i++) {
        if (source[i] == '\r' && i + 1 < size && source[i + 1] == '\n')
            continue;
        clean[kept++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (kept && clean[kept - 1] == '\n')
        kept--;
    a->line = 1;
    l.at = clean;
    l.end = clean + kept;
    lex_all(&l);
    return l.tokens;
}
