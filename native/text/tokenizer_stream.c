#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer.h"
#include "native/text/utf8.h"

enum { MOST_HELD = 64 }; /* tokens whose text is held back, beyond which it is given as it is */

void tokenizer_stream_free(struct tokenizer_stream *s)
{
    free(s->ids);
    s->ids = NULL;
    s->count = s->capacity = s->known = s->told = 0;
}

/* Whether text ends in a whole character that later tokens leave as it is. */
static bool is_certain(const char *text, size_t size)
{
    return utf8_whole(text, size) == size && !(size >= 3 && !memcmp(text + size - 3, "\xef\xbf\xbd", 3));
}

/* The ids whose text was not out become those that the next depend on, if they have text by themselves. */
static bool move_on(struct tokenizer_stream *s, size_t told, struct error *err)
{
    struct buffer text = { 0 };
    bool ok = tokenizer_decode(s->tokenizer, s->ids + s->known, s->count - s->known, s->special, &text, err);

    if (text.size) {
        memmove(s->ids, s->ids + s->known, (s->count - s->known) * sizeof *s->ids);
        s->count -= s->known;
    }
    s->known = s->count;
    s->told = text.size ? text.size : told;
    buffer_free(&text);
    return ok;
}

bool tokenizer_stream_feed(struct tokenizer_stream *s, uint32_t id, struct buffer *out, struct error *err)
{
    struct buffer text = { 0 };

    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 16;
        s->ids = reallocarray(s->ids, s->capacity, sizeof *s->ids);
        if (!s->ids)
            abort();
    }
    s->ids[s->count++] = id;
    if (!tokenizer_decode(s->tokenizer, s->ids, s->count, s->special, &text, err)) {
        s->count--;
        buffer_free(&text);
        return false;
    }

    bool ok = true;

    if (text.size > s->told && (is_certain((const char *)text.bytes, text.size) || s->count - s->known >= MOST_HELD)) {
        utf8_add_lossy(out, (const char *)text.bytes + s->told, text.size - s->told);
        ok = move_on(s, text.size, err);
    }
    buffer_free(&text);
    return ok;
}

void tokenizer_stream_finish(struct tokenizer_stream *s, struct buffer *out)
{
    struct buffer text = { 0 };
    struct error ignored = { 0 };

    if (s->count > s->known && tokenizer_decode(s->tokenizer, s->ids, s->count, s->special, &text, &ignored) &&
        text.size > s->told)
        utf8_add_lossy(out, (const char *)text.bytes + s->told, text.size - s->told);
    buffer_free(&text);
    s->count = s->known = s->told = 0;
}
