#include "native/text/normal_form.h"

#include <stdlib.h>

#include "native/text/unicode.h"
#include "native/text/utf8.h"

/* Characters that do not stand alone: each may change, or move with, what is before it. */
static inline uint8_t active_flags(bool compatible, bool composed)
{
    return (composed ? UNICODE_COMPOSES : UNICODE_DECOMPOSES) | (compatible ? UNICODE_COMPATIBLE : 0);
}

bool normal_form_holds(const char *text, size_t size, bool compatible, bool composed)
{
    uint8_t active = active_flags(compatible, composed);

    for (size_t at = 0, length; at < size; at += length) {
        length = 1;
        if ((uint8_t)text[at] < 0x80)
            continue;
        if (unicode_byte(utf8_at(text + at, text + size, &length)) & active)
            return false;
    }
    return true;
}

/* A starter and what follows it, decomposed. */
struct segment {
    uint32_t *points; /* owned */
    size_t count, capacity;
};

static void segment_add(struct segment *s, uint32_t c, bool compatible)
{
    if (s->count + UNICODE_MAX_DECOMPOSITION > s->capacity) {
        s->capacity = (s->count + UNICODE_MAX_DECOMPOSITION) * 2;
        s->points = reallocarray(s->points, s->capacity, sizeof *s->points);
        if (!s->points)
            abort();
    }
    s->count += unicode_decompose(c, compatible, s->points + s->count);
}

/* Marks in the order of their classes, equal ones as they stand: a counting sort for each run, so that a long one takes no
 * square of its length. */
static void order_run(uint32_t *points, size_t count)
{
    size_t places[257] = { 0 };
    uint32_t few[32], *sorted = count <= 32 ? few : malloc(count * sizeof *sorted);

    if (!sorted)
        abort();
    for (size_t i = 0; i < count; i++)
        places[unicode_combining(points[i]) + 1]++;
    for (size_t i = 1; i < 257; i++)
        places[i] += places[i - 1];
    for (size_t i = 0; i < count; i++)
        sorted[places[unicode_combining(points[i])]++] = points[i];
    for (size_t i = 0; i < count; i++)
        points[i] = sorted[i];
    if (sorted != few)
        free(sorted);
}

static void order(struct segment *s)
{
    for (size_t i = 0; i < s->count;) {
        size_t end = i;

        while (end < s->count && unicode_combining(s->points[end]))
            end++;
        if (end > i + 1)
            order_run(s->points + i, end - i);
        i = end + (end == i);
    }
}

/* UAX #15, D117: a character joins the last starter if nothing between blocks it. */
static void compose(struct segment *s)
{
    size_t starter = SIZE_MAX, kept = 0;
    uint8_t last = 0;

    for (size_t i = 0; i < s->count; i++) {
        uint32_t c = s->points[i];
        uint8_t class = unicode_combining(c);
        bool blocked = starter == SIZE_MAX || (kept > starter + 1 && (last == 0 || last >= class));
        uint32_t joined = blocked ? UINT32_MAX : unicode_compose(s->points[starter], c);

        if (joined != UINT32_MAX) {
            s->points[starter] = joined;
            continue;
        }
        if (class == 0)
            starter = kept;
        last = class;
        s->points[kept++] = c;
    }
    s->count = kept;
}

void normal_form_apply(const char *text, size_t size, struct origin origin, bool compatible, bool composed, struct aligned *out)
{
    uint8_t active = active_flags(compatible, composed);
    struct segment segment = { 0 };
    size_t at = 0;

    while (at < size) {
        size_t start = at, length, count = 1;
        uint32_t c = utf8_at(text + at, text + size, &length);

        segment.count = 0;
        segment_add(&segment, c, compatible);
        for (at += length; at < size; at += length, count++) {
            uint32_t next = utf8_at(text + at, text + size, &length);

            if (!(unicode_byte(next) & active))
                break;
            segment_add(&segment, next, compatible);
        }
        if (count == 1 && !(unicode_byte(c) & active)) {
            aligned_copy(out, text + start, at - start, origin_from(origin, start));
            continue;
        }
        order(&segment);
        if (composed)
            compose(&segment);
        for (size_t i = 0; i < segment.count; i++)
            aligned_add_code_point(out, segment.points[i], origin_at(origin, at));
    }
    free(segment.points);
}
