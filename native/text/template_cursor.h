/* template_cursor.h - what both halves of the parser stand on: the cursor over tokens, and the making of nodes. */
#ifndef RONDO_TEXT_TEMPLATE_CURSOR_H
#define RONDO_TEXT_TEMPLATE_CURSOR_H

#include "native/text/template_call.h"
#include "native/text/template_tree.h"

struct parser {
    struct arena *a;
    struct names *names;
    const struct template_token *t; /* the next token */
    unsigned condition;             /* inside a branch: unknown filters fail only when run */
    unsigned loops;
    unsigned takes; /* of varargs, kwargs and caller, those the macro being read reads */
};

void parser_next(struct parser *p);
bool parser_at(const struct parser *p, const char *text); /* an operator */
bool parser_at_name(const struct parser *p, const char *text);
bool parser_skip(struct parser *p, const char *text); /* moves on if it is there */
bool parser_skip_name(struct parser *p, const char *text);
void parser_expect(struct parser *p, const char *text); /* raises if it is not there */
void parser_expect_end(struct parser *p);               /* of the tag */
const char *parser_name(struct parser *p);              /* any name, interned */
_Noreturn void parser_unexpected(struct parser *p, const char *wanted);

struct node *parser_node(struct parser *p, enum node_kind kind);
void parser_add(struct parser *p, struct node *n, struct node *item);
void parser_add_named(struct parser *p, struct node *n, const char *name, struct node *value);

/* Where a list without brackets ends: at the tag's end, at `)`, at the name `word`. */
bool parser_tuple_ends(struct parser *p, const char *word);

#endif
