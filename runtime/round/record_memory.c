#include "runtime/round/record_memory.h"

#include <stdio.h>
#include <string.h>

const struct record_memory *record_memory_find(const struct record_memory *memory, const json_t *names, const char *before,
                                               struct hash seed)
{
    bool holds = memory && names && memory->names && !strcmp(memory->before, before ? before : "") &&
                 hash_equal(memory->seed, seed) && json_equal(memory->names, names);
    return holds ? memory : NULL;
}

bool record_memory_give(const struct record_memory *memory, struct received_tally *tally, json_t **parts)
{
    if (!memory)
        return false;
    *tally = memory->tally;
    json_incref(tally->items);
    json_incref(tally->checked);
    *parts = json_incref(memory->parts);
    return true;
}

void record_memory_keep(struct record_memory *memory, const json_t *names, const char *before, struct hash seed,
                        const struct received_tally *tally, json_t *parts)
{
    if (!memory || !names)
        return;
    record_memory_clear(memory);
    memory->names = json_incref((json_t *)names);
    snprintf(memory->before, sizeof memory->before, "%s", before ? before : "");
    memory->seed = seed;
    memory->tally = *tally;
    json_incref(memory->tally.items);
    json_incref(memory->tally.checked);
    memory->parts = json_incref(parts);
}

void record_memory_clear(struct record_memory *memory)
{
    json_decref(memory->names);
    json_decref(memory->tally.items);
    json_decref(memory->tally.checked);
    json_decref(memory->parts);
    *memory = (struct record_memory){ 0 };
}
