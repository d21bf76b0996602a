#include "native/text/conversation.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/conversation_row.h"
#include "native/text/conversation_shape.h"
#include "native/text/conversation_turn.h"
#include "native/text/labelled.h"
#include "native/text/preference.h"

static const struct {
    const char *name, *text;
} DROPS[CONVERSATION_DROPS] = {
    [CONVERSATION_TOO_LONG] = { "too_long", "more tokens than the context: shorten the conversation or raise the context" },
    [CONVERSATION_TOOLS_NOT_PRINTED] = { "tools_not_printed", "the chat template does not print the tools: name one that does, "
                                                              "as chatml_tools.jinja" },
    [CONVERSATION_CALLS_NOT_PRINTED] = { "calls_not_printed",
                                         "the chat template does not print the tool calls: name one that does, as "
                                         "chatml_tools.jinja" },
    [CONVERSATION_REASONING_NOT_PRINTED] = { "reasoning_not_printed",
                                             "the chat template does not print reasoning_content: name one "
                                             "that does, or take it out of the row" },
    [CONVERSATION_NOTHING_TRAINED] = { "nothing_trained",
                                       "no assistant turn with text and a weight: add one or leave the row out" },
    [CONVERSATION_TEMPLATE_RAISED] = { "template_raised", "the chat template refuses the row: change the row or the template" },
    [CONVERSATION_NO_TURN] = { "no_turn",
                               "the turn cannot be told from the text around it: use a template with generation blocks" },
    [CONVERSATION_NO_END] = { "no_end", "the chat template prints no special token at the turn's end: use one that does" },
};

const char *conversation_drop_name(enum conversation_drop reason)
{
    return DROPS[reason].name;
}

const char *conversation_drop_text(enum conversation_drop reason)
{
    return DROPS[reason].text;
}

static void example_free(struct example *e)
{
    free(e->ids);
    free(e->weights);
    free(e->text);
    free(e->ends);
    free(e->values);
    free(e->target);
}

void examples_free(struct examples *list)
{
    for (size_t i = 0; i < list->count; i++)
        example_free(&list->items[i]);
    free(list->items);
    *list = (struct examples){ 0 };
}

struct example *examples_add(struct examples *list)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = reallocarray(list->items, list->capacity, sizeof *list->items);
        if (!list->items)
            abort();
    }

    struct example *e = &list->items[list->count++];

    *e = (struct example){ 0 };
    return e;
}

void examples_cut(struct examples *list, size_t count)
{
    while (list->count > count)
        example_free(&list->items[--list->count]);
}

void conversation_drop(struct conversation_counts *counts, enum conversation_drop reason, uint32_t line, const char *format, ...)
{
    va_list arguments;

    counts->dropped[reason]++;
    if (counts->first[reason].line)
        return;
    counts->first[reason].line = line;
    va_start(arguments, format);
    vsnprintf(counts->first[reason].detail, sizeof counts->first[reason].detail, format, arguments);
    va_end(arguments);
}

/* Takes the ids of `tokens` over. */
static void example_fill(struct example *e, struct tokens *tokens, const char *text, size_t size, uint32_t line, size_t turn)
{
    e->ids = tokens->ids;
    e->count = tokens->count;
    e->weights = calloc(tokens->count + 1, sizeof *e->weights);
    e->text = malloc(size + 1);
    if (!e->weights || !e->text)
        abort();
    if (size)
        memcpy(e->text, text, size);
    e->text[size] = 0;
    e->size = size;
    e->line = line;
    e->turn = (uint32_t)turn;
    e->ends = tokens->ends;
    tokens->ids = tokens->ends = NULL;
    tokens_free(tokens);
}

/* ---- text ---- */

static void count_example(struct conversation_counts *counts, const struct example *e)
{
    counts->examples++;
    counts->tokens += e->weights ? e->count : 0;
    for (size_t i = 0; e->weights && i < e->count; i++)
        counts->trained += e->weights[i] > 0;
}

static bool text_example(const struct conversation_format *format, const json_t *text, uint32_t line, struct examples *out,
                         struct error *err)
{
    struct tokens tokens = { 0 };

    if (!json_is_string(text))
        return error_set(err, ERROR_TYPE, NULL, "not a text") || error_at(err, "text");
    if (!tokenizer_encode(format->tokenizer, json_string_value(text), json_string_length(text), true, &tokens, err)) {
        tokens_free(&tokens);
        return error_at(err, "text");
    }
    if (format->surround)
        tokenizer_surround(format->tokenizer, &tokens);

    struct example *e = examples_add(out);

    example_fill(e, &tokens, json_string_value(text), json_string_length(text), line, 0);
    e->trained_end = e->size;
    for (size_t i = 0; i < e->count; i++)
        e->weights[i] = 1;
    return true;
}

static bool part_fits(const json_t *part, struct error *err)
{
    const json_t *weight = json_array_get(part, 1);

    if (!json_is_array(part) || json_array_size(part) != 2 || !json_is_string(json_array_get(part, 0)) || !json_is_number(weight))
        return error_set(err, ERROR_TYPE, "[\"text\", weight]", "not a text and a weight");
    if (!(json_number_value(weight) >= 0 && json_number_value(weight) <= 1))
        return error_set(err, ERROR_RANGE, NULL, "a weight outside 0 to 1");
    return true;
}

bool parts_example(const struct conversation_format *format, const json_t *parts, uint32_t line, struct examples *out,
                   struct error *err)
{
    struct tokens tokens = { 0 };
    struct buffer text = { 0 };
    float *weights = NULL;
    size_t capacity = 0;
    bool ok = json_is_array(parts) || error_set(err, ERROR_TYPE, NULL, "not a list") || error_at(err, "parts");

    for (size_t i = 0; ok && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *words = json_array_get(part, 0);
        size_t first = tokens.count, before = text.size;

        ok = (part_fits(part, err) &&
              tokenizer_encode(format->tokenizer, json_string_value(words), json_string_length(words), true, &tokens, err)) ||
             error_at(err, "parts[%zu]", i);
        if (!ok)
            break;
        buffer_add(&text, json_string_value(words), json_string_length(words));
        if (tokens.count > capacity) {
            capacity = tokens.count * 2;
            weights = reallocarray(weights, capacity, sizeof *weights);
            if (!weights)
                abort();
        }
        for (; first < tokens.count; first++) {
            tokens.ends[first] += (uint32_t)before;
            weights[first] = (float)json_number_value(json_array_get(part, 1));
        }
    }
    if (ok) {
        struct example *e = examples_add(out);

        example_fill(e, &tokens, (const char *)text.bytes, text.size, line, 0);
        e->trained_end = e->size;
        for (size_t i = 0; i < e->count; i++)
            e->weights[i] = weights[i];
    }
    free(weights);
    tokens_free(&tokens);
    buffer_free(&text);
    return ok;
}

/* ---- turns ---- */

static bool is_assistant(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));

    return role && !strcmp(role, "assistant");
}

/* The last token in the turn up to `end`; a special one, which nothing but white space follows. SIZE_MAX if there is none. */
static size_t last_token(const struct conversation_format *format, const struct turn *turn, const struct tokens *tokens,
                         size_t end, bool special)
{
    size_t last = SIZE_MAX;

    for (size_t i = 0; i < tokens->count && tokens->ends[i] <= end; i++)
        if (tokens->ends[i] > turn->start && (!special || tokenizer_is_special(format->tokenizer, tokens->ids[i])))
            last = i;
    if (last != SIZE_MAX && special && !text_is_blank(turn->text.bytes + tokens->ends[last], end - tokens->ends[last]))
        return SIZE_MAX;
    return last;
}

/* Tokens of text that a template made: special tokens are the template's alone, unless the format says otherwise. */
static bool encode_rendered(const struct conversation_format *format, const struct buffer *text, const struct text_range *data,
                            size_t count, struct tokens *tokens, struct error *err)
{
    return tokenizer_encode_but(format->tokenizer, (const char *)text->bytes, text->size, data, format->parse_special ? 0 : count,
                                tokens, err);
}

/* The first special token behind byte `start` of a rendering, white space aside: where it ends, or 0 if something else is first. */
static size_t special_behind(const struct conversation_format *format, const struct template_output *out, size_t start)
{
    struct tokens tokens = { 0 };
    bool blank = encode_rendered(format, &out->text, out->data, out->data_count, &tokens, NULL);
    size_t end = 0;

    for (size_t i = 0; blank && !end && i < tokens.count; i++) {
        if (tokens.ends[i] <= start)
            continue;
        if (tokenizer_is_special(format->tokenizer, tokens.ids[i]))
            end = tokens.ends[i];
        blank = text_is_blank(out->text.bytes + start, tokens.ends[i] - start);
    }
    tokens_free(&tokens);
    return end;
}

/* Where a template ends a turn with what opens the next (GLM, Apertus): the turn's text gets the special token that is printed
 * behind it once the conversation goes on. false if there is none. */
static bool end_by_next(const struct conversation_format *format, const json_t *row, size_t index, struct turn *turn)
{
    struct template_output out = { 0 };
    size_t start, end = turn_follow(format, row, index, &out, &start) ? special_behind(format, &out, start) : 0;

    if (end) {
        turn->text.size = turn->own_end;
        buffer_add(&turn->text, out.text.bytes + start, end - start);
        while (turn->data_count && turn->data[turn->data_count - 1].end > turn->own_end) /* of text that was cut off */
            turn->data_count--;
        turn->own_end = turn->end = turn->text.size;
    }
    template_output_free(&out);
    return end > 0;
}

/* The tokens of a turn with its context, cut behind the turn: its last block, or its last special token. */
static enum turn_result turn_tokens(const struct conversation_format *format, const json_t *row, size_t index, struct turn *turn,
                                    struct tokens *tokens, struct error *err)
{
    size_t last = SIZE_MAX;

    if (!encode_rendered(format, &turn->text, turn->data, turn->data_count, tokens, err))
        return TURN_FAULT;
    if (turn->part_count)
        last = last_token(format, turn, tokens, turn->end, false);
    else if ((last = last_token(format, turn, tokens, turn->own_end, true)) == SIZE_MAX)
        last = last_token(format, turn, tokens, turn->end, true); /* printed behind the messages */
    if (last == SIZE_MAX && !turn->part_count && end_by_next(format, row, index, turn)) {
        tokens_free(tokens);
        if (!encode_rendered(format, &turn->text, turn->data, turn->data_count, tokens, err))
            return TURN_FAULT;
        last = last_token(format, turn, tokens, turn->end, true);
    }
    if (last == SIZE_MAX)
        return TURN_NO_END;
    tokens->count = last + 1;
    turn->end = tokens->ends[last];
    return TURN_OK;
}

/* Whether bytes [start, end) are to be learnt. */
static bool is_trained(const struct turn *turn, size_t start, size_t end)
{
    for (size_t i = 0; i < turn->part_count; i++)
        if (start >= turn->parts[i].start && end <= turn->parts[i].end)
            return true;
    return !turn->part_count && (turn->whole ? end > turn->start : start >= turn->start);
}

static bool turn_example(const struct conversation_format *format, const json_t *row, struct turn *turn, uint32_t line,
                         size_t index, float weight, struct examples *out, struct conversation_counts *counts,
                         enum turn_result *result, struct error *err)
{
    struct tokens tokens = { 0 };

    *result = turn_tokens(format, row, index, turn, &tokens, err);
    if (*result == TURN_OK && tokens.count > format->context) {
        conversation_drop(counts, CONVERSATION_TOO_LONG, line, "messages[%zu]: %zu tokens, context %zu", index, tokens.count,
                          format->context);
    } else if (*result == TURN_OK) {
        struct example *e = examples_add(out);

        example_fill(e, &tokens, (const char *)turn->text.bytes, turn->end, line, index);
        e->trained_start = turn->start;
        e->trained_end = turn->end;
        for (size_t i = 0; i < e->count; i++)
            e->weights[i] = is_trained(turn, i ? e->ends[i - 1] : 0, e->ends[i]) ? weight : 0;
        counts->turns++;
    }
    tokens_free(&tokens);
    return *result != TURN_FAULT;
}

void examples_coalesce(struct examples *list, size_t first)
{
    size_t kept = first;

    for (size_t i = first; i < list->count; i++) {
        struct example *e = &list->items[i], *next = i + 1 < list->count ? e + 1 : NULL;

        if (next && next->count >= e->count && !memcmp(next->ids, e->ids, e->count * sizeof *e->ids)) {
            for (size_t k = 0; k < e->count; k++)
                next->weights[k] += e->weights[k];
            if (e->trained_start < next->trained_start)
                next->trained_start = e->trained_start;
            next->call |= e->call;
            example_free(e);
        } else {
            list->items[kept++] = *e;
        }
    }
    list->count = kept;
}

static const enum conversation_drop REASONS[] = {
    [TURN_RAISED] = CONVERSATION_TEMPLATE_RAISED,
    [TURN_NO_PLACE] = CONVERSATION_NO_TURN,
    [TURN_TOOLS_NOT_PRINTED] = CONVERSATION_TOOLS_NOT_PRINTED,
    [TURN_CALLS_NOT_PRINTED] = CONVERSATION_CALLS_NOT_PRINTED,
    [TURN_REASONING_NOT_PRINTED] = CONVERSATION_REASONING_NOT_PRINTED,
    [TURN_EMPTY] = CONVERSATION_NOTHING_TRAINED,
    [TURN_NO_END] = CONVERSATION_NO_END,
};

/* All assistant turns of a row. What is wrong with one drops the row, but for length. */
static bool turn_examples(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                          struct conversation_counts *counts, struct error *err)
{
    const json_t *messages = json_object_get(row, "messages");
    size_t before = out->count, turns = 0;

    for (size_t i = 0; i < json_array_size(messages); i++) {
        struct turn turn = { 0 };
        struct error why = { 0 };

        const json_t *message = json_array_get(messages, i), *weight = json_object_get(message, "weight");

        if (!is_assistant(message) || (weight && json_number_value(weight) == 0))
            continue;
        turns++;

        enum turn_result result = turn_render(format, row, i, &turn, &why);
        bool ok = result != TURN_OK || turn_example(format, row, &turn, line, i, weight ? (float)json_number_value(weight) : 1,
                                                    out, counts, &result, err);

        turn_free(&turn);
        if (!ok)
            return error_at(err, "messages[%zu]", i);
        if (result == TURN_OK && out->count && out->items[out->count - 1].turn == i && out->items[out->count - 1].line == line)
            out->items[out->count - 1].call = json_array_size(json_object_get(json_array_get(messages, i), "tool_calls")) > 0;
        if (result != TURN_OK) {
            examples_cut(out, before);
            if (why.message[0])
                conversation_drop(counts, REASONS[result], line, "messages[%zu]: template %s: %.120s", i, why.place, why.message);
            else
                conversation_drop(counts, REASONS[result], line, "messages[%zu]", i);
            return true;
        }
    }
    if (format->coalesce)
        examples_coalesce(out, before);
    if (!turns)
        conversation_drop(counts, CONVERSATION_NOTHING_TRAINED, line, "messages: no assistant turn");
    return true;
}

/* ---- rows ---- */

bool conversation_row(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                      struct conversation_counts *counts, struct error *err)
{
    if (!conversation_shape(row, err))
        return false;
    if (!format->template)
        return error_set(err, ERROR_MISSING, "name a chat template in the run",
                         "a conversation, and there is no chat template") ||
               error_at(err, "messages");
    return turn_examples(format, row, line, out, counts, err);
}

static bool row_examples(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                         struct conversation_counts *counts, struct error *err)
{
    const json_t *text = json_object_get(row, "text"), *parts = json_object_get(row, "parts");

    if ((text != NULL) + (parts != NULL) + (json_object_get(row, "messages") != NULL) > 1)
        return error_set(err, ERROR_CONFLICT, NULL, "more than one of messages, text and parts");
    if (row_kind(row) == ROW_PAIR)
        return preference_examples(format, row, line, out, counts, err);
    if (row_kind(row) >= ROW_IMAGE)
        return labelled_example(row, line, out, err);
    if (text)
        return text_example(format, text, line, out, err);
    if (parts)
        return parts_example(format, parts, line, out, err);
    return conversation_row(format, row, line, out, counts, err);
}

enum row_kind row_kind(const json_t *row)
{
    static const struct {
        const char *field;
        enum row_kind kind;
    } tells[] = { { "chosen", ROW_PAIR },
                  { "rejected", ROW_PAIR },
                  { "image", ROW_IMAGE },
                  { "series", ROW_SERIES },
                  { "messages", ROW_CHAT } };

    for (size_t i = 0; i < sizeof tells / sizeof *tells; i++)
        if (json_object_get(row, tells[i].field))
            return tells[i].kind;
    return ROW_TEXT;
}

bool conversation_examples(const struct conversation_format *format, const struct rows *rows, size_t index, struct examples *out,
                           struct conversation_counts *counts, struct error *err)
{
    json_t *row = rows_read(rows, index, err);
    uint32_t line = rows->rows[index].line;
    size_t before = out->count;

    if (!row)
        return false;

    bool ok = row_examples(format, row, line, out, counts, err);

    json_decref(row);
    if (!ok) {
        examples_cut(out, before);
        return error_at(err, "%s:%u", rows->name, line);
    }
    counts->rows++;
    for (size_t i = before; i < out->count; i++)
        count_example(counts, &out->items[i]);
    return true;
}

bool conversation_prompt(const struct conversation_format *format, const json_t *conversation, struct tokens *tokens,
                         struct error *err)
{
    struct template_output out = { 0 };
    bool ok = conversation_shape(conversation, err) &&
              turn_prompt(format, conversation, json_array_size(json_object_get(conversation, "messages")), &out, err) &&
              encode_rendered(format, &out.text, out.data, out.data_count, tokens, err);

    template_output_free(&out);
    return ok;
}
