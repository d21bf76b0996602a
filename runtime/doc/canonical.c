#include "runtime/doc/canonical.h"

#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"

enum { FEW = 32 }; /* names of an object that are sorted in place */

/* Text on its way, and how long it may become. */
struct writing {
    struct buffer text;
    size_t most;
};

static bool write_value(const json_t *value, size_t depth, struct writing *w, struct error *err);

/* How many bytes from here on are written as they are. */
static size_t count_plain(const char *text, size_t size)
{
    const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
    size_t count = 0;

    /* Eight at once: the high bit of a byte of `special` is set if it, or one before it, is below 32, a quote or a backslash. */
    for (uint64_t eight; size - count >= sizeof eight; count += sizeof eight) {
        memcpy(&eight, text + count, sizeof eight);

        uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
        uint64_t special = ((eight - ones * 32) & ~eight) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);

        if (special & high)
            break;
    }
    while (count < size && (uint8_t)text[count] >= 32 && text[count] != '"' && text[count] != '\\')
        count++;
    return count;
}

/* RFC 8785, section 3.2.2.2: quote, backslash and controls are escaped, nothing else. */
static void write_text(const char *text, size_t size, struct buffer *out)
{
    static const char short_form[32] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r' };

    buffer_reserve(out, size + 2);
    buffer_add_u8(out, '"');
    for (size_t i = 0; i < size; i++) {
        size_t plain = count_plain(text + i, size - i);

        buffer_add(out, text + i, plain);
        i += plain;
        if (i == size)
            break;

        uint8_t c = (uint8_t)text[i];

        if (c == '"' || c == '\\')
            buffer_printf(out, "\\%c", c);
        else if (c < 32 && short_form[c])
            buffer_printf(out, "\\%c", short_form[c]);
        else
            buffer_printf(out, "\\u%04x", c);
    }
    buffer_add_u8(out, '"');
}

struct named {
    const char *name;
    const json_t *value;
};

static int by_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;

    return strcmp(left->name, right->name);
}

/* A few are put where they belong one by one: records are thousands of small objects, and qsort allocates. */
static void sort_members(struct named *members, size_t count)
{
    if (count > FEW) {
        qsort(members, count, sizeof *members, by_name);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct named one = members[i];
        size_t at = i;

        for (; at && by_name(&one, &members[at - 1]) < 0; at--)
            members[at] = members[at - 1];
        members[at] = one;
    }
}

/* Names are ASCII, so bytewise order is the RFC's order of UTF-16 units. */
static bool write_members(const struct named *members, size_t count, size_t depth, struct writing *w, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = members[i].name;

        for (const char *c = name; *c; c++)
            if ((unsigned char)*c >= 128)
                return error_set(err, ERROR_TYPE, NULL, "the name \"%s\" is not ASCII", name);
        if (i)
            buffer_add_u8(&w->text, ',');
        write_text(name, strlen(name), &w->text);
        buffer_add_u8(&w->text, ':');
        if (!write_value(members[i].value, depth + 1, w, err))
            return error_at(err, "%s", name);
    }
    return true;
}

static bool write_object(const json_t *object, size_t depth, struct writing *w, struct error *err)
{
    struct named few[FEW], *members = few;
    size_t count = 0;
    const char *name;
    json_t *value;

    if (json_object_size(object) > sizeof few / sizeof *few)
        members = malloc(json_object_size(object) * sizeof *members);
    if (!members)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu names", json_object_size(object));
    json_object_foreach((json_t *)object, name, value) members[count++] = (struct named){ name, value };
    sort_members(members, count);
    buffer_add_u8(&w->text, '{');

    bool ok = write_members(members, count, depth, w, err);

    buffer_add_u8(&w->text, '}');
    if (members != few)
        free(members);
    return ok;
}

static bool write_list(const json_t *list, size_t depth, struct writing *w, struct error *err)
{
    buffer_add_u8(&w->text, '[');
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i)
            buffer_add_u8(&w->text, ',');
        if (!write_value(json_array_get(list, i), depth + 1, w, err))
            return error_at(err, "[%zu]", i);
    }
    buffer_add_u8(&w->text, ']');
    return true;
}

static bool write_integer(json_int_t n, struct buffer *out, struct error *err)
{
    if (n > CANONICAL_INTEGER || n < -CANONICAL_INTEGER)
        return error_set(err, ERROR_RANGE, "write it as a decimal string", "%lld is beyond 2^53 - 1", (long long)n);
    char digits[20];
    size_t at = sizeof digits;
    uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;

    do
        digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        digits[--at] = '-';
    buffer_add(out, digits + at, sizeof digits - at);
    return true;
}

static bool write_value(const json_t *value, size_t depth, struct writing *w, struct error *err)
{
    if (depth > CANONICAL_DEPTH)
        return error_set(err, ERROR_LIMIT, NULL, "nested deeper than %d", CANONICAL_DEPTH);
    if (w->text.size > w->most)
        return error_set(err, ERROR_LIMIT, NULL, "larger than %zu bytes", w->most);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return write_object(value, depth, w, err);
    case JSON_ARRAY:
        return write_list(value, depth, w, err);
    case JSON_STRING:
        write_text(json_string_value(value), json_string_length(value), &w->text);
        return true;
    case JSON_INTEGER:
        return write_integer(json_integer_value(value), &w->text, err);
    case JSON_TRUE:
        buffer_add_text(&w->text, "true");
        return true;
    case JSON_FALSE:
        buffer_add_text(&w->text, "false");
        return true;
    case JSON_NULL:
        buffer_add_text(&w->text, "null");
        return true;
    case JSON_REAL:
        break;
    }
    return error_set(err, ERROR_TYPE, "write it as a decimal string", "%g is not an integer", json_real_value(value));
}

bool canonical_write_most(const json_t *value, size_t most, struct buffer *out, struct error *err)
{
    struct writing w = { .most = most };
    bool ok = write_value(value, 0, &w, err);

    if (ok && w.text.size > most)
        ok = error_set(err, ERROR_LIMIT, NULL, "larger than %zu bytes", most);
    if (ok)
        buffer_add(out, w.text.bytes, w.text.size);
    buffer_free(&w.text);
    return ok;
}

bool canonical_write(const json_t *value, struct buffer *out, struct error *err)
{
    return canonical_write_most(value, CANONICAL_SIZE, out, err);
}

json_t *canonical_read(const void *bytes, size_t size, struct error *err)
{
    struct buffer again = { 0 };
    json_t *value = json_read(bytes, size, CANONICAL_SIZE, err);
    bool ok = value && canonical_write(value, &again, err);

    if (ok && (again.size != size || memcmp(again.bytes, bytes, size) != 0))
        ok = error_set(err, ERROR_SYNTAX, "sort the names, leave out spaces, escape only what RFC 8785 says",
                       "the JSON text is not canonical");
    buffer_free(&again);
    if (!ok) {
        json_decref(value);
        value = NULL;
    }
    return value;
}
