#include "native/text/charsmap.h"

#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/text/unicode.h"
#include "native/text/utf8.h"

enum { SHORT_CLUSTER = 6, LONGEST_TEXT = 256 };

bool charsmap_read(struct charsmap *map, const uint8_t *bytes, size_t size, struct error *err)
{
    struct reader r = reader_of(bytes, size);
    uint32_t array = reader_u32(&r);
    const uint8_t *units = array % 4 == 0 ? reader_bytes(&r, array) : NULL;
    size_t left = reader_left(&r);

    if (!r.ok || !units || array == 0)
        return error_set(err, ERROR_SYNTAX, NULL, "a map of characters with an array of %u bytes in %zu", array, size);
    if (!utf8_valid((const char *)r.at, left, NULL))
        return error_set(err, ERROR_SYNTAX, NULL, "a map of characters whose texts are not UTF-8");
    map->unit_count = array / 4;
    map->units = malloc(array);
    map->texts_size = left;
    map->texts = calloc(left + 1, 1);
    if (!map->units || !map->texts)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a map of characters");
    for (size_t i = 0; i < map->unit_count; i++)
        map->units[i] =
            units[4 * i] | (uint32_t)units[4 * i + 1] << 8 | (uint32_t)units[4 * i + 2] << 16 | (uint32_t)units[4 * i + 3] << 24;
    if (left)
        memcpy(map->texts, r.at, left);
    for (size_t at = 0, length; at <= left; at += length + 1) {
        length = strlen(map->texts + at);
        if (length > LONGEST_TEXT)
            return error_set(err, ERROR_LIMIT, NULL, "a map of characters with a text of %zu bytes", length);
    }
    return true;
}

void charsmap_free(struct charsmap *map)
{
    free(map->units);
    free(map->texts);
    *map = (struct charsmap){ 0 };
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
}

/* The text for the shortest (or longest) key that `text` starts with; NULL if there is none. *used is the key's size. */
static const char *look_up(const struct charsmap *map, bool longest, const char *text, size_t size, size_t *used)
{
    size_t at = offset_of(map->units[0]);
    const char *found = NULL;

    for (size_t i = 0; i < size && text[i]; i++) {
        uint8_t byte = (uint8_t)text[i];

        at ^= byte;
        if (at >= map->unit_count || (map->units[at] & 0x800000ffu) != byte)
            break;

        uint32_t unit = map->units[at];

        at ^= offset_of(unit);
        if (at >= map->unit_count)
            break;
        if (!(unit >> 8 & 1) || (i + 1 < size && ((uint8_t)text[i + 1] & 0xc0) == 0x80))
            continue; /* no key ends here, or one that ends inside of a character */

        uint32_t value = map->units[at] & 0x7fffffffu;

        if (value > map->texts_size || ((uint8_t)map->texts[value] & 0xc0) == 0x80)
            continue;
        found = map->texts + value;
        *used = i + 1;
        if (!longest)
            break;
    }
    return found;
}

static bool within(uint32_t c, uint32_t first, uint32_t last)
{
    return c >= first && c <= last;
}

/* Joins the cluster before it: Grapheme_Extend, ZWJ or SpacingMark (UAX #29), as far as it matters below 6 bytes. */
static bool extends(uint32_t c)
{
    if (unicode_in(c, UNICODE_SET(UNICODE_MARK)))
        return !(c == 0x102b || c == 0x102c || c == 0x1038 || within(c, 0x1062, 0x1064) || within(c, 0x1067, 0x106d) ||
                 c == 0x1083 || within(c, 0x1087, 0x108c) || c == 0x108f || within(c, 0x109a, 0x109c) || c == 0x1a61 ||
                 c == 0x1a63 || c == 0x1a64 || c == 0xaa7b || c == 0xaa7d);
    return c == 0x200c || c == 0x200d || c == 0xe33 || c == 0xeb3 || c == 0xff9e || c == 0xff9f || within(c, 0x1f3fb, 0x1f3ff) ||
           within(c, 0xe0020, 0xe007f);
}

/* Controls keep to themselves; a few signs of numbers join what follows. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || within(c, 0x7f, 0x9f) || c == 0xad || c == 0x61c || c == 0x180e || c == 0x200b || c == 0x200e ||
           c == 0x200f || within(c, 0x2028, 0x202e) || within(c, 0x2060, 0x206f) || c == 0xfeff || within(c, 0xfff0, 0xfffb) ||
           within(c, 0xe0000, 0xe001f) || within(c, 0xe0080, 0xe00ff) || within(c, 0xe01f0, 0xe0fff) ||
           within(c, 0x13430, 0x1343f) || within(c, 0x1bca0, 0x1bca3) || within(c, 0x1d173, 0x1d17a);
}

static bool joins_next(uint32_t c)
{
    return within(c, 0x600, 0x605) || c == 0x6dd || c == 0x70f || c == 0x890 || c == 0x891 || c == 0x8e2 || c == 0xd4e;
}

static size_t cluster(const char *text, size_t size)
{
    size_t length, at;
    uint32_t c = utf8_at(text, text + size, &length);

    if (c == '\r' && size > 1 && text[1] == '\n')
        return 2;
    at = length;
    while (joins_next(c) && at < size) {
        c = utf8_at(text + at, text + size, &length);
        if (is_control(c))
            return at;
        at += length;
    }
    while (!is_control(c) && at < size && extends(utf8_at(text + at, text + size, &length)))
        at += length;
    return at;
}

static void put_characters(const struct charsmap *map, const char *text, size_t size, struct origin origin, struct aligned *out)
{
    for (size_t at = 0, length, used; at < size; at += length) {
        utf8_at(text + at, text + size, &length);

        const char *put = look_up(map, false, text + at, length, &used);

        if (put)
            aligned_add(out, put, strlen(put), origin_at(origin, at + length));
        else
            aligned_copy(out, text + at, length, origin_from(origin, at));
    }
}

void charsmap_apply(const struct charsmap *map, bool longest, const char *text, size_t size, struct origin origin, size_t limit,
                    struct aligned *out)
{
    for (size_t at = 0, length, used; at < size && out->text.size <= limit; at += length) {
        const char *put;

        if (longest) {
            utf8_at(text + at, text + size, &length);
            put = look_up(map, true, text + at, size - at, &used);
            length = put ? used : length;
        } else {
            length = cluster(text + at, size - at);
            put = length < SHORT_CLUSTER ? look_up(map, false, text + at, length, &used) : NULL;
        }
        if (put)
            aligned_add(out, put, strlen(put), origin_at(origin, at + length));
        else
            put_characters(map, text + at, longest ? 0 : length, origin_from(origin, at), out);
        if (!put && longest)
            aligned_copy(out, text + at, length, origin_from(origin, at));
    }
}
