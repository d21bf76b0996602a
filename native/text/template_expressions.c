/* Grammar and precedence as jinja2/parser.py 3.1. From loosest: inline if; or; and; not; comparisons; + -; ~; * / // %; **;
 * filters and tests; unary; attribute, item, call. */
#include "native/text/template_expressions.h"

#include <string.h>

static struct node *binary(struct parser *p, enum node_kind kind, enum operator op, struct node *a, struct node *b)
{
    struct node *n = parser_node(p, kind);

    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

static struct node *parse_unary(struct parser *p, bool filters);
static struct node *parse_primary(struct parser *p);
static struct node *parse_postfix(struct parser *p, struct node *n);

/* One expression, or several with commas, which make a tuple. */
struct node *parse_tuple(struct parser *p, bool choice, const char *stop, bool brackets)
{
    struct node *tuple = parser_node(p, NODE_TUPLE), *one = NULL;
    bool comma = false;

    while (!parser_tuple_ends(p, stop)) {
        one = choice ? parse_expression(p) : parse_or(p);
        parser_add(p, tuple, one);
        if (!parser_skip(p, ","))
            break;
        comma = true;
    }
    if (comma || (brackets && !one))
        return tuple;
    if (!one)
        parser_unexpected(p, "an expression");
    return one;
}

static void parse_arguments(struct parser *p, struct node *call)
{
    parser_expect(p, "(");
    while (!parser_at(p, ")")) {
        if (parser_at(p, "*") || parser_at(p, "**"))
            template_raise(p->a, ERROR_UNSUPPORTED, "arguments with * are not offered");
        if (p->t->kind == TOKEN_NAME && p->t[1].kind == TOKEN_OPERATOR && string_is(&p->t[1].text, "=")) {
            const char *name = parser_name(p);

            parser_next(p);
            parser_add_named(p, call, name, parse_expression(p));
        } else {
            if (call->value_count)
                parser_unexpected(p, "a named argument");
            parser_add(p, call, parse_expression(p));
        }
        if (!parser_at(p, ")"))
            parser_expect(p, ",");
    }
    parser_next(p);
}

static struct node *parse_call(struct parser *p, struct node *callee)
{
    struct node *n = parser_node(p, NODE_CALL);

    n->a = callee;
    parse_arguments(p, n);
    return n;
}

static struct node *parse_subscript(struct parser *p, struct node *object)
{
    struct node *parts[3] = { 0 }, *n;
    unsigned colons = 0;

    parser_next(p);
    while (!parser_at(p, "]")) {
        if (parser_at(p, ":")) {
            if (++colons > 2)
                parser_unexpected(p, "]");
            parser_next(p);
        } else {
            if (parts[colons])
                parser_unexpected(p, "]");
            parts[colons] = parse_expression(p);
        }
    }
    if (!colons && !parts[0])
        parser_unexpected(p, "an index");
    n = parser_node(p, colons ? NODE_SLICE : NODE_ITEM);
    n->a = object;
    n->b = parts[0];
    for (unsigned i = 0; colons && i < 3; i++)
        parser_add(p, n, parts[i]);
    parser_next(p);
    return n;
}

static struct node *parse_member(struct parser *p, struct node *object)
{
    struct node *n;

    parser_next(p);
    n = parser_node(p, NODE_ATTRIBUTE);
    n->a = object;
    if (p->t->kind == TOKEN_NAME) {
        n->name = parser_name(p);
    } else if (p->t->kind == TOKEN_VALUE && p->t->value.kind == VALUE_INT) {
        n->kind = NODE_ITEM;
        n->b = parser_node(p, NODE_CONSTANT);
        n->b->value = p->t->value;
        parser_next(p);
    } else {
        parser_unexpected(p, "a name");
    }
    return n;
}

static struct node *parse_postfix(struct parser *p, struct node *n)
{
    for (;;) {
        arena_step(p->a, 1);
        if (parser_at(p, "."))
            n = parse_member(p, n);
        else if (parser_at(p, "["))
            n = parse_subscript(p, n);
        else if (parser_at(p, "("))
            n = parse_call(p, n);
        else
            return n;
    }
}

struct node *parse_filter(struct parser *p, struct node *n)
{
    struct node *f = parser_node(p, NODE_FILTER);

    f->a = n;
    f->name = parser_name(p);
    f->filter = filter_named(f->name);
    if (!f->filter && !p->condition)
        template_raise(p->a, ERROR_UNSUPPORTED, "no filter is named '%s'", f->name);
    if (parser_at(p, "("))
        parse_arguments(p, f);
    return f;
}

static struct node *parse_test(struct parser *p, struct node *n)
{
    struct node *t = parser_node(p, NODE_TEST);

    t->a = n;
    t->negated = parser_skip_name(p, "not");
    t->name = parser_name(p);
    t->test = test_named(t->name);
    if (!t->test && !p->condition)
        template_raise(p->a, ERROR_UNSUPPORTED, "no test is named '%s'", t->name);
    if (parser_at(p, "(")) {
        parse_arguments(p, t);
    } else if (p->t->kind == TOKEN_VALUE || parser_at(p, "[") || parser_at(p, "{") ||
               (p->t->kind == TOKEN_NAME && !parser_at_name(p, "else") && !parser_at_name(p, "or") && !parser_at_name(p, "and") &&
                !parser_at_name(p, "if") && !parser_at_name(p, "in") && !parser_at_name(p, "not"))) {
        if (parser_at_name(p, "is"))
            template_raise(p->a, ERROR_SYNTAX, "tests cannot be chained with is");
        parser_add(p, t, parse_postfix(p, parse_primary(p)));
    }
    return t;
}

static struct node *parse_filters(struct parser *p, struct node *n)
{
    for (;;) {
        arena_step(p->a, 1);
        if (parser_skip(p, "|"))
            n = parse_filter(p, n);
        else if (parser_skip_name(p, "is"))
            n = parse_test(p, n);
        else if (parser_at(p, "("))
            n = parse_call(p, n);
        else
            return n;
    }
}

static struct node *parse_list(struct parser *p)
{
    struct node *n = parser_node(p, NODE_LIST);

    parser_next(p);
    while (!parser_at(p, "]")) {
        parser_add(p, n, parse_expression(p));
        if (!parser_at(p, "]"))
            parser_expect(p, ",");
    }
    parser_next(p);
    return n;
}

static struct node *parse_dict(struct parser *p)
{
    struct node *n = parser_node(p, NODE_DICT);

    parser_next(p);
    while (!parser_at(p, "}")) {
        parser_add(p, n, parse_expression(p));
        parser_expect(p, ":");
        parser_add(p, n, parse_expression(p));
        if (!parser_at(p, "}"))
            parser_expect(p, ",");
    }
    parser_next(p);
    return n;
}

static struct node *parse_name(struct parser *p)
{
    static const struct {
        const char *name;
        struct value value;
    } constants[] = {
        { "true", { .kind = VALUE_BOOL, .boolean = true } },
        { "True", { .kind = VALUE_BOOL, .boolean = true } },
        { "false", { .kind = VALUE_BOOL, .boolean = false } },
        { "False", { .kind = VALUE_BOOL, .boolean = false } },
        { "none", { .kind = VALUE_NONE } },
        { "None", { .kind = VALUE_NONE } },
    };
    struct node *n = parser_node(p, NODE_NAME);

    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (parser_at_name(p, constants[i].name)) {
            n->kind = NODE_CONSTANT;
            n->value = constants[i].value;
        }
    p->takes |= parser_at_name(p, "varargs")  ? TAKES_VARARGS
                : parser_at_name(p, "kwargs") ? TAKES_KWARGS
                : parser_at_name(p, "caller") ? TAKES_CALLER
                                              : 0;
    n->name = parser_name(p);
    return n;
}

static struct node *parse_value(struct parser *p)
{
    struct node *n = parser_node(p, NODE_CONSTANT);

    n->value = p->t->value;
    parser_next(p);
    if (n->value.kind != VALUE_STRING || p->t->kind != TOKEN_VALUE || p->t->value.kind != VALUE_STRING)
        return n;

    struct buffer *text = arena_buffer(p->a); /* literals side by side are one */

    buffer_add(text, n->value.string->bytes, n->value.string->size);
    for (; p->t->kind == TOKEN_VALUE && p->t->value.kind == VALUE_STRING; parser_next(p))
        buffer_add(text, p->t->value.string->bytes, p->t->value.string->size);
    n->value = value_buffer(p->a, text);
    return n;
}

static struct node *parse_primary(struct parser *p)
{
    struct node *n;

    arena_enter(p->a);
    if (p->t->kind == TOKEN_NAME) {
        n = parse_name(p);
    } else if (p->t->kind == TOKEN_VALUE) {
        n = parse_value(p);
    } else if (parser_skip(p, "(")) {
        n = parse_tuple(p, true, NULL, true);
        parser_expect(p, ")");
    } else if (parser_at(p, "[")) {
        n = parse_list(p);
    } else if (parser_at(p, "{")) {
        n = parse_dict(p);
    } else {
        parser_unexpected(p, "an expression");
    }
    arena_leave(p->a);
    return n;
}

static struct node *parse_unary(struct parser *p, bool filters)
{
    struct node *n;

    arena_enter(p->a);
    if (parser_at(p, "-") || parser_at(p, "+")) {
        enum operator op = parser_at(p, "-") ? OP_SUBTRACT : OP_ADD;

        parser_next(p);
        n = binary(p, NODE_UNARY, op, parse_unary(p, false), NULL);
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    if (filters)
        n = parse_filters(p, n);
    arena_leave(p->a);
    return n;
}

static struct node *parse_power(struct parser *p)
{
    struct node *n = parse_unary(p, true);

    while (parser_skip(p, "**"))
        n = binary(p, NODE_BINARY, OP_POWER, n, parse_unary(p, true));
    return n;
}

static struct node *parse_product(struct parser *p)
{
    static const struct {
        const char *text;
        enum operator op;
    } operators[] = { { "*", OP_MULTIPLY }, { "/", OP_DIVIDE }, { "//", OP_FLOOR }, { "%", OP_MODULO } };
    struct node *n = parse_power(p);

    for (size_t i = 0; i < 4; i++)
        if (parser_skip(p, operators[i].text)) {
            n = binary(p, NODE_BINARY, operators[i].op, n, parse_power(p));
            i = SIZE_MAX; /* again from the first */
        }
    return n;
}

static struct node *parse_concat(struct parser *p)
{
    struct node *first = parse_product(p), *n;

    if (!parser_at(p, "~"))
        return first;
    n = parser_node(p, NODE_CONCAT);
    parser_add(p, n, first);
    while (parser_skip(p, "~"))
        parser_add(p, n, parse_product(p));
    return n;
}

static struct node *parse_sum(struct parser *p)
{
    struct node *n = parse_concat(p);

    while (parser_at(p, "+") || parser_at(p, "-")) {
        enum operator op = parser_at(p, "+") ? OP_ADD : OP_SUBTRACT;

        parser_next(p);
        n = binary(p, NODE_BINARY, op, n, parse_concat(p));
    }
    return n;
}

static bool at_comparison(struct parser *p, enum operator* op)
{
    static const char *const texts[] = { "==", "!=", "<", "<=", ">", ">=" };

    for (unsigned i = 0; i < 6; i++)
        if (parser_skip(p, texts[i])) {
            *op = OP_EQUAL + i;
            return true;
        }
    if (parser_skip_name(p, "in")) {
        *op = OP_IN;
        return true;
    }
    if (parser_at_name(p, "not") && p->t[1].kind == TOKEN_NAME && string_is(&p->t[1].text, "in")) {
        parser_next(p);
        parser_next(p);
        *op = OP_NOT_IN;
        return true;
    }
    return false;
}

static struct node *parse_comparison(struct parser *p)
{
    struct node *first = parse_sum(p), *n = NULL;
    enum operator op;

    while (at_comparison(p, &op)) {
        if (!n) {
            n = parser_node(p, NODE_COMPARE);
            n->a = first;
        }
        parser_add(p, n, binary(p, NODE_BINARY, op, NULL, parse_sum(p)));
    }
    return n ? n : first;
}

static struct node *parse_not(struct parser *p)
{
    if (!parser_at_name(p, "not"))
        return parse_comparison(p);

    struct node *n = parser_node(p, NODE_NOT);

    parser_next(p);
    arena_enter(p->a);
    n->a = parse_not(p);
    arena_leave(p->a);
    return n;
}

static struct node *parse_and(struct parser *p)
{
    struct node *n = parse_not(p);

    while (parser_skip_name(p, "and"))
        n = binary(p, NODE_AND, 0, n, parse_not(p));
    return n;
}

struct node *parse_or(struct parser *p)
{
    struct node *n = parse_and(p);

    while (parser_skip_name(p, "or"))
        n = binary(p, NODE_OR, 0, n, parse_and(p));
    return n;
}

struct node *parse_expression(struct parser *p)
{
    struct node *n;

    arena_enter(p->a);
    n = parse_or(p);
    while (parser_skip_name(p, "if")) {
        struct node *choice = parser_node(p, NODE_CHOICE);

        choice->b = n;
        choice->a = parse_or(p);
        if (parser_skip_name(p, "else"))
            choice->c = parse_expression(p);
        n = choice;
    }
    arena_leave(p->a);
    return n;
}
