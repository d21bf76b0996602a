#include "runtime/worker/constraint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void constraint_free(struct constraint *c)
{
    call_schema_free(&c->schema);
    call_form_free(&c->form);
    call_memory_free(&c->memory);
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
    c->state = call_begin(&c->grammar);
    if (choice)
        return c->form.head.count > 0 || error_set(err, ERROR_UNSUPPORTED, "constrain to tools, or not at all",
                                                   "the template prints nothing before a call's name: a call looks as text does");
    return call_rest(&c->grammar, &c->state) < most ||
           error_set(err, ERROR_LIMIT, "give it more tokens",
                     "the shortest call takes %zu tokens, letter by letter, and %llu are left",
                     call_rest(&c->grammar, &c->state) + 1, (unsigned long long)most);
}

/* Whether the token would end the opening of a call: what comes behind that must be one. */
static bool ends_opening(struct constraint *c, const struct token_table *table, uint32_t id)
{
    const struct token_entry *e = table->place[id] ? &table->list[table->place[id] - 1] : NULL;
    const struct call_mark mark = call_memory_mark(&c->memory);
    struct call_state s = c->state;
    bool right = true;

    for (uint32_t i = 0; right && s.mode == CALL_HEAD && i < (e ? e->size : 1); i++)
        right = call_feed(&c->grammar, &c->memory, &s, e ? (uint8_t)e->bytes[i] : CALL_SPECIAL + id);
    call_memory_back(&c->memory, mark);
    return right && s.mode != CALL_HEAD;
}

/* Every token but those that end the opening; `bits` has the tokens that go on as a call does. */
static void allow_text(struct constraint *c, const struct token_table *table, uint64_t *bits)
{
    for (uint32_t id = 0; id < table->ids; id++)
        if (c->text || !ends_opening(c, table, id))
            bits[id / 64] |= UINT64_C(1) << id % 64;
}

static bool may_be_text(const struct constraint *c)
{
    return c->choice && (c->text || c->state.mode == CALL_HEAD);
}

void constraint_allow(struct constraint *c, const struct token_table *table, const struct generation *g, uint64_t most,
                      const uint32_t *ends, size_t end_count, uint64_t *bits)
{
    for (; c->fed < g->count; c->fed++) {
        const bool opening = may_be_text(c);

        if (c->text || token_table_feed(table, &c->grammar, &c->memory, &c->state, g->tokens[c->fed]))
            continue;
        assert(opening); /* nothing else was allowed */
        c->text = opening;
    }
    if (!c->text && most > g->count + 1) /* this token, and the one that ends the turn */
        token_table_allow(table, &c->grammar, &c->memory, &c->state, (size_t)(most - g->count - 2), bits);
    if (may_be_text(c))
        allow_text(c, table, bits);
    for (size_t i = 0; !c->text && call_ended(&c->grammar, &c->state) && i < end_count; i++)
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
