#include "native/text/call_memory.h"

#include <stdlib.h>

enum { BLOCK = 1 << 16 };

struct call_mark call_memory_mark(const struct call_memory *m)
{
    return (struct call_mark){ m->block, m->used };
}

void call_memory_back(struct call_memory *m, struct call_mark mark)
{
    m->block = mark.block;
    m->used = mark.used;
}

void call_memory_free(struct call_memory *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->blocks[i]);
    free(m->blocks);
    *m = (struct call_memory){ 0 };
}

void *call_memory_take(struct call_memory *m, size_t size)
{
    size_t at;

    size = (size + 15) & ~(size_t)15;
    if (m->count > 0 && m->used + size > BLOCK) {
        m->block++;
        m->used = 0;
    }
    if (m->block == m->count) {
        m->blocks = realloc(m->blocks, (m->count + 1) * sizeof *m->blocks);
        if (!m->blocks || !(m->blocks[m->count++] = malloc(BLOCK)))
            abort();
    }
    at = m->used;
    m->used += size;
    return m->blocks[m->block] + at;
}
