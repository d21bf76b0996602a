#include "native/text/template_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/template.h"
#include "native/text/template_origin.h"
#include "native/text/utf8.h"

/* ---- arena and faults ---- */

enum { BLOCK = 64 << 10, ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

void *arena_new(struct arena *a, size_t size)
{
    struct arena_block *b = a->blocks;

    if (size > a->limit || a->used > a->limit - size)
        template_raise(a, ERROR_LIMIT, "more than %zu bytes of memory", a->limit);
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!b || b->size - b->used < size) {
        size_t room = size > BLOCK / 4 ? size : BLOCK;

        b = calloc(1, sizeof *b + room);
        if (!b)
            abort(); /* never a reason to drop a row: other machines have the memory */
        b->size = room;
        b->next = a->blocks;
        if (a->blocks && room == size && a->blocks->size - a->blocks->used >= ALIGN) { /* a big one: keep filling the old */
            b->next = a->blocks->next;
            a->blocks->next = b;
        } else {
            a->blocks = b;
        }
    }

    void *p = b->bytes + b->used;

    b->used += size;
    a->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    if (count > a->limit / size)
        template_raise(a, ERROR_LIMIT, "more than %zu bytes of memory", a->limit);
    return arena_new(a, count * size);
}

void arena_step(struct arena *a, uint64_t steps)
{
    a->steps += steps;
    if (a->steps > a->step_limit)
        template_raise(a, ERROR_LIMIT, "more than %llu steps", (unsigned long long)a->step_limit);
}

void arena_enter(struct arena *a)
{
    if (++a->depth > TEMPLATE_MAX_DEPTH)
        template_raise(a, ERROR_LIMIT, "nested deeper than %d", TEMPLATE_MAX_DEPTH);
}

void arena_leave(struct arena *a)
{
    a->depth--;
}

struct buffer *arena_buffer(struct arena *a)
{
    struct scratch *s = a->scratch;

    while (s && s->busy)
        s = s->next;
    if (!s) {
        s = arena_new(a, sizeof *s);
        s->next = a->scratch;
        a->scratch = s;
    }
    s->busy = true;
    return &s->buffer;
}

void arena_release(struct arena *a, struct buffer *b)
{
    (void)a;
    if (b->capacity > BLOCK)
        buffer_free(b);
    buffer_clear(b);
    ((struct scratch *)b)->run_count = 0;
    ((struct scratch *)b)->busy = false;
}

void arena_free(struct arena *a)
{
    for (struct scratch *s = a->scratch; s; s = s->next)
        buffer_free(&s->buffer);
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    json_decref(a->held);
    a->blocks = NULL;
    a->scratch = NULL;
    a->held = NULL;
}

void template_raise(struct arena *a, enum error_code code, const char *format, ...)
{
    char message[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    error_set(a->err, code, NULL, "%s", message);
    error_at(a->err, "line %u", a->line);
    longjmp(a->fault, 1);
}

/* ---- making values ---- */

struct value value_none(void)
{
    return (struct value){ .kind = VALUE_NONE };
}

struct value value_bool(bool b)
{
    return (struct value){ .kind = VALUE_BOOL, .boolean = b };
}

struct value value_int(int64_t i)
{
    return (struct value){ .kind = VALUE_INT, .integer = i };
}

struct value value_float(double d)
{
    return (struct value){ .kind = VALUE_FLOAT, .real = d };
}

struct value value_undefined(const char *name)
{
    return (struct value){ .kind = VALUE_UNDEFINED, .name = name };
}

struct value value_string(struct arena *a, const char *bytes, size_t size)
{
    struct string *s = arena_new(a, sizeof *s);

    *s = (struct string){ bytes, size, NULL };
    return (struct value){ .kind = VALUE_STRING, .string = s };
}

struct value value_part(struct arena *a, struct value of, const char *bytes, size_t size)
{
    struct string *s = arena_new(a, sizeof *s);

    *s = (struct string){ bytes, size, of.string->origin };
    return (struct value){ .kind = VALUE_STRING, .markup = of.markup, .string = s };
}

struct value value_as_text(struct arena *a, const char *text)
{
    return value_string(a, text, strlen(text));
}

struct value value_buffer(struct arena *a, struct buffer *b)
{
    const struct scratch *s = (const struct scratch *)b;
    size_t size = b->size;
    char *bytes = arena_new(a, size);
    struct string *made = arena_new(a, sizeof *made);

    if (size)
        memcpy(bytes, b->bytes, size);
    *made = (struct string){ bytes, size, NULL };
    if (s->run_count) {
        struct template_origin *origin = arena_new(a, sizeof *origin);

        struct template_run *runs = arena_array(a, s->run_count, sizeof *runs);

        memcpy(runs, s->runs, s->run_count * sizeof *runs);
        *origin = (struct template_origin){ bytes, runs, s->run_count };
        made->origin = origin;
    }
    arena_release(a, b);
    return (struct value){ .kind = VALUE_STRING, .string = made };
}

struct value value_list(struct arena *a, enum list_shape shape)
{
    struct list *list = arena_new(a, sizeof *list);

    list->shape = shape;
    return (struct value){ .kind = VALUE_LIST, .list = list };
}

struct value value_dict(struct arena *a)
{
    return (struct value){ .kind = VALUE_DICT, .dict = arena_new(a, sizeof(struct dict)) };
}

void list_add(struct arena *a, struct list *list, struct value item)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct value *items = arena_array(a, capacity, sizeof *items);

        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
}

static struct value *dict_find(struct arena *a, const struct dict *dict, struct value key)
{
    arena_step(a, dict->count / 4);
    for (size_t i = 0; i < dict->count; i++)
        if (value_equal(a, dict->entries[i].key, key))
            return &dict->entries[i].value;
    return NULL;
}

static void dict_append(struct arena *a, struct dict *dict, struct value key, struct value item)
{
    if (dict->count == dict->capacity) {
        size_t capacity = dict->capacity ? dict->capacity * 2 : 4;
        struct entry *entries = arena_array(a, capacity, sizeof *entries);

        if (dict->count)
            memcpy(entries, dict->entries, dict->count * sizeof *entries);
        dict->entries = entries;
        dict->capacity = capacity;
    }
    dict->entries[dict->count++] = (struct entry){ key, item };
}

void dict_set(struct arena *a, struct dict *dict, struct value key, struct value item)
{
    if (key.kind == VALUE_DICT || key.kind == VALUE_UNDEFINED || (key.kind == VALUE_LIST && key.list->shape != SHAPE_TUPLE))
        template_raise(a, ERROR_SCRIPT, "unhashable type: '%s'", value_type(key));

    struct value *found = dict_find(a, dict, key);

    if (found)
        *found = item;
    else
        dict_append(a, dict, key, item);
}

bool dict_get(struct arena *a, const struct dict *dict, struct value key, struct value *item)
{
    struct value *found = dict_find(a, dict, key);

    if (found)
        *item = *found;
    return found != NULL;
}

bool dict_get_text(const struct dict *dict, const char *key, struct value *item)
{
    for (size_t i = 0; i < dict->count; i++) {
        struct value k = dict->entries[i].key;

        if (k.kind == VALUE_STRING && string_is(k.string, key)) {
            *item = dict->entries[i].value;
            return true;
        }
    }
    return false;
}

/* ---- properties ---- */

const char *string_text(struct arena *a, const struct string *s)
{
    char *text = arena_new(a, s->size + 1);

    if (s->size)
        memcpy(text, s->bytes, s->size);
    return text;
}

bool string_is(const struct string *s, const char *text)
{
    return s->size == strlen(text) && !memcmp(s->bytes, text, s->size);
}

const char *value_type(struct value v)
{
    static const char *const names[] = { "Undefined", "NoneType",  "bool",     "int",    "float", "str",        "list",
                                         "dict",      "Namespace", "function", "method", "Macro", "LoopContext" };
    static const char *const shapes[SHAPE_RANGE + 1] = { "list", "tuple", "generator", "dict_items", "range" };

    return v.kind == VALUE_LIST ? shapes[v.list->shape] : names[v.kind];
}

bool value_true(struct value v)
{
    switch (v.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return v.boolean;
    case VALUE_INT:
        return v.integer != 0;
    case VALUE_FLOAT:
        return v.real != 0;
    case VALUE_STRING:
        return v.string->size != 0;
    case VALUE_LIST:
        return v.list->shape == SHAPE_GENERATOR || v.list->count != 0;
    case VALUE_DICT:
        return v.dict->count != 0;
    default:
        return true;
    }
}

static bool is_number(struct value v)
{
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT || v.kind == VALUE_FLOAT;
}

static int64_t integer_of(struct value v)
{
    return v.kind == VALUE_BOOL ? v.boolean : v.integer;
}

static int number_order(struct value x, struct value y)
{
    if (x.kind != VALUE_FLOAT && y.kind != VALUE_FLOAT) {
        int64_t i = integer_of(x), j = integer_of(y);

        return (i > j) - (i < j);
    }

    double d = x.kind == VALUE_FLOAT ? x.real : (double)integer_of(x), e = y.kind == VALUE_FLOAT ? y.real : (double)integer_of(y);

    return d > e ? 1 : d < e ? -1 : d == e ? 0 : 2; /* 2: a NaN, unequal to everything */
}

bool list_indexed(const struct list *list)
{
    return list->shape <= SHAPE_TUPLE || list->shape == SHAPE_RANGE;
}

static bool lists_equal(struct arena *a, const struct list *x, const struct list *y)
{
    if (x == y)
        return true;
    if (x->shape != y->shape || x->count != y->count || !list_indexed(x))
        return false;
    for (size_t i = 0; i < x->count; i++)
        if (!value_equal(a, x->items[i], y->items[i]))
            return false;
    return true;
}

static bool dicts_equal(struct arena *a, const struct dict *x, const struct dict *y)
{
    if (x == y)
        return true;
    if (x->count != y->count)
        return false;
    for (size_t i = 0; i < x->count; i++) {
        struct value other;

        if (!dict_get(a, y, x->entries[i].key, &other) || !value_equal(a, x->entries[i].value, other))
            return false;
    }
    return true;
}

bool value_equal(struct arena *a, struct value x, struct value y)
{
    bool equal = false;

    arena_step(a, 1);
    if (is_number(x) && is_number(y))
        return number_order(x, y) == 0;
    if (x.kind != y.kind)
        return false;
    arena_enter(a);
    switch (x.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        equal = true;
        break;
    case VALUE_STRING:
        equal = x.string->size == y.string->size && !memcmp(x.string->bytes, y.string->bytes, x.string->size);
        break;
    case VALUE_LIST:
        equal = lists_equal(a, x.list, y.list);
        break;
    case VALUE_DICT:
        equal = dicts_equal(a, x.dict, y.dict);
        break;
    default:
        equal = x.dict == y.dict; /* the same object */
    }
    arena_leave(a);
    return equal;
}

int value_order(struct arena *a, struct value x, struct value y)
{
    arena_step(a, 1);
    if (is_number(x) && is_number(y))
        return number_order(x, y);
    if (x.kind == VALUE_STRING && y.kind == VALUE_STRING) { /* UTF-8 orders as code points do */
        size_t least = x.string->size < y.string->size ? x.string->size : y.string->size;
        int order = least ? memcmp(x.string->bytes, y.string->bytes, least) : 0;

        return order ? order : (x.string->size > y.string->size) - (x.string->size < y.string->size);
    }
    if (x.kind == VALUE_LIST && y.kind == VALUE_LIST && x.list->shape == y.list->shape && x.list->shape <= SHAPE_TUPLE) {
        arena_enter(a);
        for (size_t i = 0; i < x.list->count && i < y.list->count; i++)
            if (!value_equal(a, x.list->items[i], y.list->items[i])) {
                int order = value_order(a, x.list->items[i], y.list->items[i]);

                arena_leave(a);
                return order;
            }
        arena_leave(a);
        return (x.list->count > y.list->count) - (x.list->count < y.list->count);
    }
    template_raise(a, ERROR_SCRIPT, "'<' not supported between instances of '%s' and '%s'", value_type(x), value_type(y));
}

/* ---- from JSON ---- */

static struct value text_of(struct arena *a, const char *bytes, size_t size, const struct template_origin *origin)
{
    struct string *s = arena_new(a, sizeof *s);

    *s = (struct string){ bytes, size, origin };
    return (struct value){ .kind = VALUE_STRING, .string = s };
}

/* Texts of `origin`. */
static struct value value_of_json(struct arena *a, const json_t *json, const struct template_origin *origin)
{
    struct value v = value_none();

    arena_step(a, 1);
    arena_enter(a);
    switch (json_typeof(json)) {
    case JSON_OBJECT: {
        const char *key;
        size_t length;
        json_t *item;

        v = value_dict(a);
        json_object_keylen_foreach((json_t *)json, key, length, item)
        {
            dict_append(a, v.dict, text_of(a, key, length, origin),
                        value_of_json(a, item, origin)); /* names are unique in json_read */
        }
        break;
    }
    case JSON_ARRAY:
        v = value_list(a, SHAPE_LIST);
        for (size_t i = 0; i < json_array_size(json); i++)
            list_add(a, v.list, value_of_json(a, json_array_get(json, i), origin));
        break;
    case JSON_STRING:
        v = text_of(a, json_string_value(json), json_string_length(json), origin);
        break;
    case JSON_INTEGER:
        v = value_int(json_integer_value(json));
        break;
    case JSON_REAL:
        v = value_float(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        v = value_bool(json_is_true(json));
        break;
    case JSON_NULL:
        break;
    }
    arena_leave(a);
    return v;
}

/* Where a call's arguments text holds an object, the mapping takes its place and remembers the text. */
static void read_arguments(struct arena *a, struct value call)
{
    struct value arguments;

    if (call.kind != VALUE_DICT || !dict_get_text(call.dict, "arguments", &arguments) || arguments.kind != VALUE_STRING)
        return;

    json_t *json = json_read(arguments.string->bytes, arguments.string->size, TEMPLATE_MAX_SOURCE, NULL);

    if (!json)
        return;
    if (!a->held)
        a->held = json_array();
    json_array_append_new(a->held, json);
    if (!json_is_object(json))
        return;

    struct value mapping = value_of_json(a, json, &TEMPLATE_DATA);

    mapping.dict->verbatim = arguments.string;
    dict_set(a, call.dict, value_as_text(a, "arguments"), mapping);
}

struct value value_of_context(struct arena *a, const json_t *context, bool literal)
{
    struct value root = value_dict(a), messages, calls, function;
    const char *name;
    json_t *item;

    json_object_foreach((json_t *)context, name, item)
    {
        bool data = !strcmp(name, "messages") || !strcmp(name, "tools") || !strcmp(name, "documents");

        dict_append(a, root.dict, value_as_text(a, name), value_of_json(a, item, data ? &TEMPLATE_DATA : NULL));
    }

    if (!dict_get_text(root.dict, "messages", &messages) || messages.kind != VALUE_LIST)
        return root;
    for (size_t i = 0; i < messages.list->count; i++) {
        struct value message = messages.list->items[i];

        if (message.kind != VALUE_DICT)
            continue;
        message.dict->message = i + 1;
        if (literal || !dict_get_text(message.dict, "tool_calls", &calls) || calls.kind != VALUE_LIST)
            continue;
        for (size_t j = 0; j < calls.list->count; j++)
            if (calls.list->items[j].kind == VALUE_DICT && dict_get_text(calls.list->items[j].dict, "function", &function))
                read_arguments(a, function);
    }
    return root;
}
