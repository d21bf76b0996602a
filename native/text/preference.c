#include "native/text/preference.h"

#include <string.h>

#include "native/base/json.h"
#include "native/text/conversation_row.h"

static const char *const SIDES[] = { "chosen", "rejected" };

/* The side as a message of the assistant; new reference, or NULL with `err`. */
static json_t *side_message(const json_t *side, struct error *err)
{
    const json_t *one = json_is_array(side) && json_array_size(side) == 1 ? json_array_get(side, 0) : side;
    const char *role = json_name(json_object_get(one, "role"));

    if (json_is_string(one))
        return json_pack("{s:s, s:O}", "role", "assistant", "content", one);
    if (role && strcmp(role, "assistant") == 0)
        return json_incref((json_t *)(uintptr_t)one);
    error_set(err, side ? ERROR_TYPE : ERROR_MISSING, "a text, or {\"role\": \"assistant\", \"content\": ...}",
              side ? "not one turn of the assistant" : "this field is missing");
    return NULL;
}

/* The row's messages, of which the assistant's are not trained, and the side's turn. */
static json_t *side_conversation(const json_t *row, const json_t *messages, const json_t *side, struct error *err)
{
    json_t *last = side_message(side, err), *list, *made, *message;
    size_t index;

    if (!last)
        return NULL;
    list = json_array();
    json_array_foreach(messages, index, message)
    {
        json_t *kept = json_copy(message);
        const char *role = json_name(json_object_get(kept, "role"));

        if (role && strcmp(role, "assistant") == 0)
            json_object_set_new(kept, "weight", json_integer(0));
        json_array_append_new(list, kept);
    }
    json_array_append_new(list, last);
    made = json_pack("{s:o}", "messages", list);
    if (json_object_get(row, "tools"))
        json_object_set(made, "tools", json_object_get(row, "tools"));
    return made;
}

static bool turn_side(const struct conversation_format *format, const json_t *row, const json_t *messages, const char *side,
                      uint32_t line, struct examples *out, struct conversation_counts *counts, struct error *err)
{
    json_t *conversation = side_conversation(row, messages, json_object_get(row, side), err);
    struct conversation_format alone = *format;
    bool ok;

    alone.coalesce = false;
    ok = conversation && conversation_row(&alone, conversation, line, out, counts, err);
    json_decref(conversation);
    return ok || error_at(err, "%s", side);
}

static bool text_side(const struct conversation_format *format, const json_t *prompt, const json_t *side, const char *name,
                      uint32_t line, struct examples *out, struct conversation_counts *counts, struct error *err)
{
    json_t *parts;
    bool ok;

    if (!json_is_string(side))
        return error_set(err, side ? ERROR_TYPE : ERROR_MISSING, "beside a prompt that is a text the sides are texts", "%s",
                         side ? "not a text" : "this field is missing") ||
               error_at(err, "%s", name);
    parts = json_pack("[[O, i], [O, i]]", prompt, 0, side, 1);
    ok = parts_example(format, parts, line, out, err) || error_at(err, "%s", name);
    json_decref(parts);
    if (!ok)
        return false;

    const struct example *e = &out->items[out->count - 1];

    if (e->count > format->context)
        conversation_drop(counts, CONVERSATION_TOO_LONG, line, "%s: %zu tokens, context %zu", name, e->count, format->context);
    else if (e->count < 2 || e->weights[e->count - 1] == 0)
        conversation_drop(counts, CONVERSATION_NOTHING_TRAINED, line, "%s", name);
    else
        return true;
    examples_cut(out, out->count - 1);
    return true;
}

bool preference_examples(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                         struct conversation_counts *counts, struct error *err)
{
    const json_t *prompt = json_object_get(row, "prompt"), *messages = json_object_get(row, "messages");
    size_t before = out->count;

    if (!messages && json_is_array(prompt))
        messages = prompt;
    else if (messages && prompt)
        return error_set(err, ERROR_CONFLICT, NULL, "both messages and prompt");
    if (!messages && !json_is_string(prompt))
        return error_set(err, prompt ? ERROR_TYPE : ERROR_MISSING, "a text, or a list of messages",
                         "no prompt before the sides") ||
               error_at(err, "prompt");
    for (size_t i = 0; i < 2; i++) {
        bool ok = messages ? turn_side(format, row, messages, SIDES[i], line, out, counts, err)
                           : text_side(format, prompt, json_object_get(row, SIDES[i]), SIDES[i], line, out, counts, err);

        if (!ok)
            return false;
        if (out->count != before + i + 1) {
            examples_cut(out, before);
            return true;
        }
        out->items[out->count - 1].side = i ? EXAMPLE_REJECTED : EXAMPLE_CHOSEN;
    }
    return true;
}
