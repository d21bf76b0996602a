/* Methods of str, as Python's. */
#include <stdlib.h>
#include <string.h>

#include "native/text/template_interpreter.h"
#include "native/text/template_methods.h"
#include "native/text/template_origin.h"
#include "native/text/utf8.h"

static struct value part(struct arena *a, struct value self, const char *start, const char *end)
{
    return value_part(a, self, start, (size_t)(end - start));
}

static bool in_set(const char *at, const char *end, const struct string *set, size_t *length)
{
    uint32_t c = utf8_at(at, end, length);

    if (!set)
        return is_space(c);
    for (const char *s = set->bytes, *stop = s + set->size; s < stop;) {
        size_t size;

        if (utf8_at(s, stop, &size) == c)
            return true;
        s += size;
    }
    return false;
}

static struct value strip(struct value self, struct arguments *args, bool left, bool right)
{
    const char *start = self.string->bytes, *end = start + self.string->size;
    struct value chars = argument_or(args, 0, "chars", value_none());
    const struct string *set = chars.kind == VALUE_NONE ? NULL : need_string(args->a, chars, args->callee);
    size_t length;

    arguments_end(args, 1);
    arena_step(args->a, self.string->size / 16 * (set ? set->size + 1 : 1));
    while (left && start < end && in_set(start, end, set, &length))
        start += length;
    while (right && start < end) {
        utf8_before(start, end, &length);
        if (!in_set(end - length, end, set, &length))
            break;
        end -= length;
    }
    return part(args->a, self, start, end);
}

static struct value str_strip(struct value self, struct arguments *args)
{
    return strip(self, args, true, true);
}

static struct value str_lstrip(struct value self, struct arguments *args)
{
    return strip(self, args, true, false);
}

static struct value str_rstrip(struct value self, struct arguments *args)
{
    return strip(self, args, false, true);
}

static void split_spaces(struct arena *a, struct value self, int64_t most, struct list *out)
{
    const char *at = self.string->bytes, *end = at + self.string->size;

    for (strip_left(&at, end); at < end; strip_left(&at, end)) {
        const char *start = at;
        size_t length;

        if (most >= 0 && (int64_t)out->count == most) {
            list_add(a, out, part(a, self, at, end));
            return;
        }
        while (at < end && !is_space(utf8_at(at, end, &length)))
            at += length;
        list_add(a, out, part(a, self, start, at));
    }
}

static struct value str_split(struct value self, struct arguments *args)
{
    struct value separator = argument_or(args, 0, "sep", value_none()), out = value_list(args->a, SHAPE_LIST);
    int64_t most = need_int(args->a, argument_or(args, 1, "maxsplit", value_int(-1)), "split");
    const char *at = self.string->bytes, *end = at + self.string->size, *found;

    arguments_end(args, 2);
    arena_step(args->a, self.string->size / 4);
    if (separator.kind == VALUE_NONE) {
        split_spaces(args->a, self, most, out.list);
        return out;
    }

    const struct string *by = need_string(args->a, separator, "split");

    if (!by->size)
        template_raise(args->a, ERROR_SCRIPT, "empty separator");
    while (at < end && (most < 0 || (int64_t)out.list->count < most) &&
           (found = memmem(at, (size_t)(end - at), by->bytes, by->size))) {
        list_add(args->a, out.list, part(args->a, self, at, found));
        at = found + by->size;
    }
    list_add(args->a, out.list, part(args->a, self, at, end));
    return out;
}

static const char *find_last(const char *start, const char *end, const struct string *what)
{
    for (const char *at = end - what->size; at >= start; at--)
        if (!memcmp(at, what->bytes, what->size))
            return at;
    return NULL;
}

static struct value str_rsplit(struct value self, struct arguments *args)
{
    struct value separator = argument_or(args, 0, "sep", value_none());
    int64_t most = need_int(args->a, argument_or(args, 1, "maxsplit", value_int(-1)), "rsplit");

    if (separator.kind == VALUE_NONE || most < 0) {
        if (most >= 0)
            template_raise(args->a, ERROR_UNSUPPORTED, "rsplit at white space with maxsplit");
        return str_split(self, args);
    }

    const struct string *by = need_string(args->a, separator, "rsplit");
    const char *start = self.string->bytes, *end = start + self.string->size, *found;
    struct value back = value_list(args->a, SHAPE_LIST), out = value_list(args->a, SHAPE_LIST);

    arguments_end(args, 2);
    arena_step(args->a, self.string->size);
    if (!by->size)
        template_raise(args->a, ERROR_SCRIPT, "empty separator");
    while ((int64_t)back.list->count < most && (size_t)(end - start) >= by->size && (found = find_last(start, end, by))) {
        list_add(args->a, back.list, part(args->a, self, found + by->size, end));
        end = found;
    }
    list_add(args->a, out.list, part(args->a, self, start, end));
    for (size_t i = back.list->count; i-- > 0;)
        list_add(args->a, out.list, back.list->items[i]);
    return out;
}

static struct value str_splitlines(struct value self, struct arguments *args)
{
    bool keep = value_true(argument_or(args, 0, "keepends", value_bool(false)));
    struct value out = value_list(args->a, SHAPE_LIST);
    const char *at = self.string->bytes, *end = at + self.string->size;

    arguments_end(args, 1);
    arena_step(args->a, self.string->size);
    while (at < end) {
        const char *start = at, *line;
        size_t length = 0;
        uint32_t c = 0;

        while (at < end) {
            c = utf8_at(at, end, &length);
            if ((c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029)
                break;
            at += length;
        }
        line = at;
        if (at < end)
            at += c == '\r' && at + 1 < end && at[1] == '\n' ? 2 : length;
        list_add(args->a, out.list, part(args->a, self, start, keep ? at : line));
    }
    return out;
}

/* Whether `self` begins or ends with a string, or one of a tuple. */
static struct value begins(struct value self, struct arguments *args, bool front)
{
    struct value what = argument_need(args, 0, "prefix");
    const struct string *s = self.string;
    struct value alone = what;
    struct list one = { .items = &alone, .count = 1 };
    const struct list *all = what.kind == VALUE_LIST && what.list->shape == SHAPE_TUPLE ? what.list : &one;

    arguments_end(args, 1);
    for (size_t i = 0; i < all->count; i++) {
        const struct string *w = need_string(args->a, all->items[i], args->callee);

        if (w->size <= s->size && (!w->size || !memcmp(front ? s->bytes : s->bytes + s->size - w->size, w->bytes, w->size)))
            return value_bool(true);
    }
    return value_bool(false);
}

static struct value str_startswith(struct value self, struct arguments *args)
{
    return begins(self, args, true);
}

static struct value str_endswith(struct value self, struct arguments *args)
{
    return begins(self, args, false);
}

static struct value str_removeprefix(struct value self, struct arguments *args)
{
    const char *start = self.string->bytes, *end = start + self.string->size;
    size_t size = need_string(args->a, argument_need(args, 0, "prefix"), args->callee)->size;

    return part(args->a, self, value_true(begins(self, args, true)) ? start + size : start, end);
}

static struct value str_removesuffix(struct value self, struct arguments *args)
{
    const char *start = self.string->bytes, *end = start + self.string->size;
    size_t size = need_string(args->a, argument_need(args, 0, "suffix"), args->callee)->size;

    return part(args->a, self, start, value_true(begins(self, args, false)) ? end - size : end);
}

/* Text that takes the place of byte `at` of `s` and on. */
static void add_instead(struct arena *a, struct buffer *out, const struct string *text, const struct string *s, size_t at)
{
    size_t start = out->size, end, message = template_origin_at(s, at, &end) >> 1;

    if (!message) {
        template_origin_add(a, out, text);
        return;
    }
    buffer_add(out, text->bytes, text->size);
    for (size_t i = 0; i < text->size; i = end) {
        size_t mark = template_origin_at(text, i, &end);

        template_origin_note(a, out, start + i, start + end, template_mark(message, mark & 1));
    }
}

static struct value str_replace(struct value self, struct arguments *args)
{
    struct value from_value = argument_need(args, 0, "old"), to_value = argument_need(args, 1, "new");
    int64_t most = need_int(args->a, argument_or(args, 2, "count", value_int(-1)), "replace");
    const struct string *s = self.string, *from = need_string(args->a, from_value, "replace"),
                        *to = need_string(args->a, self.markup ? value_escape(args->a, to_value) : to_value, "replace");
    const char *at = s->bytes, *end = at + s->size;

    arguments_end(args, 3);
    arena_step(args->a, s->size / 4 * (1 + to->size / 64));

    struct buffer *out = arena_buffer(args->a);

    while (most != 0) {
        const char *found = from->size ? at < end ? memmem(at, (size_t)(end - at), from->bytes, from->size) : NULL : at;
        size_t length = 0;

        if (!found)
            break;
        most -= most > 0;
        template_origin_add(args->a, out, &(struct string){ at, (size_t)(found - at), s->origin });
        add_instead(args->a, out, to, s, (size_t)(found - s->bytes));
        if (out->size > TEMPLATE_MAX_OUTPUT)
            template_raise(args->a, ERROR_LIMIT, "more than %d bytes of text", TEMPLATE_MAX_OUTPUT);
        at = found + from->size;
        if (!from->size) { /* between all characters */
            if (at >= end)
                break;
            utf8_at(at, end, &length);
            template_origin_add(args->a, out, &(struct string){ at, length, s->origin });
            at += length;
        }
    }
    if (at < end)
        template_origin_add(args->a, out, &(struct string){ at, (size_t)(end - at), s->origin });

    struct value v = value_buffer(args->a, out);

    v.markup = self.markup;
    return v;
}

static struct value str_upper(struct value self, struct arguments *args)
{
    struct value v = string_case(args->a, self.string, true);

    arguments_end(args, 0);
    v.markup = self.markup;
    return v;
}

static struct value str_lower(struct value self, struct arguments *args)
{
    struct value v = string_case(args->a, self.string, false);

    arguments_end(args, 0);
    v.markup = self.markup;
    return v;
}

static bool is_letter(struct arena *a, uint32_t c)
{
    return case_of(a, c, true) != c || case_of(a, c, false) != c;
}

static struct value str_title(struct value self, struct arguments *args)
{
    struct buffer *out = arena_buffer(args->a);
    const char *at = self.string->bytes, *end = at + self.string->size;
    bool inside = false;

    arguments_end(args, 0);
    while (at < end) {
        size_t length, start = out->size, run;
        uint32_t c = utf8_at(at, end, &length);

        utf8_add(out, case_of(args->a, c, !inside));
        template_origin_note(args->a, out, start, out->size,
                             template_origin_at(self.string, (size_t)(at - self.string->bytes), &run));
        inside = is_letter(args->a, c);
        at += length;
    }
    return value_buffer(args->a, out);
}

static struct value str_capitalize(struct value self, struct arguments *args)
{
    const struct string *s = self.string;
    size_t length = 0;

    arguments_end(args, 0);
    if (s->size)
        utf8_at(s->bytes, s->bytes + s->size, &length);

    struct string first = { s->bytes, length, s->origin }, rest = { s->bytes + length, s->size - length, s->origin };

    return value_add(args->a, string_case(args->a, &first, true), string_case(args->a, &rest, false));
}

static struct value str_find(struct value self, struct arguments *args)
{
    const struct string *s = self.string, *what = need_string(args->a, argument_need(args, 0, "sub"), "find");
    const char *found = what->size ? s->size ? memmem(s->bytes, s->size, what->bytes, what->size) : NULL : s->bytes;

    arguments_end(args, 1);
    arena_step(args->a, s->size / 16);
    return value_int(found ? (int64_t)utf8_count(s->bytes, (size_t)(found - s->bytes)) : -1);
}

static struct value str_index(struct value self, struct arguments *args)
{
    struct value at = str_find(self, args);

    if (at.integer < 0)
        template_raise(args->a, ERROR_SCRIPT, "substring not found");
    return at;
}

static struct value str_count(struct value self, struct arguments *args)
{
    const struct string *s = self.string, *what = need_string(args->a, argument_need(args, 0, "sub"), "count");
    const char *at = s->bytes, *end = at + s->size;
    int64_t count = 0;

    arguments_end(args, 1);
    arena_step(args->a, s->size / 4);
    if (!what->size)
        return value_int((int64_t)utf8_count(s->bytes, s->size) + 1);
    while (at < end && (at = memmem(at, (size_t)(end - at), what->bytes, what->size))) {
        count++;
        at += what->size;
    }
    return value_int(count);
}

static struct value str_join(struct value self, struct arguments *args)
{
    const struct list *items = value_iterate(args->a, argument_need(args, 0, "iterable"));
    struct value out = value_string(args->a, "", 0);
    struct buffer *text;

    arguments_end(args, 1);
    if (self.markup) {
        out.markup = true;
        for (size_t i = 0; i < items->count; i++)
            out = value_add(args->a, i ? value_add(args->a, out, self) : out, value_escape(args->a, items->items[i]));
        return out;
    }
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].kind != VALUE_STRING)
            template_raise(args->a, ERROR_SCRIPT, "sequence item %zu: expected str instance, %s found", i,
                           value_type(items->items[i]));
    text = arena_buffer(args->a);
    for (size_t i = 0; i < items->count; i++) {
        if (i)
            template_origin_add(args->a, text, self.string);
        value_print(args->a, items->items[i], text);
    }
    return value_buffer(args->a, text);
}

/* All characters of a kind, and at least one. */
static struct value all_are(struct value self, struct arguments *args, bool (*is)(struct arena *, uint32_t))
{
    const char *at = self.string->bytes, *end = at + self.string->size;
    bool all = at < end;

    arguments_end(args, 0);
    while (all && at < end) {
        size_t length;

        all = is(args->a, utf8_at(at, end, &length));
        at += length;
    }
    return value_bool(all);
}

static bool ascii_only(struct arena *a, uint32_t c)
{
    if (c >= 0x80)
        template_raise(a, ERROR_UNSUPPORTED, "the class of U+%04X is not known here", c);
    return true;
}

static bool digit(struct arena *a, uint32_t c)
{
    return ascii_only(a, c) && c >= '0' && c <= '9';
}

static bool alpha(struct arena *a, uint32_t c)
{
    return ascii_only(a, c) && ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool space(struct arena *a, uint32_t c)
{
    (void)a;
    return is_space(c);
}

static struct value str_isdigit(struct value self, struct arguments *args)
{
    return all_are(self, args, digit);
}

static struct value str_isalpha(struct value self, struct arguments *args)
{
    return all_are(self, args, alpha);
}

static struct value str_isspace(struct value self, struct arguments *args)
{
    return all_are(self, args, space);
}

/* '{} {0} {name}'.format(...); conversions and format specs are refused. */
static struct value str_format(struct value self, struct arguments *args)
{
    struct buffer *out = arena_buffer(args->a);
    const struct string *s = self.string;
    size_t automatic = 0;
    bool numbered = false;

    for (size_t i = 0; i < s->size; i++) {
        char c = s->bytes[i], name[64];
        struct value v;

        if ((c == '{' || c == '}') && i + 1 < s->size && s->bytes[i + 1] == c) {
            buffer_add_u8(out, (uint8_t)c);
            i++;
            continue;
        }
        if (c != '{') {
            buffer_add_u8(out, (uint8_t)c);
            continue;
        }

        const char *end = memchr(s->bytes + i, '}', s->size - i);
        size_t size = end ? (size_t)(end - s->bytes) - i - 1 : sizeof name;

        if (size >= sizeof name)
            template_raise(args->a, ERROR_SCRIPT, "Single '{' encountered in format string");
        memcpy(name, s->bytes + i + 1, size);
        name[size] = 0;
        if (strpbrk(name, ":!.["))
            template_raise(args->a, ERROR_UNSUPPORTED, "format(): '{%s}'", name);

        bool number = size && strspn(name, "0123456789") == size;

        numbered |= number;
        if (numbered && (automatic || !size))
            template_raise(args->a, ERROR_SCRIPT, "format(): numbered and unnumbered fields are mixed");
        if (!argument(args, !size ? automatic++ : number ? (size_t)atoll(name) : SIZE_MAX, name, &v))
            template_raise(args->a, ERROR_SCRIPT, "format() has no argument for '{%s}'", name);
        value_print(args->a, v, out);
        i += size + 1;
    }
    return value_buffer(args->a, out);
}

const struct method STRING_METHODS[] = {
    { VALUE_STRING, "strip", str_strip },
    { VALUE_STRING, "lstrip", str_lstrip },
    { VALUE_STRING, "rstrip", str_rstrip },
    { VALUE_STRING, "split", str_split },
    { VALUE_STRING, "rsplit", str_rsplit },
    { VALUE_STRING, "splitlines", str_splitlines },
    { VALUE_STRING, "startswith", str_startswith },
    { VALUE_STRING, "endswith", str_endswith },
    { VALUE_STRING, "removeprefix", str_removeprefix },
    { VALUE_STRING, "removesuffix", str_removesuffix },
    { VALUE_STRING, "replace", str_replace },
    { VALUE_STRING, "upper", str_upper },
    { VALUE_STRING, "lower", str_lower },
    { VALUE_STRING, "title", str_title },
    { VALUE_STRING, "capitalize", str_capitalize },
    { VALUE_STRING, "find", str_find },
    { VALUE_STRING, "index", str_index },
    { VALUE_STRING, "count", str_count },
    { VALUE_STRING, "join", str_join },
    { VALUE_STRING, "isdigit", str_isdigit },
    { VALUE_STRING, "isalpha", str_isalpha },
    { VALUE_STRING, "isspace", str_isspace },
    { VALUE_STRING, "format", str_format },
};

const size_t STRING_METHOD_COUNT = sizeof STRING_METHODS / sizeof *STRING_METHODS;
