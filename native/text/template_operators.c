#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/template_interpreter.h"
#include "native/text/template_origin.h"
#include "native/text/utf8.h"

static _Noreturn void operands(struct arena *a, const char *op, struct value x, struct value y)
{
    if (x.kind == VALUE_UNDEFINED || y.kind == VALUE_UNDEFINED) {
        const char *name = x.kind == VALUE_UNDEFINED ? x.name : y.name;

        template_raise(a, ERROR_SCRIPT, "'%.80s' is undefined", name ? name : "value");
    }
    template_raise(a, ERROR_SCRIPT, "unsupported operand type(s) for %s: '%s' and '%s'", op, value_type(x), value_type(y));
}

static bool whole(struct value v, int64_t *i)
{
    *i = v.kind == VALUE_BOOL ? v.boolean : v.integer;
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT;
}

static bool number(struct value v, double *d)
{
    *d = v.kind == VALUE_FLOAT ? v.real : v.kind == VALUE_BOOL ? v.boolean : (double)v.integer;
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT || v.kind == VALUE_FLOAT;
}

struct value value_escape(struct arena *a, struct value v)
{
    struct value text = value_str(a, v);

    if (text.markup)
        return text;

    struct buffer *out = arena_buffer(a);

    for (size_t i = 0; i < text.string->size; i++) {
        char c = text.string->bytes[i];
        const char *name = c == '&'    ? "&amp;"
                           : c == '<'  ? "&lt;"
                           : c == '>'  ? "&gt;"
                           : c == '\'' ? "&#39;"
                           : c == '"'  ? "&#34;"
                                       : NULL;

        size_t start = out->size, run;

        if (name)
            buffer_add_text(out, name);
        else
            buffer_add_u8(out, (uint8_t)c);
        if (text.string->origin)
            template_origin_note(a, out, start, out->size, template_origin_at(text.string, i, &run));
    }
    text = value_buffer(a, out);
    text.markup = true;
    return text;
}

static struct value strings_join(struct arena *a, struct value x, struct value y)
{
    bool markup = x.markup || y.markup;

    if (markup) {
        x = value_escape(a, x);
        y = value_escape(a, y);
    }

    struct buffer *out = arena_buffer(a);

    arena_step(a, (x.string->size + y.string->size) / 64);
    template_origin_add(a, out, x.string);
    template_origin_add(a, out, y.string);

    struct value v = value_buffer(a, out);

    v.markup = markup;
    return v;
}

/* A call's arguments, read as a mapping, are still the text they came as where text is due. */
static struct value as_text(struct value v, struct value other)
{
    if (v.kind == VALUE_DICT && v.dict->verbatim && other.kind == VALUE_STRING)
        return (struct value){ .kind = VALUE_STRING, .string = v.dict->verbatim };
    return v;
}

struct value value_add(struct arena *a, struct value x, struct value y)
{
    int64_t i, j, sum;
    double d, e;

    x = as_text(x, y);
    y = as_text(y, x);
    if (x.kind == VALUE_STRING && y.kind == VALUE_STRING)
        return strings_join(a, x, y);
    if (x.kind == VALUE_LIST && y.kind == VALUE_LIST && x.list->shape == y.list->shape && x.list->shape <= SHAPE_TUPLE) {
        struct value v = value_list(a, x.list->shape);

        arena_step(a, x.list->count + y.list->count);
        for (size_t k = 0; k < x.list->count; k++)
            list_add(a, v.list, x.list->items[k]);
        for (size_t k = 0; k < y.list->count; k++)
            list_add(a, v.list, y.list->items[k]);
        return v;
    }
    if (whole(x, &i) && whole(y, &j)) {
        if (__builtin_add_overflow(i, j, &sum))
            template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");
        return value_int(sum);
    }
    if (number(x, &d) && number(y, &e))
        return value_float(d + e);
    operands(a, "+", x, y);
}

static struct value repeat(struct arena *a, struct value v, int64_t times)
{
    size_t count = times > 0 ? (size_t)times : 0;

    if (v.kind == VALUE_STRING) {
        size_t size = v.string->size;
        char *bytes = arena_array(a, count, size ? size : 1);

        arena_step(a, count);
        for (size_t i = 0; size && i < count; i++)
            memcpy(bytes + i * size, v.string->bytes, size);

        struct value text = value_string(a, bytes, count * size);

        text.markup = v.markup;
        return text;
    }

    struct value list = value_list(a, v.list->shape);

    for (size_t i = 0; i < count; i++) {
        arena_step(a, 1 + v.list->count);
        for (size_t j = 0; j < v.list->count; j++)
            list_add(a, list.list, v.list->items[j]);
    }
    return list;
}

static bool repeats(struct value v)
{
    return v.kind == VALUE_STRING || (v.kind == VALUE_LIST && v.list->shape <= SHAPE_TUPLE);
}

static struct value multiply(struct arena *a, struct value x, struct value y)
{
    int64_t i, j, product;
    double d, e;

    if (repeats(x) && whole(y, &j))
        return repeat(a, x, j);
    if (repeats(y) && whole(x, &i))
        return repeat(a, y, i);
    if (whole(x, &i) && whole(y, &j)) {
        if (__builtin_mul_overflow(i, j, &product))
            template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");
        return value_int(product);
    }
    if (number(x, &d) && number(y, &e))
        return value_float(d * e);
    operands(a, "*", x, y);
}

static struct value subtract(struct arena *a, struct value x, struct value y)
{
    int64_t i, j, difference;
    double d, e;

    if (whole(x, &i) && whole(y, &j)) {
        if (__builtin_sub_overflow(i, j, &difference))
            template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");
        return value_int(difference);
    }
    if (number(x, &d) && number(y, &e))
        return value_float(d - e);
    operands(a, "-", x, y);
}

/* Python's / // %, which floor. */
static struct value divide(struct arena *a, enum operator op, struct value x, struct value y)
{
    const char *sign = op == OP_DIVIDE ? "/" : op == OP_FLOOR ? "//" : "%";
    int64_t i, j;
    double d, e;

    if (!number(x, &d) || !number(y, &e))
        operands(a, sign, x, y);
    if (e == 0)
        template_raise(a, ERROR_SCRIPT, "division by zero");
    if (op != OP_DIVIDE && whole(x, &i) && whole(y, &j)) {
        if (i == INT64_MIN && j == -1)
            template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");

        int64_t rest = i % j, quotient = i / j;

        if (rest && (rest < 0) != (j < 0)) {
            rest += j;
            quotient--;
        }
        return value_int(op == OP_FLOOR ? quotient : rest);
    }
    if (op == OP_DIVIDE)
        return value_float(d / e);

    template_raise(a, ERROR_UNSUPPORTED, "%s of floats", sign);
}

static struct value power(struct arena *a, struct value x, struct value y)
{
    int64_t base, exponent, result = 1;
    double d, e;

    if (whole(x, &base) && whole(y, &exponent) && exponent >= 0) {
        for (; exponent > 0; exponent--) {
            arena_step(a, 1);
            if (__builtin_mul_overflow(result, base, &result))
                template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");
        }
        return value_int(result);
    }
    if (!number(x, &d) || !number(y, &e))
        operands(a, "**", x, y);
    template_raise(a, ERROR_UNSUPPORTED, "a power other than of integers");
}

struct value operate(struct arena *a, enum operator op, struct value x, struct value y)
{
    switch (op) {
    case OP_ADD:
        return value_add(a, x, y);
    case OP_SUBTRACT:
        return subtract(a, x, y);
    case OP_MULTIPLY:
        return multiply(a, x, y);
    case OP_POWER:
        return power(a, x, y);
    default:
        if (op == OP_MODULO && x.kind == VALUE_STRING)
            return value_format(a, x.string, y);
        return divide(a, op, x, y);
    }
}

struct value negate(struct arena *a, enum operator op, struct value x)
{
    return op == OP_SUBTRACT ? x.kind == VALUE_FLOAT ? value_float(-x.real) : subtract(a, value_int(0), x)
                             : value_add(a, value_int(0), x);
}

/* ---- comparison ---- */

static bool string_contains(const struct string *s, const struct string *part)
{
    return part->size == 0 || (s->size >= part->size && memmem(s->bytes, s->size, part->bytes, part->size));
}

bool value_contains(struct arena *a, struct value container, struct value item)
{
    struct value found;

    switch (container.kind) {
    case VALUE_UNDEFINED:
        return false;
    case VALUE_STRING:
        if (item.kind != VALUE_STRING)
            template_raise(a, ERROR_SCRIPT, "'in <string>' requires string as left operand, not %s", value_type(item));
        arena_step(a, container.string->size / 16);
        return string_contains(container.string, item.string);
    case VALUE_DICT:
        if (container.dict->verbatim && item.kind == VALUE_STRING && dict_get(a, container.dict, item, &found))
            return true;
        return dict_get(a, container.dict, item, &found);
    case VALUE_LIST:
        for (size_t i = 0; i < container.list->count; i++)
            if (value_equal(a, container.list->items[i], item))
                return true;
        return false;
    default:
        template_raise(a, ERROR_SCRIPT, "argument of type '%s' is not iterable", value_type(container));
    }
}

bool compare(struct arena *a, enum operator op, struct value x, struct value y)
{
    int order;

    switch (op) {
    case OP_EQUAL:
        return value_equal(a, x, y);
    case OP_UNEQUAL:
        return !value_equal(a, x, y);
    case OP_IN:
        return value_contains(a, y, x);
    case OP_NOT_IN:
        return !value_contains(a, y, x);
    default:
        order = value_order(a, x, y);
        if (order == 2)
            return false; /* a NaN */
        return op == OP_LESS ? order < 0 : op == OP_LESS_EQUAL ? order <= 0 : op == OP_GREATER ? order > 0 : order >= 0;
    }
}

/* ---- parts of values ---- */

const struct list *value_iterate(struct arena *a, struct value v)
{
    struct value items = value_list(a, SHAPE_LIST);

    switch (v.kind) {
    case VALUE_UNDEFINED:
        return items.list;
    case VALUE_LIST:
        arena_step(a, v.list->count);
        return v.list;
    case VALUE_DICT:
        arena_step(a, v.dict->count);
        for (size_t i = 0; i < v.dict->count; i++)
            list_add(a, items.list, v.dict->entries[i].key);
        return items.list;
    case VALUE_STRING:
        for (const char *at = v.string->bytes, *end = at + v.string->size; at < end;) {
            size_t length;

            arena_step(a, 1);
            utf8_at(at, end, &length);
            list_add(a, items.list, value_part(a, (struct value){ .string = v.string }, at, length));
            at += length;
        }
        return items.list;
    default:
        template_raise(a, ERROR_SCRIPT, "'%s' object is not iterable", value_type(v));
    }
}

/* Offsets of code points `from` and on; `text` has `count` of them. */
static size_t offset_of(const struct string *s, size_t code_points)
{
    size_t at = 0;

    for (; code_points && at < s->size; code_points--)
        do
            at++;
        while (at < s->size && ((uint8_t)s->bytes[at] & 0xc0) == 0x80);
    return at;
}

static struct value string_item(struct arena *a, struct value v, int64_t index)
{
    size_t count = utf8_count(v.string->bytes, v.string->size);

    arena_step(a, v.string->size / 16);
    if (index < 0)
        index += (int64_t)count;
    if (index < 0 || index >= (int64_t)count)
        return value_undefined("an index out of range");

    size_t at = offset_of(v.string, (size_t)index), length;

    utf8_at(v.string->bytes + at, v.string->bytes + v.string->size, &length);

    return value_part(a, v, v.string->bytes + at, length);
}

static bool loop_attribute(struct arena *a, struct loop *loop, const char *name, struct value *out)
{
    size_t i = loop->index, count = loop->list->count;

    if (!strcmp(name, "index"))
        *out = value_int((int64_t)i + 1);
    else if (!strcmp(name, "index0"))
        *out = value_int((int64_t)i);
    else if (!strcmp(name, "first"))
        *out = value_bool(i == 0);
    else if (!strcmp(name, "last"))
        *out = value_bool(i + 1 == count);
    else if (!strcmp(name, "length"))
        *out = value_int((int64_t)count);
    else if (!strcmp(name, "revindex"))
        *out = value_int((int64_t)(count - i));
    else if (!strcmp(name, "revindex0"))
        *out = value_int((int64_t)(count - i - 1));
    else if (!strcmp(name, "previtem"))
        *out = i ? loop->list->items[i - 1] : value_undefined("there is no previous item");
    else if (!strcmp(name, "nextitem"))
        *out = i + 1 < count ? loop->list->items[i + 1] : value_undefined("there is no next item");
    else if (!strcmp(name, "depth"))
        *out = value_int((int64_t)loop->depth + 1);
    else if (!strcmp(name, "depth0"))
        *out = value_int((int64_t)loop->depth);
    else
        return method_of(a, (struct value){ .kind = VALUE_LOOP, .loop = loop }, name, out);
    return true;
}

static bool macro_attribute(struct arena *a, const struct macro *macro, const char *name, struct value *out)
{
    const struct node *n = macro->node;

    if (!strcmp(name, "name"))
        *out = value_as_text(a, n->name);
    else if (!strcmp(name, "catch_varargs"))
        *out = value_bool(n->takes & TAKES_VARARGS);
    else if (!strcmp(name, "catch_kwargs"))
        *out = value_bool(n->takes & TAKES_KWARGS);
    else if (!strcmp(name, "caller"))
        *out = value_bool(n->takes & TAKES_CALLER);
    else if (!strcmp(name, "arguments")) {
        *out = value_list(a, SHAPE_TUPLE);
        for (size_t i = 0; i < n->count; i++)
            list_add(a, out->list, value_as_text(a, n->items[i]->name));
    } else
        return false;
    return true;
}

static _Noreturn void undefined_used(struct arena *a, struct value v, const char *name)
{
    template_raise(a, ERROR_SCRIPT, "'%.80s' is undefined, so it has no '%.80s'", v.name ? v.name : "value", name);
}

struct value value_attribute(struct interpreter *in, struct value v, const char *name)
{
    struct value out;

    if (v.kind == VALUE_UNDEFINED)
        undefined_used(in->a, v, name);
    if (name[0] == '_')
        return value_undefined(name);
    if (v.kind == VALUE_LOOP ? loop_attribute(in->a, v.loop, name, &out) : method_of(in->a, v, name, &out))
        return out;
    if ((v.kind == VALUE_DICT || v.kind == VALUE_NAMESPACE) && dict_get_text(v.dict, name, &out))
        return out;
    if (v.kind == VALUE_LIST && v.list->group && (!strcmp(name, "grouper") || !strcmp(name, "list")))
        return v.list->items[name[0] == 'l'];
    if (v.kind == VALUE_MACRO && macro_attribute(in->a, v.macro, name, &out))
        return out;
    return value_undefined(name);
}

struct value value_item(struct interpreter *in, struct value v, struct value key)
{
    struct value out;
    int64_t index;

    if (v.kind == VALUE_UNDEFINED)
        undefined_used(in->a, v, key.kind == VALUE_STRING ? "item" : "index");
    if (v.kind == VALUE_DICT && dict_get(in->a, v.dict, key, &out))
        return out;
    if (v.kind == VALUE_LIST && list_indexed(v.list) && whole(key, &index)) {
        if (index < 0)
            index += (int64_t)v.list->count;
        if (index >= 0 && index < (int64_t)v.list->count)
            return v.list->items[index];
        return value_undefined("an index out of range");
    }
    if (v.kind == VALUE_STRING && whole(key, &index))
        return string_item(in->a, v, index);
    if (key.kind == VALUE_STRING) {
        char *name = arena_new(in->a, key.string->size + 1);

        memcpy(name, key.string->bytes, key.string->size);
        return value_attribute(in, v, name);
    }
    return value_undefined("an item");
}

struct value value_member(struct interpreter *in, struct value v, struct value path)
{
    if (path.kind != VALUE_STRING)
        return value_item(in, v, path);

    const char *at = path.string->bytes, *end = at + path.string->size;

    while (at <= end) {
        const char *dot = at < end ? memchr(at, '.', (size_t)(end - at)) : NULL;
        size_t size = (size_t)((dot ? dot : end) - at);
        char *name = arena_new(in->a, size + 1);

        memcpy(name, at, size);
        v = size && strspn(name, "0123456789") == size ? value_item(in, v, value_int(atoll(name)))
                                                       : value_item(in, v, value_as_text(in->a, name));
        if (!dot)
            break;
        at = dot + 1;
    }
    return v;
}

static int64_t clamp(int64_t i, int64_t count, int64_t low, int64_t high)
{
    if (i < 0)
        i += count;
    return i < low ? low : i > high ? high : i;
}

/* Python's slice.indices. */
struct value value_slice(struct arena *a, struct value v, struct value start, struct value stop, struct value step)
{
    bool text = v.kind == VALUE_STRING;
    int64_t by = step.kind == VALUE_NONE ? 1 : need_int(a, step, "slice");
    const struct list *list;

    if (v.kind == VALUE_UNDEFINED)
        template_raise(a, ERROR_SCRIPT, "'%.80s' is undefined", v.name ? v.name : "value");
    if (!text && (v.kind != VALUE_LIST || !list_indexed(v.list)))
        template_raise(a, ERROR_SCRIPT, "'%s' object is not subscriptable", value_type(v));
    if (by == 0)
        template_raise(a, ERROR_SCRIPT, "slice step cannot be zero");
    list = value_iterate(a, v);

    int64_t count = (int64_t)list->count, low = by < 0 ? -1 : 0, high = by < 0 ? count - 1 : count;
    int64_t from = start.kind == VALUE_NONE ? (by < 0 ? high : low) : clamp(need_int(a, start, "slice"), count, low, high);
    int64_t to = stop.kind == VALUE_NONE ? (by < 0 ? low : high) : clamp(need_int(a, stop, "slice"), count, low, high);
    struct value out = value_list(a, text ? SHAPE_LIST : v.list->shape);

    if (by > count)
        by = count + 1;
    if (by < -count)
        by = -count - 1;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
        list_add(a, out.list, list->items[i]);
    if (!text)
        return out;

    struct buffer *joined = arena_buffer(a);

    for (size_t i = 0; i < out.list->count; i++)
        template_origin_add(a, joined, out.list->items[i].string);
    out = value_buffer(a, joined);
    out.markup = v.markup;
    return out;
}

const struct string *need_string(struct arena *a, struct value v, const char *callee)
{
    if (v.kind != VALUE_STRING)
        template_raise(a, ERROR_SCRIPT, "%s: expected str, not '%s'", callee, value_type(v));
    return v.string;
}

int64_t need_int(struct arena *a, struct value v, const char *callee)
{
    int64_t i;

    if (!whole(v, &i))
        template_raise(a, ERROR_SCRIPT, "%s: expected int, not '%s'", callee, value_type(v));
    return i;
}
