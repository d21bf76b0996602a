#include "native/text/tool_calls.h"

#include <string.h>

#include "native/base/json.h"

enum { CALLS_SIZE = 1 << 20 };

/* Adds the call, or each of the list. */
static bool add_calls(json_t *list, const json_t *value, struct error *err)
{
    const json_t *name, *item;
    json_t *arguments, *read = NULL;
    size_t index;

    if (json_is_array(value)) {
        json_array_foreach(value, index, item)
        {
            if (json_is_array(item) || !add_calls(list, item, err))
                return json_is_array(item) ? error_set(err, ERROR_TYPE, NULL, "a list in a list of calls") : false;
        }
        return true;
    }
    if (json_is_object(json_object_get(value, "function")))
        value = json_object_get(value, "function");
    name = json_object_get(value, "name");
    arguments = json_object_get(value, json_object_get(value, "arguments") ? "arguments" : "parameters");
    if (!json_is_string(name))
        return error_set(err, ERROR_TYPE, NULL, "a call without a name");
    if (!json_name(name))
        return error_set(err, ERROR_TYPE, NULL, "a call of a name with a zero byte");
    if (json_is_string(arguments)) {
        arguments = read = json_read(json_string_value(arguments), json_string_length(arguments), CALLS_SIZE, err);
        if (!read)
            return error_at(err, "arguments");
    }
    if (!json_is_object(arguments)) {
        json_decref(read);
        return error_set(err, ERROR_TYPE, NULL, "the arguments of a call are no object");
    }
    json_array_append_new(list, json_pack("{s:O, s:O}", "name", name, "arguments", arguments));
    json_decref(read);
    return true;
}

static bool read_calls(json_t *list, const char *text, size_t size, struct error *err)
{
    json_t *value = json_read(text, size, CALLS_SIZE, err);
    bool ok = value && add_calls(list, value, err);

    json_decref(value);
    return ok;
}

static const char *find(const char *text, const char *end, const char *mark)
{
    return memmem(text, (size_t)(end - text), mark, strlen(mark));
}

static bool looks_like_json(const char *text, const char *end)
{
    while (text < end && memchr(" \t\r\n", *text, 4))
        text++;
    return text < end && (*text == '{' || *text == '[');
}

json_t *tool_calls_read(const char *text, size_t size, struct error *err)
{
    static const char open[] = "<tool_call>", close[] = "</tool_call>", mistral[] = "[TOOL_CALLS]";
    const char *end = text + size, *at = find(text, end, open);
    json_t *list = json_array();
    bool ok = true;

    if (at) {
        for (; ok && at; at = find(at, end, open)) {
            const char *from = at + strlen(open), *to = find(from, end, close);

            at = to ? to + strlen(close) : end;
            ok = read_calls(list, from, (size_t)((to ? to : end) - from), err);
        }
    } else if ((at = find(text, end, mistral))) {
        at += strlen(mistral);
        ok = read_calls(list, at, (size_t)(end - at), err);
    } else if (looks_like_json(text, end)) {
        ok = read_calls(list, text, size, err);
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

json_t *tool_calls_accepted(const json_t *calls, struct error *err)
{
    json_t *list = json_array(), *accepted = json_array(), *value;
    const json_t *call;
    const char *key;
    size_t index;

    if (!json_is_array(calls) || !add_calls(list, calls, err)) {
        if (!json_is_array(calls))
            error_set(err, ERROR_TYPE, NULL, "tool_calls is no list");
        json_decref(list);
        json_decref(accepted);
        return NULL;
    }
    json_array_foreach(list, index, call)
    {
        json_t *values = json_object();

        json_object_foreach(json_object_get(call, "arguments"), key, value)
        {
            json_object_set_new(values, key, json_pack("[O]", value));
        }
        json_array_append_new(accepted, json_pack("{s:o}", json_string_value(json_object_get(call, "name")), values));
    }
    json_decref(list);
    return accepted;
}
