#include "native/text/call_automaton.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/call_scalar.h"

enum { NEST = 24, FREE_NAMES = 32 };

/* ---- frames ---- */

struct call_letter {
    const struct call_letter *before;
    uint32_t place; /* from 1 */
    uint8_t byte;
};

/* Names that a free object has. */
struct name {
    const struct name *before;
    const struct call_letter *letters; /* NULL: "" */
    uint32_t number;                   /* from 1 */
};

/* Never changed: an object with one name more is another frame. */
struct call_frame {
    const struct call_frame *parent;
    const struct call_node *node;
    const struct name *names;
    uint64_t used;  /* bits of keys */
    uint32_t count; /* items, the one that is read included */
    uint32_t depth;
    bool list;
    size_t rest; /* bytes of the shortest way from the end of the value that is read to the end of the arguments */
};

static size_t rest_of(const struct call_frame *f)
{
    return f ? f->rest : 0;
}

/* What an object still must have, each with its comma. */
static size_t missing(const struct call_node *n, uint64_t used)
{
    size_t size = 0;

    for (uint64_t left = n->required & ~used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);

        size += n->keys.list[i].size + 2 + n->values[i]->least;
    }
    return size;
}

static size_t object_rest(const struct call_frame *f, uint64_t used)
{
    size_t more = f->node->free ? 0 : missing(f->node, used);

    return more - (used == 0 && more > 0) + 1 + rest_of(f->parent); /* no comma before the first */
}

static size_t list_rest(const struct call_frame *f, uint32_t count)
{
    size_t left = f->node->least_items > count ? f->node->least_items - count : 0, each = f->node->items->least + 1;

    return left * each - (count == 0 && left > 0) + 1 + rest_of(f->parent);
}

static struct call_frame *frame_new(struct call_memory *m, struct call_frame like)
{
    struct call_frame *f = call_memory_take(m, sizeof *f);

    *f = like;
    f->rest = f->list ? list_rest(f, f->count) : object_rest(f, f->used);
    return f;
}

static void open(struct call_memory *m, struct call_state *s, bool list)
{
    s->frame = frame_new(
        m, (struct call_frame){ .parent = s->frame, .node = s->node, .depth = s->frame ? s->frame->depth + 1 : 1, .list = list });
    s->mode = list ? CALL_FIRST_ITEM : CALL_FIRST_KEY;
}

/* The list with one item more, which comes next. */
static void next_item(struct call_memory *m, struct call_state *s)
{
    struct call_frame like = *s->frame;

    like.count++;
    s->frame = frame_new(m, like);
    s->node = like.node->items;
}

/* A value is whole. */
static void finish(struct call_state *s)
{
    s->mode = s->frame ? CALL_AFTER : CALL_TAIL;
    s->at = 0;
    s->tail = s->again = true;
}

static void close(struct call_state *s)
{
    s->frame = s->frame->parent;
    finish(s);
}

/* ---- one of several texts ---- */

static const struct call_texts *texts_of(const struct call_grammar *g, const struct call_state *s)
{
    return s->mode == CALL_NAME ? &g->schema->names : s->mode == CALL_KEY ? &s->frame->node->keys : &s->node->texts;
}

static bool taken(const struct call_state *s, uint32_t i)
{
    return s->mode == CALL_KEY && s->frame->used >> i & 1;
}

/* Those that have the byte next. False, and nothing changed, where none that is left has. */
static bool narrow(const struct call_texts *texts, struct call_state *s, uint32_t byte)
{
    uint32_t low = s->low, high;
    bool some = false;

    while (low < s->high && (texts->list[low].size <= s->at || (uint8_t)texts->list[low].bytes[s->at] != byte))
        low++;
    for (high = low; high < s->high && texts->list[high].size > s->at && (uint8_t)texts->list[high].bytes[s->at] == byte; high++)
        some = some || !taken(s, high);
    if (!some)
        return false;
    s->low = low;
    s->high = high;
    s->at++;
    return true;
}

/* The text that was read as a whole: the first of those left, by their order. */
static bool whole(const struct call_texts *texts, const struct call_state *s)
{
    return s->low < s->high && texts->list[s->low].size == s->at;
}

static void choose(struct call_state *s, enum call_mode mode, uint32_t count)
{
    s->mode = mode;
    s->low = 0;
    s->high = count;
    s->at = 0;
}

/* ---- names that are free ---- */

static bool same_name(const struct call_letter *a, const struct call_letter *b)
{
    if ((a ? a->place : 0) != (b ? b->place : 0))
        return false;
    while (a && a != b && a->byte == b->byte) {
        a = a->before;
        b = b->before;
    }
    return a == b || !a;
}

static bool name_taken(const struct call_state *s)
{
    for (const struct name *n = s->frame->names; n; n = n->before)
        if (same_name(n->letters, s->letters))
            return true;
    return false;
}

static bool feed_free_key(struct call_memory *m, struct call_state *s, uint32_t c)
{
    struct call_letter *letter;

    if (s->left == 0 && c == '"') {
        struct call_frame like = *s->frame;
        struct name *name;

        if (name_taken(s))
            return false;
        name = call_memory_take(m, sizeof *name);
        *name = (struct name){ like.names, s->letters, like.names ? like.names->number + 1 : 1 };
        like.names = name;
        like.used = 1;
        s->frame = frame_new(m, like);
        s->node = like.node->items;
        s->mode = CALL_COLON;
        return true;
    }
    if ((s->left == 0 && c == '\\') || !call_character(s, c))
        return false;
    letter = call_memory_take(m, sizeof *letter);
    *letter = (struct call_letter){ s->letters, s->letters ? s->letters->place + 1 : 1, (uint8_t)c };
    s->letters = letter;
    return true;
}

/* How many times `a` must still be written so that no name is like it. Of a character that is not whole nothing is known but that it will
 * be like one name at most. */
static size_t free_key_rest(const struct call_state *s)
{
    uint64_t like = 0;
    size_t more = 0;

    if (s->left > 0)
        return s->left + (s->frame->names ? s->frame->names->number : 0);
    for (const struct name *n = s->frame->names; n; n = n->before) {
        const struct call_letter *letters = n->letters;
        unsigned tail = 0;

        while (letters && letters->byte == 'a' && letters->place > (s->letters ? s->letters->place : 0)) {
            letters = letters->before;
            tail++;
        }
        if (same_name(letters, s->letters))
            like |= UINT64_C(1) << tail % 64;
    }
    while (like >> more & 1)
        more++;
    return more;
}

/* ---- values ---- */

static bool begin_value(struct call_memory *m, struct call_state *s, uint32_t c)
{
    const struct call_node *n = s->node;
    bool deep = s->frame && s->frame->depth >= NEST;

    if (c == '"' && n->kinds & CALL_STRING)
        call_text_begin(s, CALL_CHARS);
    else if (c == '{' && n->kinds & CALL_OBJECT && !(deep && n->free))
        open(m, s, false);
    else if (c == '[' && n->kinds & CALL_ARRAY && !(deep && n->free))
        open(m, s, true);
    else if ((c == '-' || (c >= '0' && c <= '9')) && n->kinds & (CALL_INTEGER | CALL_NUMBER))
        return call_number_begin(s, c);
    else {
        choose(s, CALL_WORD, n->texts.count);
        return narrow(&n->texts, s, c);
    }
    return true;
}

static bool may_close(const struct call_frame *f)
{
    return f->list ? f->count >= f->node->least_items : !(f->node->required & ~f->used);
}

static bool may_go_on(const struct call_frame *f)
{
    if (f->list)
        return f->count < f->node->most_items;
    return f->node->free ? !f->names || f->names->number < FREE_NAMES : __builtin_popcountll(f->used) < (int)f->node->keys.count;
}

static bool begin_key(struct call_state *s, uint32_t c)
{
    const struct call_node *n = s->frame->node;

    if (c != '"' || !may_go_on(s->frame))
        return false;
    if (n->free) {
        call_text_begin(s, CALL_FREE_KEY);
        return true;
    }
    choose(s, CALL_KEY, n->keys.count);
    return narrow(&n->keys, s, c);
}

static bool feed_key(struct call_memory *m, struct call_state *s, uint32_t c)
{
    const struct call_texts *keys = &s->frame->node->keys;
    struct call_frame like = *s->frame;

    if (!narrow(keys, s, c))
        return false;
    if (!whole(keys, s))
        return true;
    like.used |= UINT64_C(1) << s->low;
    s->node = like.node->values[s->low];
    s->frame = frame_new(m, like);
    s->mode = CALL_COLON;
    return true;
}

static bool feed_comma(struct call_memory *m, struct call_state *s, uint32_t c)
{
    if (c == ' ' && s->space) {
        s->space = false;
        return true;
    }
    if (!s->frame->list)
        return begin_key(s, c);
    next_item(m, s);
    return begin_value(m, s, c);
}

static bool feed_after(struct call_state *s, uint32_t c)
{
    const struct call_frame *f = s->frame;

    if (c == (f->list ? ']' : '}') && may_close(f)) {
        close(s);
        return true;
    }
    s->mode = CALL_COMMA;
    s->space = true;
    return c == ',' && may_go_on(f);
}

static bool feed_first(struct call_memory *m, struct call_state *s, uint32_t c)
{
    if (c == (s->frame->list ? ']' : '}') && may_close(s->frame)) {
        close(s);
        return true;
    }
    if (!s->frame->list)
        return begin_key(s, c);
    if (!may_go_on(s->frame))
        return false;
    next_item(m, s);
    return begin_value(m, s, c);
}

/* ---- the form ---- */

static void begin_name(const struct call_grammar *g, struct call_state *s)
{
    choose(s, CALL_NAME, g->schema->names.count);
    s->calls++;
}

static void begin_arguments(struct call_state *s)
{
    s->mode = CALL_VALUE;
    s->space = false;
    s->frame = NULL;
}

/* The next of a list of symbols; the state stands behind the last one where `done`. */
static bool feed_list(const struct call_symbols *list, struct call_state *s, uint32_t symbol, bool *done)
{
    if (list->list[s->at] != symbol)
        return false;
    *done = ++s->at == list->count;
    return true;
}

static bool feed_name(const struct call_grammar *g, struct call_state *s, uint32_t symbol)
{
    const struct call_symbols *middle = &g->form->middle;

    if (narrow(&g->schema->names, s, symbol))
        return true;
    if (!whole(&g->schema->names, s) || symbol != middle->list[0])
        return false;
    s->node = g->schema->tools[s->low];
    s->mode = CALL_MIDDLE;
    s->at = 1;
    if (middle->count == 1)
        begin_arguments(s);
    return true;
}

/* The turn ends, or another call follows: both may begin alike. */
static bool feed_tail(const struct call_grammar *g, struct call_state *s, uint32_t symbol)
{
    const struct call_symbols *tail = &g->form->tail, *again = &g->form->again;

    s->tail = s->tail && s->at < tail->count && tail->list[s->at] == symbol;
    s->again = s->again && s->calls < CALL_MOST && s->at < again->count && again->list[s->at] == symbol;
    s->at++;
    if (s->again && s->at == again->count)
        begin_name(g, s);
    return s->tail || s->again;
}

static bool feed_word(const struct call_grammar *g, struct call_memory *m, struct call_state *s, uint32_t symbol)
{
    if (narrow(&s->node->texts, s, symbol))
        return true;
    if (!whole(&s->node->texts, s))
        return false;
    finish(s);
    return call_feed(g, m, s, symbol);
}

static bool feed_digits(const struct call_grammar *g, struct call_memory *m, struct call_state *s, uint32_t symbol)
{
    bool end = call_number_whole(s);

    if (call_number_feed(s, symbol))
        return true;
    if (!end)
        return false;
    finish(s);
    return call_feed(g, m, s, symbol);
}

/* ---- the automaton ---- */

bool call_grammar_of(struct call_grammar *g, const struct call_form *form, const struct call_schema *schema, struct error *err)
{
    *g = (struct call_grammar){ .form = form, .schema = schema, .shortest = SIZE_MAX };
    for (uint32_t i = 0; i < schema->names.count; i++) {
        const struct call_text *name = &schema->names.list[i];
        size_t size = name->size + form->middle.count + schema->tools[i]->least + form->tail.count;

        if (form->middle.list[0] < CALL_SPECIAL && memchr(name->bytes, (int)form->middle.list[0], name->size))
            return error_set(err, ERROR_UNSUPPORTED, "rename it", "the tool %.60s: the template ends a name with what is in it",
                             name->bytes);
        g->shortest = size < g->shortest ? size : g->shortest;
    }
    return true;
}

struct call_state call_begin(const struct call_grammar *g)
{
    struct call_state s = { .mode = CALL_HEAD };

    if (g->form->head.count == 0)
        begin_name(g, &s);
    return s;
}

struct call_state call_begin_name(const struct call_grammar *g)
{
    struct call_state s = { 0 };

    begin_name(g, &s);
    return s;
}

bool call_feed(const struct call_grammar *g, struct call_memory *m, struct call_state *s, uint32_t symbol)
{
    bool done = false;

    switch ((enum call_mode)s->mode) {
    case CALL_HEAD:
        if (!feed_list(&g->form->head, s, symbol, &done))
            return false;
        if (done)
            begin_name(g, s);
        return true;
    case CALL_NAME:
        return feed_name(g, s, symbol);
    case CALL_MIDDLE:
        if (!feed_list(&g->form->middle, s, symbol, &done))
            return false;
        if (done)
            begin_arguments(s);
        return true;
    case CALL_TAIL:
        return feed_tail(g, s, symbol);
    default:
        break;
    }
    if (symbol >= CALL_SPECIAL && s->mode != CALL_WORD && s->mode != CALL_DIGIT)
        return false;
    switch ((enum call_mode)s->mode) {
    case CALL_VALUE:
        if (symbol == ' ' && s->space) {
            s->space = false;
            return true;
        }
        return begin_value(m, s, symbol);
    case CALL_WORD:
        return feed_word(g, m, s, symbol);
    case CALL_CHARS:
        if (!call_text_feed(s, symbol, &done))
            return false;
        if (done)
            finish(s);
        return true;
    case CALL_DIGIT:
        return feed_digits(g, m, s, symbol);
    case CALL_FIRST_ITEM:
    case CALL_FIRST_KEY:
        return feed_first(m, s, symbol);
    case CALL_KEY:
        return feed_key(m, s, symbol);
    case CALL_FREE_KEY:
        return feed_free_key(m, s, symbol);
    case CALL_COLON:
        s->mode = CALL_VALUE;
        s->space = true;
        return symbol == ':';
    case CALL_AFTER:
        return feed_after(s, symbol);
    case CALL_COMMA:
        return feed_comma(m, s, symbol);
    default:
        return false;
    }
}

bool call_ended(const struct call_grammar *g, const struct call_state *s)
{
    return s->mode == CALL_TAIL && s->tail && s->at == g->form->tail.count;
}

/* The shortest of the names or words that are left; for a name also its arguments. */
static size_t texts_rest(const struct call_grammar *g, const struct call_state *s)
{
    const struct call_texts *texts = texts_of(g, s);
    size_t best = SIZE_MAX;

    for (uint32_t i = s->low; i < s->high; i++) {
        size_t size = texts->list[i].size - s->at;

        if (taken(s, i))
            continue;
        if (s->mode == CALL_NAME)
            size += g->form->middle.count + g->schema->tools[i]->least;
        else if (s->mode == CALL_KEY)
            size += 1 + s->frame->node->values[i]->least + object_rest(s->frame, s->frame->used | UINT64_C(1) << i);
        best = size < best ? size : best;
    }
    return best;
}

/* From a comma on. */
static size_t comma_rest(const struct call_grammar *g, const struct call_state *s)
{
    const struct call_frame *f = s->frame;
    struct call_state key = *s;

    if (f->list)
        return f->node->items->least + list_rest(f, f->count + 1);
    if (f->node->free) {
        call_text_begin(&key, CALL_FREE_KEY);
        return 3 + free_key_rest(&key) + f->node->items->least + f->rest;
    }
    choose(&key, CALL_KEY, f->node->keys.count);
    return texts_rest(g, &key);
}

static size_t value_rest(const struct call_grammar *g, const struct call_state *s)
{
    size_t after = rest_of(s->frame);

    switch ((enum call_mode)s->mode) {
    case CALL_VALUE:
        return s->node->least + after;
    case CALL_WORD:
        return texts_rest(g, s) + after;
    case CALL_CHARS:
        return call_text_rest(s) + after;
    case CALL_DIGIT:
        return call_number_rest(s) + after;
    case CALL_KEY:
        return texts_rest(g, s);
    case CALL_FREE_KEY:
        return free_key_rest(s) + 2 + s->frame->node->items->least + after;
    case CALL_COLON:
        return 1 + s->node->least + after;
    case CALL_COMMA:
        return comma_rest(g, s);
    default:
        return after;
    }
}

size_t call_rest(const struct call_grammar *g, const struct call_state *s)
{
    switch ((enum call_mode)s->mode) {
    case CALL_HEAD:
        return g->form->head.count - s->at + g->shortest;
    case CALL_NAME:
        return texts_rest(g, s) + g->form->tail.count;
    case CALL_MIDDLE:
        return g->form->middle.count - s->at + s->node->least + g->form->tail.count;
    case CALL_TAIL:
        return s->tail ? g->form->tail.count - s->at : g->form->again.count - s->at + g->shortest;
    default:
        return value_rest(g, s) + g->form->tail.count;
    }
}
