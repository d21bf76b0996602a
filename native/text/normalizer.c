#include "native/text/normalizer.h"

#include <string.h>

#include "native/text/normal_form.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

struct normalizer_step *normalizer_add(struct normalizer *n, struct error *err)
{
    if (n->count == NORMALIZER_MAX_STEPS) {
        error_set(err, ERROR_LIMIT, NULL, "more than %d steps", NORMALIZER_MAX_STEPS);
        return NULL;
    }
    n->steps[n->count] = (struct normalizer_step){ 0 };
    return &n->steps[n->count++];
}

void normalizer_free(struct normalizer *n)
{
    for (size_t i = 0; i < n->count; i++) {
        pattern_free(n->steps[i].pattern);
        charsmap_free(&n->steps[i].charsmap);
    }
    n->count = 0;
}

void normalizer_work_free(struct normalizer_work *work)
{
    aligned_free(&work->text[0]);
    aligned_free(&work->text[1]);
    pattern_search_free(work->search);
    *work = (struct normalizer_work){ 0 };
}

static bool is_space(uint32_t c)
{
    return unicode_in(c, UNICODE_SPACES);
}

static void lowercase(const struct normalized *in, struct aligned *out)
{
    for (size_t at = 0, length; at < in->size; at += length) {
        uint32_t c = utf8_at(in->text + at, in->text + in->size, &length), end = origin_at(in->origin, at + length);

        aligned_add_code_point(out, unicode_lower(c), end);
        if (c == 0x130) /* the dotted capital I keeps its dot */
            aligned_add_code_point(out, 0x307, end);
    }
}

/* Blocks that BERT's own tokenizer sets apart. */
static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* BertNormalizer's first two steps; its others are steps of their own. */
static void clean(const struct normalizer_step *step, const struct normalized *in, struct aligned *out)
{
    for (size_t at = 0, length; at < in->size; at += length) {
        uint32_t c = utf8_at(in->text + at, in->text + in->size, &length), end = origin_at(in->origin, at + length);
        bool apart = step->chinese && is_chinese(c);

        if (step->clean && unicode_library_has(c, LIBRARY_BERT_CONTROL))
            continue;
        if (apart)
            aligned_add(out, " ", 1, end);
        if (step->clean && is_space(c))
            aligned_add(out, " ", 1, end);
        else
            aligned_copy(out, in->text + at, length, origin_from(in->origin, at));
        if (apart)
            aligned_add(out, " ", 1, end);
    }
}

static void strip_accents(const struct normalizer_step *step, const struct normalized *in, struct aligned *out)
{
    for (size_t at = 0, length; at < in->size; at += length)
        if (!unicode_library_has(utf8_at(in->text + at, in->text + in->size, &length),
                                 step->bert ? LIBRARY_BERT_ACCENT : LIBRARY_ACCENT))
            aligned_copy(out, in->text + at, length, origin_from(in->origin, at));
}

/* Only moves the ends: nothing is written. */
static void strip(const struct normalizer_step *step, struct normalized *text)
{
    size_t length;

    while (step->left && text->size && is_space(utf8_at(text->text, text->text + text->size, &length))) {
        text->origin = origin_from(text->origin, length);
        text->text += length;
        text->size -= length;
    }
    while (step->right && text->size && is_space(utf8_before(text->text, text->text + text->size, &length)))
        text->size -= length;
}

static bool too_long(const struct aligned *out, size_t limit, struct error *err)
{
    return out->text.size > limit &&
           !error_set(err, ERROR_LIMIT, "use another tokenizer", "the normaliser makes more than %zu bytes of a text", limit);
}

static bool replace(const struct normalizer_step *step, struct normalizer_work *work, const struct normalized *in, size_t limit,
                    struct aligned *out, struct error *err)
{
    size_t done = 0, from = 0, start = 0, end = 0;

    if (step->pattern && !work->search && !(work->search = pattern_search_new()))
        return error_set(err, ERROR_MEMORY, NULL, "no memory for matching");
    while (from < in->size) {
        if (step->pattern) {
            int found = pattern_find(step->pattern, work->search, in->text, in->size, from, &start, &end, err);

            if (found < 0)
                return false;
            if (!found)
                break;
        } else {
            const char *at = memchr(in->text + from, step->byte, in->size - from);

            if (!at)
                break;
            start = (size_t)(at - in->text);
            end = start + 1;
        }
        aligned_copy(out, in->text + done, start - done, origin_from(in->origin, done));
        aligned_add(out, step->content, step->content_size, origin_at(in->origin, end));
        if (too_long(out, limit, err))
            return false;
        done = from = end;
        if (end == start) {
            size_t length;

            if (start >= in->size)
                break;
            utf8_at(in->text + start, in->text + in->size, &length);
            from += length;
        }
    }
    aligned_copy(out, in->text + done, in->size - done, origin_from(in->origin, done));
    return true;
}

static bool step_changes(const struct normalizer_step *step, const struct normalized *text)
{
    switch (step->kind) {
    case NORMALIZER_NFC:
        return !normal_form_holds(text->text, text->size, false, true);
    case NORMALIZER_NFD:
        return !normal_form_holds(text->text, text->size, false, false);
    case NORMALIZER_NFKC:
        return !normal_form_holds(text->text, text->size, true, true);
    case NORMALIZER_NFKD:
        return !normal_form_holds(text->text, text->size, true, false);
    case NORMALIZER_REPLACE:
        return step->pattern || memchr(text->text, step->byte, text->size);
    default:
        return true;
    }
}

static bool step_apply(const struct normalizer_step *step, struct normalizer_work *work, const struct normalized *in,
                       size_t limit, struct aligned *out, struct error *err)
{
    switch (step->kind) {
    case NORMALIZER_NFC:
    case NORMALIZER_NFD:
    case NORMALIZER_NFKC:
    case NORMALIZER_NFKD:
        normal_form_apply(in->text, in->size, in->origin, step->kind == NORMALIZER_NFKC || step->kind == NORMALIZER_NFKD,
                          step->kind == NORMALIZER_NFC || step->kind == NORMALIZER_NFKC, out);
        break;
    case NORMALIZER_LOWERCASE:
        lowercase(in, out);
        break;
    case NORMALIZER_STRIP_ACCENTS:
        strip_accents(step, in, out);
        break;
    case NORMALIZER_PREPEND:
        aligned_add(out, step->content, step->content_size, origin_at(in->origin, 0));
        aligned_copy(out, in->text, in->size, in->origin);
        break;
    case NORMALIZER_REPLACE:
        return replace(step, work, in, limit, out, err);
    case NORMALIZER_CHARSMAP:
        charsmap_apply(&step->charsmap, step->longest, in->text, in->size, in->origin, limit, out);
        break;
    case NORMALIZER_BERT:
        clean(step, in, out);
        break;
    case NORMALIZER_STRIP:
        break;
    }
    return !too_long(out, limit, err);
}

bool normalizer_apply(const struct normalizer *n, struct normalizer_work *work, struct normalized *text, struct error *err)
{
    size_t limit = text->size * 16 + 4096;
    unsigned turn = 0;

    for (size_t i = 0; i < n->count && text->size; i++) {
        const struct normalizer_step *step = &n->steps[i];
        struct aligned *out = &work->text[turn];

        if (step->kind == NORMALIZER_STRIP) {
            strip(step, text);
            continue;
        }
        if (!step_changes(step, text))
            continue;
        aligned_clear(out);
        if (!step_apply(step, work, text, limit, out, err))
            return false;
        *text = (struct normalized){ (const char *)out->text.bytes, out->text.size, { out->ends, origin_at(text->origin, 0) } };
        turn = !turn;
    }
    return true;
}
