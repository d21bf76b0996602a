#include "native/text/split_rule.h"

#include <stdbool.h>
#include <string.h>

#include "native/text/unicode.h"
#include "native/text/utf8.h"

#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
#define SPACES      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define OTHERS      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
#define BEFORE      "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

const char SPLIT_GPT2[] = CONTRACTION "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char SPLIT_R50K[] = "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s";
const char SPLIT_LLAMA3[] = "(?i:" CONTRACTION ")|" BEFORE "\\p{L}+|\\p{N}{1,3}|" OTHERS SPACES;
const char SPLIT_QWEN2[] = "(?i:" CONTRACTION ")|" BEFORE "\\p{L}+|\\p{N}|" OTHERS SPACES;
const char SPLIT_CL100K[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|"
                            "\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
const char SPLIT_O200K[] = BEFORE UPPER "*" LOWER "+(?i:" CONTRACTION ")?|" BEFORE UPPER "+" LOWER "*(?i:" CONTRACTION ")?|"
                                        "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;

const char SPLIT_QWEN35[] = "(?i:" CONTRACTION ")|" BEFORE "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES;
const char SPLIT_TEKKEN[] = BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;
const char SPLIT_DEEPSEEK3[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES;

enum { MARKS = UNICODE_SET(UNICODE_MARK), NEWLINES = UNICODE_SET(UNICODE_NEWLINE) };
enum {
    SHARED = UNICODE_SET(UNICODE_MODIFIER) | UNICODE_SET(UNICODE_LETTER) | MARKS, /* of both cases */
    UPPERS = SHARED | UNICODE_SET(UNICODE_UPPER) | UNICODE_SET(UNICODE_TITLE),
    LOWERS = SHARED | UNICODE_SET(UNICODE_LOWER_CASE),
    SIGNS = UNICODE_PUNCTUATIONS | UNICODE_SET(UNICODE_SYMBOL),
    ALL = 0xffff,
};

struct split_rule {
    const char *pattern;
    enum { NOWHERE, EXACT, ANY_CASE, AFTER_WORDS } contractions;
    bool cased;                     /* words are upper then lower */
    bool ascii_words;               /* an ASCII sign with ASCII letters is a word first (DeepSeek) */
    bool space_before_numbers;      /* ... and words: a space only */
    bool whole_at_end;              /* white space at the end of the text is one piece */
    bool line_ends;                 /* white space up to its last line end is one piece */
    unsigned digits;                /* at most so many in a number, 0: any, 99: numbers do not match */
    unsigned words, before, others; /* sets: of words, of the one before a word, of runs of signs */
    const char *after;              /* what may follow such a run */
};

#define NOT_LN  (ALL & ~(unsigned)(UNICODE_LETTERS | UNICODE_NUMBERS | NEWLINES))
#define NOT_SLN (ALL & ~(unsigned)(UNICODE_LETTERS | UNICODE_NUMBERS | UNICODE_SPACES))

static const struct split_rule RULES[] = {
    { SPLIT_GPT2, EXACT, .space_before_numbers = true, .words = UNICODE_LETTERS, .others = NOT_SLN, .after = "" },
    { SPLIT_R50K, EXACT, .space_before_numbers = true, .words = UNICODE_LETTERS, .others = NOT_SLN, .after = "" },
    { SPLIT_LLAMA3, ANY_CASE, .line_ends = true, .digits = 3, .words = UNICODE_LETTERS, .before = NOT_LN, .others = NOT_SLN,
      .after = "\r\n" },
    { SPLIT_QWEN2, ANY_CASE, .line_ends = true, .digits = 1, .words = UNICODE_LETTERS, .before = NOT_LN, .others = NOT_SLN,
      .after = "\r\n" },
    { "(?i:" CONTRACTION ")|" BEFORE "\\p{L}+|\\p{N}+|" OTHERS SPACES, ANY_CASE, .line_ends = true, .words = UNICODE_LETTERS,
      .before = NOT_LN, .others = NOT_SLN, .after = "\r\n" },
    { SPLIT_CL100K, ANY_CASE, .line_ends = true, .whole_at_end = true, .digits = 3, .words = UNICODE_LETTERS, .before = NOT_LN,
      .others = NOT_SLN, .after = "\r\n" },
    { "'(?i:[sdmt]|ll|ve|re)|" BEFORE "\\p{L}+|\\p{N}{1,3}|" OTHERS "\\s*[\\r\\n]|\\s+(?!\\S)|\\s", ANY_CASE, .line_ends = true,
      .digits = 3, .words = UNICODE_LETTERS, .before = NOT_LN, .others = NOT_SLN, .after = "\r\n" },
    { SPLIT_QWEN35, ANY_CASE, .line_ends = true, .digits = 1, .words = UNICODE_LETTERS | MARKS, .before = NOT_LN,
      .others = NOT_SLN & ~(unsigned)MARKS, .after = "\r\n" },
    { SPLIT_O200K, AFTER_WORDS, .cased = true, .line_ends = true, .digits = 3, .before = NOT_LN, .others = NOT_SLN,
      .after = "\r\n/" },
    { SPLIT_TEKKEN, NOWHERE, .cased = true, .line_ends = true, .digits = 1, .before = NOT_LN, .others = NOT_SLN,
      .after = "\r\n/" },
    { SPLIT_DEEPSEEK3, NOWHERE, .ascii_words = true, .line_ends = true, .digits = 99, .words = UNICODE_LETTERS | MARKS,
      .before = ALL & ~(unsigned)(UNICODE_LETTERS | SIGNS | NEWLINES), .others = SIGNS, .after = "\r\n" },
};

/* Files write a line end in a class as itself or as an escape. */
static bool same_pattern(const char *known, const char *pattern, size_t size)
{
    for (size_t i = 0; i < size; i++, known++) {
        if (pattern[i] == '\r' || pattern[i] == '\n') {
            if (known[0] != '\\' || known[1] != (pattern[i] == '\r' ? 'r' : 'n'))
                return false;
            known++;
        } else if (*known != pattern[i]) {
            return false;
        }
    }
    return *known == 0;
}

const struct split_rule *split_rule_find(const char *pattern, size_t size)
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (same_pattern(RULES[i].pattern, pattern, size))
            return &RULES[i];
    return NULL;
}

static inline unsigned set_at(const char *at, const char *end, size_t *size)
{
    uint8_t byte = (uint8_t)*at;

    if (byte < 0x80) {
        *size = 1;
        return 1u << (UNICODE_PAGES[0][byte] & 15);
    }
    return 1u << (unicode_byte(utf8_at(at, end, size)) & 15);
}

/* The end of the run of characters of `set` from `at`. */
static inline const char *run(const char *at, const char *end, unsigned set)
{
    size_t size;

    while (at < end && set_at(at, end, &size) & set)
        at += size;
    return at;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* 's 't 'm 'd 're 've 'll. In any case, s is U+017F, too. */
static size_t contraction(const char *at, const char *end, bool any_case)
{
    if (end - at < 2 || at[0] != '\'')
        return 0;

    char a = any_case ? lower(at[1]) : at[1], b = end - at < 3 ? 0 : any_case ? lower(at[2]) : at[2];

    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (any_case && a == '\xc5' && b == '\xbf')
        return 3;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* Upper* lower+, or NULL. Letters of both cases may have to be given back by the first part. */
static const char *upper_then_lower(const char *at, const char *end)
{
    const char *last = NULL, *p = at;
    size_t size;

    while (p < end) {
        unsigned set = set_at(p, end, &size);

        if (!(set & UPPERS))
            break;
        p += size;
        if (set & SHARED)
            last = p;
    }

    const char *lowers = run(p, end, LOWERS);

    return lowers > p ? lowers : last;
}

static const char *upper_and_lower(const char *at, const char *end)
{
    const char *p = run(at, end, UPPERS);

    return p > at ? run(p, end, LOWERS) : NULL;
}

static const char *cased_word(const struct split_rule *rule, const char *at, const char *end)
{
    size_t size;
    bool before = set_at(at, end, &size) & rule->before;
    const char *p = before ? upper_then_lower(at + size, end) : NULL;

    p = p ? p : upper_then_lower(at, end);
    p = p || !before ? p : upper_and_lower(at + size, end);
    p = p ? p : upper_and_lower(at, end);
    return p && rule->contractions == AFTER_WORDS ? p + contraction(p, end, true) : p;
}

static bool ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *word(const struct split_rule *rule, const char *at, const char *end)
{
    size_t size;
    unsigned set = set_at(at, end, &size);

    if (rule->ascii_words && (uint8_t)*at < 0x80 && set & SIGNS && at + 1 < end && ascii_letter(at[1])) {
        for (at += 2; at < end && ascii_letter(*at);)
            at++;
        return at;
    }
    if (set & rule->words)
        return run(at + size, end, rule->words);
    if (!(rule->space_before_numbers ? *at == ' ' : (set & rule->before) != 0))
        return NULL;

    const char *p = run(at + size, end, rule->words);

    return p > at + size ? p : NULL;
}

static const char *number(const struct split_rule *rule, const char *at, const char *end)
{
    const char *p = at + (rule->space_before_numbers && *at == ' ');
    size_t size;
    unsigned count = 0;

    if (rule->digits == 99)
        return NULL;
    while (p < end && (!rule->digits || count < rule->digits) && set_at(p, end, &size) & UNICODE_NUMBERS) {
        p += size;
        count++;
    }
    return count ? p : NULL;
}

static const char *others(const struct split_rule *rule, const char *at, const char *end)
{
    const char *from = at + (*at == ' '), *p = run(from, end, rule->others);

    if (p == from)
        return NULL;
    while (p < end && *p && strchr(rule->after, *p))
        p++;
    return p;
}

static const char *spaces(const struct split_rule *rule, const char *at, const char *end)
{
    const char *line_end = NULL, *last = at, *p = at;
    size_t size;

    while (p < end) {
        unsigned set = set_at(p, end, &size);

        if (!(set & UNICODE_SPACES))
            break;
        last = p;
        p += size;
        line_end = set & NEWLINES ? p : line_end;
    }
    if (p == at)
        return NULL;
    if (p == end && rule->whole_at_end)
        return p;
    if (rule->line_ends && line_end)
        return line_end;
    return p == end || last == at ? p : last; /* the last one belongs to the word that follows */
}

size_t split_rule_match(const struct split_rule *rule, const char *at, const char *end)
{
    size_t size = rule->contractions == EXACT      ? contraction(at, end, false)
                  : rule->contractions == ANY_CASE ? contraction(at, end, true)
                                                   : 0;
    const char *p;

    if (size)
        return size;
    p = rule->cased ? cased_word(rule, at, end) : word(rule, at, end);
    p = p ? p : number(rule, at, end);
    p = p ? p : others(rule, at, end);
    p = p ? p : spaces(rule, at, end);
    return p ? (size_t)(p - at) : 0;
}
