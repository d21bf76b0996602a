/* template_call.h - what a template can call: filters, tests, functions, methods, with Python's argument rules. */
#ifndef RONDO_TEXT_TEMPLATE_CALL_H
#define RONDO_TEXT_TEMPLATE_CALL_H

#include "native/base/date.h"
#include "native/text/template_value.h"

struct interpreter;

/* Arguments of one call, evaluated. Functions below take the ones they know; `arguments_end` raises on what is left. */
struct arguments {
    struct interpreter *in;
    struct arena *a;
    const char *callee;
    const struct value *items;
    size_t count;
    const char *const *names;
    const struct value *values;
    size_t value_count;
    uint64_t used; /* bits of the named ones that were taken */
};

/* The argument at `place` or of that name; false if it is not given. */
bool argument(struct arguments *args, size_t place, const char *name, struct value *value);
struct value argument_or(struct arguments *args, size_t place, const char *name, struct value otherwise);
struct value argument_need(struct arguments *args, size_t place, const char *name);
void arguments_end(struct arguments *args, size_t most); /* no more than `most` by place, and no unknown names */

struct filter {
    const char *name;
    struct value (*run)(struct value v, struct arguments *args);
};

struct test {
    const char *name;
    bool (*run)(struct value v, struct arguments *args);
};

struct function {
    const char *name;
    struct value (*run)(struct arguments *args);
};

/* A method and the value it was taken from. */
struct bound {
    struct value self;
    const char *name;
    struct value (*run)(struct value self, struct arguments *args);
};

const struct filter *filter_named(const char *name); /* NULL if there is none */
const struct test *test_named(const char *name);
const struct function *function_named(const char *name);
/* The Python attribute `name` of a value, if it is one the sandbox allows. */
bool method_of(struct arena *a, struct value v, const char *name, struct value *out);

/* ---- what the interpreter lends to them ---- */

struct value value_call(struct interpreter *in, struct value callee, struct arguments *args);
struct value value_attribute(struct interpreter *in, struct value v, const char *name); /* v.name   */
struct value value_item(struct interpreter *in, struct value v, struct value key);      /* v[key]   */
struct value value_member(struct interpreter *in, struct value v, struct value path);   /* "a.b.0", as `attribute=` takes */
struct value value_add(struct arena *a, struct value x, struct value y);
struct value value_format(struct arena *a, const struct string *format, struct value values); /* 'text %s' % values */
struct value value_escape(struct arena *a, struct value v);                                   /* Markup with HTML escaped  */
bool value_contains(struct arena *a, struct value container, struct value item);
/* The items a loop over `v` sees; raises where Python does. */
const struct list *value_iterate(struct arena *a, struct value v);
/* A mapping made while a loop stands at a message is of that message, and its texts are. */
void interpreter_keep_dict(struct interpreter *in, struct dict *dict);
struct date interpreter_date(const struct interpreter *in);

const struct string *need_string(struct arena *a, struct value v, const char *callee);
int64_t need_int(struct arena *a, struct value v, const char *callee);

/* Case mapping; raises on characters whose case is not known here. */
struct value string_case(struct arena *a, const struct string *s, bool upper);
uint32_t case_of(struct arena *a, uint32_t code_point, bool upper);

#endif
