#include "native/text/wordpiece.h"

#include "native/text/utf8.h"

void wordpiece_free(struct wordpiece *w)
{
    added_tokens_free(&w->first);
    added_tokens_free(&w->rest);
}

/* The longest token at the start of the text that ends with a character; its size, 0 if there is none. */
static size_t longest(const struct added_tokens *a, const char *text, size_t size, uint32_t *id)
{
    uint64_t node = 0;
    size_t found = 0;

    for (size_t i = 0; i < size; i++) {
        node = pair_map_get(&a->edges, node << 8 | (uint8_t)text[i]);
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

void wordpiece_encode(const struct wordpiece *w, const char *word, size_t size, uint32_t start, struct tokens *out)
{
    size_t before = out->count, at = 0;
    bool ok = utf8_count(word, size) <= w->longest;

    while (ok && at < size) {
        uint32_t id = 0;
        size_t length = longest(at ? &w->rest : &w->first, word + at, size - at, &id);

        ok = length != 0;
        at += length;
        if (ok)
            tokens_add(out, id, start + (uint32_t)at);
    }
    if (!ok) {
        out->count = before;
        tokens_add(out, w->unknown, start + (uint32_t)size);
    }
}
