#include "runtime/worker/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/state_object.h"
#include "runtime/worker/bound.h"

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
    const char *own = json_string_value(json_object_get(state, "name"));
    uint64_t values;
    char name[GRAPH_NAME + 1];

    if (!own)
        return error_set(err, ERROR_SCRIPT, NULL, "a state without a name");
    snprintf(name, sizeof name, "s.%s.%s", parameter, own);
    if (!tensor_code_parse(type ? type : "f32", &slot->code))
        return error_set(err, ERROR_TYPE, NULL, "state %s has the unknown type %s", name, type);
    if (!axes_measure(json_string_value(json_object_get(state, "axes")), &slot->rank, slot->dims, &values, err))
        return false;
    slot->name = strdup(name);
    slot->size = (size_t)values * tensor_code_size(slot->code);
    return true;
}

/* Runs one init graph: input `p` when it reads it, outputs `s.NAME` into the slots from `first` on. */
static bool run_init(const struct graph *g, const float *p, uint64_t values, struct state_slot *first, json_t *list,
                     struct error *err)
{
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    struct executor *ex = NULL;
    json_t *state;
    size_t index;
    bool ok = true;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        inputs[i] = p;
        ok = bound_fits(g, g->bound[i], values * sizeof *p, err);
    }
    json_array_foreach(list, index, state)
    {
        char name[GRAPH_NAME + 1];

        snprintf(name, sizeof name, "s.%s", json_string_value(json_object_get(state, "name")));
        for (uint32_t i = 0; ok && i < g->output_count; i++)
            if (strcmp(graph_text(g, g->outputs[i].name), name) == 0) {
                outputs[i] = first[index].data;
                ok = bound_fits(g, g->outputs[i].node, first[index].size, err);
            }
    }
    if (ok)
        ex = executor_new(g, &(struct executor_options){ 0 }, err);
    ok = ex && executor_run(ex, inputs, outputs, NULL, err);
    executor_free(ex);
    free(inputs);
    free(outputs);
    return ok;
}

/* The slots of one parameter, with what its init makes of it; without `values` they are only named. */
static bool add_slots(struct states *states, const struct layout *l, const struct script_trace *optimiser, json_t *entry,
                      const float *values, struct error *err)
{
    const struct layout_parameter *p = bound_parameter(l, json_object_get(entry, "name"), err);
    json_t *list = json_object_get(entry, "state"), *init = json_object_get(entry, "init"), *state;
    struct state_slot *first = &states->slots[states->count];
    const struct graph *g;
    size_t index;

    if (!p)
        return false;
    json_array_foreach(list, index, state)
    {
        struct state_slot *slot = &states->slots[states->count++];

        if (!slot_new(slot, p->name, state, err))
            return error_at(err, "%s", p->name);
        if (values && !(slot->data = calloc(1, slot->size + 1)))
            return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", slot->name);
    }
    if (!values || !json_is_integer(init) || json_array_size(list) == 0)
        return true;
    g = bound_graph(optimiser, init, err);
    return (g && run_init(g, values + p->offset, p->values, first, list, err)) || error_at(err, "%s", p->name);
}

static int by_slot(const void *a, const void *b)
{
    return strcmp(((const struct state_slot *)a)->name, ((const struct state_slot *)b)->name);
}

static bool make(struct states *states, const struct session *s, const struct script_trace *optimiser, const float *values,
                 struct error *err)
{
    json_t *entries = json_object_get(optimiser->meta, "params"), *entry;
    size_t index, capacity = 0;
    bool ok = true;

    *states = (struct states){ 0 };
    json_array_foreach(entries, index, entry) capacity += json_array_size(json_object_get(entry, "state"));
    states->slots = calloc(capacity + 1, sizeof *states->slots);
    json_array_foreach(entries, index, entry) ok = ok && add_slots(states, &s->layout, optimiser, entry, values, err);
    if (ok)
        qsort(states->slots, states->count, sizeof *states->slots, by_slot);
    for (size_t i = 1; ok && i < states->count; i++)
        if (strcmp(states->slots[i - 1].name, states->slots[i].name) == 0)
            ok = error_set(err, ERROR_DUPLICATE, NULL, "%s twice", states->slots[i].name);
    if (!ok)
        states_free(states);
    return ok;
}

bool states_new(struct states *states, struct session *s, const struct script_trace *optimiser, const float *values,
                struct error *err)
{
    return make(states, s, optimiser, values, err);
}

bool states_listed(struct states *states, const struct session *s, const struct script_trace *optimiser, struct error *err)
{
    return make(states, s, optimiser, NULL, err);
}

const struct state_slot *states_find(const struct states *states, const char *name)
{
    const struct state_slot key = { .name = (char *)(uintptr_t)name };

    return bsearch(&key, states->slots, states->count, sizeof key, by_slot);
}

struct named_tensor *states_tensors(const struct states *states, const struct layout *l, const float *values, size_t *count)
{
    struct named_tensor *list = calloc(l->count + states->count, sizeof *list), *own = list + states->count;
    size_t taken = 0;

    layout_tensors(l, values, own); /* at the end; what is merged in before never overtakes what is left of them */
    *count = 0;
    for (size_t i = 0; i < states->count; i++) {
        const struct state_slot *slot = &states->slots[i];

        while (taken < l->count && strcmp(own[taken].name, slot->name) < 0)
            list[(*count)++] = own[taken++];

        struct named_tensor *t = &list[(*count)++];

        *t = (struct named_tensor){ .name = slot->name, .code = slot->code, .rank = slot->rank, .bytes = slot->data };
        memcpy(t->dims, slot->dims, sizeof slot->dims);
    }
    *count += l->count - taken; /* these stand where they belong */
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
