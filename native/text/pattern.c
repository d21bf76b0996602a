#include "native/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/text/tokenizer.h"
#include "native/text/utf8.h"

enum { MATCH_LIMIT = 20000000, HEAP_LIMIT_KIB = 256 << 10, NEST_LIMIT = 32 };

/* Letters after a backslash that mean the same in Oniguruma and PCRE2. */
static const char SAME_ESCAPES[] = "abBdDefGnprtvxAzZP";

/* The insides of classes. \w is wider and \s narrower there than PCRE2's; outside of a class, \w has six signs more. */
#define WORD                                                                                                                     \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"                             \
    "\\x{1f170}-\\x{1f189}"
#define LONE_WORD WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define SPACE     "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define HEX       "0-9A-Fa-f"

struct pattern {
    pcre2_code *code; /* NULL: matches nothing */
};

struct pattern_search {
    pcre2_match_data *match;
    pcre2_match_context *context;
};

/* The expression while it is rewritten. */
struct rewriting {
    const char *text;
    size_t size, at;
    struct buffer out;
    size_t atom;                /* where the last atom begins in `out`; SIZE_MAX: there is none */
    size_t groups[NEST_LIMIT];  /* where each open group begins */
    bool folds[NEST_LIMIT + 1]; /* of the depth: case is ignored */
    unsigned depth;
    struct error *err;
};

static bool refuse(struct rewriting *r, const char *what)
{
    return error_set(r->err, ERROR_UNSUPPORTED, "use a tokenizer whose split rules avoid it",
                     "regular expression uses %s at byte %zu", what, r->at);
}

static char peek(const struct rewriting *r, size_t ahead)
{
    return r->at + ahead < r->size ? r->text[r->at + ahead] : 0;
}

static void take(struct rewriting *r, size_t size)
{
    buffer_add(&r->out, r->text + r->at, size);
    r->at += size;
}

/* A class by its inside: as it is within brackets, else with them. */
static void put_class(struct rewriting *r, const char *inside, bool negated, bool in_class)
{
    buffer_printf(&r->out, in_class ? "%s" : negated ? "[^%s]" : "[%s]", inside);
    r->at += 2;
}

static bool hex_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool rewrite_escape(struct rewriting *r, bool in_class)
{
    char c = peek(r, 1);
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    char what[] = "\\?";

    what[1] = c;
    if (r->at + 1 >= r->size)
        return refuse(r, "a backslash at its end");
    if (in_class && (c == 'W' || c == 'H'))
        return refuse(r, "\\W or \\H in a class");
    if (c == 'w' || c == 'W')
        put_class(r, in_class ? WORD : LONE_WORD, c == 'W', in_class);
    else if (c == 's' || (c == 'S' && !in_class))
        put_class(r, SPACE, c == 'S', in_class);
    else if (c == 'h' || c == 'H')
        put_class(r, HEX, c == 'H', in_class);
    else if (c == 'S')
        take(r, 2);
    else if (c == 'u') {
        for (size_t i = 2; i < 6; i++)
            if (!hex_digit(peek(r, i)))
                return refuse(r, what);
        buffer_printf(&r->out, "\\x{%.4s}", r->text + r->at + 2);
        r->at += 6;
    } else if (c >= '1' && c <= '9' && !in_class && !(peek(r, 2) >= '0' && peek(r, 2) <= '9')) {
        take(r, 2);
    } else if ((c >= '0' && c <= '9') || (letter && !memchr(SAME_ESCAPES, c, sizeof SAME_ESCAPES - 1))) {
        return refuse(r, what);
    } else {
        size_t size = 2;

        if ((c == 'p' || c == 'P' || c == 'x') && peek(r, 2) == '{') {
            while (r->at + size < r->size && r->text[r->at + size] != '}')
                size++;
            size += r->at + size < r->size;
            if (c != 'x' && size >= 8 && !strncasecmp(r->text + r->at + 3, "Word", 4))
                return refuse(r, "\\p{Word}");
        }
        take(r, size);
    }
    return true;
}

/* A count: [m][,[n]] in braces, of at most 4 digits each. Its size, 0 if it is none and the brace a plain character. */
static size_t count_size(const struct rewriting *r)
{
    size_t i = 1, digits = 0;

    for (; peek(r, i) >= '0' && peek(r, i) <= '9'; i++)
        digits++;
    if (peek(r, i) == ',')
        for (i++; peek(r, i) >= '0' && peek(r, i) <= '9'; i++)
            digits++;
    return peek(r, i) == '}' && digits ? i + 1 : 0;
}

static bool rewrite_brace(struct rewriting *r)
{
    size_t size = count_size(r);

    if (!size || r->atom == SIZE_MAX) {
        buffer_add_text(&r->out, "\\{");
        r->atom = r->out.size - 2;
        r->at++;
        return true;
    }
    if (peek(r, 1) == ',') { /* {,n} */
        buffer_add_text(&r->out, "{0");
        r->at++;
        take(r, size - 1);
    } else {
        take(r, size);
    }
    if (peek(r, 0) == '+') { /* greedy repetition of the repeated, not possessive */
        struct buffer tail = { 0 };

        buffer_add(&tail, r->out.bytes + r->atom, r->out.size - r->atom);
        r->out.size = r->atom;
        buffer_add_text(&r->out, "(?:");
        buffer_add(&r->out, tail.bytes, tail.size);
        buffer_add_text(&r->out, ")");
        buffer_free(&tail);
        take(r, 1);
        r->atom = SIZE_MAX;
    }
    return true;
}

static bool rewrite_class(struct rewriting *r)
{
    r->atom = r->out.size;
    take(r, 1);
    if (peek(r, 0) == '^')
        take(r, 1);
    if (peek(r, 0) == ']')
        return refuse(r, "an empty class");
    while (r->at < r->size && r->text[r->at] != ']') {
        if (r->text[r->at] == '[')
            return refuse(r, "a class inside a class");
        if (r->text[r->at] == '&' && peek(r, 1) == '&')
            return refuse(r, "&&");
        if (r->text[r->at] != '\\')
            take(r, 1);
        else if (!rewrite_escape(r, true))
            return false;
    }
    if (r->at < r->size)
        take(r, 1);
    return true;
}

static bool rewrite_group(struct rewriting *r)
{
    static const char *const known[] = { "(?:", "(?i:", "(?!", "(?=", "(?<!", "(?<=", "(?>" };
    size_t size = 1;

    if (peek(r, 1) == '*')
        return refuse(r, "(*");
    if (peek(r, 1) == '?') {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (r->size - r->at >= strlen(known[i]) && !memcmp(r->text + r->at, known[i], strlen(known[i])))
                size = strlen(known[i]);
        if (size == 1)
            return refuse(r, "a group of a kind that is not offered");
    }
    if (r->depth == NEST_LIMIT)
        return error_set(r->err, ERROR_LIMIT, NULL, "regular expression has more than %d groups in one another", NEST_LIMIT);
    r->folds[r->depth + 1] = r->folds[r->depth] || (size == 4 && peek(r, 2) == 'i');
    r->groups[r->depth++] = r->out.size;
    take(r, size);
    r->atom = SIZE_MAX;
    return true;
}

/* Two letters that Oniguruma takes for one without regard to case ("ss" for "ß"), and PCRE2 does not. */
static bool folds_to_one(const struct rewriting *r)
{
    static const char *const pairs[] = { "ss", "ff", "fi", "fl", "st" };

    for (size_t i = 0; r->folds[r->depth] && i < sizeof pairs / sizeof *pairs; i++)
        if (r->size - r->at >= 2 && !strncasecmp(r->text + r->at, pairs[i], 2))
            return true;
    return false;
}

static bool rewrite(struct rewriting *r)
{
    while (r->at < r->size) {
        char c = r->text[r->at];

        if (c == '\\') {
            size_t atom = r->out.size;

            if (!rewrite_escape(r, false))
                return false;
            r->atom = atom;
        } else if (c == '[') {
            if (!rewrite_class(r))
                return false;
        } else if (c == '{') {
            if (!rewrite_brace(r))
                return false;
        } else if (c == '(') {
            if (!rewrite_group(r))
                return false;
        } else if (c == ')') {
            r->atom = r->depth ? r->groups[--r->depth] : SIZE_MAX;
            take(r, 1);
        } else {
            size_t size;

            if (folds_to_one(r))
                return refuse(r, "ss, ff, fi, fl or st without regard to case");
            if (!strchr("*+?|^$", c))
                r->atom = r->out.size;
            else if (c == '|' || c == '^' || c == '$')
                r->atom = SIZE_MAX;
            utf8_at(r->text + r->at, r->text + r->size, &size);
            take(r, size);
        }
    }
    return true;
}

static pcre2_code *compile(const char *text, size_t size, bool literal, struct error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_NEVER_BACKSLASH_C | PCRE2_UCP | PCRE2_MULTILINE);
    int code;
    PCRE2_SIZE at;

    if (!context) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a regular expression");
        return NULL;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);

    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)text, size, options, &code, &at, context);

    pcre2_compile_context_free(context);
    if (!compiled) {
        PCRE2_UCHAR message[200];

        pcre2_get_error_message(code, message, sizeof message);
        error_set(err, ERROR_SYNTAX, NULL, "regular expression: %s at byte %zu", (const char *)message, (size_t)at);
    }
    return compiled;
}

struct pattern *pattern_new(const char *text, size_t size, bool literal, struct error *err)
{
    struct rewriting r = { .text = text, .size = size, .atom = SIZE_MAX, .err = err };
    struct pattern *p = NULL;
    size_t fault;
    bool ok = true;

    if (size > PATTERN_MAX_SIZE)
        ok = error_set(err, ERROR_LIMIT, NULL, "regular expression of %zu bytes, %d are allowed", size, PATTERN_MAX_SIZE);
    else if (!utf8_valid(text, size, &fault))
        ok = error_set(err, ERROR_SYNTAX, NULL, "regular expression is not UTF-8 at byte %zu", fault);
    ok = ok && (literal || rewrite(&r));
    if (ok && !(p = calloc(1, sizeof *p)))
        ok = error_set(err, ERROR_MEMORY, NULL, "no memory for a regular expression");
    if (ok && size)
        p->code = literal ? compile(text, size, true, err) : compile(buffer_text(&r.out), r.out.size, false, err);
    buffer_free(&r.out);
    if (ok && (p->code || !size))
        return p;
    free(p);
    return NULL;
}

void pattern_free(struct pattern *p)
{
    if (p)
        pcre2_code_free(p->code);
    free(p);
}

struct pattern_search *pattern_search_new(void)
{
    struct pattern_search *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->match = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->match || !s->context) {
        pattern_search_free(s);
        return NULL;
    }
    pcre2_set_match_limit(s->context, MATCH_LIMIT);
    pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
    return s;
}

void pattern_search_free(struct pattern_search *s)
{
    if (s) {
        pcre2_match_data_free(s->match);
        pcre2_match_context_free(s->context);
    }
    free(s);
}

int pattern_find(const struct pattern *p, struct pattern_search *s, const char *text, size_t size, size_t from, size_t *start,
                 size_t *end, struct error *err)
{
    if (!p->code)
        return 0;

    int found = pcre2_match(p->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, s->match, s->context);

    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    if (found < 0) {
        PCRE2_UCHAR message[120];

        pcre2_get_error_message(found, message, sizeof message);
        error_set(err, ERROR_LIMIT, "split the text into smaller parts", "regular expression: %s", (const char *)message);
        return -1;
    }

    PCRE2_SIZE *place = pcre2_get_ovector_pointer(s->match);

    *start = place[0];
    *end = place[1] < place[0] ? place[0] : place[1];
    return 1;
}

const char *tokenizer_engine(char *text, size_t size)
{
    char version[64] = "", unicode[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, version);
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, unicode);
    snprintf(text, size, "PCRE2 %.*s, Unicode %s", (int)strcspn(version, " "), version, unicode);
    return text;
}
