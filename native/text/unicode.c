#include "native/text/unicode.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Hangul syllables are put together and taken apart by counting (The Unicode Standard, 3.12). */
enum { S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, L_COUNT = 19, V_COUNT = 21, T_COUNT = 28 };
enum { S_COUNT = L_COUNT * V_COUNT * T_COUNT };

bool unicode_is_word(uint32_t c)
{
    if (unicode_in(c, UNICODE_WORDS))
        return true;
    return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

static int by_case(const void *key, const void *entry)
{
    uint32_t c = *(const uint32_t *)key, at = ((const struct unicode_case *)entry)->code_point;

    return c < at ? -1 : c > at;
}

uint32_t unicode_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (!(unicode_byte(c) & UNICODE_LOWERS))
        return c;

    const struct unicode_case *found = bsearch(&c, UNICODE_LOWER, UNICODE_LOWER_COUNT, sizeof *UNICODE_LOWER, by_case);

    return found ? found->lower : c;
}

static int by_range(const void *key, const void *entry)
{
    uint32_t c = *(const uint32_t *)key;
    const struct unicode_range *range = entry;

    return c < range->first ? -1 : c > range->last;
}

uint8_t unicode_combining(uint32_t c)
{
    if (!(unicode_byte(c) & UNICODE_COMPOSES))
        return 0;

    const struct unicode_range *found =
        bsearch(&c, UNICODE_COMBINING, UNICODE_COMBINING_COUNT, sizeof *UNICODE_COMBINING, by_range);

    return found ? found->value : 0;
}

bool unicode_library_has(uint32_t c, enum unicode_library set)
{
    const struct unicode_range *found = bsearch(&c, UNICODE_LIBRARY, UNICODE_LIBRARY_COUNT, sizeof *UNICODE_LIBRARY, by_range);

    return found && found->value & set;
}

static int by_pair(const void *key, const void *entry)
{
    const struct unicode_composition *a = key, *b = entry;

    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->second < b->second ? -1 : a->second > b->second;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
    if (first >= L_BASE && first < L_BASE + L_COUNT && second >= V_BASE && second < V_BASE + V_COUNT)
        return S_BASE + ((first - L_BASE) * V_COUNT + (second - V_BASE)) * T_COUNT;
    if (first >= S_BASE && first < S_BASE + S_COUNT && (first - S_BASE) % T_COUNT == 0 && second > T_BASE &&
        second < T_BASE + T_COUNT)
        return first + (second - T_BASE);

    struct unicode_composition key = { first, second, 0 };
    const struct unicode_composition *found =
        bsearch(&key, UNICODE_COMPOSITIONS, UNICODE_COMPOSITION_COUNT, sizeof *UNICODE_COMPOSITIONS, by_pair);

    return found ? found->joined : UINT32_MAX;
}

static int by_code_point(const void *key, const void *entry)
{
    uint32_t c = *(const uint32_t *)key, at = ((const struct unicode_decomposition *)entry)->code_point;

    return c < at ? -1 : c > at;
}

unsigned unicode_decompose(uint32_t c, bool compatible, uint32_t out[UNICODE_MAX_DECOMPOSITION])
{
    if (c >= S_BASE && c < S_BASE + S_COUNT) {
        uint32_t s = c - S_BASE;

        out[0] = L_BASE + s / (V_COUNT * T_COUNT);
        out[1] = V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT;
        out[2] = T_BASE + s % T_COUNT;
        return s % T_COUNT ? 3 : 2;
    }
    out[0] = c;
    if (!(unicode_byte(c) & (UNICODE_DECOMPOSES | UNICODE_COMPATIBLE)))
        return 1;

    const struct unicode_decomposition *d =
        bsearch(&c, UNICODE_DECOMPOSITIONS, UNICODE_DECOMPOSITION_COUNT, sizeof *UNICODE_DECOMPOSITIONS, by_code_point);
    unsigned count = !d ? 0 : compatible ? d->full_count : d->plain_count;

    if (!count)
        return 1;
    memcpy(out, UNICODE_POOL + (compatible ? d->full : d->plain), count * sizeof *out);
    return count;
}
