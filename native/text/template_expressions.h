/* template_expressions.h - the half of the parser that statements call: an expression becomes nodes. */
#ifndef RONDO_TEXT_TEMPLATE_EXPRESSIONS_H
#define RONDO_TEXT_TEMPLATE_EXPRESSIONS_H

#include "native/text/template_cursor.h"

struct node *parse_expression(struct parser *p);
struct node *parse_or(struct parser *p); /* without inline if */
/* One expression, or several with commas, which make a tuple; `choice` allows inline if, `stop` is a name that ends it. */
struct node *parse_tuple(struct parser *p, bool choice, const char *stop, bool brackets);
struct node *parse_filter(struct parser *p, struct node *n); /* after the `|` */

#endif
