#include "native/text/conversation_turn.h"

#include <stdlib.h>
#include <string.h>

/* What differs from a plain rendering of a row's first messages. FOLLOWED: one more message stands behind them. */
enum variant { PLAIN, WITH_PROMPT, WITHOUT_TOOLS, FOLLOWED, OTHER_CALLS, WITHOUT_ARGUMENTS, WITHOUT_REASONING };

static const char *const REASONING[] = { "reasoning_content", "thinking", "reasoning" };

static json_t *reasoning_of(const json_t *message)
{
    for (size_t i = 0; i < 3; i++)
        if (json_is_string(json_object_get(message, REASONING[i])))
            return json_object_get(message, REASONING[i]);
    return NULL;
}

/* Under the two names that templates read, as transformers passes it (chat_template_utils.py, 5.24). Takes the message. */
static json_t *with_reasoning(json_t *message)
{
    json_t *reasoning = reasoning_of(message), *named;

    if (!reasoning)
        return message;
    named = json_object();
    json_object_set(named, "thinking", reasoning);
    json_object_update(named, message);
    json_object_set(named, "reasoning_content", reasoning);
    json_decref(message);
    return named;
}

/* The last message with calls of another name or of no arguments, or without its reasoning. */
static json_t *message_changed(const json_t *message, enum variant variant)
{
    json_t *changed = json_deep_copy(message), *calls = json_object_get(changed, "tool_calls");

    for (size_t i = 0; variant == OTHER_CALLS && i < json_array_size(calls); i++)
        json_object_set_new(json_object_get(json_array_get(calls, i), "function"), "name", json_string("-"));
    if (variant == WITHOUT_REASONING)
        for (size_t i = 0; i < 3; i++)
            json_object_del(changed, REASONING[i]);
    for (size_t i = 0; variant == WITHOUT_ARGUMENTS && i < json_array_size(calls); i++)
        json_object_set_new(json_object_get(json_array_get(calls, i), "function"), "arguments", json_string("{}"));
    return changed;
}

/* What may stand behind message `index`: what the row has there; behind a call its result, else a user's turn. */
static json_t *message_after(const json_t *row, size_t index)
{
    const json_t *all = json_object_get(row, "messages"), *next = json_array_get(all, index + 1),
                 *call = json_array_get(json_object_get(json_array_get(all, index), "tool_calls"), 0);
    const char *role = json_string_value(json_object_get(next, "role"));

    if (role && strcmp(role, "assistant"))
        return json_deep_copy(next);
    if (!call)
        return json_pack("{s:s, s:s}", "role", "user", "content", "-");

    json_t *result = json_pack("{s:s, s:s}", "role", "tool", "content", "-");

    json_object_set(result, "name", json_object_get(json_object_get(call, "function"), "name"));
    if (json_object_get(call, "id"))
        json_object_set(result, "tool_call_id", json_object_get(call, "id"));
    return result;
}

static json_t *context_of(const struct conversation_format *format, const json_t *row, size_t count, enum variant variant)
{
    json_t *context = json_object(), *messages = json_array(), *tools = json_object_get(row, "tools");
    const json_t *all = json_object_get(row, "messages");

    if (format->variables)
        json_object_update(context, (json_t *)format->variables);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count && variant >= OTHER_CALLS)
            json_array_append_new(messages, with_reasoning(message_changed(json_array_get(all, i), variant)));
        else
            json_array_append_new(messages, with_reasoning(json_incref(json_array_get(all, i))));
    if (variant == FOLLOWED)
        json_array_append_new(messages, message_after(row, count - 1));
    if (json_array_size(tools) == 0 || variant == WITHOUT_TOOLS)
        json_object_set_new(context, "tools", json_null());
    else
        json_object_set(context, "tools", tools);
    json_object_set_new(context, "messages", messages);
    json_object_set_new(context, "documents", json_null());
    json_object_set_new(context, "add_generation_prompt", json_boolean(variant == WITH_PROMPT));
    return context;
}

static bool render(const struct conversation_format *format, const json_t *row, size_t count, enum variant variant,
                   struct template_output *out, struct error *err)
{
    json_t *context = context_of(format, row, count, variant);
    bool ok = template_render(format->template, context, &format->options, out, err);

    json_decref(context);
    return ok;
}

static bool starts_with(const struct buffer *text, size_t at, const void *bytes, size_t size)
{
    return text->size - at >= size && (!size || !memcmp(text->bytes + at, bytes, size));
}

/* Non-overlapping places of `name`. */
static size_t occurrences(const struct buffer *text, const char *name)
{
    const uint8_t *at = text->bytes, *end = at + text->size;
    size_t count = 0, size = strlen(name);

    while (at && at < end && (at = memmem(at, (size_t)(end - at), name, size))) {
        count++;
        at += size;
    }
    return count;
}

static const char *function_name(const json_t *item)
{
    return json_string_value(json_object_get(json_object_get(item, "function"), "name"));
}

/* Every tool's name comes up more often with the tools than without. */
static enum turn_result check_tools(const struct conversation_format *format, const json_t *row, size_t count,
                                    const struct buffer *text, struct error *why)
{
    const json_t *tools = json_object_get(row, "tools");
    struct template_output bare = { 0 };
    enum turn_result result = TURN_OK;

    if (json_array_size(tools) == 0)
        return TURN_OK;
    if (!render(format, row, count, WITHOUT_TOOLS, &bare, why))
        return TURN_RAISED;
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *name = function_name(json_array_get(tools, i));

        if (occurrences(text, name) <= occurrences(&bare.text, name))
            result = TURN_TOOLS_NOT_PRINTED;
    }
    template_output_free(&bare);
    return result;
}

/* Calls of that name. */
static size_t named(const json_t *calls, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(calls); i++)
        count += !strcmp(function_name(json_array_get(calls, i)), name);
    return count;
}

/* Every call's name is printed as often as it is called, and arguments change what is printed. */
static enum turn_result check_calls(const struct conversation_format *format, const json_t *row, size_t count,
                                    const struct buffer *text, struct error *why)
{
    const json_t *calls = json_object_get(json_array_get(json_object_get(row, "messages"), count - 1), "tool_calls");
    struct template_output bare = { 0 };
    enum turn_result result = TURN_OK;
    bool arguments = false;

    if (json_array_size(calls) == 0)
        return TURN_OK;
    if (!render(format, row, count, OTHER_CALLS, &bare, why))
        return TURN_RAISED;
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *given = json_object_get(json_object_get(call, "function"), "arguments");
        const char *words = json_string_value(given);

        if (occurrences(text, function_name(call)) <
            occurrences(&bare.text, function_name(call)) + named(calls, function_name(call)))
            result = TURN_CALLS_NOT_PRINTED;
        arguments |= words ? strcmp(words, "{}") != 0 : json_object_size(given) > 0;
    }
    template_output_free(&bare);
    if (result != TURN_OK || !arguments)
        return result;
    if (!render(format, row, count, WITHOUT_ARGUMENTS, &bare, why))
        return TURN_RAISED;
    if (bare.text.size == text->size && starts_with(text, 0, bare.text.bytes, bare.text.size))
        result = TURN_CALLS_NOT_PRINTED;
    template_output_free(&bare);
    return result;
}

/* Reasoning that is given changes what is printed. */
static enum turn_result check_reasoning(const struct conversation_format *format, const json_t *row, size_t count,
                                        const struct buffer *text, struct error *why)
{
    const json_t *message = json_array_get(json_object_get(row, "messages"), count - 1);
    struct template_output bare = { 0 };
    enum turn_result result = TURN_OK;

    if (json_string_length(reasoning_of(message)) == 0)
        return TURN_OK;
    if (!render(format, row, count, WITHOUT_REASONING, &bare, why))
        return TURN_RAISED;
    if (bare.text.size == text->size && starts_with(text, 0, bare.text.bytes, bare.text.size))
        result = TURN_REASONING_NOT_PRINTED;
    template_output_free(&bare);
    return result;
}

/* Where the last message that printed anything ends. */
static size_t messages_end(const struct template_output *out)
{
    size_t end = 0;

    for (size_t i = 0; i < out->message_count; i++)
        if (out->messages[i].end > out->messages[i].start && out->messages[i].end > end)
            end = out->messages[i].end;
    return end;
}

static size_t common(const uint8_t *x, size_t x_size, const uint8_t *y, size_t y_size)
{
    size_t size = 0;

    while (size < x_size && size < y_size && x[size] == y[size])
        size++;
    return size;
}

/* The message's last span that is not empty, or NULL. */
static const struct template_span *printed_for(size_t index, const struct template_output *full)
{
    for (size_t i = full->message_count; i-- > 0;)
        if (full->messages[i].message == index && full->messages[i].end > full->messages[i].start)
            return &full->messages[i];
    return NULL;
}

/* Bytes of a turn that a generation prompt opens it with; white space before it may differ. 0 if it opens otherwise. */
static size_t opened_by(const struct buffer *text, const struct template_span *span, const struct buffer *prompt, size_t at)
{
    static const char blank[] = " \t\r\n";
    size_t start = span->start, same;

    while (start < span->end && text->bytes[start] && strchr(blank, text->bytes[start]))
        start++;
    while (at < prompt->size && prompt->bytes[at] && strchr(blank, prompt->bytes[at]))
        at++;
    same = common(prompt->bytes + at, prompt->size - at, text->bytes + start, span->end - start);
    return same ? start - span->start + same : 0;
}

/* By the record of what was printed for the message: its last span that is not empty, from where it leaves the generation
 * prompt. That prompt is what follows the last message, or what add_generation_prompt adds. */
static bool find_by_span(const struct conversation_format *format, const json_t *row, size_t index,
                         const struct template_output *prompt, const struct template_output *full,
                         const struct template_span *span, struct turn *turn)
{
    struct template_output plain = { 0 };
    size_t opening, other = 0;

    if (!span)
        return false;
    opening = opened_by(&full->text, span, &prompt->text, messages_end(prompt));
    if (!render(format, row, index, PLAIN, &plain, NULL))
        return false;
    if (starts_with(&prompt->text, 0, plain.text.bytes, plain.text.size))
        other = opened_by(&full->text, span, &prompt->text, plain.text.size);
    template_output_free(&plain);
    turn->whole = true;
    turn->start = span->start + (opening > other ? opening : other);
    turn->end = span->end >= messages_end(full) ? full->text.size : span->end;
    return true;
}

/* The template's own word: its generation blocks of the message. */
static bool find_by_blocks(size_t index, const struct template_output *full, struct turn *turn)
{
    turn->parts = calloc(full->generation_count + 1, sizeof *turn->parts);
    if (!turn->parts)
        abort();
    for (size_t i = 0; i < full->generation_count; i++)
        if (full->generation[i].message == index && full->generation[i].end > full->generation[i].start)
            turn->parts[turn->part_count++] = full->generation[i];
    if (!turn->part_count)
        return false;
    turn->start = turn->parts[0].start;
    turn->end = turn->parts[turn->part_count - 1].end;
    return true;
}

/* What the model would go on with: where the prompt is a beginning of the whole, what the turn adds to it. */
static bool find_by_prompt(const struct template_output *prompt, const struct template_output *full, struct turn *turn)
{
    turn->start = prompt->text.size;
    turn->end = full->text.size;
    return starts_with(&full->text, 0, prompt->text.bytes, prompt->text.size);
}

static enum turn_result find_turn(const struct conversation_format *format, const json_t *row, size_t index, struct turn *turn,
                                  struct error *why)
{
    struct template_output prompt = { 0 }, full = { 0 };
    enum turn_result result = TURN_OK;

    if (!render(format, row, index, WITH_PROMPT, &prompt, why))
        return TURN_RAISED;
    if (!render(format, row, index + 1, PLAIN, &full, why)) {
        template_output_free(&prompt);
        return TURN_RAISED;
    }

    const struct template_span *span = printed_for(index, &full);

    if (!find_by_blocks(index, &full, turn) && !find_by_prompt(&prompt, &full, turn) &&
        !find_by_span(format, row, index, &prompt, &full, span, turn))
        result = TURN_NO_PLACE;
    turn->own_end = span && span->end > turn->start ? span->end : turn->end;
    turn->text = full.text;
    turn->data = full.data;
    turn->data_count = full.data_count;
    full.text = (struct buffer){ 0 };
    full.data = NULL;
    template_output_free(&prompt);
    template_output_free(&full);
    return result;
}

enum turn_result turn_render(const struct conversation_format *format, const json_t *row, size_t index, struct turn *turn,
                             struct error *why)
{
    enum turn_result result = find_turn(format, row, index, turn, why);

    if (result == TURN_OK)
        result = check_tools(format, row, index + 1, &turn->text, why);
    if (result == TURN_OK)
        result = check_calls(format, row, index + 1, &turn->text, why);
    if (result == TURN_OK)
        result = check_reasoning(format, row, index + 1, &turn->text, why);
    if (result == TURN_OK && text_is_blank(turn->text.bytes + turn->start, turn->end - turn->start))
        result = TURN_EMPTY;
    return result;
}

void turn_free(struct turn *turn)
{
    buffer_free(&turn->text);
    free(turn->data);
    free(turn->parts);
}

bool turn_follow(const struct conversation_format *format, const json_t *row, size_t index, struct template_output *out,
                 size_t *start)
{
    const struct template_span *span = render(format, row, index + 1, FOLLOWED, out, NULL) ? printed_for(index, out) : NULL;

    *start = span ? span->end : 0;
    return span != NULL;
}

bool turn_prompt(const struct conversation_format *format, const json_t *row, size_t count, struct template_output *out,
                 struct error *err)
{
    if (!format->template)
        return error_set(err, ERROR_MISSING, NULL, "there is no chat template");
    return render(format, row, count, WITH_PROMPT, out, err) || error_at(err, "chat template");
}

bool text_is_blank(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!memchr(" \t\r\n", bytes[i], 4))
            return false;
    return true;
}
