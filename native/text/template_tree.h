/* template_tree.h - a parsed template.
 *
 *     {% if a %}x{{ b.c }}{% endif %}   ->   IF [ branch: NAME a, body: TEXT x, PRINT(ATTRIBUTE(NAME b, c)) ]
 */
#ifndef RONDO_TEXT_TEMPLATE_TREE_H
#define RONDO_TEXT_TEMPLATE_TREE_H

#include "native/text/template_lexer.h"

enum { TAKES_VARARGS = 1, TAKES_KWARGS = 2, TAKES_CALLER = 4 };

enum node_kind {
    /* expressions */
    NODE_CONSTANT,  /* value */
    NODE_NAME,      /* name */
    NODE_LIST,      /* items */
    NODE_TUPLE,     /* items */
    NODE_DICT,      /* items: key, value, key, value ... */
    NODE_UNARY,     /* op a */
    NODE_BINARY,    /* a op b */
    NODE_AND,       /* a b */
    NODE_OR,        /* a b */
    NODE_NOT,       /* a */
    NODE_COMPARE,   /* a, then items: one BINARY(op, operand in b) a comparison */
    NODE_CONCAT,    /* items */
    NODE_CHOICE,    /* b if a else c */
    NODE_ATTRIBUTE, /* a.name */
    NODE_ITEM,      /* a[b] */
    NODE_SLICE,     /* a[items 0:1:2], each may be NULL */
    NODE_CALL,      /* a(items, names=values) */
    NODE_FILTER,    /* a | name(items, ...); a NULL in a filter block */
    NODE_TEST,      /* a is name(items) */
    /* statements */
    NODE_TEXT,         /* text */
    NODE_PRINT,        /* a */
    NODE_IF,           /* items: alternately a condition and a BODY; the last condition may be NULL */
    NODE_FOR,          /* target a, in b, if c; body, otherwise; name is "loop" */
    NODE_SET,          /* target a = b */
    NODE_WITH,         /* items: alternately a target and an expression; body */
    NODE_SET_BLOCK,    /* target a, filters b, body */
    NODE_MACRO,        /* name, items: parameters, values: defaults from the right; body */
    NODE_CALL_BLOCK,   /* a call, items: parameters; body */
    NODE_FILTER_BLOCK, /* b a filter chain; body */
    NODE_GENERATION,   /* body */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_BODY, /* items */
};

enum operator{
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_FLOOR,
    OP_MODULO,
    OP_POWER,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_IN,
    OP_NOT_IN,
};

struct node {
    enum node_kind kind;
    uint32_t line;
    enum operator op;
    bool negated;        /* tests */
    bool recursive;      /* loops that may be called */
    unsigned takes;      /* macros: of the names above, those that their body reads */
    const char *rest[2]; /* interned: "varargs", "kwargs" */
    struct node *a, *b, *c;
    struct node **items;
    size_t count;
    struct node **values; /* named arguments, defaults */
    const char **names;   /* of the named arguments */
    size_t value_count;
    const char *name; /* interned: equal names are one pointer */
    const struct filter *filter;
    const struct test *test;
    struct node *body, *otherwise;
    struct value value;
    struct string text;
};

/* Names are interned in the arena that the tree lies in. */
struct names {
    const char **names;
    size_t count, capacity;
};

const char *names_intern(struct arena *a, struct names *names, const char *bytes, size_t size);

/* The tree of a source; raises on syntax and on what is not offered. */
struct node *template_parse(struct arena *a, struct names *names, const char *source, size_t size);

#endif
