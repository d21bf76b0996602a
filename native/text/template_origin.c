#include "native/text/template_origin.h"

#include <string.h>

static const struct template_run all_data = { SIZE_MAX, 1 };
const struct template_origin TEMPLATE_DATA = { NULL, &all_data, 1 };

size_t template_origin_at(const struct string *s, size_t at, size_t *end)
{
    const struct template_origin *o = s->origin;
    size_t low = 0, high = o ? o->count : 0, shift = o && o->bytes ? (size_t)(s->bytes - o->bytes) : 0;

    while (low < high) { /* the first run that ends behind the byte */
        size_t middle = low + (high - low) / 2;

        if (o->runs[middle].end > shift + at)
            high = middle;
        else
            low = middle + 1;
    }
    if (!o || low == o->count) {
        *end = s->size;
        return 0;
    }
    *end = o->runs[low].end - shift < s->size ? o->runs[low].end - shift : s->size;
    return o->runs[low].mark;
}

void template_origin_add(struct arena *a, struct buffer *out, const struct string *s)
{
    size_t start = out->size;

    buffer_add(out, s->bytes, s->size);
    for (size_t at = 0, end; s->origin && at < s->size; at = end) {
        size_t mark = template_origin_at(s, at, &end);

        if (mark)
            template_origin_note(a, out, start + at, start + end, mark);
    }
}

static void add_run(struct arena *a, struct scratch *s, size_t end, size_t mark)
{
    if (s->run_count == s->run_capacity) {
        size_t capacity = s->run_capacity ? s->run_capacity * 2 : 8;
        struct template_run *grown = arena_array(a, capacity, sizeof *grown);

        if (s->run_count)
            memcpy(grown, s->runs, s->run_count * sizeof *grown);
        s->runs = grown;
        s->run_capacity = capacity;
    }
    s->runs[s->run_count++] = (struct template_run){ end, mark };
}

void template_origin_note(struct arena *a, struct buffer *out, size_t start, size_t end, size_t mark)
{
    struct scratch *s = (struct scratch *)out;
    struct template_run *last = s->run_count ? &s->runs[s->run_count - 1] : NULL;

    if (start == end)
        return;
    arena_step(a, 1);
    if (last && last->end == start && last->mark == mark) {
        last->end = end;
        return;
    }
    if (start > (last ? last->end : 0))
        add_run(a, s, start, 0);
    add_run(a, s, end, mark);
}

struct value template_origin_keep(struct arena *a, struct value v, size_t message)
{
    size_t at = 0, count = 0, end;

    if (!message || v.kind != VALUE_STRING || !v.string->size)
        return v;
    for (bool known = true; at < v.string->size; at = end, count++) {
        known &= template_origin_at(v.string, at, &end) >> 1 != 0;
        if (known && end == v.string->size)
            return v;
    }

    struct template_origin *origin = arena_new(a, sizeof *origin);
    struct template_run *runs = arena_array(a, count, sizeof *runs);
    struct string *kept = arena_new(a, sizeof *kept);

    arena_step(a, count);
    *origin = (struct template_origin){ v.string->bytes, runs, 0 };
    for (at = 0; at < v.string->size; at = end) {
        size_t mark = template_origin_at(v.string, at, &end);

        runs[origin->count++] = (struct template_run){ end, mark >> 1 ? mark : template_mark(message, mark & 1) };
    }
    *kept = (struct string){ v.string->bytes, v.string->size, origin };
    v.string = kept;
    return v;
}
