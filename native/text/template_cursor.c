/* The cursor over tokens, and the making of nodes. */
#include "native/text/template_cursor.h"

#include <string.h>

enum { MAX_NAMES = 4096 };

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

void parser_next(struct parser *p)
{
    p->t++;
    p->a->line = p->t->line;
}

bool parser_at(const struct parser *p, const char *text)
{
    return p->t->kind == TOKEN_OPERATOR && string_is(&p->t->text, text);
}

bool parser_at_name(const struct parser *p, const char *text)
{
    return p->t->kind == TOKEN_NAME && string_is(&p->t->text, text);
}

bool parser_skip(struct parser *p, const char *text)
{
    bool found = parser_at(p, text);

    if (found)
        parser_next(p);
    return found;
}

bool parser_skip_name(struct parser *p, const char *text)
{
    bool found = parser_at_name(p, text);

    if (found)
        parser_next(p);
    return found;
}

_Noreturn void parser_unexpected(struct parser *p, const char *wanted)
{
    if (p->t->kind == TOKEN_STOP)
        template_raise(p->a, ERROR_SYNTAX, "the template ends, expected %s", wanted);
    if (p->t->kind == TOKEN_END)
        template_raise(p->a, ERROR_SYNTAX, "the tag ends, expected %s", wanted);
    template_raise(p->a, ERROR_SYNTAX, "unexpected '%.*s', expected %s", p->t->text.size > 40 ? 40 : (int)p->t->text.size,
                   p->t->text.bytes, wanted);
}

void parser_expect(struct parser *p, const char *text)
{
    if (!parser_skip(p, text))
        parser_unexpected(p, text);
}

void parser_expect_end(struct parser *p)
{
    if (p->t->kind != TOKEN_END)
        parser_unexpected(p, "the end of the tag");
    parser_next(p);
}

const char *parser_name(struct parser *p)
{
    if (p->t->kind != TOKEN_NAME)
        parser_unexpected(p, "a name");

    const char *name = names_intern(p->a, p->names, p->t->text.bytes, p->t->text.size);

    parser_next(p);
    return name;
}

struct node *parser_node(struct parser *p, enum node_kind kind)
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

void parser_add(struct parser *p, struct node *n, struct node *item)
{
    append(p, &n->items, &n->count, item);
}

void parser_add_named(struct parser *p, struct node *n, const char *name, struct node *value)
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

bool parser_tuple_ends(struct parser *p, const char *word)
{
    return p->t->kind == TOKEN_END || p->t->kind == TOKEN_STOP || parser_at(p, ")") || (word && parser_at_name(p, word));
}
