/* template_lexer.h - template source to tokens, with Jinja2's rules for white space (jinja2/lexer.py, 3.1).
 *
 *     Hello {%- if x %} {{ name }}   ->   TEXT "Hello"  BLOCK  if  x  END  TEXT " "  PRINT  name  END
 *
 * trim_blocks: one newline after `%}` and `#}` goes. lstrip_blocks: white space between the start of a line and `{%` or
 * `{#` goes. `-` takes all white space on its side, `+` keeps it. One newline at the end of the source goes.
 */
#ifndef RONDO_TEXT_TEMPLATE_LEXER_H
#define RONDO_TEXT_TEMPLATE_LEXER_H

#include "native/text/template_value.h"

enum token_kind {
    TOKEN_TEXT,
    TOKEN_PRINT, /* {{ */
    TOKEN_BLOCK, /* {% */
    TOKEN_END,   /* }} or %} */
    TOKEN_NAME,
    TOKEN_VALUE, /* a string, an int or a float */
    TOKEN_OPERATOR,
    TOKEN_STOP, /* after the last one */
};

struct template_token {
    enum token_kind kind;
    uint32_t line;
    struct string text; /* of names and operators, and what is printed of TEXT */
    struct value value;
};

/* All tokens of a source, in the arena; raises on syntax. The last is TOKEN_STOP. */
struct template_token *template_lex(struct arena *a, const char *source, size_t size);

bool is_space(uint32_t code_point); /* Python's str.isspace */

/* Takes white space off either end of [*start, *end). */
void strip_left(const char **start, const char *end);
void strip_right(const char *start, const char **end);

#endif
