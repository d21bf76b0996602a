#include "native/text/token_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

/* The bytes that the id adds behind `base`, appended to the table's text. False where it adds none of its own. */
static bool add_bytes(struct token_table *t, const struct tokenizer *tokenizer, uint32_t base, const struct buffer *alone,
                      uint32_t id)
{
    const uint32_t pair[2] = { base, id };
    struct buffer both = { 0 };
    struct error none = { 0 };
    bool ok = tokenizer_decode(tokenizer, pair, 2, false, &both, &none) && both.size > alone->size &&
              memcmp(both.bytes, alone->bytes, alone->size) == 0;
    size_t size = ok ? both.size - alone->size : 0;

    ok = ok && size <= TOKENIZER_MAX_TOKEN_SIZE && !memmem(both.bytes + alone->size, size, "\xef\xbf\xbd", 3);
    if (ok) {
        t->list[t->count++] = (struct token_entry){ .size = (uint32_t)size, .id = id };
        buffer_add(&t->text, both.bytes + alone->size, size);
    }
    buffer_free(&both);
    return ok;
}

static int by_bytes(const void *a, const void *b)
{
    const struct token_entry *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);

    if (order || x->size != y->size)
        return order ? order : x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t common(const struct token_entry *a, const struct token_entry *b)
{
    uint32_t i = 0;

    while (i < a->size && i < b->size && a->bytes[i] == b->bytes[i])
        i++;
    return i;
}

static void sort(struct token_table *t)
{
    const char *at = buffer_text(&t->text);

    for (size_t i = 0; i < t->count; i++) {
        t->list[i].bytes = at;
        at += t->list[i].size;
    }
    if (t->count > 0)
        qsort(t->list, t->count, sizeof *t->list, by_bytes);
    for (size_t i = 0; i < t->count; i++) {
        struct token_entry *e = &t->list[i];

        e->common = i > 0 ? common(e - 1, e) : 0;
        t->place[e->id] = (uint32_t)i + 1;
        t->longest = e->size > t->longest ? e->size : t->longest;
        if (e->size == 1)
            t->single[(uint8_t)e->bytes[0]] = true;
    }
}

bool token_table_of(struct token_table *t, const struct tokenizer *tokenizer, struct error *err)
{
    struct buffer alone = { 0 };
    uint32_t base;

    *t = (struct token_table){ .ids = tokenizer_size(tokenizer) };
    t->list = calloc((size_t)t->ids + 1, sizeof *t->list);
    t->place = calloc((size_t)t->ids + 1, sizeof *t->place);
    if (!t->list || !t->place)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u tokens", t->ids);
    if (!tokenizer_find(tokenizer, "}", 1, &base))
        return error_set(err, ERROR_UNSUPPORTED, "JSON cannot be written so", "the vocabulary has no token for }");
    if (!tokenizer_decode(tokenizer, &base, 1, false, &alone, err)) {
        buffer_free(&alone);
        return false;
    }
    for (uint32_t id = 0; id < t->ids; id++)
        if (!tokenizer_is_special(tokenizer, id))
            add_bytes(t, tokenizer, base, &alone, id);
    buffer_free(&alone);
    sort(t);
    for (int c = ' '; c <= '~'; c++)
        if (!t->single[c])
            return error_set(err, ERROR_UNSUPPORTED, "JSON cannot always be written so",
                             "the vocabulary has no token for %c alone", c);
    t->continues = true;
    for (int c = 0x80; c < 0xc0; c++)
        t->continues = t->continues && t->single[c];
    return true;
}

void token_table_free(struct token_table *t)
{
    free(t->list);
    free(t->place);
    buffer_free(&t->text);
    *t = (struct token_table){ 0 };
}

/* ---- walking ---- */

/* The state after each byte of the token at hand, and the memory that it needs. */
struct step {
    struct call_state state;
    struct call_mark mark;
};

static bool fits(const struct token_table *t, const struct call_grammar *g, const struct call_state *s, size_t most)
{
    return (s->left == 0 || t->continues) && call_rest(g, s) <= most;
}

static void allow_special(const struct token_table *t, const struct call_grammar *g, struct call_memory *memory,
                          const struct call_state *state, size_t most, uint64_t *bits)
{
    const struct call_symbols *lists[4] = { &g->form->head, &g->form->middle, &g->form->tail, &g->form->again };

    for (size_t l = 0; l < 4; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            uint32_t symbol = lists[l]->list[i];
            struct call_state s = *state;
            struct call_mark mark = call_memory_mark(memory);

            if (symbol >= CALL_SPECIAL && symbol - CALL_SPECIAL < t->ids && call_feed(g, memory, &s, symbol) &&
                call_rest(g, &s) <= most)
                bits[(symbol - CALL_SPECIAL) / 64] |= UINT64_C(1) << (symbol - CALL_SPECIAL) % 64;
            call_memory_back(memory, mark);
        }
}

void token_table_allow(const struct token_table *t, const struct call_grammar *g, struct call_memory *memory,
                       const struct call_state *state, size_t most, uint64_t *bits)
{
    struct step *steps = malloc(((size_t)t->longest + 1) * sizeof *steps);
    uint32_t good = 0; /* bytes of the token before that were read */

    if (!steps)
        abort();
    steps[0] = (struct step){ *state, call_memory_mark(memory) };
    for (size_t i = 0; i < t->count; i++) {
        const struct token_entry *e = &t->list[i];
        uint32_t at = e->common;

        if (at > good) /* it begins with what may not come */
            continue;
        call_memory_back(memory, steps[at].mark);
        for (good = at; good < e->size; good++) {
            steps[good + 1].state = steps[good].state;
            if (!call_feed(g, memory, &steps[good + 1].state, (uint8_t)e->bytes[good]))
                break;
            steps[good + 1].mark = call_memory_mark(memory);
        }
        if (good == e->size && fits(t, g, &steps[good].state, most))
            bits[e->id / 64] |= UINT64_C(1) << e->id % 64;
    }
    call_memory_back(memory, steps[0].mark);
    allow_special(t, g, memory, state, most, bits);
    free(steps);
}

bool token_table_feed(const struct token_table *t, const struct call_grammar *g, struct call_memory *memory,
                      struct call_state *state, uint32_t id)
{
    const struct token_entry *e = id < t->ids && t->place[id] ? &t->list[t->place[id] - 1] : NULL;

    if (!e)
        return call_feed(g, memory, state, CALL_SPECIAL + id);
    for (uint32_t i = 0; i < e->size; i++)
        if (!call_feed(g, memory, state, (uint8_t)e->bytes[i]))
            return false;
    return true;
}
