#include "native/text/added_tokens.h"

#include "native/text/tokenizer_build.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

void added_tokens_free(struct added_tokens *a)
{
    pair_map_free(&a->edges);
    pair_map_free(&a->ids);
}

void added_tokens_add(struct added_tokens *a, const char *text, size_t size, uint32_t id)
{
    uint64_t node = 0;

    if (!size)
        return;
    a->first[(uint8_t)text[0]] = true;
    for (size_t i = 0; i < size; i++) {
        uint64_t edge = node << 8 | (uint8_t)text[i], next = pair_map_get(&a->edges, edge);

        if (next == UINT64_MAX) {
            next = ++a->nodes;
            pair_map_set(&a->edges, edge, next);
        }
        node = next;
    }
    if (pair_map_get(&a->ids, node) == UINT64_MAX)
        pair_map_set(&a->ids, node, id);
}

/* The longest token at `at`: its size, 0 if none. */
static size_t longest(const struct added_tokens *a, const char *at, const char *end, uint32_t *id)
{
    uint64_t node = 0;
    size_t found = 0;

    for (size_t i = 0; at + i < end; i++) {
        node = pair_map_get(&a->edges, node << 8 | (uint8_t)at[i]);
        if (node == UINT64_MAX)
            break;

        uint64_t here = pair_map_get(&a->ids, node);

        if (here != UINT64_MAX) {
            *id = (uint32_t)here;
            found = i + 1;
        }
    }
    return found;
}

static bool within_word(const char *text, size_t size, size_t start, size_t end)
{
    size_t length;

    return (start && unicode_is_word(utf8_before(text, text + start, &length))) ||
           (end < size && unicode_is_word(utf8_at(text + end, text + size, &length)));
}

static bool is_space(uint32_t c)
{
    return unicode_in(c, UNICODE_SPACES);
}

static void take_spaces(uint8_t flags, const char *text, size_t size, size_t done, struct added_match *match)
{
    size_t length;

    while (flags & TOKEN_LSTRIP && match->start > done && is_space(utf8_before(text, text + match->start, &length)))
        match->start -= length;
    while (flags & TOKEN_RSTRIP && match->end < size && is_space(utf8_at(text + match->end, text + size, &length)))
        match->end += length;
}

/* Whether a special token at [start, end) counts. */
static bool special_counts(const struct added_where *where, size_t start, size_t end)
{
    size_t low = 0, high = where->plain_count;

    if (!where->special || !where->plain_count)
        return where->special;
    start = origin_at(where->origin, start);
    end = origin_at(where->origin, end);
    while (low < high) { /* the first range that ends behind the start */
        size_t middle = low + (high - low) / 2;

        if (where->plain[middle].end > start)
            high = middle;
        else
            low = middle + 1;
    }
    return low == where->plain_count || where->plain[low].start > start || where->plain[low].end < end;
}

bool added_tokens_find(const struct added_tokens *a, const uint8_t *flags, const struct added_where *where, const char *text,
                       size_t size, size_t from, size_t done, struct added_match *match, size_t *next)
{
    for (size_t at = from; at < size; at++) {
        uint32_t id;
        size_t length = a->first[(uint8_t)text[at]] ? longest(a, text + at, text + size, &id) : 0;

        if (!length)
            continue;
        if ((flags[id] & TOKEN_SPECIAL && !special_counts(where, at, at + length)) ||
            (flags[id] & TOKEN_SINGLE_WORD && within_word(text, size, at, at + length))) {
            at += length - 1;
            continue;
        }
        *match = (struct added_match){ id, at, at + length };
        *next = at + length;
        take_spaces(flags[id], text, size, done, match);
        *next = *next > match->end ? *next : match->end;
        return true;
    }
    return false;
}
