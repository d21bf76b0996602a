#include "native/text/call_schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/call_node.h"

#define MOST INT64_C(999999999999999)

struct reading {
    struct call_schema *schema;
    const json_t *root; /* parameters: what $ref points into */
    const struct call_node *any;
    struct error *err;
};

/* ---- nodes ---- */

static struct call_node *node_new(struct reading *r)
{
    struct call_schema *s = r->schema;
    struct call_node *n = calloc(1, sizeof *n);

    if (s->node_count == CALL_NODES || !n) {
        free(n);
        error_set(r->err, ERROR_LIMIT, "fewer or simpler tools", "the tools' parameters have more than %d places",
                  (int)CALL_NODES);
        return NULL;
    }
    if (s->node_count % 64 == 0) {
        s->nodes = realloc(s->nodes, (s->node_count + 64) * sizeof *s->nodes);
        if (!s->nodes)
            abort();
    }
    s->nodes[s->node_count++] = n;
    *n = (struct call_node){ .most_chars = UINT32_MAX, .most_items = UINT32_MAX, .low = -MOST, .high = MOST };
    return n;
}

static bool node_done(struct reading *r, struct call_node *n)
{
    r->schema->text_size += n->texts.size + n->keys.size;
    if (r->schema->text_size > CALL_TEXTS)
        return error_set(r->err, ERROR_LIMIT, NULL, "names and values of more than %d bytes", (int)CALL_TEXTS);
    call_texts_sort(&n->texts);
    n->least = call_node_least(n);
    if (n->least == SIZE_MAX)
        return error_set(r->err, ERROR_RANGE, "a whole number is needed between the bounds, and a value in the list",
                         "no value fits");
    return n->least <= CALL_TEXTS ||
           error_set(r->err, ERROR_LIMIT, NULL, "the shortest value has more than %d bytes", (int)CALL_TEXTS);
}

/* Anything, objects and arrays of anything included. */
static const struct call_node *node_any(struct reading *r)
{
    struct call_node *n;

    if (r->any)
        return r->any;
    n = node_new(r);
    if (!n)
        return NULL;
    n->kinds = CALL_STRING | CALL_NUMBER | CALL_OBJECT | CALL_ARRAY;
    n->free = true;
    n->items = n;
    if (!call_texts_value(&n->texts, json_true(), r->err) || !call_texts_value(&n->texts, json_false(), r->err) ||
        !call_texts_value(&n->texts, json_null(), r->err) || !node_done(r, n))
        return NULL;
    return r->any = n;
}

static const struct call_node *node_read(struct reading *r, const json_t *schema, unsigned depth);

/* A count from 0; absent: left as it is. */
static bool read_count(struct reading *r, const json_t *schema, const char *word, uint32_t *value)
{
    const json_t *given = json_object_get(schema, word);
    json_int_t count = json_integer_value(given);

    if (!given)
        return true;
    if (!json_is_integer(given) || count < 0 || count > CALL_TEXTS)
        return error_set(r->err, ERROR_RANGE, "a whole number from 0 to 1048576", "%s", word);
    *value = (uint32_t)count;
    return true;
}

/* The whole numbers within. */
static bool read_bounds(struct reading *r, const json_t *schema, struct call_node *n)
{
    static const char *const words[4] = { "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum" };

    for (int i = 0; i < 4; i++) {
        const json_t *given = json_object_get(schema, words[i]);
        double value = json_number_value(given), whole = i < 2 ? ceil(value) : floor(value);

        if (!given)
            continue;
        if (!json_is_number(given) || !isfinite(value))
            return error_set(r->err, ERROR_TYPE, "a number is needed", "%s", words[i]);
        if (i % 2 == 1 && whole == value)
            whole += i == 1 ? 1 : -1;
        whole = whole < -(double)MOST - 1 ? -(double)MOST - 1 : whole > (double)MOST + 1 ? (double)MOST + 1 : whole;
        n->bounded = true;
        if (i < 2 && (int64_t)whole > n->low)
            n->low = (int64_t)whole;
        if (i >= 2 && (int64_t)whole < n->high)
            n->high = (int64_t)whole;
    }
    return true;
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *given;
    size_t i;

    json_array_foreach(json_object_get(schema, "required"), i, given)
    {
        if (json_is_string(given) && strcmp(json_string_value(given), name) == 0)
            return true;
    }
    return false;
}

/* Puts the values beside the sorted names. */
static bool keys_filled(struct reading *r, const json_t *schema, const json_t *properties, struct call_node *n, unsigned depth)
{
    n->values = calloc(n->keys.count + 1, sizeof *n->values);
    if (!n->values)
        abort();
    for (uint32_t i = 0; i < n->keys.count; i++) {
        json_t *name = json_loads(n->keys.list[i].bytes, JSON_DECODE_ANY, NULL);
        const char *text = json_string_value(name);
        const json_t *value = text ? json_object_get(properties, text) : NULL;

        if (text && value)
            n->values[i] = node_read(r, value, depth + 1);
        else
            n->values[i] = node_any(r);
        if (text && is_required(schema, text))
            n->required |= UINT64_C(1) << i;
        if (!n->values[i])
            error_at(r->err, "properties.%.60s", text ? text : "?");
        json_decref(name);
        if (!n->values[i])
            return false;
    }
    return true;
}

static bool read_object(struct reading *r, const json_t *schema, struct call_node *n, unsigned depth)
{
    const json_t *properties = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties"),
                 *name;
    const char *key;
    json_t *value;
    size_t i;

    if (properties && !json_is_object(properties))
        return error_set(r->err, ERROR_TYPE, "an object is needed", "properties");
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        json_t *text = json_string(key);
        bool ok = call_texts_value(&n->keys, text, r->err);

        json_decref(text);
        if (!ok)
            return false;
    }
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (json_is_string(name) && !json_name(name))
            return error_set(r->err, ERROR_UNSUPPORTED, "rename it", "required[%zu]: a name with a zero byte", i);
        if (json_is_string(name) && !call_texts_value(&n->keys, name, r->err))
            return false;
    }
    call_texts_sort(&n->keys);
    if (n->keys.count > CALL_PROPERTIES)
        return error_set(r->err, ERROR_LIMIT, NULL, "an object has more than %d properties", (int)CALL_PROPERTIES);
    n->free = n->keys.count == 0 && !json_is_false(more);
    if (n->free && json_is_object(more) && !(n->items = node_read(r, more, depth + 1)))
        return error_at(r->err, "additionalProperties");
    if (n->free && !n->items && !(n->items = node_any(r)))
        return false;
    return keys_filled(r, schema, properties, n, depth);
}

static bool read_array(struct reading *r, const json_t *schema, struct call_node *n, unsigned depth)
{
    const json_t *items = json_object_get(schema, "items");

    if (n->free)
        return error_set(r->err, ERROR_UNSUPPORTED, "name the object's properties",
                         "a place for lists and for objects of any names");
    n->items = items ? node_read(r, items, depth + 1) : node_any(r);
    if (!n->items)
        return error_at(r->err, "items");
    if (!read_count(r, schema, "minItems", &n->least_items) || !read_count(r, schema, "maxItems", &n->most_items))
        return false;
    return n->least_items <= n->most_items || error_set(r->err, ERROR_RANGE, NULL, "minItems is above maxItems");
}

/* Adds the type's kind, or its values. */
static bool add_type(struct reading *r, struct call_node *n, const json_t *name)
{
    static const char *const types[] = { "string", "integer", "number", "object", "array" };
    const char *type = json_name(name);

    if (!type)
        return error_set(r->err, ERROR_TYPE, NULL, "type: a name or a list of names is needed");
    for (unsigned i = 0; i < 5; i++)
        if (strcmp(types[i], type) == 0) {
            n->kinds |= 1U << i; /* as enum call_kind counts them */
            return true;
        }
    if (strcmp(type, "boolean") == 0)
        return call_texts_value(&n->texts, json_true(), r->err) && call_texts_value(&n->texts, json_false(), r->err);
    if (strcmp(type, "null") == 0)
        return call_texts_value(&n->texts, json_null(), r->err);
    return error_set(r->err, ERROR_UNKNOWN, "string, integer, number, boolean, null, object and array are JSON Schema's",
                     "no type %.40s", type);
}

static bool type_allows(const json_t *type, const json_t *value)
{
    static const char *const names[] = { "object", "array", "string", "integer", "number", "boolean", "boolean", "null" };
    const char *name = json_name(type);
    const json_t *each;
    size_t i;

    if (json_is_array(type)) {
        json_array_foreach(type, i, each)
        {
            if (type_allows(each, value))
                return true;
        }
        return false;
    }
    return !type ||
           (name && (strcmp(name, names[json_typeof(value)]) == 0 || (json_is_integer(value) && strcmp(name, "number") == 0)));
}

static bool read_list(struct reading *r, const json_t *schema, const json_t *list, struct call_node *n)
{
    static const char *const words[] = { "minLength", "maxLength",        "minItems",         "maxItems", "minimum",
                                         "maximum",   "exclusiveMinimum", "exclusiveMaximum", "required" };
    const json_t *value;
    size_t i;

    for (i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(schema, words[i]))
            return error_set(r->err, ERROR_UNSUPPORTED, "leave one of them out", "%s beside a list of values", words[i]);
    json_array_foreach(list, i, value)
    {
        if (type_allows(json_object_get(schema, "type"), value) && !call_texts_value(&n->texts, value, r->err))
            return false;
    }
    return true;
}

static bool read_types(struct reading *r, const json_t *schema, struct call_node *n, unsigned depth)
{
    const json_t *type = json_object_get(schema, "type"), *each;
    size_t i;

    if (type && !json_is_array(type) && !add_type(r, n, type))
        return false;
    json_array_foreach(type, i, each)
    {
        if (!add_type(r, n, each))
            return false;
    }
    if (!type)
        n->kinds = json_object_get(schema, "properties") ? CALL_OBJECT : CALL_ARRAY;
    if (n->kinds & CALL_NUMBER)
        n->kinds &= ~(unsigned)CALL_INTEGER;
    return (!(n->kinds & CALL_OBJECT) || read_object(r, schema, n, depth)) &&
           (!(n->kinds & CALL_ARRAY) || read_array(r, schema, n, depth)) && read_bounds(r, schema, n) &&
           read_count(r, schema, "minLength", &n->least_chars) && read_count(r, schema, "maxLength", &n->most_chars) &&
           (n->least_chars <= n->most_chars || error_set(r->err, ERROR_RANGE, NULL, "minLength is above maxLength"));
}

/* ---- alternatives ---- */

static bool read_alternatives(struct reading *r, const json_t *list, const char *word, struct call_node *n, unsigned depth)
{
    const json_t *each;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) == 0)
        return error_set(r->err, ERROR_TYPE, NULL, "%s: a list is needed", word);
    if (strcmp(word, "allOf") == 0 && json_array_size(list) > 1)
        return error_set(r->err, ERROR_UNSUPPORTED, "write them as one", "allOf of several");
    json_array_foreach(list, i, each)
    {
        const struct call_node *one = node_read(r, each, depth + 1);

        if (!one || !call_node_take(n, one, r->err))
            return error_at(r->err, "%s[%zu]", word, i);
    }
    return true;
}

/* ---- a place of the schema ---- */

static bool words_known(struct reading *r, const json_t *schema)
{
    static const char *const words[] = { "pattern",
                                         "multipleOf",
                                         "prefixItems",
                                         "additionalItems",
                                         "contains",
                                         "minContains",
                                         "maxContains",
                                         "minProperties",
                                         "maxProperties",
                                         "patternProperties",
                                         "propertyNames",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "dependencies",
                                         "if",
                                         "then",
                                         "else",
                                         "not",
                                         "unevaluatedProperties",
                                         "unevaluatedItems",
                                         "$dynamicRef",
                                         "$recursiveRef" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(schema, words[i]))
            return error_set(r->err, ERROR_UNSUPPORTED, "leave it out, or do not constrain", "%s is not kept to here", words[i]);
    return !json_is_true(json_object_get(schema, "uniqueItems")) ||
           error_set(r->err, ERROR_UNSUPPORTED, "leave it out, or do not constrain", "uniqueItems is not kept to here");
}

/* The place that "#/$defs/name" means. */
static const json_t *resolved(struct reading *r, const json_t *reference)
{
    const json_t *at = r->root;
    const char *next = json_name(reference);

    if (!next || *next++ != '#')
        at = NULL;
    while (at && *next == '/') {
        size_t size = strcspn(++next, "/");
        char name[256];

        snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 0, next);
        at = json_object_get(at, name);
        next += size;
    }
    if (!at)
        error_set(r->err, ERROR_MISSING, "\"#/$defs/NAME\" points into the tool's own parameters", "$ref %.60s points nowhere",
                  json_string_value(reference));
    return at;
}

static bool read_place(struct reading *r, const json_t *schema, struct call_node *n, unsigned depth)
{
    static const char *const words[] = { "anyOf", "oneOf", "allOf" };
    const json_t *values = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");

    if (values && !json_is_array(values))
        return error_set(r->err, ERROR_TYPE, NULL, "enum: a list is needed");
    if (values)
        return read_list(r, schema, values, n);
    if (constant)
        return call_texts_value(&n->texts, constant, r->err);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(schema, words[i]))
            return read_alternatives(r, json_object_get(schema, words[i]), words[i], n, depth);
    return read_types(r, schema, n, depth);
}

static bool says_nothing(const json_t *schema)
{
    static const char *const words[] = { "type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(schema, words[i]))
            return false;
    return true;
}

static const struct call_node *node_read(struct reading *r, const json_t *schema, unsigned depth)
{
    const json_t *reference = json_object_get(schema, "$ref");
    struct call_node *n;

    if (depth > CALL_DEPTH) {
        error_set(r->err, ERROR_LIMIT, "a schema that points to itself has no end", "parameters are deeper than %d",
                  (int)CALL_DEPTH);
        return NULL;
    }
    if (json_is_true(schema))
        return node_any(r);
    if (!json_is_object(schema)) {
        error_set(r->err, ERROR_TYPE, NULL, "a schema is an object or true");
        return NULL;
    }
    if (json_is_string(reference)) {
        schema = resolved(r, reference);
        return schema ? node_read(r, schema, depth + 1) : NULL;
    }
    if (!words_known(r, schema))
        return NULL;
    if (says_nothing(schema))
        return node_any(r);
    n = node_new(r);
    return n && read_place(r, schema, n, depth) && node_done(r, n) ? n : NULL;
}

/* ---- tools ---- */

/* The arguments are an object, whatever else the parameters would allow. */
static const struct call_node *arguments_read(struct reading *r, const json_t *parameters)
{
    json_t *schema = parameters ? json_copy((json_t *)(uintptr_t)parameters) : json_pack("{s:b}", "additionalProperties", 0);
    const struct call_node *n;

    r->root = schema;
    if (json_is_object(schema) && !json_object_get(schema, "$ref") && says_nothing(schema))
        json_object_set_new(schema, "type", json_string("object"));
    n = node_read(r, schema, 0);
    json_decref(schema);
    r->root = NULL;
    if (n && (n->kinds != CALL_OBJECT || n->texts.count > 0)) {
        error_set(r->err, ERROR_TYPE, "type = \"object\"", "a tool's arguments are an object");
        n = NULL;
    }
    if (!n)
        error_at(r->err, "parameters");
    return n;
}

static const json_t *function_of(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");

    return json_is_object(function) ? function : tool;
}

static bool name_add(struct reading *r, const json_t *tool)
{
    const json_t *given = json_object_get(function_of(tool), "name");
    const char *name = json_name(given);

    if (json_is_string(given) && !name)
        return error_set(r->err, ERROR_UNSUPPORTED, "letters, digits, _ - . :", "a name with a zero byte");
    if (!name || !*name)
        return error_set(r->err, ERROR_MISSING, NULL, "a tool without a name");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr("\"\\", *c))
            return error_set(r->err, ERROR_UNSUPPORTED, "letters, digits, _ - . :", "the name %.60s", name);
    return call_texts_add(&r->schema->names, strdup(name), strlen(name), r->err);
}

static bool tools_read(struct reading *r, const json_t *tools)
{
    const json_t *tool;
    size_t i;

    for (i = 0; i < json_array_size(tools); i++)
        if (!name_add(r, json_array_get(tools, i)))
            return error_at(r->err, "tools[%zu]", i);
    call_texts_sort(&r->schema->names);
    if (r->schema->names.count < json_array_size(tools))
        return error_set(r->err, ERROR_DUPLICATE, "a call must say which one is meant", "two tools have the same name");
    r->schema->tools = calloc(r->schema->names.count + 1, sizeof *r->schema->tools);
    if (!r->schema->tools)
        abort();
    json_array_foreach(tools, i, tool)
    {
        const char *name = json_string_value(json_object_get(function_of(tool), "name"));
        const struct call_node *arguments = arguments_read(r, json_object_get(function_of(tool), "parameters"));

        if (!arguments)
            return error_at(r->err, "tools[%zu]", i);
        for (uint32_t k = 0; k < r->schema->names.count; k++)
            if (strcmp(r->schema->names.list[k].bytes, name) == 0)
                r->schema->tools[k] = arguments;
    }
    return true;
}

bool call_schema_read(struct call_schema *s, const json_t *tools, struct error *err)
{
    struct reading r = { .schema = s, .err = err };

    *s = (struct call_schema){ 0 };
    if (json_array_size(tools) == 0)
        return error_set(err, ERROR_MISSING, "a conversation has them as \"tools\"", "there are no tools to call");
    if (json_array_size(tools) > CALL_TOOLS)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d tools", (int)CALL_TOOLS);
    return tools_read(&r, tools);
}

void call_schema_free(struct call_schema *s)
{
    for (size_t i = 0; i < s->node_count; i++) {
        call_texts_free(&s->nodes[i]->texts);
        call_texts_free(&s->nodes[i]->keys);
        free(s->nodes[i]->values);
        free(s->nodes[i]);
    }
    free(s->nodes);
    free(s->tools);
    call_texts_free(&s->names);
    *s = (struct call_schema){ 0 };
}
