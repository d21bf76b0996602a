#include "runtime/store/unsynced.h"

#include <stdlib.h>
#include <string.h>

void unsynced_add(struct unsynced *u, const char *folder, struct hash id, const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);

    if (u->count == u->capacity) {
        u->capacity = u->capacity ? 2 * u->capacity : 16;
        u->list = realloc(u->list, u->capacity * sizeof *u->list);
    }
    if (!copy || !u->list)
        abort();
    memcpy(copy, bytes, size);
    u->list[u->count++] = (struct unsynced_file){ folder, id, copy, size };
}

const struct unsynced_file *unsynced_find(const struct unsynced *u, const char *folder, struct hash id)
{
    for (size_t i = u ? u->count : 0; i-- > 0;)
        if (hash_equal(u->list[i].id, id) && strcmp(u->list[i].folder, folder) == 0)
            return &u->list[i];
    return NULL;
}

void unsynced_cut(struct unsynced *u, size_t count)
{
    while (u->count > count)
        free(u->list[--u->count].bytes);
}

void unsynced_skip(struct unsynced *u, size_t count)
{
    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        free(u->list[i].bytes);
    u->count -= count;
    memmove(u->list, u->list + count, u->count * sizeof *u->list);
}

void unsynced_drop(struct unsynced *u, const char *folder, struct hash id)
{
    size_t kept = 0;

    for (size_t i = 0; i < u->count; i++)
        if (hash_equal(u->list[i].id, id) && strcmp(u->list[i].folder, folder) == 0)
            free(u->list[i].bytes);
        else
            u->list[kept++] = u->list[i];
    u->count = kept;
}

void unsynced_free(struct unsynced *u)
{
    unsynced_cut(u, 0);
    free(u->list);
    *u = (struct unsynced){ 0 };
}
