/* layout.h - the trained tensors of a run: which, in what order, where in memory, and their first values.
 *
 *     parameters, ascending by name          one array of f32, one after the other, no gaps
 *       model.layers.0.mlp.down_proj.lora_A.weight   [rank=16 ffn=384]       offset 0
 *       model.layers.0.mlp.down_proj.lora_B.weight   [embed=128 rank=16]     offset 6144
 *       ...
 *
 * The array is the state of a run: its root is the state root of a record, its order that of a payload and of the axis `n` of an
 * aggregator. The model script decides which parameters there are; the file they come from gives base weights, and first
 * values of what is new are drawn from the run's id, so everyone makes the same.
 */
#ifndef RONDO_WORKER_LAYOUT_H
#define RONDO_WORKER_LAYOUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/crypto/root.h"

struct layout_parameter {
    const char *name; /* borrowed from meta */
    json_t *meta;     /* borrowed: one of the model's `params` (runtime/script/host.h) */
    unsigned rank;
    uint64_t dims[8];
    uint64_t values, offset; /* elements, and where they begin in the array */
    uint32_t fragment;       /* fragments.h; 0 where the schedule has none */
};

struct layout {
    struct layout_parameter *parameters; /* owned; those trained, ascending by name */
    size_t count;
    uint64_t values; /* of all */
    json_t *meta;    /* owned: the model's meta */
};

/* From the meta of script_trace_model. Errors: missing (nothing is trained), limit. Free with layout_free. */
bool layout_new(struct layout *l, json_t *meta, struct error *err);
void layout_free(struct layout *l);

/* Name of the embedding that is the model's head, too; NULL where it has one of its own or none. Borrowed. */
const char *layout_head(const struct layout *l);

/* Place of a parameter by name, or -1. */
long layout_find(const struct layout *l, const char *name);

/* Elements and dims of an axes text such as "rank=16 embed=128". */
bool axes_measure(const char *axes, unsigned *rank, uint64_t dims[8], uint64_t *values, struct error *err);

/* The first values of a parameter by its `init` (runtime/script/host.h): a fill, or normal of a deviation, drawn with the key
 * H("rondo/init", seed text, name); row norms are the session's. Errors: shape, script (no init). */
bool layout_draw(const json_t *meta, const char *seed, float *values, struct error *err);

/* The metas of the trained parameters in order, as optimisers and aggregators are told of them. New reference. */
json_t *layout_metas(const struct layout *l);

/* Zeroed memory for `values` of the layout; NULL with `err` (memory). Freed by free(). */
float *layout_values(const struct layout *l, struct error *err);

/* The tensors of `values` as named_tensors, `count` of them, for roots and state objects; without `values` they have no bytes. */
void layout_tensors(const struct layout *l, const float *values, struct named_tensor *out);

/* The state root of `values`. */
struct hash layout_root(const struct layout *l, const float *values);

#endif
