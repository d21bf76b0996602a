#include "native/text/dialect_tags.h"

#include <stdio.h>
#include <string.h>

#include "native/base/json.h"

enum { LIMIT = 16 << 20 };

bool tag_next(const char **at, const char *tag, const char **start, size_t *size, struct buffer *outside, struct error *err)
{
    char open[40], close[40];
    const char *first, *end;

    snprintf(open, sizeof open, "<%s>", tag);
    snprintf(close, sizeof close, "</%s>", tag);
    first = strstr(*at, open);
    if (outside)
        buffer_add(outside, *at, first ? (size_t)(first - *at) : strlen(*at));
    if (!first)
        return false;
    *start = first + strlen(open);
    end = strstr(*start, close);
    if (!end)
        return error_set(err, ERROR_SYNTAX, "close the tag, or remove the row", "%s without %s", open, close);
    *size = (size_t)(end - *start);
    *at = end + strlen(close);
    return true;
}

/* ---- Python's notation ---- */

/* A string that starts at the quote *at, as JSON; *at moves behind it. */
static void add_string(struct buffer *out, const char **at, const char *end)
{
    char quote = *(*at)++;

    buffer_add_u8(out, '"');
    while (*at < end && **at != quote) {
        char c = *(*at)++;

        if (c == '\\' && *at < end) {
            char next = *(*at)++;

            if (next != '\'')
                buffer_add_u8(out, '\\');
            buffer_add_u8(out, (uint8_t)next);
        } else {
            if (c == '"')
                buffer_add_u8(out, '\\');
            buffer_add_u8(out, (uint8_t)c);
        }
    }
    *at += *at < end;
    buffer_add_u8(out, '"');
}

static bool add_word(struct buffer *out, const char **at, const char *end)
{
    static const char *const words[][2] = { { "True", "true" }, { "False", "false" }, { "None", "null" } };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i][0]);

        if ((size_t)(end - *at) >= size && !memcmp(*at, words[i][0], size)) {
            buffer_add_text(out, words[i][1]);
            *at += size;
            return true;
        }
    }
    return false;
}

static json_t *python_json(const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    struct buffer out = { 0 };
    json_t *value;

    while (at < end) {
        if (*at == '\'' || *at == '"')
            add_string(&out, &at, end);
        else if (!add_word(&out, &at, end))
            buffer_add_u8(&out, (uint8_t)*at++);
    }
    value = json_read(buffer_text(&out), out.size, 2 * LIMIT, NULL);
    buffer_free(&out);
    return value;
}

json_t *loose_json(const char *text, size_t size, struct error *err)
{
    struct error why = { 0 };
    json_t *value = json_read(text, size, LIMIT, &why);

    if (!value && why.code == ERROR_SYNTAX)
        value = python_json(text, size);
    if (!value)
        error_set(err, why.code, "correct the row, or remove it", "neither JSON nor Python's notation of it: %.200s",
                  why.message);
    return value;
}

json_t *loose_list(const char *text, size_t size, struct error *err)
{
    json_t *value = loose_json(text, size, err), *list;
    const char *at = text, *end = text + size;

    if (json_is_array(value))
        return value;
    list = json_array();
    if (value) {
        json_array_append_new(list, value);
        return list;
    }
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line = stop ? (size_t)(stop - at) : (size_t)(end - at);

        if (strspn(at, " \t\r") < line) {
            value = loose_json(at, line, NULL);
            if (!value) {
                json_decref(list);
                return NULL; /* `err` has what is wrong with the whole */
            }
            json_array_append_new(list, value);
        }
        at += line + (stop != NULL);
    }
    error_clear(err);
    return list;
}

/* ---- calls and tools ---- */

static bool call_add(json_t *out, json_t *call, struct error *err)
{
    json_t *name = json_object_get(call, "name"), *arguments = json_object_get(call, "arguments");

    if (json_is_object(json_object_get(call, "function")))
        return call_add(out, json_object_get(call, "function"), err);
    if (!json_is_string(name))
        return error_set(err, ERROR_MISSING, "a call is {\"name\": ..., \"arguments\": {...}}", "a call without a name");
    json_t *function = json_pack("{s:O, s:o}", "name", name, "arguments", arguments ? json_incref(arguments) : json_object());

    json_array_append_new(out, json_pack("{s:s, s:o}", "type", "function", "function", function));
    return true;
}

bool calls_add(json_t *out, json_t *value, struct error *err)
{
    if (!json_is_array(value))
        return call_add(out, value, err);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!call_add(out, json_array_get(value, i), err))
            return false;
    return true;
}

bool tools_add(json_t *out, json_t *value, struct error *err)
{
    if (!json_is_array(value))
        return error_set(err, ERROR_TYPE, "a list of functions, or its text", "not a list");
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *tool = json_array_get(value, i);

        if (json_is_object(tool) && !json_object_get(tool, "function"))
            json_array_append_new(out, json_pack("{s:s, s:O}", "type", "function", "function", tool));
        else
            json_array_append(out, tool);
    }
    return true;
}
