#include "runtime/round/record_memory.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/value.h"

bool record_memory_sound(struct record_memory *memory, const char *cid, const json_t *payload)
{
    if (json_object_get(memory->sound, cid))
        return true;
    if (!received_check(payload, NULL))
        return false;
    if (!memory->sound)
        memory->sound = json_object();
    if (json_object_size(memory->sound) >= RECORD_SOUND)
        json_object_clear(memory->sound);
    json_object_set_new(memory->sound, cid, json_true());
    return true;
}

json_t *record_memory_parts(struct record_memory *memory, const struct rules *rules, const char *before, const json_t *previous,
                            struct hash seed)
{
    if (!memory || !before || !*before)
        return assignment_draw(rules, previous, seed);
    for (size_t i = 0; i < RECORD_DRAWS; i++)
        if (!strcmp(memory->draws[i].before, before) && hash_equal(memory->draws[i].seed, seed))
            return json_incref(memory->draws[i].parts);
    struct record_draw *draw = &memory->draws[memory->draw_count++ % RECORD_DRAWS];
    json_decref(draw->parts);
    snprintf(draw->before, sizeof draw->before, "%s", before);
    draw->seed = seed;
    draw->parts = assignment_draw(rules, previous, seed);
    return json_incref(draw->parts);
}

struct record_set *record_memory_find(struct record_memory *memory, const json_t *names, const char *before, struct hash seed)
{
    for (size_t i = 0; memory && names && i < RECORD_SETS; i++) {
        struct record_set *set = &memory->sets[i];
        if (set->names && !strcmp(set->before, before ? before : "") && hash_equal(set->seed, seed) &&
            json_equal(set->names, names))
            return set;
    }
    return NULL;
}

static void clear_set(struct record_set *set)
{
    json_t *const owned[] = { set->names, set->tally.items, set->tally.checked, set->parts, set->block, set->steps, set->made };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    *set = (struct record_set){ 0 };
}

struct record_set *record_memory_keep(struct record_memory *memory, const json_t *names, const char *before, struct hash seed,
                                      const struct received_tally *tally, json_t *parts)
{
    if (!memory || !names)
        return NULL;
    struct record_set *set = &memory->sets[memory->set_count++ % RECORD_SETS];
    clear_set(set);
    set->names = json_incref((json_t *)names);
    snprintf(set->before, sizeof set->before, "%s", before ? before : "");
    set->seed = seed;
    set->tally = *tally;
    json_incref(set->tally.items);
    json_incref(set->tally.checked);
    set->parts = json_incref(parts);
    return set;
}

static bool is_same_try(const struct record_set *set, const json_t *block, bool forced)
{
    return set && set->steps && set->forced == forced && (set->block ? json_equal(set->block, block) : !block);
}

enum record_set_known record_set_recall(const struct record_set *set, const json_t *block, bool forced, const json_t *results,
                                        json_t **out)
{
    size_t i;
    json_t *step;
    if (!is_same_try(set, block, forced))
        return RECORD_SET_NOTHING;
    json_array_foreach(set->steps, i, step)
    {
        const json_t *answer = json_object_get(step, "answer"), *own = json_object_get(results, value_text(step, "hash"));
        if (!own) {
            *out = json_incref(step);
            return RECORD_SET_ASKS;
        }
        if (!answer || !json_equal(answer, own))
            return RECORD_SET_NOTHING;
    }
    *out = json_incref(set->made);
    return set->made ? RECORD_SET_MADE : RECORD_SET_NOTHING;
}

void record_set_begin(struct record_set *set, const json_t *block, bool forced)
{
    if (!set)
        return;
    json_decref(set->block);
    json_decref(set->steps);
    json_decref(set->made);
    set->block = json_incref((json_t *)block);
    set->steps = json_array();
    set->made = NULL;
    set->forced = forced;
}

void record_set_ask(struct record_set *set, const char *hash, json_t *request, const json_t *answer)
{
    if (set)
        json_array_append_new(set->steps, json_pack("{sssOsO*}", "hash", hash, "request", request, "answer", answer));
}

void record_set_make(struct record_set *set, json_t *record)
{
    if (set)
        set->made = json_incref(record);
}

json_t *record_memory_context(struct record_memory *memory, const struct rules *rules, const json_t *before, const json_t *record,
                              const char *did)
{
    struct hash seed;
    if (!before || !hash_parse(value_text(record, "seed"), &seed))
        return NULL;
    json_t *parts = record_memory_parts(memory, rules, value_text(record, "previous"), before, seed);
    json_t *context =
        assignment_context_in(rules, before, parts, value_integer(record, "round"), seed, json_object_get(record, "plan"), did);
    json_decref(parts);
    return context;
}

void record_memory_clear(struct record_memory *memory)
{
    for (size_t i = 0; i < RECORD_DRAWS; i++)
        json_decref(memory->draws[i].parts);
    for (size_t i = 0; i < RECORD_SETS; i++)
        clear_set(&memory->sets[i]);
    json_decref(memory->sound);
    *memory = (struct record_memory){ 0 };
}
