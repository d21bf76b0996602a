/* call_memory.h - memory that is taken piece by piece and given back to a mark: the stack of call_automaton.h. */
#ifndef RONDO_TEXT_CALL_MEMORY_H
#define RONDO_TEXT_CALL_MEMORY_H

#include <stddef.h>

/* Zero is empty. */
struct call_memory {
    char **blocks; /* owned */
    size_t count, block, used;
};
struct call_mark {
    size_t block, used;
};

void *call_memory_take(struct call_memory *m, size_t size); /* up to 64 KiB, for any type */
struct call_mark call_memory_mark(const struct call_memory *m);
void call_memory_back(struct call_memory *m, struct call_mark mark);
void call_memory_free(struct call_memory *m);

#endif
