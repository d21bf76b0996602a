/* source_part.h - what the files of source.c share: a model's tensors as entries by name. Internal to native/model.
 *
 *     source.c          opening, GGUF files
 *     source_folder.c   a folder of Hugging Face files
 *     source_entries.c  entries, stacks of experts
 *     source_values.c   the values of a tensor
 */
#ifndef RONDO_MODEL_SOURCE_PART_H
#define RONDO_MODEL_SOURCE_PART_H

#include "native/model/bitsandbytes.h"
#include "native/model/config.h"
#include "native/model/gguf.h"
#include "native/model/safetensors.h"
#include "native/model/source.h"

/* A tensor as others see it, and how its values stand in the file. */
struct source_entry {
    struct tensor view;
    struct config_form form;
    enum tensor_type stored;           /* of a transposed one: how the file has it; the view says f32 */
    const struct bitsandbytes *packed; /* in 4 bits: its parts; then the view has no data. NULL */
};

struct model_source {
    char *path;
    bool is_gguf;
    struct gguf gguf;
    struct safetensors *parts;
    size_t part_count;
    struct source_entry *entries; /* in name order */
    size_t entry_count;
    struct tensor *stacks; /* tensors of experts as one, without data: "a.experts.*.b" of a.experts.0.b, a.experts.1.b, ... */
    size_t stack_count;
    struct bitsandbytes_set quantised;
    json_t *config, *variables, *generation; /* generation: NULL without a file */
    bool head_missing;
    char *chat_template;
};

/* Room for `count` entries; one more, a view of `stored` called `name` (copied); and, when all are there, their order. Errors: memory, duplicate. */
bool source_reserve(struct model_source *model, size_t count, struct error *err);
bool source_add(struct model_source *model, const struct tensor *stored, const char *name, struct config_form form,
                struct error *err);
bool source_sort(struct model_source *model, struct error *err);

/* The entry or stack of that name, and expert `e` of a stack; NULL when there is none. */
const struct source_entry *source_find(const struct model_source *model, const char *name);
const struct tensor *source_find_stack(const struct model_source *model, const char *name);
const struct source_entry *source_expert(const struct model_source *model, const char *stack, uint64_t e);

/* Makes the stacks of sorted entries. Errors: memory, shape, unsupported. */
bool source_stack_experts(struct model_source *model, struct error *err);

/* Bytes of `t` as `type`, which is its own unless it is packed. */
size_t source_stored_size(const struct tensor *t, enum tensor_type type);

bool source_open_folder(struct model_source *model, struct error *err);

#endif
