/* Grammar and precedence as jinja2/parser.py 3.1. From loosest: inline if; or; and; not; comparisons; + -; ~; * / // %; **;
 * filters and tests; unary; attribute, item, call. */
#include <string.h>

#include "native/text/template_call.h"
#include "native/text/template_tree.h"

enum { MAX_NAMES = 4096 };

struct parser {
    struct arena *a;
    struct names *names;
    const struct template_token *t; /* the next token */
    unsigned condition;             /* inside a branch: unknown filters fail only when run */
    unsigned loops;
};

const char *names_intern(struct arena *a, struct names *names, const char *bytes, size_t size)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->names[i]) == size && !memcmp(names->names[i], bytes, size))
            return names->names[i];
    if (names->count == MAX_NAMES)
        template_raise(a, ERROR_LIMIT, "more than %d names", MAX_NAMES);
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 64;
        const char **grown = arena_array(a, capacity, sizeof *grown);

        if (names->count)
            memcpy(grown, names->names, names->count * sizeof *grown);
        names->names = grown;
        names->capacity = capacity;
    }

    char *name = arena_new(a, size + 1);

    memcpy(name, bytes, size);
    return names->names[names->count++] = name;
}

/* ---- tokens and nodes ---- */

static void next(struct parser *p)
{
    p->t++;
    p->a->line = p->t->line;
}

static bool at_operator(const struct parser *p, const char *text)
{
    return p->t->kind == TOKEN_OPERATOR && string_is(&p->t->text, text);
}

static bool at_name(const struct parser *p, const char *text)
{
    return p->t->kind == TOKEN_NAME && string_is(&p->t->text, text);
}

static bool skip_operator(struct parser *p, const char *text)
{
    bool found = at_operator(p, text);

    if (found)
        next(p);
    return found;
}

static bool skip_name(struct parser *p, const char *text)
{
    bool found = at_name(p, text);

    if (found)
        next(p);
    return found;
}

static _Noreturn void unexpected(struct parser *p, const char *wanted)
{
    if (p->t->kind == TOKEN_STOP)
        template_raise(p->a, ERROR_SYNTAX, "the template ends, expected %s", wanted);
    if (p->t->kind == TOKEN_END)
        template_raise(p->a, ERROR_SYNTAX, "the tag ends, expected %s", wanted);
    template_raise(p->a, ERROR_SYNTAX, "unexpected '%.*s', expected %s", p->t->text.size > 40 ? 40 : (int)p->t->text.size,
                   p->t->text.bytes, wanted);
}

static void expect_operator(struct parser *p, const char *text)
{
    if (!skip_operator(p, text))
        unexpected(p, text);
}

static void expect_end(struct parser *p)
{
    if (p->t->kind != TOKEN_END)
        unexpected(p, "the end of the tag");
    next(p);
}

static const char *expect_name(struct parser *p)
{
    if (p->t->kind != TOKEN_NAME)
        unexpected(p, "a name");

    const char *name = names_intern(p->a, p->names, p->t->text.bytes, p->t->text.size);

    next(p);
    return name;
}

static struct node *node_new(struct parser *p, enum node_kind kind)
{
    struct node *n = arena_new(p->a, sizeof *n);

    n->kind = kind;
    n->line = p->t->line;
    return n;
}

static void append(struct parser *p, struct node ***items, size_t *count, struct node *item)
{
    if (*count == 0 || (*count >= 4 && (*count & (*count - 1)) == 0)) {
        struct node **grown = arena_array(p->a, *count ? *count * 2 : 4, sizeof *grown);

        if (*count)
            memcpy(grown, *items, *count * sizeof *grown);
        *items = grown;
    }
    (*items)[(*count)++] = item;
}

static void add_item(struct parser *p, struct node *n, struct node *item)
{
    append(p, &n->items, &n->count, item);
}

static void add_named(struct parser *p, struct node *n, const char *name, struct node *value)
{
    size_t count = n->value_count;

    append(p, &n->values, &n->value_count, value);
    if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) {
        const char **grown = arena_array(p->a, count ? count * 2 : 4, sizeof *grown);

        if (count)
            memcpy(grown, n->names, count * sizeof *grown);
        n->names = grown;
    }
    n->names[count] = name;
}

static struct node *binary(struct parser *p, enum node_kind kind, enum operator op, struct node *a, struct node *b)
{
    struct node *n = node_new(p, kind);

    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

/* ---- expressions ---- */

static struct node *parse_expression(struct parser *p);
static struct node *parse_or(struct parser *p);
static struct node *parse_unary(struct parser *p, bool filters);
static struct node *parse_primary(struct parser *p);
static struct node *parse_postfix(struct parser *p, struct node *n);
static struct node *parse_body(struct parser *p, const char *const *ends);

static bool tuple_ends(struct parser *p, const char *word)
{
    return p->t->kind == TOKEN_END || p->t->kind == TOKEN_STOP || at_operator(p, ")") || (word && at_name(p, word));
}

/* One expression, or several with commas, which make a tuple. */
static struct node *parse_tuple(struct parser *p, bool choice, const char *stop, bool brackets)
{
    struct node *tuple = node_new(p, NODE_TUPLE), *one = NULL;
    bool comma = false;

    while (!tuple_ends(p, stop)) {
        one = choice ? parse_expression(p) : parse_or(p);
        add_item(p, tuple, one);
        if (!skip_operator(p, ","))
            break;
        comma = true;
    }
    if (comma || (brackets && !one))
        return tuple;
    if (!one)
        unexpected(p, "an expression");
    return one;
}

static void parse_arguments(struct parser *p, struct node *call)
{
    expect_operator(p, "(");
    while (!at_operator(p, ")")) {
        if (at_operator(p, "*") || at_operator(p, "**"))
            template_raise(p->a, ERROR_UNSUPPORTED, "arguments with * are not offered");
        if (p->t->kind == TOKEN_NAME && p->t[1].kind == TOKEN_OPERATOR && string_is(&p->t[1].text, "=")) {
            const char *name = expect_name(p);

            next(p);
            add_named(p, call, name, parse_expression(p));
        } else {
            if (call->value_count)
                unexpected(p, "a named argument");
            add_item(p, call, parse_expression(p));
        }
        if (!at_operator(p, ")"))
            expect_operator(p, ",");
    }
    next(p);
}

static struct node *parse_call(struct parser *p, struct node *callee)
{
    struct node *n = node_new(p, NODE_CALL);

    n->a = callee;
    parse_arguments(p, n);
    return n;
}

static struct node *parse_subscript(struct parser *p, struct node *object)
{
    struct node *parts[3] = { 0 }, *n;
    unsigned colons = 0;

    next(p);
    while (!at_operator(p, "]")) {
        if (at_operator(p, ":")) {
            if (++colons > 2)
                unexpected(p, "]");
            next(p);
        } else {
            if (parts[colons])
                unexpected(p, "]");
            parts[colons] = parse_expression(p);
        }
    }
    if (!colons && !parts[0])
        unexpected(p, "an index");
    n = node_new(p, colons ? NODE_SLICE : NODE_ITEM);
    n->a = object;
    n->b = parts[0];
    for (unsigned i = 0; colons && i < 3; i++)
        add_item(p, n, parts[i]);
    next(p);
    return n;
}

static struct node *parse_member(struct parser *p, struct node *object)
{
    struct node *n;

    next(p);
    n = node_new(p, NODE_ATTRIBUTE);
    n->a = object;
    if (p->t->kind == TOKEN_NAME) {
        n->name = expect_name(p);
    } else if (p->t->kind == TOKEN_VALUE && p->t->value.kind == VALUE_INT) {
        n->kind = NODE_ITEM;
        n->b = node_new(p, NODE_CONSTANT);
        n->b->value = p->t->value;
        next(p);
    } else {
        unexpected(p, "a name");
    }
    return n;
}

static struct node *parse_postfix(struct parser *p, struct node *n)
{
    for (;;) {
        arena_step(p->a, 1);
        if (at_operator(p, "."))
            n = parse_member(p, n);
        else if (at_operator(p, "["))
            n = parse_subscript(p, n);
        else if (at_operator(p, "("))
            n = parse_call(p, n);
        else
            return n;
    }
}

static struct node *parse_filter(struct parser *p, struct node *n)
{
    struct node *f = node_new(p, NODE_FILTER);

    f->a = n;
    f->name = expect_name(p);
    f->filter = filter_named(f->name);
    if (!f->filter && !p->condition)
        template_raise(p->a, ERROR_UNSUPPORTED, "no filter is named '%s'", f->name);
    if (at_operator(p, "("))
        parse_arguments(p, f);
    return f;
}

static struct node *parse_test(struct parser *p, struct node *n)
{
    struct node *t = node_new(p, NODE_TEST);

    t->a = n;
    t->negated = skip_name(p, "not");
    t->name = expect_name(p);
    t->test = test_named(t->name);
    if (!t->test && !p->condition)
        template_raise(p->a, ERROR_UNSUPPORTED, "no test is named '%s'", t->name);
    if (at_operator(p, "(")) {
        parse_arguments(p, t);
    } else if (p->t->kind == TOKEN_VALUE || at_operator(p, "[") || at_operator(p, "{") ||
               (p->t->kind == TOKEN_NAME && !at_name(p, "else") && !at_name(p, "or") && !at_name(p, "and") && !at_name(p, "if") &&
                !at_name(p, "in") && !at_name(p, "not"))) {
        if (at_name(p, "is"))
            template_raise(p->a, ERROR_SYNTAX, "tests cannot be chained with is");
        add_item(p, t, parse_postfix(p, parse_primary(p)));
    }
    return t;
}

static struct node *parse_filters(struct parser *p, struct node *n)
{
    for (;;) {
        arena_step(p->a, 1);
        if (skip_operator(p, "|"))
            n = parse_filter(p, n);
        else if (skip_name(p, "is"))
            n = parse_test(p, n);
        else if (at_operator(p, "("))
            n = parse_call(p, n);
        else
            return n;
    }
}

static struct node *parse_list(struct parser *p)
{
    struct node *n = node_new(p, NODE_LIST);

    next(p);
    while (!at_operator(p, "]")) {
        add_item(p, n, parse_expression(p));
        if (!at_operator(p, "]"))
            expect_operator(p, ",");
    }
    next(p);
    return n;
}

static struct node *parse_dict(struct parser *p)
{
    struct node *n = node_new(p, NODE_DICT);

    next(p);
    while (!at_operator(p, "}")) {
        add_item(p, n, parse_expression(p));
        expect_operator(p, ":");
        add_item(p, n, parse_expression(p));
        if (!at_operator(p, "}"))
            expect_operator(p, ",");
    }
    next(p);
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
    struct node *n = node_new(p, NODE_NAME);

    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (at_name(p, constants[i].name)) {
            n->kind = NODE_CONSTANT;
            n->value = constants[i].value;
        }
    n->name = expect_name(p);
    return n;
}

static struct node *parse_value(struct parser *p)
{
    struct node *n = node_new(p, NODE_CONSTANT);

    n->value = p->t->value;
    next(p);
    if (n->value.kind != VALUE_STRING || p->t->kind != TOKEN_VALUE || p->t->value.kind != VALUE_STRING)
        return n;

    struct buffer *text = arena_buffer(p->a); /* literals side by side are one */

    buffer_add(text, n->value.string->bytes, n->value.string->size);
    for (; p->t->kind == TOKEN_VALUE && p->t->value.kind == VALUE_STRING; next(p))
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
    } else if (skip_operator(p, "(")) {
        n = parse_tuple(p, true, NULL, true);
        expect_operator(p, ")");
    } else if (at_operator(p, "[")) {
        n = parse_list(p);
    } else if (at_operator(p, "{")) {
        n = parse_dict(p);
    } else {
        unexpected(p, "an expression");
    }
    arena_leave(p->a);
    return n;
}

static struct node *parse_unary(struct parser *p, bool filters)
{
    struct node *n;

    arena_enter(p->a);
    if (at_operator(p, "-") || at_operator(p, "+")) {
        enum operator op = at_operator(p, "-") ? OP_SUBTRACT : OP_ADD;

        next(p);
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

    while (skip_operator(p, "**"))
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
        if (skip_operator(p, operators[i].text)) {
            n = binary(p, NODE_BINARY, operators[i].op, n, parse_power(p));
            i = SIZE_MAX; /* again from the first */
        }
    return n;
}

static struct node *parse_concat(struct parser *p)
{
    struct node *first = parse_product(p), *n;

    if (!at_operator(p, "~"))
        return first;
    n = node_new(p, NODE_CONCAT);
    add_item(p, n, first);
    while (skip_operator(p, "~"))
        add_item(p, n, parse_product(p));
    return n;
}

static struct node *parse_sum(struct parser *p)
{
    struct node *n = parse_concat(p);

    while (at_operator(p, "+") || at_operator(p, "-")) {
        enum operator op = at_operator(p, "+") ? OP_ADD : OP_SUBTRACT;

        next(p);
        n = binary(p, NODE_BINARY, op, n, parse_concat(p));
    }
    return n;
}

static bool at_comparison(struct parser *p, enum operator* op)
{
    static const char *const texts[] = { "==", "!=", "<", "<=", ">", ">=" };

    for (unsigned i = 0; i < 6; i++)
        if (skip_operator(p, texts[i])) {
            *op = OP_EQUAL + i;
            return true;
        }
    if (skip_name(p, "in")) {
        *op = OP_IN;
        return true;
    }
    if (at_name(p, "not") && p->t[1].kind == TOKEN_NAME && string_is(&p->t[1].text, "in")) {
        next(p);
        next(p);
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
            n = node_new(p, NODE_COMPARE);
            n->a = first;
        }
        add_item(p, n, binary(p, NODE_BINARY, op, NULL, parse_sum(p)));
    }
    return n ? n : first;
}

static struct node *parse_not(struct parser *p)
{
    if (!at_name(p, "not"))
        return parse_comparison(p);

    struct node *n = node_new(p, NODE_NOT);

    next(p);
    arena_enter(p->a);
    n->a = parse_not(p);
    arena_leave(p->a);
    return n;
}

static struct node *parse_and(struct parser *p)
{
    struct node *n = parse_not(p);

    while (skip_name(p, "and"))
        n = binary(p, NODE_AND, 0, n, parse_not(p));
    return n;
}

static struct node *parse_or(struct parser *p)
{
    struct node *n = parse_and(p);

    while (skip_name(p, "or"))
        n = binary(p, NODE_OR, 0, n, parse_and(p));
    return n;
}

static struct node *parse_expression(struct parser *p)
{
    struct node *n;

    arena_enter(p->a);
    n = parse_or(p);
    while (skip_name(p, "if")) {
        struct node *choice = node_new(p, NODE_CHOICE);

        choice->b = n;
        choice->a = parse_or(p);
        if (skip_name(p, "else"))
            choice->c = parse_expression(p);
        n = choice;
    }
    arena_leave(p->a);
    return n;
}

/* ---- statements ---- */

static struct node *parse_target(struct parser *p, bool attribute, const char *stop)
{
    struct node *tuple = node_new(p, NODE_TUPLE), *one = NULL;
    bool comma = false, brackets = skip_operator(p, "(");

    do {
        if (comma && (tuple_ends(p, stop) || at_operator(p, "=")))
            break;
        one = node_new(p, NODE_NAME);
        one->name = expect_name(p);
        if (attribute && skip_operator(p, ".")) {
            struct node *object = one;

            one = node_new(p, NODE_ATTRIBUTE);
            one->a = object;
            one->name = expect_name(p);
        }
        add_item(p, tuple, one);
    } while (skip_operator(p, ",") && (comma = true));
    if (brackets)
        expect_operator(p, ")");
    return comma ? tuple : one;
}

/* A body up to one of `ends`; the cursor stands after `{% end`, whose rest is the caller's. */
static struct node *body_until(struct parser *p, const char *end)
{
    const char *ends[] = { end, NULL };
    unsigned loops = p->loops;
    struct node *body;

    expect_end(p);
    p->loops = 0; /* break and continue do not leave a body that makes text */
    body = parse_body(p, ends);
    p->loops = loops;
    next(p);
    expect_end(p);
    return body;
}

static struct node *parse_if(struct parser *p)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    struct node *n = node_new(p, NODE_IF);
    bool last = false;

    p->condition++;
    next(p);
    for (;;) {
        add_item(p, n, last ? NULL : parse_tuple(p, false, NULL, false));
        expect_end(p);
        add_item(p, n, parse_body(p, ends));
        if (skip_name(p, "endif"))
            break;
        if (last)
            unexpected(p, "endif");
        last = at_name(p, "else");
        next(p);
    }
    expect_end(p);
    p->condition--;
    return n;
}

static struct node *parse_for(struct parser *p)
{
    static const char *const ends[] = { "else", "endfor", NULL };
    struct node *n = node_new(p, NODE_FOR);

    next(p);
    n->name = names_intern(p->a, p->names, "loop", 4);
    n->a = parse_target(p, false, "in");
    if (!skip_name(p, "in"))
        unexpected(p, "in");
    n->b = parse_tuple(p, false, "recursive", false);
    if (skip_name(p, "if"))
        n->c = parse_expression(p);
    if (at_name(p, "recursive"))
        template_raise(p->a, ERROR_UNSUPPORTED, "recursive loops are not offered");
    expect_end(p);
    p->loops++;
    n->body = parse_body(p, ends);
    p->loops--;
    if (skip_name(p, "else")) {
        expect_end(p);
        n->otherwise = parse_body(p, ends + 1);
        next(p);
        expect_end(p);
    } else {
        next(p);
        expect_end(p);
    }
    return n;
}

static struct node *parse_set(struct parser *p)
{
    struct node *n = node_new(p, NODE_SET);

    next(p);
    n->a = parse_target(p, true, NULL);
    if (skip_operator(p, "=")) {
        n->b = parse_tuple(p, true, NULL, false);
        expect_end(p);
        return n;
    }
    n->kind = NODE_SET_BLOCK;
    while (skip_operator(p, "|"))
        n->b = parse_filter(p, n->b);
    n->body = body_until(p, "endset");
    return n;
}

static void parse_parameters(struct parser *p, struct node *n)
{
    expect_operator(p, "(");
    while (!at_operator(p, ")")) {
        struct node *parameter = node_new(p, NODE_NAME);

        parameter->name = expect_name(p);
        add_item(p, n, parameter);
        if (skip_operator(p, "="))
            add_named(p, n, parameter->name, parse_expression(p));
        else if (n->value_count)
            template_raise(p->a, ERROR_SYNTAX, "a parameter without default follows one with");
        if (!at_operator(p, ")"))
            expect_operator(p, ",");
    }
    next(p);
}

static struct node *parse_macro(struct parser *p)
{
    struct node *n = node_new(p, NODE_MACRO);

    next(p);
    n->name = expect_name(p);
    parse_parameters(p, n);
    n->body = body_until(p, "endmacro");
    return n;
}

static struct node *parse_call_block(struct parser *p)
{
    struct node *n = node_new(p, NODE_CALL_BLOCK);

    next(p);
    n->name = names_intern(p->a, p->names, "caller", 6);
    if (at_operator(p, "("))
        parse_parameters(p, n);
    n->a = parse_expression(p);
    if (n->a->kind != NODE_CALL)
        unexpected(p, "a call");
    n->body = body_until(p, "endcall");
    return n;
}

static struct node *parse_filter_block(struct parser *p)
{
    struct node *n = node_new(p, NODE_FILTER_BLOCK);

    next(p);
    do
        n->b = parse_filter(p, n->b);
    while (skip_operator(p, "|"));
    n->body = body_until(p, "endfilter");
    return n;
}

static struct node *parse_generation(struct parser *p)
{
    struct node *n = node_new(p, NODE_GENERATION);

    next(p);
    n->body = body_until(p, "endgeneration");
    return n;
}

static struct node *parse_jump(struct parser *p)
{
    struct node *n = node_new(p, at_name(p, "break") ? NODE_BREAK : NODE_CONTINUE);

    if (!p->loops)
        template_raise(p->a, ERROR_SYNTAX, "'%s' outside a loop", n->kind == NODE_BREAK ? "break" : "continue");
    next(p);
    expect_end(p);
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
    };
    static const char *const refused[] = { "import", "from", "include", "extends", "block", "with", "do", "autoescape", "trans" };

    if (p->t->kind != TOKEN_NAME)
        unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (at_name(p, statements[i].name))
            return statements[i].parse(p);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (at_name(p, refused[i]))
            template_raise(p->a, ERROR_UNSUPPORTED, "'%s' is not offered in chat templates", refused[i]);
    unexpected(p, "a statement");
}

static bool body_ends(const struct parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (at_name(p, *ends))
            return true;
    return false;
}

static struct node *parse_body(struct parser *p, const char *const *ends)
{
    struct node *body = node_new(p, NODE_BODY);

    arena_enter(p->a);
    for (;;) {
        struct node *n;

        arena_step(p->a, 1);
        if (p->t->kind == TOKEN_TEXT) {
            n = node_new(p, NODE_TEXT);
            n->text = p->t->text;
            next(p);
        } else if (p->t->kind == TOKEN_PRINT) {
            next(p);
            n = node_new(p, NODE_PRINT);
            n->a = parse_tuple(p, true, NULL, false);
            expect_end(p);
        } else if (p->t->kind == TOKEN_BLOCK) {
            next(p);
            if (body_ends(p, ends))
                break;
            n = parse_statement(p);
        } else if (!ends) {
            break;
        } else {
            unexpected(p, *ends);
        }
        add_item(p, body, n);
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
