/* Statements, as jinja2/parser.py 3.1. */
#include "native/text/template_expressions.h"

static struct node *parse_body(struct parser *p, const char *const *ends);

static struct node *parse_target(struct parser *p, bool attribute, const char *stop)
{
    struct node *tuple = parser_node(p, NODE_TUPLE), *one = NULL;
    bool comma = false;

    arena_enter(p->a);
    do {
        if (comma && (parser_tuple_ends(p, stop) || parser_at(p, "=")))
            break;
        if (parser_skip(p, "(")) {
            one = parse_target(p, attribute, NULL);
            parser_expect(p, ")");
            parser_add(p, tuple, one);
            continue;
        }
        one = parser_node(p, NODE_NAME);
        one->name = parser_name(p);
        if (attribute && parser_skip(p, ".")) {
            struct node *object = one;

            one = parser_node(p, NODE_ATTRIBUTE);
            one->a = object;
            one->name = parser_name(p);
        }
        parser_add(p, tuple, one);
    } while (parser_skip(p, ",") && (comma = true));
    arena_leave(p->a);
    return comma ? tuple : one;
}

static struct node *parse_target_name(struct parser *p)
{
    struct node *n = parser_node(p, NODE_NAME);

    n->name = parser_name(p);
    return n;
}

/* A body up to one of `ends`; the cursor stands after `{% end`, whose rest is the caller's. */
static struct node *body_until(struct parser *p, const char *end)
{
    const char *ends[] = { end, NULL };
    unsigned loops = p->loops;
    struct node *body;

    parser_expect_end(p);
    p->loops = 0; /* break and continue do not leave a body that makes text */
    body = parse_body(p, ends);
    p->loops = loops;
    parser_next(p);
    parser_expect_end(p);
    return body;
}

static struct node *parse_if(struct parser *p)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    struct node *n = parser_node(p, NODE_IF);
    bool last = false;

    p->condition++;
    parser_next(p);
    for (;;) {
        parser_add(p, n, last ? NULL : parse_tuple(p, false, NULL, false));
        parser_expect_end(p);
        parser_add(p, n, parse_body(p, ends));
        if (parser_skip_name(p, "endif"))
            break;
        if (last)
            parser_unexpected(p, "endif");
        last = parser_at_name(p, "else");
        parser_next(p);
    }
    parser_expect_end(p);
    p->condition--;
    return n;
}

static struct node *parse_for(struct parser *p)
{
    static const char *const ends[] = { "else", "endfor", NULL };
    struct node *n = parser_node(p, NODE_FOR);

    parser_next(p);
    n->name = names_intern(p->a, p->names, "loop", 4);
    n->a = parse_target(p, false, "in");
    if (!parser_skip_name(p, "in"))
        parser_unexpected(p, "in");
    n->b = parse_tuple(p, false, "recursive", false);
    if (parser_skip_name(p, "if"))
        n->c = parse_expression(p);
    n->recursive = parser_skip_name(p, "recursive");
    parser_expect_end(p);
    p->loops++;
    n->body = parse_body(p, ends);
    p->loops--;
    if (parser_skip_name(p, "else")) {
        parser_expect_end(p);
        n->otherwise = parse_body(p, ends + 1);
        parser_next(p);
        parser_expect_end(p);
    } else {
        parser_next(p);
        parser_expect_end(p);
    }
    return n;
}

static struct node *parse_set(struct parser *p)
{
    struct node *n = parser_node(p, NODE_SET);

    parser_next(p);
    n->a = parse_target(p, true, NULL);
    if (parser_skip(p, "=")) {
        n->b = parse_tuple(p, true, NULL, false);
        parser_expect_end(p);
        return n;
    }
    n->kind = NODE_SET_BLOCK;
    while (parser_skip(p, "|"))
        n->b = parse_filter(p, n->b);
    n->body = body_until(p, "endset");
    return n;
}

static void parse_parameters(struct parser *p, struct node *n)
{
    parser_expect(p, "(");
    while (!parser_at(p, ")")) {
        struct node *parameter = parser_node(p, NODE_NAME);

        parameter->name = parser_name(p);
        parser_add(p, n, parameter);
        if (parser_skip(p, "="))
            parser_add_named(p, n, parameter->name, parse_expression(p));
        else if (n->value_count)
            template_raise(p->a, ERROR_SYNTAX, "a parameter without default follows one with");
        if (!parser_at(p, ")"))
            parser_expect(p, ",");
    }
    parser_next(p);
}

static struct node *parse_macro(struct parser *p)
{
    struct node *n = parser_node(p, NODE_MACRO);

    parser_next(p);
    n->name = parser_name(p);

    unsigned outer = p->takes;

    p->takes = 0;
    parse_parameters(p, n);
    n->body = body_until(p, "endmacro");
    n->takes = p->takes;
    n->rest[0] = names_intern(p->a, p->names, "varargs", 7);
    n->rest[1] = names_intern(p->a, p->names, "kwargs", 6);
    p->takes |= outer;
    return n;
}

static struct node *parse_call_block(struct parser *p)
{
    struct node *n = parser_node(p, NODE_CALL_BLOCK);

    parser_next(p);
    n->name = names_intern(p->a, p->names, "caller", 6);
    if (parser_at(p, "("))
        parse_parameters(p, n);
    n->a = parse_expression(p);
    if (n->a->kind != NODE_CALL)
        parser_unexpected(p, "a call");
    n->body = body_until(p, "endcall");
    return n;
}

static struct node *parse_filter_block(struct parser *p)
{
    struct node *n = parser_node(p, NODE_FILTER_BLOCK);

    parser_next(p);
    do
        n->b = parse_filter(p, n->b);
    while (parser_skip(p, "|"));
    n->body = body_until(p, "endfilter");
    return n;
}

static struct node *parse_with(struct parser *p)
{
    struct node *n = parser_node(p, NODE_WITH);

    parser_next(p);
    while (p->t->kind != TOKEN_END) {
        if (n->count)
            parser_expect(p, ",");
        parser_add(p, n, parse_target_name(p));
        parser_expect(p, "=");
        parser_add(p, n, parse_expression(p));
    }
    n->body = body_until(p, "endwith");
    return n;
}

static struct node *parse_generation(struct parser *p)
{
    struct node *n = parser_node(p, NODE_GENERATION);

    parser_next(p);
    n->body = body_until(p, "endgeneration");
    return n;
}

static struct node *parse_jump(struct parser *p)
{
    struct node *n = parser_node(p, parser_at_name(p, "break") ? NODE_BREAK : NODE_CONTINUE);

    if (!p->loops)
        template_raise(p->a, ERROR_SYNTAX, "'%s' outside a loop", n->kind == NODE_BREAK ? "break" : "continue");
    parser_next(p);
    parser_expect_end(p);
    return n;
}

static struct node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct node *(*parse)(struct parser *);
    } statements[] = {
        { "if", parse_if },       { "for", parse_for },         { "set", parse_set },
        { "macro", parse_macro }, { "call", parse_call_block }, { "filter", parse_filter_block },
        { "break", parse_jump },  { "continue", parse_jump },   { "generation", parse_generation },
        { "with", parse_with },
    };
    static const char *const refused[] = { "import", "from", "include", "extends", "block", "do", "autoescape", "trans" };

    if (p->t->kind != TOKEN_NAME)
        parser_unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (parser_at_name(p, statements[i].name))
            return statements[i].parse(p);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (parser_at_name(p, refused[i]))
            template_raise(p->a, ERROR_UNSUPPORTED, "'%s' is not offered in chat templates", refused[i]);
    parser_unexpected(p, "a statement");
}

static bool body_ends(const struct parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (parser_at_name(p, *ends))
            return true;
    return false;
}

static struct node *parse_body(struct parser *p, const char *const *ends)
{
    struct node *body = parser_node(p, NODE_BODY);

    arena_enter(p->a);
    for (;;) {
        struct node *n;

        arena_step(p->a, 1);
        if (p->t->kind == TOKEN_TEXT) {
            n = parser_node(p, NODE_TEXT);
            n->text = p->t->text;
            parser_next(p);
        } else if (p->t->kind == TOKEN_PRINT) {
            parser_next(p);
            n = parser_node(p, NODE_PRINT);
            n->a = parse_tuple(p, true, NULL, false);
            parser_expect_end(p);
        } else if (p->t->kind == TOKEN_BLOCK) {
            parser_next(p);
            if (body_ends(p, ends))
                break;
            n = parse_statement(p);
        } else if (!ends) {
            break;
        } else {
            parser_unexpected(p, *ends);
        }
        parser_add(p, body, n);
    }
    arena_leave(p->a);
    return body;
}

struct node *template_parse(struct arena *a, struct names *names, const char *source, size_t size)
{
    struct parser p = { .a = a, .names = names, .t = template_lex(a, source, size) };

    a->line = p.t->line;
    return parse_body(&p, NULL);
}
