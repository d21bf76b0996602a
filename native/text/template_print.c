#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/template.h"
#include "native/text/template_origin.h"
#include "native/text/template_value.h"
#include "native/text/utf8.h"

/* Python's repr of a float: the fewest digits that read back, exponent form below 1e-4 and from 1e16. */
void float_print(double d, struct buffer *out)
{
    char digits[40];
    int precision = 0;

    if (isnan(d) || isinf(d)) {
        buffer_add_text(out, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision, d);
    while (strtod(digits, NULL) != d && ++precision < 17);

    int exponent = atoi(strchr(digits, 'e') + 1);

    if (exponent < -4 || exponent >= 16) {
        *strchr(digits, 'e') = 0;
        buffer_printf(out, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    buffer_printf(out, "%.*f", precision > exponent ? precision - exponent : 0, d);
    if (precision <= exponent)
        buffer_add_text(out, ".0");
}

static bool printable(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c <= 0xa0) && c != 0xad && !(c >= 0x2000 && c <= 0x200f && c != 0x2010) &&
           !(c >= 0x2028 && c <= 0x202f) && !(c >= 0x205f && c <= 0x206f) && c != 0x3000 && c != 0xfeff &&
           !(c >= 0xe000 && c <= 0xf8ff);
}

static void string_repr(struct arena *a, const struct string *s, struct buffer *out)
{
    bool single = s->size && memchr(s->bytes, '\'', s->size), twice = s->size && memchr(s->bytes, '"', s->size);
    char quote = single && !twice ? '"' : '\'';
    const char *at = s->bytes, *end = at + s->size;

    buffer_add_u8(out, (uint8_t)quote);
    while (at < end) {
        size_t length, start = out->size, run;
        uint32_t c = utf8_at(at, end, &length);

        if (c == (uint32_t)quote || c == '\\')
            buffer_printf(out, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            buffer_add_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (printable(c))
            buffer_add(out, at, length);
        else
            buffer_printf(out, c <= 0xff ? "\\x%02x" : c <= 0xffff ? "\\u%04x" : "\\U%08x", c);
        if (s->origin)
            template_origin_note(a, out, start, out->size, template_origin_at(s, (size_t)(at - s->bytes), &run));
        at += length;
    }
    buffer_add_u8(out, (uint8_t)quote);
}

static void list_repr(struct arena *a, const struct list *list, struct buffer *out)
{
    bool tuple = list->shape == SHAPE_TUPLE;

    if (list->shape > SHAPE_TUPLE)
        template_raise(a, ERROR_SCRIPT, "a %s is printed: put `| list` after it",
                       list->shape == SHAPE_RANGE ? "range" : "generator");
    buffer_add_text(out, tuple ? "(" : "[");
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            buffer_add_text(out, ", ");
        value_repr(a, list->items[i], out);
    }
    buffer_add_text(out, tuple ? list->count == 1 ? ",)" : ")" : "]");
}

static void dict_repr(struct arena *a, const struct dict *dict, struct buffer *out)
{
    buffer_add_text(out, "{");
    for (size_t i = 0; i < dict->count; i++) {
        if (i)
            buffer_add_text(out, ", ");
        value_repr(a, dict->entries[i].key, out);
        buffer_add_text(out, ": ");
        value_repr(a, dict->entries[i].value, out);
    }
    buffer_add_text(out, "}");
}

void value_repr(struct arena *a, struct value v, struct buffer *out)
{
    arena_step(a, 1);
    arena_enter(a);
    if (out->size > TEMPLATE_MAX_OUTPUT)
        template_raise(a, ERROR_LIMIT, "more than %d bytes of output", TEMPLATE_MAX_OUTPUT);
    switch (v.kind) {
    case VALUE_UNDEFINED:
        buffer_add_text(out, "Undefined");
        break;
    case VALUE_NONE:
        buffer_add_text(out, "None");
        break;
    case VALUE_BOOL:
        buffer_add_text(out, v.boolean ? "True" : "False");
        break;
    case VALUE_INT:
        buffer_printf(out, "%lld", (long long)v.integer);
        break;
    case VALUE_FLOAT:
        float_print(v.real, out);
        break;
    case VALUE_STRING:
        if (v.markup)
            buffer_add_text(out, "Markup(");
        string_repr(a, v.string, out);
        if (v.markup)
            buffer_add_text(out, ")");
        break;
    case VALUE_LIST:
        list_repr(a, v.list, out);
        break;
    case VALUE_DICT:
        if (v.dict->verbatim)
            template_origin_add(a, out, v.dict->verbatim);
        else
            dict_repr(a, v.dict, out);
        break;
    default:
        template_raise(a, ERROR_SCRIPT, "a %s is printed", value_type(v));
    }
    arena_leave(a);
}

void value_print(struct arena *a, struct value v, struct buffer *out)
{
    arena_step(a, 1);
    if (v.kind == VALUE_STRING)
        template_origin_add(a, out, v.string);
    else if (v.kind != VALUE_UNDEFINED)
        value_repr(a, v, out);
    if (out->size > TEMPLATE_MAX_OUTPUT)
        template_raise(a, ERROR_LIMIT, "more than %d bytes of output", TEMPLATE_MAX_OUTPUT);
}

static void json_text(struct arena *a, const struct string *s, bool ascii, struct buffer *out)
{
    static const char named[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
    const char *at = s->bytes, *end = at + s->size;

    buffer_add_text(out, "\"");
    while (at < end) {
        size_t length, start = out->size, run;
        uint32_t c = utf8_at(at, end, &length);
        const char *name = c && c < 0x80 ? strchr(named, (int)c) : NULL;

        if (name)
            buffer_printf(out, "\\%c", names[name - named]);
        else if (c < 0x20 || (ascii && c >= 0x7f && c <= 0xffff))
            buffer_printf(out, "\\u%04x", c);
        else if (ascii && c > 0xffff)
            buffer_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
        else
            buffer_add(out, at, length);
        if (s->origin)
            template_origin_note(a, out, start, out->size, template_origin_at(s, (size_t)(at - s->bytes), &run));
        at += length;
    }
    buffer_add_text(out, "\"");
}

static void json_line(const struct json_style *style, int depth, struct buffer *out)
{
    if (style->indent < 0)
        return;
    buffer_add_text(out, "\n");
    for (int i = 0; i < style->indent * depth; i++)
        buffer_add_text(out, " ");
}

static void json_key(struct arena *a, struct value key, const struct json_style *style, struct buffer *out)
{
    if (key.kind == VALUE_STRING) {
        json_text(a, key.string, style->ascii, out);
        return;
    }
    if (key.kind > VALUE_STRING || key.kind == VALUE_UNDEFINED)
        template_raise(a, ERROR_SCRIPT, "keys must be str, int, float, bool or None, not %s", value_type(key));
    buffer_add_text(out, "\"");
    value_json(a, key, style, 0, out);
    buffer_add_text(out, "\"");
}

static int by_key(const void *x, const void *y)
{
    const struct string *s = ((const struct entry *)x)->key.string, *t = ((const struct entry *)y)->key.string;
    size_t least = s->size < t->size ? s->size : t->size;
    int order = least ? memcmp(s->bytes, t->bytes, least) : 0;

    return order ? order : (s->size > t->size) - (s->size < t->size);
}

static const struct entry *sorted(struct arena *a, const struct dict *dict)
{
    struct entry *entries = arena_array(a, dict->count, sizeof *entries);

    for (size_t i = 0; i < dict->count; i++) {
        entries[i] = dict->entries[i];
        if (entries[i].key.kind != VALUE_STRING)
            template_raise(a, ERROR_UNSUPPORTED, "sort_keys with keys that are no strings");
    }
    qsort(entries, dict->count, sizeof *entries, by_key);
    return entries;
}

static void json_members(struct arena *a, struct value v, const struct json_style *style, int depth, struct buffer *out)
{
    bool list = v.kind == VALUE_LIST;
    size_t count = list ? v.list->count : v.dict->count;
    const struct entry *entries = list ? NULL : style->sort && count ? sorted(a, v.dict) : v.dict->entries;

    buffer_add_text(out, list ? "[" : "{");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buffer_add_text(out, style->item);
        json_line(style, depth + 1, out);
        if (!list) {
            json_key(a, entries[i].key, style, out);
            buffer_add_text(out, style->key);
        }
        value_json(a, list ? v.list->items[i] : entries[i].value, style, depth + 1, out);
    }
    if (count)
        json_line(style, depth, out);
    buffer_add_text(out, list ? "]" : "}");
}

void value_json(struct arena *a, struct value v, const struct json_style *style, int depth, struct buffer *out)
{
    arena_step(a, 1);
    arena_enter(a);
    if (out->size > TEMPLATE_MAX_OUTPUT)
        template_raise(a, ERROR_LIMIT, "more than %d bytes of output", TEMPLATE_MAX_OUTPUT);
    switch (v.kind) {
    case VALUE_NONE:
        buffer_add_text(out, "null");
        break;
    case VALUE_BOOL:
        buffer_add_text(out, v.boolean ? "true" : "false");
        break;
    case VALUE_INT:
        buffer_printf(out, "%lld", (long long)v.integer);
        break;
    case VALUE_FLOAT:
        if (isnan(v.real) || isinf(v.real))
            buffer_add_text(out, isnan(v.real) ? "NaN" : v.real < 0 ? "-Infinity" : "Infinity");
        else
            float_print(v.real, out);
        break;
    case VALUE_STRING:
        json_text(a, v.string, style->ascii, out);
        break;
    case VALUE_DICT:
        if (v.dict->verbatim && style->indent < 0 && !style->ascii && !style->sort) {
            template_origin_add(a, out, v.dict->verbatim);
            break;
        }
        json_members(a, v, style, depth, out);
        break;
    case VALUE_LIST:
        if (v.list->shape <= SHAPE_TUPLE) {
            json_members(a, v, style, depth, out);
            break;
        } /* fall through */
    default:
        template_raise(a, ERROR_SCRIPT, "Object of type %s is not JSON serializable", value_type(v));
    }
    arena_leave(a);
}

struct value value_str(struct arena *a, struct value v)
{
    if (v.kind == VALUE_STRING)
        return v;

    struct buffer *text = arena_buffer(a);

    value_print(a, v, text);
    return value_buffer(a, text);
}
