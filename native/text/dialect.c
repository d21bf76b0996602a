#include "native/text/dialect.h"

#include <stdio.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/conversation_shape.h"
#include "native/text/dialect_tags.h"

static const char *const NAMES[DIALECTS] = { "auto", "openai", "sharegpt", "hermes" };

const char *dialect_name(enum dialect shape)
{
    return NAMES[shape];
}

bool dialect_parse(const char *name, enum dialect *shape)
{
    for (int i = 0; i < DIALECTS; i++)
        if (!strcmp(name, NAMES[i])) {
            *shape = (enum dialect)i;
            return true;
        }
    return false;
}

/* What is built of a row. */
struct making {
    json_t *messages, *tools;
    bool tags; /* tools and calls may stand in the text */
};

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static json_t *text_of(const struct buffer *b)
{
    size_t start = 0, end = b->size;

    while (start < end && strchr(" \t\r\n", b->bytes[start]))
        start++;
    while (end > start && strchr(" \t\r\n", b->bytes[end - 1]))
        end--;
    return start < end ? json_stringn((const char *)b->bytes + start, end - start) : json_null();
}

static void message_add(struct making *m, const char *role, json_t *content)
{
    json_array_append_new(m->messages, json_pack("{s:s, s:o}", "role", role, "content", content));
}

/* The row's tools: a list, or its text. */
static bool row_tools(struct making *m, json_t *tools, struct error *err)
{
    const char *text = json_string_value(tools);
    json_t *list;
    bool ok;

    if (is_absent(tools) || (text && text[strspn(text, " \t\r\n")] == 0))
        return true;
    list = text ? loose_list(text, json_string_length(tools), err) : json_incref(tools);
    ok = list && tools_add(m->tools, list, err);
    json_decref(list);
    return ok;
}

/* ---- OpenAI ---- */

/* [{"type": "text", "text": "..."}] to one text. */
static json_t *joined_parts(json_t *content, struct error *err)
{
    struct buffer text = { 0 };
    json_t *out = NULL, *part;
    size_t i;

    json_array_foreach(content, i, part)
    {
        const json_t *words = json_object_get(part, "text");

        if (!json_is_string(words)) {
            error_set(err, ERROR_UNSUPPORTED, "only text is trained: remove the row", "content[%zu] is no text", i);
            buffer_free(&text);
            return NULL;
        }
        buffer_add(&text, json_string_value(words), json_string_length(words));
    }
    out = json_stringn(text.size ? (const char *)text.bytes : "", text.size);
    buffer_free(&text);
    return out;
}

static bool openai_message(struct making *m, json_t *from, struct error *err)
{
    static const char *const kept[] = { "tool_calls", "tool_call_id", "name", "reasoning_content", "weight" };
    json_t *role = json_object_get(from, "role"), *content = json_object_get(from, "content"),
           *call = json_object_get(from, "function_call");
    json_t *to = json_object();

    json_array_append_new(m->messages, to);
    if (!json_is_object(from))
        return error_set(err, ERROR_TYPE, "a turn is {\"role\": ..., \"content\": ...}", "not an object");
    if (role)
        json_object_set_new(to, "role",
                            json_is_string(role) && !strcmp(json_string_value(role), "function") ? json_string("tool")
                                                                                                 : json_incref(role));
    if (json_is_array(content)) {
        content = joined_parts(content, err);
        if (!content)
            return false;
        json_object_set_new(to, "content", content);
    } else if (content) {
        json_object_set(to, "content", content);
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!is_absent(json_object_get(from, kept[i])))
            json_object_set(to, kept[i], json_object_get(from, kept[i]));
    if (!is_absent(call)) {
        json_t *calls = json_array();

        json_object_set_new(to, "tool_calls", calls);
        return calls_add(calls, call, err);
    }
    return true;
}

static bool openai_row(struct making *m, const json_t *row, struct error *err)
{
    json_t *messages = json_object_get(row, "messages"), *tools = json_object_get(row, "tools"), *message;
    size_t i;

    if (!json_is_array(messages))
        return error_set(err, ERROR_MISSING, "name the file's shape with --from", "no list of turns") ||
               error_at(err, "messages");
    json_array_foreach(messages, i, message)
    {
        if (!openai_message(m, message, err))
            return error_at(err, "messages[%zu]", i);
    }
    if (is_absent(tools))
        tools = json_object_get(row, "functions");
    return row_tools(m, tools, err) || error_at(err, "tools");
}

/* ---- ShareGPT and Hermes ---- */

static const char *turn_role(const char *name)
{
    static const char *const roles[][2] = {
        { "system", "system" },       { "human", "user" },        { "user", "user" },
        { "gpt", "assistant" },       { "chatgpt", "assistant" }, { "bard", "assistant" },
        { "bing", "assistant" },      { "model", "assistant" },   { "assistant", "assistant" },
        { "function_call", "call" },  { "tool_call", "call" },    { "tool", "tool" },
        { "observation", "tool" },    { "function", "tool" },     { "function_response", "tool" },
        { "developer", "developer" },
    };

    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(name, roles[i][0]))
            return roles[i][1];
    return NULL;
}

/* Hermes' preamble gives its tools and nothing else; with none, false and no error. */
static bool system_tools(struct making *m, const char *text, struct error *err)
{
    const char *start;
    size_t size;

    /* The preamble speaks of "<tools></tools> XML tags" before it gives them. */
    while (tag_next(&text, "tools", &start, &size, NULL, err))
        if (size && strspn(start, " \t\r\n") < size && json_array_size(m->tools) == 0) {
            json_t *list = loose_list(start, size, err);
            bool ok = list && tools_add(m->tools, list, err);

            json_decref(list);
            if (!ok)
                return false;
        }
    return err->code == ERROR_NONE;
}

static bool assistant_calls(struct making *m, const char *text, struct error *err)
{
    struct buffer outside = { 0 };
    json_t *calls = json_array(), *value;
    const char *start;
    size_t size;
    bool ok = true;

    while (ok && tag_next(&text, "tool_call", &start, &size, &outside, err)) {
        value = loose_json(start, size, err);
        ok = value && calls_add(calls, value, err);
        json_decref(value);
    }
    ok = ok && err->code == ERROR_NONE;
    if (ok) {
        message_add(m, "assistant", text_of(&outside));
        json_object_set(json_array_get(m->messages, json_array_size(m->messages) - 1), "tool_calls", calls);
    }
    json_decref(calls);
    buffer_free(&outside);
    return ok;
}

static bool tool_results(struct making *m, const char *text, struct error *err)
{
    const char *start;
    size_t size;

    while (tag_next(&text, "tool_response", &start, &size, NULL, err)) {
        struct buffer result = { 0 };
        json_t *content;

        buffer_add(&result, start, size);
        content = text_of(&result);
        message_add(m, "tool", json_is_null(content) ? json_string("") : content);
        buffer_free(&result);
    }
    return err->code == ERROR_NONE;
}

/* A turn that is nothing but calls: its value is JSON. */
static bool call_turn(struct making *m, const json_t *value, struct error *err)
{
    json_t *calls = json_array(), *parsed = loose_json(json_string_value(value), json_string_length(value), err);
    bool ok = parsed && calls_add(calls, parsed, err);

    json_decref(parsed);
    json_array_append_new(m->messages, json_pack("{s:s, s:n, s:o}", "role", "assistant", "content", "tool_calls", calls));
    return ok;
}

static bool turn_text(struct making *m, const char *role, json_t *value, struct error *err)
{
    const char *text = json_string_value(value);

    if (!strcmp(role, "call"))
        return call_turn(m, value, err);
    if (m->tags && !strcmp(role, "system") && strstr(text, "<tools>"))
        return system_tools(m, text, err);
    if (m->tags && !strcmp(role, "assistant") && strstr(text, "<tool_call>"))
        return assistant_calls(m, text, err);
    if (m->tags && !strcmp(role, "tool") && strstr(text, "<tool_response>"))
        return tool_results(m, text, err);
    message_add(m, role, json_incref(value));
    return true;
}

static bool sharegpt_turn(struct making *m, const json_t *turn, struct error *err)
{
    const json_t *from = json_object_get(turn, "from"), *weight = json_object_get(turn, "weight");
    json_t *value = json_object_get(turn, "value");
    size_t before = json_array_size(m->messages);

    if (!json_is_object(turn))
        return error_set(err, ERROR_TYPE, "a turn is {\"from\": ..., \"value\": ...}", "not an object");
    if (!from)
        from = json_object_get(turn, "role");
    if (!value)
        value = json_object_get(turn, "content");

    const char *role = turn_role(json_name(from));

    if (!role)
        return error_set(err, from ? ERROR_UNKNOWN : ERROR_MISSING, "one of system, human, gpt, tool, function_call, observation",
                         "%s \"%.40s\"", from ? "unknown role" : "no role",
                         json_is_string(from) ? json_string_value(from) : "") ||
               error_at(err, "from");
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return error_set(err, value ? ERROR_TYPE : ERROR_MISSING, "the turn's text", value ? "not a text" : "missing") ||
               error_at(err, "value");
    if (!turn_text(m, role, value, err))
        return error_at(err, "value");
    if (!is_absent(weight) && json_array_size(m->messages) > before)
        json_object_set(json_array_get(m->messages, before), "weight", (json_t *)(uintptr_t)weight);
    return true;
}

static bool sharegpt_row(struct making *m, const json_t *row, struct error *err)
{
    const char *name = json_object_get(row, "conversation") ? "conversation" : "conversations";
    json_t *turns = json_object_get(row, name), *system = json_object_get(row, "system"), *turn;
    size_t i;

    if (!json_is_array(turns))
        return error_set(err, ERROR_MISSING, "name the file's shape with --from", "no list of turns") ||
               error_at(err, "%s", name);
    if (!row_tools(m, json_object_get(row, "tools"), err))
        return error_at(err, "tools");
    if (json_is_string(system) && json_string_length(system))
        message_add(m, "system", json_incref(system));
    json_array_foreach(turns, i, turn)
    {
        if (!sharegpt_turn(m, turn, err))
            return error_at(err, "%s[%zu]", name, i);
    }
    return true;
}

/* ---- rows ---- */

json_t *dialect_convert(const json_t *row, enum dialect shape, struct error *err)
{
    struct making m = { .messages = json_array(), .tools = json_array() };
    struct error own = { 0 };
    json_t *out = json_pack("{s:o}", "messages", m.messages);
    bool ok;

    if (!err)
        err = &own; /* what is found in a tag is told from none by it */
    error_clear(err);
    if (shape == DIALECT_AUTO)
        shape = json_object_get(row, "messages") ? DIALECT_OPENAI : DIALECT_HERMES;
    m.tags = shape == DIALECT_HERMES;
    ok = shape == DIALECT_OPENAI ? openai_row(&m, row, err) : sharegpt_row(&m, row, err);
    if (json_array_size(m.tools))
        json_object_set(out, "tools", m.tools);
    json_decref(m.tools);
    if (ok && conversation_shape(out, err))
        return out;
    json_decref(out);
    return NULL;
}
