#include "native/text/call_form.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/tool_calls.h"

#define ONE   "probe_of_a_name"
#define TWO   "probe_of_the_other"
#define PROBE "probe_of_arguments"
#define TEXT  "probe_of_text"

void call_form_free(struct call_form *form)
{
    free(form->head.list);
    free(form->middle.list);
    free(form->tail.list);
    free(form->again.list);
    free(form->later.list);
    *form = (struct call_form){ 0 };
}

static bool refused(struct error *err, const char *what)
{
    return error_set(err, ERROR_UNSUPPORTED, "do not constrain, or give a template whose calls are JSON", "%s", what);
}

/* ---- what the template prints ---- */

static void add_symbol(struct call_symbols *out, uint32_t symbol)
{
    if ((out->count & (out->count - 1)) == 0) {
        out->list = realloc(out->list, (out->count ? 2 * out->count : 1) * sizeof *out->list);
        if (!out->list)
            abort();
    }
    out->list[out->count++] = symbol;
}

/* The trained part of the example, less the token that ends the turn. */
static void symbols_of(const struct tokenizer *t, const struct example *e, struct call_symbols *out)
{
    size_t last = e->count;

    while (last > 0 && e->weights[last - 1] == 0)
        last--;
    for (size_t i = 0; i + 1 < last; i++) {
        size_t from = i ? e->ends[i - 1] : 0;

        if (e->weights[i] == 0)
            continue;
        if (tokenizer_is_special(t, e->ids[i]))
            add_symbol(out, CALL_SPECIAL + e->ids[i]);
        else
            for (size_t b = from < e->trained_start ? e->trained_start : from; b < e->ends[i]; b++)
                add_symbol(out, (uint8_t)e->text[b]);
    }
}

static json_t *probe_call(const char *name, const char *id)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:i}}}", "id", id, "type", "function", "function", "name", name, "arguments", PROBE,
                     1);
}

static const char *why_not(const struct conversation_counts *counts)
{
    for (int i = 0; i < CONVERSATION_DROPS; i++)
        if (counts->dropped[i])
            return conversation_drop_text((enum conversation_drop)i);
    return "the template prints no calls";
}

/* The conversation with a turn of `count` calls, behind `text` where it is not NULL. */
static json_t *probe_row(const json_t *conversation, const char *text, int count)
{
    json_t *row = json_copy((json_t *)(uintptr_t)conversation), *messages = json_copy(json_object_get(conversation, "messages"));
    json_t *calls = json_pack("[o]", probe_call(ONE, "call00001"));

    if (count > 1)
        json_array_append_new(calls, probe_call(TWO, "call00002"));
    json_array_append_new(messages, json_pack("{s:s, s:s*, s:o}", "role", "assistant", "content", text, "tool_calls", calls));
    json_object_set_new(row, "messages", messages);
    return row;
}

static bool printed(const struct conversation_format *format, const json_t *conversation, const char *before, int count,
                    struct call_symbols *out, struct error *err)
{
    struct conversation_format wide = *format;
    json_t *row = probe_row(conversation, before, count);
    uint32_t turn = (uint32_t)json_array_size(json_object_get(row, "messages")) - 1;
    char *text = json_dumps(row, JSON_COMPACT);
    struct rows rows = { 0 };
    struct examples examples = { 0 };
    struct conversation_counts counts = { 0 };
    bool ok = true;

    wide.context = SIZE_MAX;
    wide.coalesce = false;
    json_decref(row);
    if (!text)
        return error_set(err, ERROR_SYNTAX, NULL, "the conversation is no JSON");
    ok = rows_of(&rows, "conversation", text, strlen(text), err) &&
         conversation_examples(&wide, &rows, 0, &examples, &counts, err);
    if (ok && (examples.count == 0 || examples.items[examples.count - 1].turn != turn))
        ok = refused(err, why_not(&counts));
    if (ok)
        symbols_of(format->tokenizer, &examples.items[examples.count - 1], out);
    examples_free(&examples);
    rows_free(&rows);
    free(text);
    return ok;
}

/* ---- its parts ---- */

static size_t find(const struct call_symbols *in, size_t from, const char *text)
{
    size_t size = strlen(text);

    for (size_t i = from; i + size <= in->count; i++) {
        size_t same = 0;

        while (same < size && in->list[i + same] == (uint8_t)text[same])
            same++;
        if (same == size)
            return i;
    }
    return SIZE_MAX;
}

static bool is_space(uint32_t symbol)
{
    return symbol == ' ' || symbol == '\n' || symbol == '\t' || symbol == '\r';
}

/* Where a call's name and arguments lie. */
struct parts {
    size_t name, name_end, arguments, arguments_end;
};

static bool parts_of(const struct call_symbols *in, size_t from, const char *name, struct parts *p)
{
    size_t at;

    p->name = find(in, from, name);
    if (p->name == SIZE_MAX)
        return false;
    p->name_end = p->name + strlen(name);
    at = find(in, p->name_end, "\"" PROBE "\"");
    if (at == SIZE_MAX)
        return false;
    p->arguments_end = at + strlen(PROBE) + 2;
    while (at > p->name_end && is_space(in->list[at - 1]))
        at--;
    if (at == p->name_end || in->list[at - 1] != '{')
        return false;
    p->arguments = at - 1;
    for (int seen = 0; seen < 3;) { /* : 1 } */
        uint32_t symbol = p->arguments_end < in->count ? in->list[p->arguments_end++] : CALL_SPECIAL;

        if (symbol == (uint8_t) ":1}"[seen])
            seen++;
        else if (!is_space(symbol))
            return false;
    }
    return p->arguments > p->name_end; /* something ends the name */
}

static void slice(const struct call_symbols *in, size_t from, size_t to, struct call_symbols *out)
{
    for (; from < to; from++)
        add_symbol(out, in->list[from]);
}

static bool equal(const struct call_symbols *a, const struct call_symbols *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
}

static bool begins_with(const struct call_symbols *a, const struct call_symbols *begin)
{
    return a->count >= begin->count && (begin->count == 0 || memcmp(a->list, begin->list, begin->count * sizeof *a->list) == 0);
}

/* The form of two calls, if it is that of one call said twice. */
static void read_again(struct call_form *form, const struct call_symbols *two)
{
    struct parts first, second;
    struct call_form other = { 0 };

    if (!parts_of(two, 0, ONE, &first) || !parts_of(two, first.arguments_end, TWO, &second))
        return;
    slice(two, 0, first.name, &other.head);
    slice(two, first.name_end, first.arguments, &other.middle);
    slice(two, second.arguments_end, two->count, &other.tail);
    slice(two, first.arguments_end, second.name, &other.again);
    if (equal(&other.head, &form->head) && equal(&other.middle, &form->middle) && equal(&other.tail, &form->tail) &&
        other.again.count > 0 && !begins_with(&form->tail, &other.again) && find(&other.again, 0, "call00002") == SIZE_MAX) {
        form->again = other.again;
        other.again = (struct call_symbols){ 0 };
    }
    call_form_free(&other);
}

/* The form of a call behind text, if it is otherwise that of a call alone. */
static void read_later(struct call_form *form, const struct call_symbols *both)
{
    const size_t text = find(both, 0, TEXT);
    struct parts p;
    struct call_form other = { 0 };

    if (text == SIZE_MAX || !parts_of(both, text + strlen(TEXT), ONE, &p))
        return;
    slice(both, p.name_end, p.arguments, &other.middle);
    slice(both, p.arguments_end, both->count, &other.tail);
    if (equal(&other.middle, &form->middle) && equal(&other.tail, &form->tail)) {
        size_t from = text + strlen(TEXT);

        while (from < p.name && is_space(both->list[from]))
            from++;
        slice(both, from, p.name, &form->later);
    }
    call_form_free(&other);
}

/* What was printed for one call must be read as that call. */
static bool reads_back(const struct call_symbols *one)
{
    struct buffer text = { 0 };
    struct error none = { 0 };
    json_t *calls, *call, *wanted = json_pack("{s:i}", PROBE, 1);
    bool same;

    for (size_t i = 0; i < one->count; i++)
        if (one->list[i] < CALL_SPECIAL)
            buffer_add_u8(&text, (uint8_t)one->list[i]);
    calls = tool_calls_read(buffer_text(&text), text.size, &none);
    call = json_array_get(calls, 0);
    same = json_array_size(calls) == 1 && strcmp(json_string_value(json_object_get(call, "name")), ONE) == 0 &&
           json_equal(json_object_get(call, "arguments"), wanted);
    json_decref(calls);
    json_decref(wanted);
    buffer_free(&text);
    return same;
}

bool call_form_read(struct call_form *form, const struct conversation_format *format, const json_t *conversation,
                    struct error *err)
{
    struct call_symbols one = { 0 }, two = { 0 }, both = { 0 };
    struct error none = { 0 };
    struct parts p;
    bool ok;

    *form = (struct call_form){ 0 };
    ok = printed(format, conversation, NULL, 1, &one, err);
    if (ok && (!parts_of(&one, 0, ONE, &p) || !reads_back(&one)))
        ok = refused(err,
                     "the template writes calls in a form that cannot be read back: a name, then arguments in JSON, are needed");
    if (ok) {
        slice(&one, 0, p.name, &form->head);
        slice(&one, p.name_end, p.arguments, &form->middle);
        slice(&one, p.arguments_end, one.count, &form->tail);
        if (printed(format, conversation, NULL, 2, &two, &none))
            read_again(form, &two);
        if (printed(format, conversation, TEXT, 1, &both, &none))
            read_later(form, &both);
    }
    free(one.list);
    free(two.list);
    free(both.list);
    return ok;
}
