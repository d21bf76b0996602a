#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/tool_calls.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

/* --- values --------------------------------------------------------------------------------------------------------------- */

/* Python's types of JSON values. */
enum kind { KIND_NONE, KIND_BOOL, KIND_INTEGER, KIND_REAL, KIND_TEXT, KIND_LIST, KIND_OBJECT, KIND_ABSENT };

static enum kind kind_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_TRUE:
    case JSON_FALSE:
        return KIND_BOOL;
    case JSON_INTEGER:
        return KIND_INTEGER;
    case JSON_REAL:
        return KIND_REAL;
    case JSON_STRING:
        return KIND_TEXT;
    case JSON_ARRAY:
        return KIND_LIST;
    case JSON_OBJECT:
        return KIND_OBJECT;
    default:
        return KIND_NONE;
    }
}

static enum kind kind_named(const json_t *schema)
{
    static const struct {
        const char *name;
        enum kind kind;
    } names[] = { { "string", KIND_TEXT }, { "integer", KIND_INTEGER }, { "number", KIND_REAL },
                  { "float", KIND_REAL },  { "boolean", KIND_BOOL },    { "array", KIND_LIST },
                  { "tuple", KIND_LIST },  { "object", KIND_OBJECT },   { "dict", KIND_OBJECT } };
    const char *type = json_name(json_object_get(schema, "type"));

    for (size_t i = 0; type && i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i].name) == 0)
            return names[i].kind;
    return KIND_TEXT;
}

static bool empty_text(const json_t *v)
{
    return json_is_string(v) && json_string_length(v) == 0;
}

static bool holds_empty(const json_t *list)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (empty_text(v))
            return true;
    }
    return false;
}

/* Of the first value that is no "". */
static enum kind kind_accepted(const json_t *list)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (!empty_text(v))
            return kind_of(v);
    }
    return KIND_ABSENT;
}

static json_t *plain_text(const json_t *text)
{
    const char *at = json_string_value(text), *end = at + json_string_length(text);
    struct buffer out = { 0 };
    json_t *plain;

    while (at < end) {
        size_t size;
        uint32_t c = utf8_at(at, end, &size);

        at += size;
        if (c < 128 && c && strchr(" ,./-_*^", (int)c))
            continue;
        if (c == 0x130) { /* the one capital whose lower case is two */
            utf8_add(&out, 'i');
            c = 0x307;
        }
        utf8_add(&out, c == '\'' ? '"' : unicode_lower(c));
    }
    plain = json_stringn(out.bytes ? (const char *)out.bytes : "", out.size);
    buffer_free(&out);
    return plain;
}

/* A new reference: of texts the plain form; with `inside`, of lists also that of their texts. */
static json_t *plain_of(const json_t *v, bool inside)
{
    const json_t *item;
    json_t *list;
    size_t i;

    if (json_is_string(v))
        return plain_text(v);
    if (!inside || !json_is_array(v))
        return json_deep_copy(v);
    list = json_array();
    json_array_foreach(v, i, item)
    {
        json_array_append_new(list, plain_of(item, false));
    }
    return list;
}

static bool equal(const json_t *a, const json_t *b);

static bool equal_lists(const json_t *a, const json_t *b)
{
    bool same = json_array_size(a) == json_array_size(b);

    for (size_t i = 0; same && i < json_array_size(a); i++)
        same = equal(json_array_get(a, i), json_array_get(b, i));
    return same;
}

static bool equal_objects(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
    {
        const json_t *other = json_object_get(b, key);

        if (!other || !equal(value, other))
            return false;
    }
    return true;
}

/* As Python's ==: numbers by value, truth values are 0 and 1. */
static bool equal(const json_t *a, const json_t *b)
{
    enum kind x = kind_of(a), y = kind_of(b);

    if (x >= KIND_BOOL && x <= KIND_REAL && y >= KIND_BOOL && y <= KIND_REAL) {
        if (x != KIND_REAL && y != KIND_REAL)
            return (x == KIND_BOOL ? json_is_true(a) : json_integer_value(a)) ==
                   (y == KIND_BOOL ? json_is_true(b) : json_integer_value(b));
        return (x == KIND_BOOL ? (double)json_is_true(a) : json_number_value(a)) ==
               (y == KIND_BOOL ? (double)json_is_true(b) : json_number_value(b));
    }
    if (x != y)
        return false;
    return x == KIND_TEXT ? json_string_length(a) == json_string_length(b) &&
                                memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0
           : x == KIND_LIST   ? equal_lists(a, b)
           : x == KIND_OBJECT ? equal_objects(a, b)
                              : true;
}

static bool among(const json_t *v, const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (equal(v, item))
            return true;
    }
    return false;
}

/* Whether the value equals one of those accepted, both in plain form. */
static bool among_plain(const json_t *v, const json_t *list, bool inside)
{
    json_t *plain = plain_of(v, inside);
    const json_t *item;
    bool found = false;
    size_t i;

    json_array_foreach(list, i, item)
    {
        json_t *other = inside && empty_text(item) ? json_array() : plain_of(item, inside);

        found = found || equal(plain, other);
        json_decref(other);
    }
    json_decref(plain);
    return found;
}

/* --- one argument --------------------------------------------------------------------------------------------------------- */

static bool object_right(const json_t *v, const json_t *accepted)
{
    const char *key;
    json_t *value;

    if (!json_is_object(v) || !json_is_object(accepted))
        return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        if (!among_plain(value, json_object_get(accepted, key), false))
            return false;
    }
    json_object_foreach((json_t *)(uintptr_t)accepted, key, value)
    {
        if (!json_object_get(v, key) && !holds_empty(value))
            return false;
    }
    return true;
}

static bool object_among(const json_t *v, const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (object_right(v, item))
            return true;
    }
    return false;
}

static bool objects_among(const json_t *v, const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        size_t count = empty_text(item) ? 0 : json_array_size(item), at = 0;

        if ((!json_is_array(item) && !empty_text(item)) || json_array_size(v) != count)
            continue;
        while (at < count && object_right(json_array_get(v, at), json_array_get(item, at)))
            at++;
        if (at == count)
            return true;
    }
    return false;
}

/* Whether each entry has the schema's type of entries, or that of the first entry of one accepted list. */
static bool entries_fit(const json_t *v, const json_t *accepted, enum kind entry)
{
    const json_t *item, *value;
    size_t i, k;

    json_array_foreach(accepted, i, item)
    {
        bool fit = true;

        if (json_is_array(item))
            json_array_foreach(v, k, value)
            {
                fit = fit && (kind_of(value) == entry || kind_of(value) == kind_accepted(item));
            }
        if (fit)
            return true;
    }
    return false;
}

/* The word, as in the header. */
static const char *argument_right(const json_t *schema, const json_t *v, const json_t *accepted)
{
    enum kind wanted = kind_named(schema), first = kind_accepted(accepted), kind = kind_of(v), entry = KIND_ABSENT;
    bool variable = first != KIND_ABSENT && first != wanted, right;

    if (wanted == KIND_REAL && kind == KIND_INTEGER)
        kind = KIND_REAL;
    if (wanted == KIND_LIST)
        entry = kind_named(json_object_get(schema, "items"));
    if (kind == wanted && entry != KIND_ABSENT && !entries_fit(v, accepted, entry))
        return "type";
    if (kind != wanted) {
        if (first == KIND_ABSENT || kind != first)
            return "type";
        variable = true;
    }
    if (variable || (wanted != KIND_TEXT && wanted != KIND_LIST && wanted != KIND_OBJECT))
        right = among(v, accepted);
    else if (wanted == KIND_OBJECT)
        right = object_among(v, accepted);
    else if (entry == KIND_OBJECT)
        right = objects_among(v, accepted);
    else
        right = among_plain(v, accepted, wanted == KIND_LIST);
    return right ? "right" : "value";
}

/* --- calls ---------------------------------------------------------------------------------------------------------------- */

static const json_t *parameters_of(const json_t *tools, const char *name)
{
    const json_t *tool;
    size_t i;

    json_array_foreach(tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function"), *known = json_object_get(f, "name");

        if (json_name(known) && strcmp(json_name(known), name) == 0)
            return json_object_get(f, "parameters");
    }
    return NULL;
}

static const char *call_right(const json_t *tools, const json_t *call, const char *name, const json_t *accepted)
{
    const json_t *parameters = parameters_of(tools, name), *known = json_object_get(parameters, "properties"), *required;
    const char *given = json_name(json_object_get(call, "name")), *key;
    json_t *arguments = json_object_get(call, "arguments"), *value;
    size_t i;

    if (!given || strcmp(given, name) != 0)
        return "name";
    json_array_foreach(json_object_get(parameters, "required"), i, required)
    {
        if (json_is_string(required) && !(json_name(required) && json_object_get(arguments, json_name(required))))
            return "missing";
    }
    json_object_foreach(arguments, key, value)
    {
        const json_t *schema = json_object_get(known, key), *values = json_object_get(accepted, key);
        const char *why = schema && values ? argument_right(schema, value, values) : "unexpected";

        if (strcmp(why, "right") != 0)
            return why;
    }
    json_object_foreach((json_t *)(uintptr_t)accepted, key, value)
    {
        if (!json_object_get(arguments, key) && !holds_empty(value))
            return "missing";
    }
    return "right";
}

bool tool_calls_right(const json_t *tools, const json_t *calls, const json_t *accepted, const char **why)
{
    size_t count = json_array_size(accepted);
    bool *used = calloc(count + 1, sizeof *used), right = json_array_size(calls) == count;
    const char *word = right ? "right" : "count";

    for (size_t i = 0; right && i < count; i++) {
        json_t *wanted = json_array_get(accepted, i);
        void *member = json_object_iter(wanted);

        right = false;
        word = "name";
        for (size_t c = 0; member && !right && c < count; c++) {
            if (used[c])
                continue;
            word = call_right(tools, json_array_get(calls, c), json_object_iter_key(member), json_object_iter_value(member));
            used[c] = right = strcmp(word, "right") == 0;
        }
    }
    free(used);
    if (why)
        *why = word;
    return right;
}
