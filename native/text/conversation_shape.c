#include "native/text/conversation_shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "native/base/json.h"

/* Puts an outer field before the inner one: "messages[1]", "tool_calls", "[0]", "function.name" join as they would be written. */
static bool field_at(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool field_at(struct error *err, const char *format, ...)
{
    char outer[100], inner[sizeof err->place];
    va_list arguments;

    if (!err)
        return false;
    va_start(arguments, format);
    vsnprintf(outer, sizeof outer, format, arguments);
    va_end(arguments);
    memcpy(inner, err->place, sizeof inner);
    snprintf(err->place, sizeof err->place, "%s%s%s", outer, inner[0] && inner[0] != '[' ? "." : "", inner);
    return false;
}

static bool missing(struct error *err, const char *hint)
{
    return error_set(err, ERROR_MISSING, hint, "missing");
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static bool is_text(const json_t *value)
{
    const char *text = json_name(value);

    return text && *text;
}

/* {"type": "function", "function": {"name": ...}} */
static bool function_fits(const json_t *item, struct error *err)
{
    const json_t *type = json_object_get(item, "type"), *function = json_object_get(item, "function"),
                 *name = json_object_get(function, "name");

    if (!json_is_object(item))
        return error_set(err, ERROR_TYPE, NULL, "not an object");
    if (type && (!json_name(type) || strcmp(json_name(type), "function")))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "only \"function\" is offered") || field_at(err, "type");
    if (!json_is_object(function))
        return missing(err, "an object with a name") || field_at(err, "function");
    if (!is_text(name))
        return (name ? error_set(err, ERROR_TYPE, NULL, "not a text, empty, or with a zero byte")
                     : missing(err, "the function's name")) ||
               field_at(err, "function.name");
    return true;
}

/* Text that holds a JSON object, or an object. Other text would be printed as a string by templates that print objects. */
static bool arguments_fit(const json_t *arguments, struct error *err)
{
    const char *text = json_string_value(arguments);

    if (!arguments)
        return missing(err, "\"{}\" when there are none");
    if (json_is_object(arguments))
        return true;
    if (!text)
        return error_set(err, ERROR_TYPE, NULL, "neither a text nor an object");

    struct error why = { 0 };
    json_t *object = json_read(text, json_string_length(arguments), json_string_length(arguments), &why);
    bool ok = json_is_object(object);

    if (!ok)
        error_set(err, ERROR_SYNTAX, "\"{}\" when there are none", object ? "not a JSON object%s" : "not JSON: %.120s",
                  object ? "" : why.message);
    json_decref(object);
    return ok;
}

static bool calls_fit(const json_t *calls, struct error *err)
{
    if (!json_is_array(calls) || json_array_size(calls) == 0)
        return error_set(err, ERROR_TYPE, "leave it out when there is no call", "not a list, or empty");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i),
                     *arguments = json_object_get(json_object_get(call, "function"), "arguments");

        if (!function_fits(call, err))
            return field_at(err, "[%zu]", i);
        if (!arguments_fit(arguments, err))
            return field_at(err, "[%zu].function.arguments", i);
    }
    return true;
}

static bool tools_fit(const json_t *tools, struct error *err)
{
    if (is_absent(tools))
        return true;
    if (!json_is_array(tools))
        return error_set(err, ERROR_TYPE, NULL, "not a list") || field_at(err, "tools");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!function_fits(json_array_get(tools, i), err))
            return field_at(err, "tools[%zu]", i);
    return true;
}

/* Whether `id` is that of one of the calls, where both have one. */
static bool answers(const json_t *calls, const json_t *id)
{
    bool any = false;

    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *other = json_object_get(json_array_get(calls, i), "id");

        any |= json_is_string(other);
        if (json_is_string(other) && json_equal(other, id))
            return true;
    }
    return !any;
}

struct state {
    const json_t *calls; /* of the last assistant turn */
    size_t results;      /* given for them             */
    bool system, spoken; /* a system turn; a turn of another role */
};

static bool content_fits(const json_t *message, bool optional, struct error *err)
{
    const json_t *content = json_object_get(message, "content");

    if (json_is_string(content) || (optional && is_absent(content)))
        return true;
    if (json_is_array(content))
        return error_set(err, ERROR_UNSUPPORTED, "join the parts to one text", "a list of parts is not offered") ||
               field_at(err, "content");
    return (is_absent(content) ? missing(err, NULL) : error_set(err, ERROR_TYPE, NULL, "not a text")) || field_at(err, "content");
}

/* What only the assistant's messages may have. */
static bool extras_fit(const json_t *message, struct error *err)
{
    const json_t *weight = json_object_get(message, "weight"), *reasoning = json_object_get(message, "reasoning_content");

    if (weight && !(json_is_number(weight) && json_number_value(weight) >= 0 && json_number_value(weight) <= 1))
        return error_set(err, ERROR_RANGE, "1 trains the turn in full, 0 leaves it out", "not a number from 0 to 1") ||
               field_at(err, "weight");
    if (!is_absent(reasoning) && !json_is_string(reasoning))
        return error_set(err, ERROR_TYPE, NULL, "not a text") || field_at(err, "reasoning_content");
    return true;
}

static bool assistant_fits(const json_t *message, struct state *s, struct error *err)
{
    const json_t *calls = json_object_get(message, "tool_calls");

    if (!extras_fit(message, err))
        return false;

    s->calls = NULL;
    s->results = 0;
    if (is_absent(calls))
        return content_fits(message, false, err);
    if (!calls_fit(calls, err))
        return field_at(err, "tool_calls");
    s->calls = calls;
    return content_fits(message, true, err);
}

static bool result_fits(const json_t *message, struct state *s, struct error *err)
{
    const json_t *id = json_object_get(message, "tool_call_id");

    if (!s->calls || s->results >= json_array_size(s->calls))
        return error_set(err, ERROR_CONFLICT, "a tool's turn follows the assistant's turn with its call",
                         "a result without a call");
    if (json_is_string(id) && !answers(s->calls, id))
        return error_set(err, ERROR_CONFLICT, NULL, "no call has this id") || field_at(err, "tool_call_id");
    s->results++;
    return content_fits(message, false, err);
}

static bool message_fits(const json_t *message, struct state *s, struct error *err)
{
    const json_t *role = json_object_get(message, "role");
    const char *name = json_name(role);

    if (!json_is_object(message))
        return error_set(err, ERROR_TYPE, NULL, "not an object");
    if (!role)
        return missing(err, "one of system, developer, user, assistant, tool") || field_at(err, "role");
    if (!name)
        return error_set(err, ERROR_TYPE, NULL, "not a text") || field_at(err, "role");
    if (!strcmp(name, "system") || !strcmp(name, "developer")) {
        if (s->system)
            return error_set(err, ERROR_CONFLICT, "join them to one", "a second system turn") || field_at(err, "role");
        s->system = true;
    } else {
        if (!s->spoken && !strcmp(name, "assistant"))
            return error_set(err, ERROR_CONFLICT, "begin with a user's turn", "the conversation starts with the assistant") ||
                   field_at(err, "role");
        s->spoken = true;
    }
    if (!strcmp(name, "assistant"))
        return assistant_fits(message, s, err);
    if (!is_absent(json_object_get(message, "tool_calls")))
        return error_set(err, ERROR_CONFLICT, "only the assistant calls tools", "role \"%.40s\" has calls", name) ||
               field_at(err, "tool_calls");
    if (!strcmp(name, "tool"))
        return result_fits(message, s, err);
    if (strcmp(name, "system") && strcmp(name, "developer") && strcmp(name, "user"))
        return error_set(err, ERROR_UNKNOWN, "one of system, developer, user, assistant, tool", "unknown role \"%.40s\"", name) ||
               field_at(err, "role");
    s->calls = NULL;
    return content_fits(message, false, err);
}

bool conversation_shape(const json_t *row, struct error *err)
{
    const json_t *messages = json_object_get(row, "messages");
    struct state s = { 0 };

    if (!messages)
        return missing(err, "a row is {\"messages\": [...]}, {\"text\": \"...\"} or {\"parts\": [...]}") ||
               field_at(err, "messages");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return error_set(err, ERROR_TYPE, NULL, "not a list, or empty") || field_at(err, "messages");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!message_fits(json_array_get(messages, i), &s, err))
            return field_at(err, "messages[%zu]", i);
    return tools_fit(json_object_get(row, "tools"), err);
}
