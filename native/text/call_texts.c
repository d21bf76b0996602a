#include "native/text/call_texts.h"

#include <stdlib.h>
#include <string.h>

const char *const call_marks[CALL_MARKS] = { "<tool_call>", "</tool_call>", "[TOOL_CALLS]" };

static int by_bytes(const void *a, const void *b)
{
    const struct call_text *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);

    return order ? order : (x->size > y->size) - (x->size < y->size);
}

void call_texts_free(struct call_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        free(texts->list[i].bytes);
    free(texts->list);
    *texts = (struct call_texts){ 0 };
}

static bool has_mark(const char *bytes, size_t size)
{
    for (size_t i = 0; i < CALL_MARKS; i++)
        if (memmem(bytes, size, call_marks[i], strlen(call_marks[i])))
            return true;
    return false;
}

bool call_texts_add(struct call_texts *texts, char *bytes, size_t size, struct error *err)
{
    if (!bytes)
        return error_set(err, ERROR_TYPE, NULL, "a value that is no JSON");
    if ((texts->count & (texts->count - 1)) == 0) {
        texts->list = realloc(texts->list, (texts->count ? 2 * texts->count : 1) * sizeof *texts->list);
        if (!texts->list)
            abort();
    }
    texts->list[texts->count++] = (struct call_text){ bytes, (uint32_t)size };
    texts->size += size;
    if (texts->size > CALL_TEXTS)
        return error_set(err, ERROR_LIMIT, NULL, "names or values of more than %d bytes", (int)CALL_TEXTS);
    return !has_mark(bytes, size) ||
           error_set(err, ERROR_UNSUPPORTED, "spell it otherwise", "\"%.40s\" holds what begins or ends a call", bytes);
}

bool call_texts_value(struct call_texts *texts, const json_t *value, struct error *err)
{
    char *text = NULL;
    bool same = false;

    for (size_t digits = 15; !same && digits <= 17; digits++) {
        json_t *again;

        free(text);
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        again = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
        same = !again || json_equal(again, value);
        json_decref(again);
    }
    return call_texts_add(texts, text, text ? strlen(text) : 0, err);
}

void call_texts_sort(struct call_texts *texts)
{
    uint32_t kept = 0;

    if (texts->count > 0)
        qsort(texts->list, texts->count, sizeof *texts->list, by_bytes);
    for (uint32_t i = 0; i < texts->count; i++) {
        if (kept > 0 && by_bytes(&texts->list[kept - 1], &texts->list[i]) == 0)
            free(texts->list[i].bytes);
        else
            texts->list[kept++] = texts->list[i];
    }
    texts->count = kept;
}
