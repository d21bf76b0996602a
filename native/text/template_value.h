/* template_value.h - the values of the template language, which are Python's.
 *
 *     none  true  7  1.5  'text'  [1, 2]  (1, 2)  {'a': 1}  namespace  function  method  macro  loop  undefined
 *
 * Everything made while parsing or rendering lies in one arena and goes with it. Where Python would raise, the code below
 * leaves by `template_raise` (a longjmp to the entry point, which frees the arena): a fault can come from any depth, and
 * nothing but the arena is owned on the way.
 */
#ifndef RONDO_TEXT_TEMPLATE_VALUE_H
#define RONDO_TEXT_TEMPLATE_VALUE_H

#include <jansson.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

/* ---- arena and faults ---- */

struct arena {
    struct arena_block *blocks;
    struct scratch *scratch; /* text being made, free or in use */
    json_t *held;            /* JSON that values borrow from */
    size_t used, limit;      /* bytes */
    uint64_t steps, step_limit;
    unsigned depth;
    uint32_t line; /* of the source, for faults */
    struct error *err;
    jmp_buf fault;
};

/* Text being made. */
struct scratch {
    struct buffer buffer; /* first: a buffer's scratch has its address */
    struct scratch *next;
    struct template_run *runs; /* whose text it is so far (template_origin.h) */
    size_t run_count, run_capacity;
    bool busy;
};

void *arena_new(struct arena *a, size_t size);                 /* zeroed; raises at the limit */
void *arena_array(struct arena *a, size_t count, size_t size); /* the same, product checked   */
void arena_step(struct arena *a, uint64_t steps);              /* raises at the limit         */
void arena_enter(struct arena *a);                             /* nesting; raises at the limit */
void arena_leave(struct arena *a);
struct buffer *arena_buffer(struct arena *a); /* an empty one; goes back with value_buffer or arena_release */
void arena_release(struct arena *a, struct buffer *b);
void arena_free(struct arena *a);
_Noreturn void template_raise(struct arena *a, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- values ---- */

enum value_kind {
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST, /* and what shape it has */
    VALUE_DICT,
    VALUE_NAMESPACE, /* a dict that may be assigned to */
    VALUE_FUNCTION,
    VALUE_METHOD,
    VALUE_MACRO,
    VALUE_LOOP,
};

enum list_shape { SHAPE_LIST, SHAPE_TUPLE, SHAPE_GENERATOR, SHAPE_VIEW, SHAPE_RANGE };

struct string {
    const char *bytes; /* UTF-8 */
    size_t size;
    const struct template_origin *origin; /* whose text it is (template_origin.h), or NULL: made outside any message */
};

struct value {
    enum value_kind kind;
    bool markup; /* strings: made by `safe`, so that + escapes what it meets */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct string *string;
        struct list *list;
        struct dict *dict;
        const struct function *function;
        const struct bound *bound;
        const struct macro *macro;
        struct loop *loop;
        const char *name; /* undefined: what was looked up, or NULL */
    };
};

struct list {
    enum list_shape shape;
    bool group; /* a tuple of groupby: its items are called `grouper` and `list`, too */
    struct value *items;
    size_t count, capacity;
};

struct dict {
    struct entry {
        struct value key, value;
    } * entries; /* in order of insertion */
    size_t count, capacity;
    const struct string *verbatim; /* the JSON text this was read from, printed in its place; or NULL */
    size_t message;                /* 1 + index in `messages` of the context, or 0 */
    bool made;                     /* by the template, while a loop stood at that message */
};

struct value value_none(void);
struct value value_bool(bool b);
struct value value_int(int64_t i);
struct value value_float(double d);
struct value value_undefined(const char *name);
struct value value_string(struct arena *a, const char *bytes, size_t size);                /* bytes borrowed */
struct value value_part(struct arena *a, struct value of, const char *bytes, size_t size); /* within the string `of` */
struct value value_as_text(struct arena *a, const char *text);                             /* borrowed */
struct value value_buffer(struct arena *a, struct buffer *b); /* copied, with its runs; the buffer goes back */
struct value value_list(struct arena *a, enum list_shape shape);
struct value value_dict(struct arena *a);

bool list_indexed(const struct list *list); /* has items by number, as a generator has not */
void list_add(struct arena *a, struct list *list, struct value item);
void dict_set(struct arena *a, struct dict *dict, struct value key, struct value item);
bool dict_get(struct arena *a, const struct dict *dict, struct value key, struct value *item);
bool dict_get_text(const struct dict *dict, const char *key, struct value *item);

const char *string_text(struct arena *a, const struct string *s); /* with a zero after it */
bool string_is(const struct string *s, const char *text);
const char *value_type(struct value v); /* "str", "int": Python's names */
bool value_true(struct value v);
bool value_equal(struct arena *a, struct value x, struct value y);
int value_order(struct arena *a, struct value x, struct value y); /* <0, 0, >0; raises if Python has no order */

/* Appends str(v) and repr(v), to a buffer of arena_buffer: a string brings along whose text it is. */
void value_print(struct arena *a, struct value v, struct buffer *out);
void value_repr(struct arena *a, struct value v, struct buffer *out);
void float_print(double d, struct buffer *out); /* Python's repr: shortest that reads back */

/* str(v) as a string value: the value itself if it is a string. */
struct value value_str(struct arena *a, struct value v);

/* A whole context: messages know their index; texts of messages, tools and documents are data (template_origin.h); unless `literal`,
 * arguments stay verbatim (template_render). Borrows. */
struct value value_of_context(struct arena *a, const json_t *context, bool literal);

/* ---- json.dumps ---- */

struct json_style {
    int indent; /* -1: one line */
    bool ascii, sort;
    const char *item, *key; /* separators */
};

/* `out` is of arena_buffer. */
void value_json(struct arena *a, struct value v, const struct json_style *style, int depth, struct buffer *out);

#endif
