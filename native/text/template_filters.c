/* Jinja2's filters of text and numbers (jinja2/filters.py 3.1), and `tojson` as transformers replaces it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/template_filters.h"
#include "native/text/template_interpreter.h"
#include "native/text/template_origin.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

/* ---- text ---- */

/* Calls a method of str by name with the filter's own arguments. */
static struct value by_method(struct value v, struct arguments *args, const char *name)
{
    struct value text = value_str(args->a, v), method;

    if (!method_of(args->a, text, name, &method))
        template_raise(args->a, ERROR_FAULT, "no method %s", name);
    return value_call(args->in, method, args);
}

static struct value f_trim(struct value v, struct arguments *args)
{
    return by_method(v, args, "strip");
}

static struct value f_upper(struct value v, struct arguments *args)
{
    return by_method(v, args, "upper");
}

static struct value f_lower(struct value v, struct arguments *args)
{
    return by_method(v, args, "lower");
}

static struct value f_capitalize(struct value v, struct arguments *args)
{
    return by_method(v, args, "capitalize");
}

static struct value f_replace(struct value v, struct arguments *args)
{
    struct value count = argument_or(args, 2, "count", value_int(-1));
    struct value parts[3] = { value_str(args->a, argument_need(args, 0, "old")),
                              value_str(args->a, argument_need(args, 1, "new")),
                              count.kind == VALUE_NONE ? value_int(-1) : count };
    struct value text = value_str(args->a, v);
    struct arguments own = { .in = args->in, .a = args->a, .callee = "replace", .items = parts, .count = 3 };

    arguments_end(args, 3);
    text.markup = false; /* autoescape is off: the filter escapes nothing */
    return by_method(text, &own, "replace");
}

/* Capitals after white space and -({[<, unlike str.title. */
static struct value f_title(struct value v, struct arguments *args)
{
    struct value text = value_str(args->a, v);
    struct buffer *out = arena_buffer(args->a);
    const char *at = text.string->bytes, *end = at + text.string->size;
    bool first = true;

    arguments_end(args, 0);
    while (at < end) {
        size_t length, start = out->size, run;
        uint32_t c = utf8_at(at, end, &length);

        utf8_add(out, case_of(args->a, c, first));
        template_origin_note(args->a, out, start, out->size,
                             template_origin_at(text.string, (size_t)(at - text.string->bytes), &run));
        first = is_space(c) || (c < 0x80 && strchr("-({[<", (int)c));
        at += length;
    }
    return value_buffer(args->a, out);
}

static struct value f_string(struct value v, struct arguments *args)
{
    arguments_end(args, 0);
    return value_str(args->a, v);
}

static struct value f_safe(struct value v, struct arguments *args)
{
    struct value text = value_str(args->a, v);

    arguments_end(args, 0);
    text.markup = true;
    return text;
}

static struct value f_escape(struct value v, struct arguments *args)
{
    arguments_end(args, 0);
    return value_escape(args->a, v);
}

static struct value f_indent(struct value v, struct arguments *args)
{
    struct value width = argument_or(args, 0, "width", value_int(4)), text = value_str(args->a, v);
    bool first = value_true(argument_or(args, 1, "first", value_bool(false)));
    bool blank = value_true(argument_or(args, 2, "blank", value_bool(false)));
    const char *at = text.string->bytes, *end = at + text.string->size;
    int64_t spaces = width.kind == VALUE_STRING ? 0 : need_int(args->a, width, "indent");

    arguments_end(args, 3);
    if (spaces > 1000)
        template_raise(args->a, ERROR_LIMIT, "indent of more than 1000 spaces");
    arena_step(args->a, text.string->size);

    struct buffer *out = arena_buffer(args->a);

    for (size_t line = 0; at < end || line == 0; line++) {
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        size_t size = (size_t)((stop ? stop : end) - at);

        if (line ? blank || size : first) {
            if (width.kind == VALUE_STRING)
                buffer_add(out, width.string->bytes, width.string->size);
            for (int64_t i = 0; i < spaces; i++)
                buffer_add_u8(out, ' ');
        }
        template_origin_add(args->a, out, &(struct string){ at, size + (stop != NULL), text.string->origin });
        if (out->size > TEMPLATE_MAX_OUTPUT)
            template_raise(args->a, ERROR_LIMIT, "more than %d bytes of text", TEMPLATE_MAX_OUTPUT);
        at += size + (stop != NULL);
        if (!stop)
            break;
    }
    return value_buffer(args->a, out);
}

static struct value f_format(struct value v, struct arguments *args)
{
    struct value values = value_list(args->a, SHAPE_TUPLE);

    for (size_t i = 0; i < args->count; i++)
        list_add(args->a, values.list, args->items[i]);
    return value_format(args->a, value_str(args->a, v).string, values);
}

static struct value f_wordcount(struct value v, struct arguments *args)
{
    struct value words = by_method(v, args, "split");

    return value_int((int64_t)words.list->count);
}

static struct value f_join(struct value v, struct arguments *args)
{
    struct value separator = argument_or(args, 0, "d", value_string(args->a, "", 0));
    struct value attribute = argument_or(args, 1, "attribute", value_none());
    const struct list *items = value_iterate(args->a, v);
    struct value parts = value_list(args->a, SHAPE_LIST);

    arguments_end(args, 2);
    separator = value_str(args->a, separator);
    for (size_t i = 0; i < items->count; i++)
        list_add(args->a, parts.list,
                 attribute.kind == VALUE_NONE ? items->items[i] : value_member(args->in, items->items[i], attribute));

    struct buffer *out = arena_buffer(args->a);

    for (size_t i = 0; i < parts.list->count; i++) {
        if (i)
            value_print(args->a, separator, out);
        value_print(args->a, parts.list->items[i], out);
    }
    return value_buffer(args->a, out);
}

static struct value f_tojson(struct value v, struct arguments *args)
{
    struct json_style style = { .indent = -1, .item = ", ", .key = ": " };
    struct value ascii = argument_or(args, 0, "ensure_ascii", value_bool(false)),
                 indent = argument_or(args, 1, "indent", value_none()),
                 separators = argument_or(args, 2, "separators", value_none());

    style.ascii = value_true(ascii);
    style.sort = value_true(argument_or(args, 3, "sort_keys", value_bool(false)));
    arguments_end(args, 4);
    if (indent.kind != VALUE_NONE) {
        int64_t width = need_int(args->a, indent, "tojson");

        if (width > 100)
            template_raise(args->a, ERROR_LIMIT, "tojson: indent of more than 100");
        style.indent = width < 0 ? 0 : (int)width;
        style.item = ",";
    }
    if (separators.kind != VALUE_NONE) {
        const struct list *pair = value_iterate(args->a, separators);
        char *texts[2];

        if (pair->count != 2)
            template_raise(args->a, ERROR_SCRIPT, "tojson: separators are two");
        for (int i = 0; i < 2; i++) {
            const struct string *s = need_string(args->a, pair->items[i], "tojson");

            texts[i] = arena_new(args->a, s->size + 1);
            memcpy(texts[i], s->bytes, s->size);
        }
        style.item = texts[0];
        style.key = texts[1];
    }

    struct buffer *out = arena_buffer(args->a);

    value_json(args->a, v, &style, 0, out);
    return value_buffer(args->a, out);
}

/* ---- numbers ---- */

/* A number as Python reads it from text: white space around, `_` between digits. false if it is none that strtod could read. */
static bool number_text(struct arena *a, const struct string *s, char text[64])
{
    const char *at = s->bytes, *end = at + s->size;
    size_t count = 0, length;
    bool foreign = false;

    while (at < end && strchr(" \t\n\r\v\f", *at) && *at)
        at++;
    while (end > at && strchr(" \t\n\r\v\f", end[-1]) && end[-1])
        end--;
    for (; at < end; at += length) {
        uint32_t c = utf8_at(at, end, &length);

        if (c >= 0x80 ? !unicode_in(c, UNICODE_SET(UNICODE_DIGIT) | UNICODE_SPACES)
                      : !c || !strchr("0123456789+-._aefintyAEFINTY", (int)c))
            return false;
        foreign |= c >= 0x80;
        if (c == '_' && (!count || text[count - 1] < '0' || text[count - 1] > '9' || at + 1 == end || at[1] < '0' || at[1] > '9'))
            return false;
        if (c != '_' && count < 63)
            text[count] = *at;
        count += c != '_';
    }
    if (foreign || count > 63)
        template_raise(a, ERROR_UNSUPPORTED, "a number of more than 63 characters, or of others than ASCII");
    text[count] = 0;
    return count > 0;
}

static struct value whole_of(struct arena *a, double d, struct value otherwise)
{
    if (isnan(d))
        return otherwise;
    if (isinf(d))
        template_raise(a, ERROR_SCRIPT, "cannot convert float infinity to integer");
    if (fabs(d) >= 9.2e18)
        template_raise(a, ERROR_UNSUPPORTED, "an integer of more than 64 bits");
    return value_int((int64_t)d);
}

static struct value f_int(struct value v, struct arguments *args)
{
    struct value otherwise = argument_or(args, 0, "default", value_int(0));
    int64_t base = need_int(args->a, argument_or(args, 1, "base", value_int(10)), "int");
    char text[64] = "", *end;

    arguments_end(args, 2);
    if (v.kind == VALUE_INT || v.kind == VALUE_BOOL)
        return value_int(v.kind == VALUE_INT ? v.integer : v.boolean);
    if (v.kind == VALUE_FLOAT)
        return whole_of(args->a, v.real, otherwise);
    if (v.kind != VALUE_STRING)
        return otherwise;
    if (base != 10)
        template_raise(args->a, ERROR_UNSUPPORTED, "int of another base");
    if (!number_text(args->a, v.string, text))
        return otherwise;

    double d = strtod(text, &end);

    if (*end)
        return otherwise;
    if (strpbrk(text, ".eEnN"))
        return isinf(d) ? otherwise : whole_of(args->a, d, otherwise);
    whole_of(args->a, d, otherwise);
    return value_int(strtoll(text, NULL, 10));
}

static struct value f_float(struct value v, struct arguments *args)
{
    struct value otherwise = argument_or(args, 0, "default", value_float(0));
    char text[64] = "", *end;

    arguments_end(args, 1);
    if (v.kind == VALUE_FLOAT)
        return v;
    if (v.kind == VALUE_INT || v.kind == VALUE_BOOL)
        return value_float(v.kind == VALUE_INT ? (double)v.integer : v.boolean);
    if (v.kind == VALUE_STRING && number_text(args->a, v.string, text)) {
        double d = strtod(text, &end);

        if (!*end)
            return value_float(d);
    }
    return otherwise;
}

static struct value f_abs(struct value v, struct arguments *args)
{
    arguments_end(args, 0);
    if (v.kind == VALUE_FLOAT)
        return value_float(fabs(v.real));
    return need_int(args->a, v, "abs") < 0 ? negate(args->a, OP_SUBTRACT, v) : v;
}

static struct value f_round(struct value v, struct arguments *args)
{
    int64_t precision = need_int(args->a, argument_or(args, 0, "precision", value_int(0)), "round");
    struct value method = argument_or(args, 1, "method", value_as_text(args->a, "common"));
    char text[400];

    arguments_end(args, 2);
    if (v.kind == VALUE_INT && precision >= 0)
        return v;
    if (v.kind != VALUE_FLOAT)
        template_raise(args->a, ERROR_SCRIPT, "type %s doesn't define __round__ method", value_type(v));
    if (precision < 0 || precision > 15 || !string_is(need_string(args->a, method, "round"), "common"))
        template_raise(args->a, ERROR_UNSUPPORTED, "round: 0 to 15 digits, method 'common'");
    snprintf(text, sizeof text, "%.*f", (int)precision, v.real); /* correctly rounded, halves to even, as Python's */
    return value_float(strtod(text, NULL));
}

static const struct filter FILTERS[] = {
    { "tojson", f_tojson },   { "trim", f_trim },
    { "string", f_string },   { "safe", f_safe },
    { "join", f_join },       { "lower", f_lower },
    { "upper", f_upper },     { "int", f_int },
    { "float", f_float },     { "capitalize", f_capitalize },
    { "replace", f_replace }, { "title", f_title },
    { "indent", f_indent },   { "abs", f_abs },
    { "round", f_round },     { "escape", f_escape },
    { "e", f_escape },        { "wordcount", f_wordcount },
    { "format", f_format },
};

static const struct filter *find(const struct filter *filters, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(filters[i].name, name))
            return &filters[i];
    return NULL;
}

const struct filter *filter_named(const char *name)
{
    const struct filter *filter = find(FILTERS, sizeof FILTERS / sizeof *FILTERS, name);

    return filter ? filter : find(LIST_FILTERS, LIST_FILTER_COUNT, name);
}
