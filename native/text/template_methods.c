/* Methods of dict, list and loop, as Python's; those that change a list or a dict are refused, as in the sandbox. The case of
 * characters, and printf-style formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/template_interpreter.h"
#include "native/text/template_methods.h"
#include "native/text/template_origin.h"
#include "native/text/utf8.h"

/* ---- case ---- */

/* Letters with a case of their own: ASCII, Latin-1, Latin Extended-A, Greek, Cyrillic, fullwidth. What lies beyond and may
 * have a case raises; scripts without case pass. */
uint32_t case_of(struct arena *a, uint32_t c, bool upper)
{
    if (c < 0x80) {
        if (upper)
            return c >= 'a' && c <= 'z' ? c - 32 : c;
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    }
    if (c < 0xc0)
        return c == 0xb5 && upper ? 0x39c : c;
    if (c <= 0xff) {
        if (c == 0xd7 || c == 0xf7 || c == 0xdf)
            return c;
        if (c == 0xff)
            return upper ? 0x178 : c;
        return upper ? (c >= 0xe0 ? c - 32 : c) : (c < 0xe0 ? c + 32 : c);
    }
    if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2))
        return upper ? (c >= 0x3b1 ? c - 32 : c) : (c < 0x3b1 ? c + 32 : c);
    if (c >= 0x410 && c <= 0x44f)
        return upper ? (c >= 0x430 ? c - 32 : c) : (c < 0x430 ? c + 32 : c);
    if (c >= 0x400 && c <= 0x40f)
        return upper ? c : c + 80;
    if (c >= 0x450 && c <= 0x45f)
        return upper ? c - 80 : c;
    if ((c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) || (c >= 0x14a && c <= 0x177))
        return upper ? c & ~1u : c | 1u;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
        return upper ? (c % 2 ? c : c - 1) : (c % 2 ? c + 1 : c);
    if ((c >= 0xff21 && c <= 0xff3a) || (c >= 0xff41 && c <= 0xff5a))
        return upper ? (c >= 0xff41 ? c - 32 : c) : (c < 0xff41 ? c + 32 : c);
    if ((c >= 0x5d0 && c <= 0x109f) || (c >= 0x2000 && c <= 0x20ff) ||
        (c >= 0x2190 && c <= 0x2bff && !(c >= 0x24b6 && c <= 0x24e9)) || (c >= 0x2e80 && c <= 0xa63f) ||
        (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe00 && c <= 0xfe6f) ||
        (c >= 0xff00 && c <= 0xffef) || c >= 0x1f000)
        return c;
    template_raise(a, ERROR_UNSUPPORTED, "the case of U+%04X is not known here", c);
}

struct value string_case(struct arena *a, const struct string *s, bool upper)
{
    struct buffer *out = arena_buffer(a);
    const char *at = s->bytes, *end = at + s->size;

    arena_step(a, s->size / 4);
    while (at < end) {
        size_t length, start = out->size, run;
        uint32_t c = utf8_at(at, end, &length);

        if (c == 0xdf && upper)
            buffer_add_text(out, "SS");
        else
            utf8_add(out, case_of(a, c, upper));
        if (s->origin)
            template_origin_note(a, out, start, out->size, template_origin_at(s, (size_t)(at - s->bytes), &run));
        at += length;
    }
    return value_buffer(a, out);
}

/* ---- dict ---- */

static struct value dict_view(struct value self, struct arguments *args, int what)
{
    struct value out = value_list(args->a, SHAPE_VIEW);

    arguments_end(args, 0);
    arena_step(args->a, self.dict->count);
    for (size_t i = 0; i < self.dict->count; i++) {
        struct value pair = what == 2 ? value_list(args->a, SHAPE_TUPLE) : value_none();

        if (what == 2) {
            list_add(args->a, pair.list, self.dict->entries[i].key);
            list_add(args->a, pair.list, self.dict->entries[i].value);
        }
        list_add(args->a, out.list, what == 0 ? self.dict->entries[i].key : what == 1 ? self.dict->entries[i].value : pair);
    }
    return out;
}

static struct value dict_keys(struct value self, struct arguments *args)
{
    return dict_view(self, args, 0);
}

static struct value dict_values(struct value self, struct arguments *args)
{
    return dict_view(self, args, 1);
}

static struct value dict_items(struct value self, struct arguments *args)
{
    return dict_view(self, args, 2);
}

static struct value dict_get_or(struct value self, struct arguments *args)
{
    struct value key = argument_need(args, 0, "key"), v = argument_or(args, 1, "default", value_none());

    arguments_end(args, 2);
    dict_get(args->a, self.dict, key, &v);
    return v;
}

static struct value dict_copy(struct value self, struct arguments *args)
{
    struct value v = value_dict(args->a);

    arguments_end(args, 0);
    v.dict->message = self.dict->message;
    v.dict->made = self.dict->made;
    for (size_t i = 0; i < self.dict->count; i++)
        dict_set(args->a, v.dict, self.dict->entries[i].key, self.dict->entries[i].value);
    return v;
}

/* ---- list ---- */

static struct value list_index(struct value self, struct arguments *args)
{
    struct value what = argument_need(args, 0, "value");

    arguments_end(args, 1);
    for (size_t i = 0; i < self.list->count; i++)
        if (value_equal(args->a, self.list->items[i], what))
            return value_int((int64_t)i);
    template_raise(args->a, ERROR_SCRIPT, "the value is not in the list");
}

static struct value list_count(struct value self, struct arguments *args)
{
    struct value what = argument_need(args, 0, "value");
    int64_t count = 0;

    arguments_end(args, 1);
    for (size_t i = 0; i < self.list->count; i++)
        count += value_equal(args->a, self.list->items[i], what);
    return value_int(count);
}

static struct value list_copy(struct value self, struct arguments *args)
{
    struct value v = value_list(args->a, self.list->shape);

    arguments_end(args, 0);
    for (size_t i = 0; i < self.list->count; i++)
        list_add(args->a, v.list, self.list->items[i]);
    return v;
}

static struct value refuse_change(struct value self, struct arguments *args)
{
    template_raise(args->a, ERROR_SCRIPT, "%s.%s() changes a value, which chat templates may not", value_type(self),
                   args->callee);
}

/* ---- loop ---- */

static struct value loop_cycle(struct value self, struct arguments *args)
{
    if (!args->count)
        template_raise(args->a, ERROR_SCRIPT, "no items for cycling given");
    return args->items[self.loop->index % args->count];
}

static struct value loop_changed(struct value self, struct arguments *args)
{
    struct value now = value_list(args->a, SHAPE_TUPLE);
    bool changed;

    for (size_t i = 0; i < args->count; i++)
        list_add(args->a, now.list, args->items[i]);
    changed = !self.loop->has_changed || !value_equal(args->a, self.loop->changed, now);
    self.loop->changed = now;
    self.loop->has_changed = true;
    return value_bool(changed);
}

static const struct method METHODS[] = {
    { VALUE_DICT, "keys", dict_keys },           { VALUE_DICT, "values", dict_values },
    { VALUE_DICT, "items", dict_items },         { VALUE_DICT, "get", dict_get_or },
    { VALUE_DICT, "copy", dict_copy },           { VALUE_DICT, "pop", refuse_change },
    { VALUE_DICT, "update", refuse_change },     { VALUE_DICT, "clear", refuse_change },
    { VALUE_DICT, "setdefault", refuse_change }, { VALUE_DICT, "popitem", refuse_change },
    { VALUE_LIST, "index", list_index },         { VALUE_LIST, "count", list_count },
    { VALUE_LIST, "copy", list_copy },           { VALUE_LIST, "append", refuse_change },
    { VALUE_LIST, "extend", refuse_change },     { VALUE_LIST, "insert", refuse_change },
    { VALUE_LIST, "pop", refuse_change },        { VALUE_LIST, "remove", refuse_change },
    { VALUE_LIST, "reverse", refuse_change },    { VALUE_LIST, "sort", refuse_change },
    { VALUE_LIST, "clear", refuse_change },      { VALUE_LOOP, "cycle", loop_cycle },
    { VALUE_LOOP, "changed", loop_changed },
};

static const struct method *find(const struct method *methods, size_t count, enum value_kind kind, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (methods[i].kind == kind && !strcmp(methods[i].name, name))
            return &methods[i];
    return NULL;
}

bool method_of(struct arena *a, struct value v, const char *name, struct value *out)
{
    const struct method *method = v.kind == VALUE_STRING ? find(STRING_METHODS, STRING_METHOD_COUNT, v.kind, name)
                                                         : find(METHODS, sizeof METHODS / sizeof *METHODS, v.kind, name);

    if (!method)
        return false;

    struct bound *bound = arena_new(a, sizeof *bound);

    *bound = (struct bound){ v, method->name, method->run };
    *out = (struct value){ .kind = VALUE_METHOD, .bound = bound };
    return true;
}

/* ---- 'text %s %d' % values ---- */

static void add_conversion(struct arena *a, char c, const char *flags, struct value v, struct buffer *out)
{
    char format[24];
    double d = v.kind == VALUE_FLOAT ? v.real : v.kind == VALUE_INT ? (double)v.integer : v.kind == VALUE_BOOL ? v.boolean : 0;

    if (c == 's' || c == 'r') {
        const struct string *text;
        struct buffer *repr = arena_buffer(a);

        if (c == 'r')
            value_repr(a, v, repr);
        else
            value_print(a, v, repr);
        text = value_buffer(a, repr).string;
        if (*flags)
            template_raise(a, ERROR_UNSUPPORTED, "%%%s%c in a format", flags, c);
        template_origin_add(a, out, text);
        return;
    }
    if (v.kind < VALUE_BOOL || v.kind > VALUE_FLOAT)
        template_raise(a, ERROR_SCRIPT, "%%%c format: a real number is required, not %s", c, value_type(v));
    if (c == 'd' || c == 'i' || c == 'x') {
        snprintf(format, sizeof format, "%%%sll%c", flags, c == 'i' ? 'd' : c);
        buffer_printf(out, format,
                      v.kind == VALUE_FLOAT  ? (long long)d
                      : v.kind == VALUE_BOOL ? (long long)v.boolean
                                             : (long long)v.integer);
    } else if (c == 'f') {
        snprintf(format, sizeof format, "%%%sf", flags);
        buffer_printf(out, format, d);
    } else {
        template_raise(a, ERROR_UNSUPPORTED, "%%%c in a format", c);
    }
}

struct value value_format(struct arena *a, const struct string *s, struct value values)
{
    struct buffer *out = arena_buffer(a);
    bool tuple = values.kind == VALUE_LIST && values.list->shape == SHAPE_TUPLE;
    size_t used = 0, given = tuple ? values.list->count : 1;

    for (size_t i = 0; i < s->size; i++) {
        char flags[8];
        size_t length = 0;

        if (s->bytes[i] != '%') {
            buffer_add_u8(out, (uint8_t)s->bytes[i]);
            continue;
        }
        for (i++; i < s->size && strchr("0123456789.-+", s->bytes[i]) && s->bytes[i]; i++) {
            if (length + 1 == sizeof flags || length == 5)
                template_raise(a, ERROR_UNSUPPORTED, "a long width in a format");
            flags[length++] = s->bytes[i];
        }
        flags[length] = 0;
        if (i >= s->size)
            template_raise(a, ERROR_SCRIPT, "incomplete format");
        if (s->bytes[i] == '%') {
            buffer_add_text(out, "%");
            continue;
        }
        if (used == given)
            template_raise(a, ERROR_SCRIPT, "not enough arguments for format string");
        add_conversion(a, s->bytes[i], flags, tuple ? values.list->items[used] : values, out);
        used++;
    }
    if (used != given && (tuple || values.kind != VALUE_DICT))
        template_raise(a, ERROR_SCRIPT, "not all arguments converted during string formatting");
    return value_buffer(a, out);
}
