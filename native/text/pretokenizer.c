#include "native/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "native/text/tokenizer.h"
#include "native/text/utf8.h"

enum { MATCH_LIMIT = 20000000, HEAP_LIMIT_KIB = 256 << 10, NEST_LIMIT = 32 };

const char PRETOKENIZER_GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char PRETOKENIZER_LLAMA3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+"
                                   "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char PRETOKENIZER_QWEN2[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* Letters after a backslash that mean the same in Oniguruma and PCRE2. */
static const char SAME_ESCAPES[] = "abBdDefnprstwWSPAzvx";

static bool refuse(struct error *err, size_t at, const char *what)
{
    return error_set(err, ERROR_UNSUPPORTED, "use a tokenizer whose split rules avoid it",
                     "regular expression uses %s at byte %zu", what, at);
}

static bool brace_fits(const char *p, size_t size, size_t *at, struct error *err)
{
    size_t from = *at, i = from + 1;

    while (i < size && ((p[i] >= '0' && p[i] <= '9') || p[i] == ','))
        i++;
    if (i >= size || p[i] != '}' || i == from + 1)
        return refuse(err, from, "a brace that is no repeat count");
    if (p[from + 1] == ',')
        return refuse(err, from, "{,n}");
    if (i + 1 < size && p[i + 1] == '+')
        return refuse(err, from, "{m,n}+, which engines read differently");
    *at = i;
    return true;
}

static bool escape_fits(const char *p, size_t size, size_t *at, struct error *err)
{
    size_t i = *at + 1;

    if (i >= size)
        return refuse(err, *at, "a backslash at its end");

    char c = p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

    if ((c >= '0' && c <= '9') || (letter && !memchr(SAME_ESCAPES, c, sizeof SAME_ESCAPES - 1))) {
        char what[] = "\\?";

        what[1] = c;
        return refuse(err, *at, what);
    }
    if ((c == 'p' || c == 'P' || c == 'x') && i + 1 < size && p[i + 1] == '{') {
        while (i < size && p[i] != '}')
            i++;
    }
    *at = i;
    return true;
}

static bool group_fits(const char *p, size_t size, size_t at, struct error *err)
{
    static const char *const known[] = { "(?:", "(?i:", "(?!", "(?=", "(?<!", "(?<=", "(?>" };

    if (at + 1 < size && p[at + 1] == '*')
        return refuse(err, at, "(*");
    if (at + 1 >= size || p[at + 1] != '?')
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size - at >= strlen(known[i]) && !memcmp(p + at, known[i], strlen(known[i])))
            return true;
    return refuse(err, at, "a group of a kind that is not offered");
}

/* Only constructs that mean the same here and in the engine the pattern was written for. */
static bool pattern_fits(const char *p, size_t size, struct error *err)
{
    bool class = false;

    for (size_t i = 0; i < size; i++) {
        if (p[i] == '\\') {
            if (!escape_fits(p, size, &i, err))
                return false;
        } else if (class) {
            if (p[i] == '[')
                return refuse(err, i, "a class inside a class");
            if (p[i] == '&' && i + 1 < size && p[i + 1] == '&')
                return refuse(err, i, "&&");
            class = p[i] != ']';
        } else if (p[i] == '[') {
            class = true;
            if (i + 1 < size && p[i + 1] == '^')
                i++;
            if (i + 1 < size && p[i + 1] == ']')
                return refuse(err, i, "an empty class");
        } else if (p[i] == '{') {
            if (!brace_fits(p, size, &i, err))
                return false;
        } else if (p[i] == '(' && !group_fits(p, size, i, err)) {
            return false;
        }
    }
    return true;
}

static pcre2_code *compile(const char *pattern, size_t size, bool literal, struct error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C;
    int code;
    PCRE2_SIZE at;

    if (!context) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a regular expression");
        return NULL;
    }
    options |= literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE; /* ^ and $ are line anchors in Oniguruma */
    if (literal)
        options &= ~(uint32_t)PCRE2_NEVER_BACKSLASH_C;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);

    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, size, options, &code, &at, context);

    pcre2_compile_context_free(context);
    if (!compiled) {
        PCRE2_UCHAR text[200];

        pcre2_get_error_message(code, text, sizeof text);
        error_set(err, ERROR_SYNTAX, NULL, "regular expression: %s at byte %zu", (const char *)text, (size_t)at);
    }
    return compiled;
}

bool pretokenizer_add(struct pretokenizer *p, const char *pattern, size_t size, bool literal, struct error *err)
{
    size_t fault;

    if (size == 0 || size > PRETOKENIZER_MAX_PATTERN)
        return error_set(err, ERROR_LIMIT, NULL, "regular expression of %zu bytes, 1 to %d are allowed", size,
                         PRETOKENIZER_MAX_PATTERN);
    if (p->count == PRETOKENIZER_MAX_SPLITS)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d splits", PRETOKENIZER_MAX_SPLITS);
    if (!utf8_valid(pattern, size, &fault))
        return error_set(err, ERROR_SYNTAX, NULL, "regular expression is not UTF-8 at byte %zu", fault);
    if (!literal && !pattern_fits(pattern, size, err))
        return false;

    pcre2_code *compiled = compile(pattern, size, literal, err);

    if (!compiled)
        return false;
    p->splits[p->count++] = compiled;
    return true;
}

void pretokenizer_free(struct pretokenizer *p)
{
    for (size_t i = 0; i < p->count; i++)
        pcre2_code_free(p->splits[i]);
    p->count = 0;
}

struct chain {
    const struct pretokenizer *p;
    pcre2_match_data *matches[PRETOKENIZER_MAX_SPLITS];
    pcre2_match_context *context;
    void (*piece)(void *, const char *, size_t);
    void *piece_context;
    struct error *err;
};

static bool split_from(struct chain *chain, size_t level, const char *text, size_t size);

static bool pass_on(struct chain *chain, size_t level, const char *text, size_t size)
{
    return size == 0 || split_from(chain, level + 1, text, size);
}

static bool split_from(struct chain *chain, size_t level, const char *text, size_t size)
{
    if (level == chain->p->count) {
        chain->piece(chain->piece_context, text, size);
        return true;
    }

    size_t done = 0, from = 0;

    while (from < size) {
        int found = pcre2_match(chain->p->splits[level], (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, chain->matches[level],
                                chain->context);

        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found < 0) {
            PCRE2_UCHAR message[120];

            pcre2_get_error_message(found, message, sizeof message);
            return error_set(chain->err, ERROR_LIMIT, "split the text into smaller parts", "split rule %zu: %s", level,
                             (const char *)message);
        }

        PCRE2_SIZE *ends = pcre2_get_ovector_pointer(chain->matches[level]);
        size_t start = ends[0], end = ends[1];

        if (end <= start) { /* an empty match: a cut, and on from the next character */
            size_t length;

            if (start >= size)
                break;
            if (!pass_on(chain, level, text + done, start - done))
                return false;
            done = start;
            utf8_at(text + start, text + size, &length);
            from = start + length;
            continue;
        }
        if (!pass_on(chain, level, text + done, start - done) || !pass_on(chain, level, text + start, end - start))
            return false;
        done = from = end;
    }
    return pass_on(chain, level, text + done, size - done);
}

bool pretokenizer_split(const struct pretokenizer *p, const char *text, size_t size,
                        void (*piece)(void *context, const char *text, size_t size), void *context, struct error *err)
{
    struct chain chain = { .p = p, .piece = piece, .piece_context = context, .err = err };
    bool ok = true;

    chain.context = pcre2_match_context_create(NULL);
    for (size_t i = 0; i < p->count; i++) {
        chain.matches[i] = pcre2_match_data_create(1, NULL);
        ok = ok && chain.matches[i];
    }
    if (!chain.context || !ok) {
        ok = error_set(err, ERROR_MEMORY, NULL, "no memory for matching");
    } else {
        pcre2_set_match_limit(chain.context, MATCH_LIMIT);
        pcre2_set_heap_limit(chain.context, HEAP_LIMIT_KIB);
        ok = size == 0 || split_from(&chain, 0, text, size);
    }
    for (size_t i = 0; i < p->count; i++)
        pcre2_match_data_free(chain.matches[i]);
    pcre2_match_context_free(chain.context);
    return ok;
}

const char *tokenizer_engine(char *text, size_t size)
{
    char version[64] = "", unicode[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, version);
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, unicode);
    snprintf(text, size, "PCRE2 %.*s, Unicode %s", (int)strcspn(version, " "), version, unicode);
    return text;
}
