/* states.h - what an optimiser keeps between steps: a few named tensors for each trained parameter.
 *
 *     s.model.layers.0.mlp.down_proj.lora_A.weight.m        f32 [rank ffn]
 *     s.model.layers.0.mlp.down_proj.lora_A.weight.seen1    f32 []
 */
#ifndef RONDO_WORKER_STATES_H
#define RONDO_WORKER_STATES_H

#include "runtime/worker/session.h"

struct state_slot {
    char *name; /* owned: "s.PARAMETER.NAME" */
    enum tensor_code code;
    unsigned rank;
    uint64_t dims[8];
    void *data; /* owned */
    size_t size;
};

struct states {
    struct state_slot *slots; /* ascending by name */
    size_t count;
};

/* The slots that `optimiser` (a trace over the session's layout) wants, made by its init graphs from the values. */
bool states_new(struct states *states, struct session *s, const struct script_trace *optimiser, const float *values,
                struct error *err);
/* The same slots without memory (`data` NULL): names, types and shapes. */
bool states_listed(struct states *states, const struct session *s, const struct script_trace *optimiser, struct error *err);
void states_free(struct states *states);

/* By the slot's name; NULL when there is none. */
const struct state_slot *states_find(const struct states *states, const char *name);

/* The layout's tensors and the slots as one list, ascending by name. The caller frees the list; names and bytes are borrowed. */
struct named_tensor *states_tensors(const struct states *states, const struct layout *l, const float *values, size_t *count);

/* Fills values and slots from a state object made of such a list; refuses any other set of tensors and non-finite numbers. */
bool states_read(struct states *states, const struct layout *l, float *values, const void *bytes, size_t size, struct error *err);

#endif
