#include "runtime/worker/constraint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void constraint_free(struct constraint *c)
{
    call_schema_free(&c->schema);
    call_form_free(&c->form);
    call_memory_free(&c->memory);
    free(c->shorter);
    free(c->closers);
    *c = (struct constraint){ 0 };
}

static bool can_spell(const struct token_table *table, const struct call_text *text, struct error *err)
{
    for (uint32_t i = 0; i < text->size; i++)
        if (!table->single[(uint8_t)text->bytes[i]])
            return error_set(err, ERROR_UNSUPPORTED, "spell it in ASCII",
                             "the vocabulary has no token for byte %02x alone, which \"%.60s\" has", (uint8_t)text->bytes[i],
                             text->bytes);
    return true;
}

static bool can_spell_all(const struct token_table *table, const struct call_texts *texts, struct error *err)
{
    for (uint32_t i = 0; i < texts->count; i++)
        if (!can_spell(table, &texts->list[i], err))
            return false;
    return true;
}

static bool can_print(const struct token_table *table, const struct call_form *form, struct error *err)
{
    const struct call_symbols *lists[4] = { &form->head, &form->middle, &form->tail, &form->again };

    for (size_t l = 0; l < 4; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (lists[l]->list[i] < CALL_SPECIAL && !table->single[lists[l]->list[i]])
                return error_set(err, ERROR_UNSUPPORTED, NULL,
                                 "the vocabulary has no token for byte %02x alone, which the template prints", lists[l]->list[i]);
    return true;
}

/* Of each beginning of `later` the longest other one that it ends with. */
static bool note_shorter(struct constraint *c, struct error *err)
{
    const struct call_symbols *later = &c->form.later;
    uint32_t size = 0;

    c->shorter = calloc(later->count + 1, sizeof *c->shorter);
    if (!c->shorter)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu symbols", later->count);
    for (uint32_t i = 1; i < later->count; i++) {
        while (size > 0 && later->list[i] != later->list[size])
            size = c->shorter[size];
        size += later->list[i] == later->list[size];
        c->shorter[i + 1] = size;
    }
    return true;
}

static bool has_last(const struct token_entry *e, uint32_t id, const struct call_symbols *opening)
{
    const uint32_t last = opening->count ? opening->list[opening->count - 1] : UINT32_MAX;

    return e ? last < CALL_SPECIAL && memchr(e->bytes, (int)last, e->size) : last == CALL_SPECIAL + id;
}

static const struct token_entry *entry_of(const struct token_table *table, uint32_t id)
{
    return table->place[id] ? &table->list[table->place[id] - 1] : NULL;
}

static bool note_closers(struct constraint *c, const struct token_table *table, struct error *err)
{
    c->closers = malloc((table->ids + 1) * sizeof *c->closers);
    if (!c->closers)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u tokens", table->ids);
    for (uint32_t id = 0; id < table->ids; id++)
        if (has_last(entry_of(table, id), id, &c->form.head) || has_last(entry_of(table, id), id, &c->form.later))
            c->closers[c->closer_count++] = id;
    return true;
}

bool constraint_new(struct constraint *c, const struct session *s, const struct token_table *table, const json_t *conversation,
                    bool choice, uint64_t most, struct error *err)
{
    const struct conversation_format format = session_format(s);
    bool ok;

    *c = (struct constraint){ .choice = choice };
    ok = call_schema_read(&c->schema, json_object_get(conversation, "tools"), err) &&
         call_form_read(&c->form, &format, conversation, err) && call_grammar_of(&c->grammar, &c->form, &c->schema, err) &&
         can_spell_all(table, &c->schema.names, err) && can_print(table, &c->form, err);
    for (size_t i = 0; ok && i < c->schema.node_count; i++)
        ok = can_spell_all(table, &c->schema.nodes[i]->texts, err) && can_spell_all(table, &c->schema.nodes[i]->keys, err);
    if (!ok)
        return false;
    c->place = (struct constraint_place){ .state = call_begin(&c->grammar), .calls = !choice };
    if (choice)
        return (c->form.head.count > 0 ||
                error_set(err, ERROR_UNSUPPORTED, "constrain to tools, or not at all",
                          "the template prints nothing before a call's name: a call looks as text does")) &&
               note_shorter(c, err) && note_closers(c, table, err);
    return call_rest(&c->grammar, &c->place.state) < most ||
           error_set(err, ERROR_LIMIT, "give it more tokens",
                     "the shortest call takes %zu tokens, letter by letter, and %llu are left",
                     call_rest(&c->grammar, &c->place.state) + 1, (unsigned long long)most);
}

/* One symbol of text, which may end an opening. */
static void feed_text(struct constraint *c, struct constraint_place *p, uint32_t symbol)
{
    const struct call_symbols *later = &c->form.later;

    p->parted = p->parted || !call_feed(&c->grammar, &c->memory, &p->state, symbol);
    p->calls = !p->parted && p->state.mode != CALL_HEAD;
    if (p->calls || later->count == 0)
        return;
    while (p->later > 0 && later->list[p->later] != symbol)
        p->later = c->shorter[p->later];
    p->later += later->list[p->later] == symbol;
    if (p->later == later->count) {
        p->state = call_begin_name(&c->grammar);
        p->calls = true;
    }
}

/* Reads a token; false: it may not come. */
static bool feed_token(struct constraint *c, const struct token_table *table, struct constraint_place *p, uint32_t id)
{
    const struct token_entry *e = entry_of(table, id);
    bool right = true;

    for (uint32_t i = 0; right && i < (e ? e->size : 1); i++) {
        const uint32_t symbol = e ? (uint8_t)e->bytes[i] : CALL_SPECIAL + id;

        if (p->calls)
            right = call_feed(&c->grammar, &c->memory, &p->state, symbol);
        else
            feed_text(c, p, symbol);
    }
    return right;
}

/* Whether what follows the token may be text, or the rest of a call in `most` symbols; negative: there is no room for any. */
static bool may_follow(struct constraint *c, const struct token_table *table, uint32_t id, int64_t most)
{
    const struct call_mark mark = call_memory_mark(&c->memory);
    struct constraint_place p = c->place;
    const bool right =
        feed_token(c, table, &p, id) && (!p.calls || (most >= 0 && call_rest(&c->grammar, &p.state) <= (uint64_t)most));

    call_memory_back(&c->memory, mark);
    return right;
}

/* Every token but those that begin what can be no whole call. */
static void allow_text(struct constraint *c, const struct token_table *table, int64_t most, uint64_t *bits)
{
    for (uint32_t id = 0; id < table->ids; id++)
        bits[id / 64] |= UINT64_C(1) << id % 64;
    for (size_t i = 0; i < c->closer_count; i++)
        if (!may_follow(c, table, c->closers[i], most))
            bits[c->closers[i] / 64] &= ~(UINT64_C(1) << c->closers[i] % 64);
}

void constraint_allow(struct constraint *c, const struct token_table *table, const struct generation *g, uint64_t most,
                      const uint32_t *ends, size_t end_count, uint64_t *bits)
{
    const int64_t left = (int64_t)most - (int64_t)g->count - 2; /* without this token, and the one that ends the turn */

    for (; c->fed < g->count; c->fed++) {
        const bool right = feed_token(c, table, &c->place, g->tokens[c->fed]);

        assert(right); /* nothing else was allowed */
        (void)right;
    }
    if (!c->place.calls) {
        allow_text(c, table, left, bits);
        return;
    }
    if (left >= 0)
        token_table_allow(table, &c->grammar, &c->memory, &c->place.state, (size_t)left, bits);
    for (size_t i = 0; call_ended(&c->grammar, &c->place.state) && i < end_count; i++)
        bits[ends[i] / 64] |= UINT64_C(1) << ends[i] % 64;
}

/* ---- the sequences of one call ---- */

/* Tokens that g may have in all: those it asks for, as far as the context reaches. */
static uint64_t most_of(const struct constraints *c, const struct generation *g)
{
    uint64_t left = (uint64_t)c->session->rules.context - g->prompt_count;

    return g->most < left ? g->most : left;
}

static void allow(void *context, const struct generation *g, uint64_t *bits)
{
    struct constraints *c = context;

    constraint_allow(&c->list[g - c->first], &c->table, g, most_of(c, g), c->ends, c->end_count, bits);
}

bool constraints_of(struct constraints *c, const struct session *s, const json_t *job, const struct generation *list,
                    size_t count, struct generate_options *options, struct error *err)
{
    const char *what = json_string_value(json_object_get(job, "constrain"));

    *c = (struct constraints){ .session = s, .first = list, .count = count };
    if (!what)
        return true;
    c->choice = strcmp(what, "tools-or-text") == 0;
    if (!c->choice && strcmp(what, "tools") != 0)
        return error_set(err, ERROR_UNKNOWN, "\"tools\" and \"tools-or-text\" are what answers can be constrained to",
                         "constrain: %.40s", what);
    c->end_count = generate_ends(s, c->ends);
    c->list = calloc(count + 1, sizeof *c->list);
    if (!c->list)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu sequences", count);
    if (c->end_count == 0)
        return error_set(err, ERROR_UNSUPPORTED, NULL,
                         "neither template nor configuration of the model names a token that ends a turn");
    options->allow = allow;
    options->allow_context = c;
    return token_table_of(&c->table, s->tokenizer, err);
}

bool constraints_add(struct constraints *c, size_t i, const json_t *conversation, struct error *err)
{
    if (!conversation)
        return error_set(err, ERROR_MISSING, "give a conversation with tools", "a text calls no tools");
    return constraint_new(&c->list[i], c->session, &c->table, conversation, c->choice, most_of(c, &c->first[i]), err);
}

void constraints_free(struct constraints *c)
{
    for (size_t i = 0; c->list && i < c->count; i++)
        constraint_free(&c->list[i]);
    free(c->list);
    token_table_free(&c->table);
    *c = (struct constraints){ 0 };
}
