#include "native/text/aligned.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/utf8.h"

void aligned_free(struct aligned *a)
{
    buffer_free(&a->text);
    free(a->ends);
    *a = (struct aligned){ 0 };
}

void aligned_clear(struct aligned *a)
{
    buffer_clear(&a->text);
    buffer_reserve(&a->text, 1); /* so that an empty text is a place, too */
}

static uint32_t *grow(struct aligned *a, size_t size)
{
    size_t need = a->text.size + size;

    if (need > a->capacity || !a->ends) {
        a->capacity = need * 2 + 16;
        a->ends = reallocarray(a->ends, a->capacity, sizeof *a->ends);
        if (!a->ends)
            abort();
    }
    return a->ends + a->text.size;
}

void aligned_add(struct aligned *a, const void *bytes, size_t size, uint32_t end)
{
    uint32_t *ends = grow(a, size);

    for (size_t i = 0; i < size; i++)
        ends[i] = end;
    buffer_add(&a->text, bytes, size);
}

void aligned_copy(struct aligned *a, const char *text, size_t size, struct origin from)
{
    uint32_t *ends = grow(a, size);

    for (size_t i = 0; i < size; i++)
        ends[i] = origin_at(from, i + 1);
    buffer_add(&a->text, text, size);
}

void aligned_add_code_point(struct aligned *a, uint32_t code_point, uint32_t end)
{
    uint32_t *ends = grow(a, 4);

    for (size_t i = 0; i < 4; i++)
        ends[i] = end;
    utf8_add(&a->text, code_point);
}
