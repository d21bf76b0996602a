#include "runtime/worker/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/state_object.h"

void states_free(struct states *states)
{
    for (size_t i = 0; i < states->count; i++) {
        free(states->slots[i].name);
        free(states->slots[i].data);
    }
    free(states->slots);
    *states = (struct states){ 0 };
}

static bool slot_new(struct state_slot *slot, const char *parameter, json_t *state, struct error *err)
{
    const char *type = json_string_value(json_object_get(state, "type"));
    uint64_t values;
    char name[GRAPH_NAME + 1];

    snprintf(name, sizeof name, "s.%s.%s", parameter, json_string_value(json_object_get(state, "name")));
    if (!tensor_code_parse(type ? type : "f32", &slot->code))
        return error_set(err, ERROR_TYPE, NULL, "state %s has the unknown type %s", name, type);
    if (!axes_measure(json_string_value(json_object_get(state, "axes")), &slot->rank, slot->dims, &values, err))
        return false;
    slot->name = strdup(name);
    slot->size = (size_t)values * tensor_code_size(slot->code);
    slot->data = calloc(1, slot->size + 1);
    return slot->data || error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
}

/* Runs one init graph: input `p` when it reads it, outputs `s.NAME` into the slots from `first` on. */
static bool run_init(const struct graph *g, const float *p, struct state_slot *first, json_t *list, struct error *err)
{
    struct executor *ex = executor_new(g, &(struct executor_options){ 0 }, err);
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    json_t *state;
    size_t index;

    for (uint32_t i = 0; i < g->bound_count; i++)
        inputs[i] = p;
    json_array_foreach(list, index, state)
    {
        char name[GRAPH_NAME + 1];

        snprintf(name, sizeof name, "s.%s", json_string_value(json_object_get(state, "name")));
        for (uint32_t i = 0; i < g->output_count; i++)
            if (strcmp(graph_text(g, g->outputs[i].name), name) == 0)
                outputs[i] = first[index].data;
    }

    bool ok = ex && executor_run(ex, inputs, outputs, NULL, err);

    executor_free(ex);
    free(inputs);
    free(outputs);
    return ok;
}

bool states_new(struct states *states, struct session *s, const struct script_trace *optimiser, const float *values,
                struct error *err)
{
    json_t *entries = json_object_get(optimiser->meta, "params"), *entry, *state;
    size_t index, each, capacity = 0;

    *states = (struct states){ 0 };
    json_array_foreach(entries, index, entry) capacity += json_array_size(json_object_get(entry, "state"));
    states->slots = calloc(capacity + 1, sizeof *states->slots);
    json_array_foreach(entries, index, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_t *list = json_object_get(entry, "state"), *init = json_object_get(entry, "init");
        struct state_slot *first = &states->slots[states->count];
        long place = layout_find(&s->layout, name);
        bool ok = true;

        json_array_foreach(list, each, state)
        {
            ok = slot_new(&states->slots[states->count++], name, state, err);
            if (!ok)
                break;
        }
        if (!ok || (json_is_integer(init) && json_array_size(list) &&
                    !run_init(optimiser->graphs[json_integer_value(init)], values + s->layout.parameters[place].offset, first,
                              list, err))) {
            states_free(states);
            return error_at(err, "%s", name);
        }
    }
    return true;
}

void *states_find(const struct states *states, const char *name)
{
    for (size_t i = 0; i < states->count; i++)
        if (strcmp(states->slots[i].name, name) == 0)
            return states->slots[i].data;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_tensor *)a)->name, ((const struct named_tensor *)b)->name);
}

struct named_tensor *states_tensors(const struct states *states, const struct layout *l, const float *values, size_t *count)
{
    struct named_tensor *list = calloc(l->count + states->count, sizeof *list);

    layout_tensors(l, values, list);
    for (size_t i = 0; i < states->count; i++) {
        const struct state_slot *slot = &states->slots[i];
        struct named_tensor *t = &list[l->count + i];

        *t = (struct named_tensor){ .name = slot->name, .code = slot->code, .rank = slot->rank, .bytes = slot->data };
        memcpy(t->dims, slot->dims, sizeof slot->dims);
    }
    *count = l->count + states->count;
    qsort(list, *count, sizeof *list, by_name);
    return list;
}

bool states_read(struct states *states, const struct layout *l, float *values, const void *bytes, size_t size, struct error *err)
{
    struct state_object object;
    size_t count;

    if (!state_decode(bytes, size, &object, err))
        return false;

    struct named_tensor *want = states_tensors(states, l, values, &count);
    bool ok = object.count == count ||
              error_set(err, ERROR_SHAPE, NULL, "a state of %zu tensors where this run has %zu", object.count, count);

    for (size_t i = 0; ok && i < count; i++) {
        const struct named_tensor *have = &object.tensors[i];
        uint64_t values_of, bytes_of, at;

        if (strcmp(have->name, want[i].name) != 0 || have->code != want[i].code || have->rank != want[i].rank ||
            memcmp(have->dims, want[i].dims, have->rank * sizeof *have->dims) != 0)
            ok = error_set(err, ERROR_SHAPE, NULL, "tensor %s of the state is not %s of this run", have->name, want[i].name);
        else if (!named_tensor_size(have, &values_of, &bytes_of))
            ok = error_set(err, ERROR_SHAPE, NULL, "tensor %s is too large", have->name);
        else if (have->code == CODE_F32 && !tensor_finite_f32(have->bytes, values_of, &at))
            ok = error_set(err, ERROR_NON_FINITE, NULL, "tensor %s of the state is not finite at %llu", have->name,
                           (unsigned long long)at);
        else
            memcpy((void *)(uintptr_t)want[i].bytes, have->bytes, (size_t)bytes_of);
    }
    free(want);
    state_object_free(&object);
    return ok;
}
