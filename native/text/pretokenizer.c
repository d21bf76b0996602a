#include "native/text/pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/byte_alphabet.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

static struct pretokenizer_step *add(struct pretokenizer *p, struct error *err)
{
    if (p->count == PRETOKENIZER_MAX_STEPS) {
        error_set(err, ERROR_LIMIT, NULL, "more than %d steps", PRETOKENIZER_MAX_STEPS);
        return NULL;
    }

    struct pretokenizer_step *step = &p->steps[p->count++];

    *step = (struct pretokenizer_step){ .bytes = p->byte_level };
    return step;
}

bool pretokenizer_add_pattern(struct pretokenizer *p, const char *pattern, size_t size, bool literal,
                              enum split_behavior behavior, bool invert, struct error *err)
{
    struct pretokenizer_step *step = add(p, err);

    if (!step)
        return false;
    step->kind = STEP_PATTERN;
    step->behavior = behavior;
    step->invert = invert;
    if (!literal && !step->bytes && (invert ? behavior == SPLIT_REMOVED : behavior == SPLIT_ISOLATED))
        step->rule = split_rule_find(pattern, size);
    if (step->rule)
        step->kind = STEP_RULE;
    else
        step->pattern = pattern_new(pattern, size, literal, err);
    return step->rule || step->pattern;
}

bool pretokenizer_add_set(struct pretokenizer *p, enum split_set set, enum split_behavior behavior, struct error *err)
{
    struct pretokenizer_step *step = add(p, err);

    if (!step)
        return false;
    step->kind = STEP_SET;
    step->set = set;
    step->behavior = behavior;
    step->invert = set == SET_WORDS;
    return true;
}

bool pretokenizer_add_fixed(struct pretokenizer *p, size_t length, struct error *err)
{
    struct pretokenizer_step *step = add(p, err);

    if (!step)
        return false;
    if (length == 0)
        return error_set(err, ERROR_RANGE, NULL, "a length of 0");
    step->kind = STEP_FIXED;
    step->length = length;
    return true;
}

bool pretokenizer_add_byte_level(struct pretokenizer *p, bool add_prefix_space, bool use_regex, struct error *err)
{
    if (p->byte_level)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "ByteLevel after ByteLevel");
    if (add_prefix_space) {
        struct pretokenizer_step *step = add(p, err);

        if (!step)
            return false;
        step->kind = STEP_PREFIX;
    }
    if (use_regex && !pretokenizer_add_pattern(p, SPLIT_GPT2, strlen(SPLIT_GPT2), false, SPLIT_ISOLATED, false, err))
        return false;
    p->byte_level = true;
    return true;
}

bool pretokenizer_add_metaspace(struct pretokenizer *p, const char *replacement, enum prepend_scheme scheme, bool split,
                                struct error *err)
{
    struct pretokenizer_step *step = add(p, err);

    if (!step)
        return false;
    if (step->bytes)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "Metaspace after ByteLevel");
    if (*replacement == 0 || utf8_count(replacement, strlen(replacement)) != 1)
        return error_set(err, ERROR_RANGE, NULL, "replacement is not one character");
    step->kind = STEP_METASPACE;
    step->prepend = scheme;
    step->split = split;
    memcpy(step->replacement, replacement, strlen(replacement) + 1);
    return true;
}

void pretokenizer_free(struct pretokenizer *p)
{
    for (size_t i = 0; i < p->count; i++)
        pattern_free(p->steps[i].pattern);
    p->count = 0;
}

/* ---- one text ---- */

struct cut {
    size_t start, end;
    bool match, removed;
};

struct cuts {
    struct cut *list; /* owned */
    size_t count, capacity;
};

struct pretokenizer_work {
    struct pattern_search *search;
    struct cuts cuts[PRETOKENIZER_MAX_STEPS];
    struct aligned text[PRETOKENIZER_MAX_STEPS]; /* as a step changed it, or as its bytes' characters */
};

struct pretokenizer_work *pretokenizer_work_new(const struct pretokenizer *p)
{
    struct pretokenizer_work *work = calloc(1, sizeof *work);
    bool search = false;

    for (size_t i = 0; i < p->count; i++)
        search = search || p->steps[i].kind == STEP_PATTERN;
    if (work && search && !(work->search = pattern_search_new())) {
        free(work);
        return NULL;
    }
    return work;
}

void pretokenizer_work_free(struct pretokenizer_work *work)
{
    if (!work)
        return;
    pattern_search_free(work->search);
    for (size_t i = 0; i < PRETOKENIZER_MAX_STEPS; i++) {
        free(work->cuts[i].list);
        aligned_free(&work->text[i]);
    }
    free(work);
}

static void cut_add(struct cuts *cuts, size_t start, size_t end, bool match)
{
    if (cuts->count == cuts->capacity) {
        cuts->capacity = cuts->capacity ? cuts->capacity * 2 : 64;
        cuts->list = reallocarray(cuts->list, cuts->capacity, sizeof *cuts->list);
        if (!cuts->list)
            abort();
    }
    cuts->list[cuts->count++] = (struct cut){ start, end, match, false };
}

static bool in_set(enum split_set set, uint32_t c)
{
    switch (set) {
    case SET_DIGITS:
        return unicode_in(c, UNICODE_NUMBERS) || (c >= 0x10000 && unicode_library_has(c, LIBRARY_NUMBER));
    case SET_SPACES:
        return unicode_in(c, UNICODE_SPACES);
    case SET_PUNCTUATION:
        return c < 0x80 ? unicode_in(c, UNICODE_PUNCTUATIONS | UNICODE_SET(UNICODE_SYMBOL))
                        : unicode_library_has(c, LIBRARY_PUNCTUATION);
    case SET_WORDS:
        break;
    }
    return false;
}

static void cut_set(const struct pretokenizer_step *step, struct cuts *cuts, const char *text, size_t size)
{
    size_t done = 0, length;

    for (size_t at = 0; at < size; at += length) {
        if (!in_set(step->set, utf8_at(text + at, text + size, &length)))
            continue;
        if (done < at)
            cut_add(cuts, done, at, false);
        cut_add(cuts, at, at + length, true);
        done = at + length;
    }
    if (done < size)
        cut_add(cuts, done, size, false);
}

static int word_kind(uint32_t c)
{
    return unicode_is_word(c) ? 1 : unicode_in(c, UNICODE_SPACES) ? 0 : 2;
}

static void cut_words(struct cuts *cuts, const char *text, size_t size)
{
    size_t at = 0, length;

    while (at < size) {
        size_t start = at;
        int kind = word_kind(utf8_at(text + at, text + size, &length));

        for (at += length; at < size && word_kind(utf8_at(text + at, text + size, &length)) == kind;)
            at += length;
        cut_add(cuts, start, at, kind != 0);
    }
}

static void cut_fixed(const struct pretokenizer_step *step, struct cuts *cuts, const char *text, size_t size)
{
    size_t start = 0, count = 0, length;

    for (size_t at = 0; at < size; at += length) {
        utf8_at(text + at, text + size, &length);
        if (++count % step->length == 0 || at + length == size) {
            cut_add(cuts, start, at + length, false);
            start = at + length;
        }
    }
}

/* Matches and gaps. An empty match is a cut, and the search goes on from the next character. */
static bool cut_pattern(const struct pretokenizer_step *step, struct pretokenizer_work *work, struct cuts *cuts, const char *text,
                        size_t size, struct error *err)
{
    size_t done = 0, from = 0, start, end;

    while (from < size) {
        int found = pattern_find(step->pattern, work->search, text, size, from, &start, &end, err);

        if (found < 0)
            return false;
        if (!found || (start >= size && end == start))
            break;
        if (start > done)
            cut_add(cuts, done, start, false);
        cut_add(cuts, start, end, true);
        done = from = end;
        if (end == start) {
            size_t length;

            utf8_at(text + start, text + size, &length);
            from = start + length;
        }
    }
    if (done < size)
        cut_add(cuts, done, size, false);
    return true;
}

/* A match joins the piece before it (or is alike the one before, if contiguous). */
static void merge_forward(struct cuts *cuts, bool contiguous)
{
    bool previous = false;
    size_t kept = 0;

    for (size_t i = 0; i < cuts->count; i++) {
        struct cut cut = cuts->list[i];
        bool joins = contiguous ? cut.match == previous : cut.match && !previous;

        if (joins && kept)
            cuts->list[kept - 1].end = cut.end;
        else
            cuts->list[kept++] = cut;
        previous = cut.match;
    }
    cuts->count = kept;
}

static void merge_backward(struct cuts *cuts)
{
    bool previous = false;
    size_t kept = cuts->count;

    for (size_t i = cuts->count; i-- > 0;) {
        struct cut cut = cuts->list[i];

        if (cut.match && !previous && kept < cuts->count)
            cuts->list[kept].start = cut.start;
        else
            cuts->list[--kept] = cut;
        previous = cut.match;
    }
    memmove(cuts->list, cuts->list + kept, (cuts->count - kept) * sizeof *cuts->list);
    cuts->count -= kept;
}

static void behave(struct cuts *cuts, enum split_behavior behavior, bool invert)
{
    for (size_t i = 0; i < cuts->count; i++) {
        cuts->list[i].match ^= invert;
        cuts->list[i].removed = behavior == SPLIT_REMOVED && cuts->list[i].match;
    }
    if (behavior == SPLIT_CONTIGUOUS || behavior == SPLIT_WITH_PREVIOUS)
        merge_forward(cuts, behavior == SPLIT_CONTIGUOUS);
    if (behavior == SPLIT_WITH_NEXT && cuts->count)
        merge_backward(cuts);
}

/* From places in the characters that stand for bytes to places in the bytes: one a character. */
static void places_of_bytes(struct cuts *cuts, const char *characters)
{
    size_t at = 0, count = 0;

    for (size_t i = 0; i < cuts->count; i++) {
        struct cut *cut = &cuts->list[i];

        for (; at < cut->start; at++)
            count += ((uint8_t)characters[at] & 0xc0) != 0x80;
        cut->start = count;
        for (; at < cut->end; at++)
            count += ((uint8_t)characters[at] & 0xc0) != 0x80;
        cut->end = count;
    }
}

struct chain {
    const struct pretokenizer *p;
    struct pretokenizer_work *work;
    void (*piece)(void *, const char *, size_t, struct origin);
    void *context;
    struct error *err;
};

static bool split_from(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin);

static bool pass_on(struct chain *chain, size_t level, const char *text, size_t start, size_t end, struct origin origin)
{
    return start == end || split_from(chain, level + 1, text + start, end - start, origin_from(origin, start));
}

static bool split_by_rule(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin)
{
    const struct pretokenizer_step *step = &chain->p->steps[level];
    size_t done = 0, at = 0;

    while (at < size) {
        size_t length = split_rule_match(step->rule, text + at, text + size);

        if (!length) {
            utf8_at(text + at, text + size, &length);
            at += length;
            continue;
        }
        if ((!step->invert && !pass_on(chain, level, text, done, at, origin)) ||
            !pass_on(chain, level, text, at, at + length, origin))
            return false;
        done = at += length;
    }
    return step->invert || pass_on(chain, level, text, done, size, origin);
}

static bool split_by_cuts(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin)
{
    const struct pretokenizer_step *step = &chain->p->steps[level];
    struct cuts *cuts = &chain->work->cuts[level];
    const char *view = text;
    size_t view_size = size;

    cuts->count = 0;
    if (step->bytes) {
        struct buffer *characters = &chain->work->text[level].text;

        buffer_clear(characters);
        for (size_t i = 0; i < size; i++)
            utf8_add(characters, byte_alphabet_code_point((uint8_t)text[i]));
        view = (const char *)characters->bytes;
        view_size = characters->size;
    }
    if (step->kind == STEP_FIXED)
        cut_fixed(step, cuts, view, view_size);
    else if (step->kind == STEP_PATTERN && !cut_pattern(step, chain->work, cuts, view, view_size, chain->err))
        return false;
    else if (step->kind == STEP_SET && step->set == SET_WORDS)
        cut_words(cuts, view, view_size);
    else if (step->kind == STEP_SET)
        cut_set(step, cuts, view, view_size);
    behave(cuts, step->behavior, step->invert);
    if (step->bytes)
        places_of_bytes(cuts, view);
    for (size_t i = 0; i < cuts->count; i++)
        if (!cuts->list[i].removed && !pass_on(chain, level, text, cuts->list[i].start, cuts->list[i].end, origin))
            return false;
    return true;
}

static bool starts_with(const char *text, size_t size, const char *start)
{
    size_t length = strlen(start);

    return size >= length && !memcmp(text, start, length);
}

/* A space before the text, unless it begins with one. */
static bool prefix(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin)
{
    struct aligned *changed = &chain->work->text[level];

    if (starts_with(text, size, " "))
        return split_from(chain, level + 1, text, size, origin);
    aligned_clear(changed);
    aligned_add(changed, " ", 1, origin_at(origin, 0));
    aligned_copy(changed, text, size, origin);
    return split_from(chain, level + 1, (const char *)changed->text.bytes, changed->text.size,
                      (struct origin){ changed->ends, origin.start });
}

static bool metaspace(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin)
{
    const struct pretokenizer_step *step = &chain->p->steps[level];
    const char *replacement = step->replacement;
    struct aligned *changed = &chain->work->text[level];
    size_t length = strlen(replacement);
    bool prepend = step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && origin_at(origin, 0) == 0);

    aligned_clear(changed);
    if (prepend && *text != ' ' && !starts_with(text, size, replacement))
        aligned_add(changed, replacement, length, origin_at(origin, 0));
    for (size_t i = 0; i < size; i++)
        aligned_add(changed, text[i] == ' ' ? replacement : text + i, text[i] == ' ' ? length : 1, origin_at(origin, i + 1));
    text = (const char *)changed->text.bytes;
    size = changed->text.size;
    origin = (struct origin){ changed->ends, origin.start };
    if (!step->split)
        return split_from(chain, level + 1, text, size, origin);

    struct cuts *cuts = &chain->work->cuts[level];
    size_t done = 0;

    cuts->count = 0;
    for (size_t at = 0; at + length <= size;) {
        if (memcmp(text + at, replacement, length)) {
            at++;
            continue;
        }
        if (done < at)
            cut_add(cuts, done, at, false);
        cut_add(cuts, at, at + length, true);
        done = at += length;
    }
    if (done < size)
        cut_add(cuts, done, size, false);
    behave(cuts, SPLIT_WITH_NEXT, false);
    for (size_t i = 0; i < cuts->count; i++)
        if (!pass_on(chain, level, text, cuts->list[i].start, cuts->list[i].end, origin))
            return false;
    return true;
}

static bool split_from(struct chain *chain, size_t level, const char *text, size_t size, struct origin origin)
{
    if (level == chain->p->count) {
        chain->piece(chain->context, text, size, origin);
        return true;
    }
    switch (chain->p->steps[level].kind) {
    case STEP_RULE:
        return split_by_rule(chain, level, text, size, origin);
    case STEP_PREFIX:
        return prefix(chain, level, text, size, origin);
    case STEP_METASPACE:
        return metaspace(chain, level, text, size, origin);
    case STEP_PATTERN:
    case STEP_SET:
    case STEP_FIXED:
        break;
    }
    return split_by_cuts(chain, level, text, size, origin);
}

bool pretokenizer_split(const struct pretokenizer *p, struct pretokenizer_work *work, const char *text, size_t size,
                        struct origin origin, void (*piece)(void *context, const char *text, size_t size, struct origin origin),
                        void *context, struct error *err)
{
    struct chain chain = { p, work, piece, context, err };

    return size == 0 || split_from(&chain, 0, text, size, origin);
}
