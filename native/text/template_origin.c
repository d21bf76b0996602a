#include "native/text/template_origin.h"

#include <string.h>

size_t origin_at(const struct string *s, size_t at, size_t *end)
{
    const struct origin *o = s->origin;
    size_t low = 0, high = o ? o->count : 0, shift = o ? (size_t)(s->bytes - o->bytes) : 0;

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
    return o->runs[low].message;
}

void origin_add(struct arena *a, struct buffer *out, const struct string *s)
{
    size_t start = out->size;

    buffer_add(out, s->bytes, s->size);
    for (size_t at = 0, end; s->origin && at < s->size; at = end) {
        size_t message = origin_at(s, at, &end);

        if (message)
            origin_note(a, out, start + at, start + end, message);
    }
}

static void add_run(struct arena *a, struct scratch *s, size_t end, size_t message)
{
    if (s->run_count == s->run_capacity) {
        size_t capacity = s->run_capacity ? s->run_capacity * 2 : 8;
        struct run *grown = arena_array(a, capacity, sizeof *grown);

        if (s->run_count)
            memcpy(grown, s->runs, s->run_count * sizeof *grown);
        s->runs = grown;
        s->run_capacity = capacity;
    }
    s->runs[s->run_count++] = (struct run){ end, message };
}

void origin_note(struct arena *a, struct buffer *out, size_t start, size_t end, size_t message)
{
    struct scratch *s = (struct scratch *)out;
    struct run *last = s->run_count ? &s->runs[s->run_count - 1] : NULL;

    if (start == end)
        return;
    arena_step(a, 1);
    if (last && last->end == start && last->message == message) {
        last->end = end;
        return;
    }
    if (start > (last ? last->end : 0))
        add_run(a, s, start, 0);
    add_run(a, s, end, message);
}

struct value origin_keep(struct arena *a, struct value v, size_t message)
{
    size_t at = 0, count = 0, end;

    if (!message || v.kind != VALUE_STRING || !v.string->size)
        return v;
    for (bool known = true; at < v.string->size; at = end, count++) {
        known &= origin_at(v.string, at, &end) != 0;
        if (known && end == v.string->size)
            return v;
    }

    struct origin *origin = arena_new(a, sizeof *origin);
    struct string *kept = arena_new(a, sizeof *kept);

    arena_step(a, count);
    *origin = (struct origin){ v.string->bytes, arena_array(a, count, sizeof *origin->runs), 0 };
    for (at = 0; at < v.string->size; at = end) {
        size_t of = origin_at(v.string, at, &end);

        origin->runs[origin->count++] = (struct run){ end, of ? of : message };
    }
    *kept = (struct string){ v.string->bytes, v.string->size, origin };
    v.string = kept;
    return v;
}
