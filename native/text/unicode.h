/* unicode.h - what a code point is, at the version that Hugging Face tokenizers has (tools/unicode/tables.py).
 *
 * Categories are Unicode 16's. Normal forms know the characters of Unicode 9 only, as in that library's own tables; the
 * system's libraries are at other versions, so their answers would give other tokens.
 */
#ifndef RONDO_TEXT_UNICODE_H
#define RONDO_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* The low four bits of a page's byte. The letters come first. */
enum unicode_kind {
    UNICODE_OTHER,
    UNICODE_UPPER, /* Lu */
    UNICODE_LOWER_CASE,
    UNICODE_TITLE,
    UNICODE_MODIFIER, /* Lm */
    UNICODE_LETTER,   /* Lo */
    UNICODE_MARK,
    UNICODE_DIGIT,  /* Nd */
    UNICODE_NUMBER, /* No */
    UNICODE_PUNCTUATION,
    UNICODE_SYMBOL,
    UNICODE_SPACE,     /* White_Space but for ... */
    UNICODE_NEWLINE,   /* CR and LF */
    UNICODE_CONNECTOR, /* Pc, punctuation that joins words */
    UNICODE_NUMERAL,   /* Nl */
};

/* The high four bits. */
enum {
    UNICODE_COMPOSES = 0x10,   /* not inert in NFC: has a combining class, may join the one before, or changes */
    UNICODE_DECOMPOSES = 0x20, /* not inert in NFD */
    UNICODE_COMPATIBLE = 0x40, /* has a compatibility decomposition */
    UNICODE_LOWERS = 0x80,     /* has a lower case */
};

#define UNICODE_SET(kind) (1u << (kind))
enum {
    UNICODE_LETTERS = UNICODE_SET(UNICODE_UPPER) | UNICODE_SET(UNICODE_LOWER_CASE) | UNICODE_SET(UNICODE_TITLE) |
                      UNICODE_SET(UNICODE_MODIFIER) | UNICODE_SET(UNICODE_LETTER),
    UNICODE_NUMBERS = UNICODE_SET(UNICODE_DIGIT) | UNICODE_SET(UNICODE_NUMBER) | UNICODE_SET(UNICODE_NUMERAL),
    UNICODE_PUNCTUATIONS = UNICODE_SET(UNICODE_PUNCTUATION) | UNICODE_SET(UNICODE_CONNECTOR),
    UNICODE_SPACES = UNICODE_SET(UNICODE_SPACE) | UNICODE_SET(UNICODE_NEWLINE),
    UNICODE_WORDS = UNICODE_LETTERS | UNICODE_SET(UNICODE_MARK) | UNICODE_SET(UNICODE_DIGIT) | UNICODE_SET(UNICODE_NUMERAL) |
                    UNICODE_SET(UNICODE_CONNECTOR), /* but for a few symbols, see unicode_is_word */
};

struct unicode_decomposition {
    uint32_t code_point;
    uint16_t full, full_count;   /* places in UNICODE_POOL: to the end, with compatibility */
    uint16_t plain, plain_count; /* canonical only; 0 of them if there is none */
};
struct unicode_composition {
    uint32_t first, second, joined;
};
struct unicode_range {
    uint32_t first, last;
    uint8_t value; /* a combining class; a set of enum unicode_library */
};
struct unicode_case {
    uint32_t code_point, lower;
};

extern const uint16_t UNICODE_INDEX[];
extern const uint8_t UNICODE_PAGES[][128];
extern const uint32_t UNICODE_POOL[];
extern const struct unicode_decomposition UNICODE_DECOMPOSITIONS[];
extern const struct unicode_composition UNICODE_COMPOSITIONS[];
extern const struct unicode_range UNICODE_COMBINING[], UNICODE_LIBRARY[];
extern const struct unicode_case UNICODE_LOWER[];
extern const unsigned UNICODE_DECOMPOSITION_COUNT, UNICODE_COMPOSITION_COUNT, UNICODE_COMBINING_COUNT, UNICODE_LOWER_COUNT,
    UNICODE_LIBRARY_COUNT;

/* Kind and flags in one byte. */
static inline uint8_t unicode_byte(uint32_t code_point)
{
    if (code_point < 0x32400)
        return UNICODE_PAGES[UNICODE_INDEX[code_point >> 7]][code_point & 127];
    return code_point >= 0xe0100 && code_point <= 0xe01ef ? UNICODE_MARK : UNICODE_OTHER;
}

static inline bool unicode_in(uint32_t code_point, uint32_t set)
{
    return set >> (unicode_byte(code_point) & 15) & 1;
}

bool unicode_is_word(uint32_t code_point); /* what a token of a single word may not stand next to: \w of Rust's `regex` */

/* Sets of the library's steps that have older tables of their own. */
enum unicode_library {
    LIBRARY_PUNCTUATION = 1, /* of Punctuation and BertPreTokenizer */
    LIBRARY_ACCENT = 2,      /* of StripAccents */
    LIBRARY_BERT_ACCENT = 4, /* of BertNormalizer */
    LIBRARY_BERT_CONTROL = 8,
    LIBRARY_NUMBER = 16, /* of Digits, besides UNICODE_NUMBERS: its tables are newer */
};
bool unicode_library_has(uint32_t code_point, enum unicode_library set);

/* A single lower-case letter, or the same code point. (U+0130 becomes two; the normaliser knows.) */
uint32_t unicode_lower(uint32_t code_point);

uint8_t unicode_combining(uint32_t code_point);            /* canonical combining class */
uint32_t unicode_compose(uint32_t first, uint32_t second); /* UINT32_MAX if they do not join */
#define UNICODE_MAX_DECOMPOSITION 18
/* To the end; returns how many code points (1, itself, if there is none). */
unsigned unicode_decompose(uint32_t code_point, bool compatible, uint32_t out[UNICODE_MAX_DECOMPOSITION]);

#endif
