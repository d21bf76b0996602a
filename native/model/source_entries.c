/* A model's tensors as entries by name, and those of experts as stacks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/model/source_part.h"

/* Entries ------------------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct source_entry *)a)->view.name, ((const struct source_entry *)b)->view.name);
}

bool source_sort(struct model_source *model, struct error *err)
{
    qsort(model->entries, model->entry_count, sizeof *model->entries, by_name);
    for (size_t i = 1; i < model->entry_count; i++)
        if (by_name(&model->entries[i - 1], &model->entries[i]) == 0)
            return error_set(err, ERROR_DUPLICATE, NULL, "two tensors have the name %s", model->entries[i].view.name);
    return true;
}

bool source_reserve(struct model_source *model, size_t count, struct error *err)
{
    model->entries = calloc(count + 1, sizeof *model->entries);
    return model->entries || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
}

/* Adds a view of `stored` called `name`. */
bool source_add(struct model_source *model, const struct tensor *stored, const char *name, struct config_form form,
                struct error *err)
{
    struct source_entry *entry = &model->entries[model->entry_count];

    entry->view = *stored;
    entry->form = form;
    entry->view.name = strdup(name);
    if (!entry->view.name)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
    model->entry_count++;
    return true;
}

const struct source_entry *source_find(const struct model_source *model, const char *name)
{
    const struct source_entry wanted = { .view.name = (char *)(uintptr_t)name };

    return model->entry_count == 0 ? NULL : bsearch(&wanted, model->entries, model->entry_count, sizeof *model->entries, by_name);
}

/* Stacks of experts -------------------------------------------------------------------------------------------------------- */

/* Expert `e` of a stack; NULL when there is none. */
const struct source_entry *source_expert(const struct model_source *model, const char *stack, uint64_t e)
{
    const char *star = strchr(stack, '*');
    char name[512];

    if (snprintf(name, sizeof name, "%.*s%" PRIu64 "%s", (int)(star - stack), stack, e, star + 1) >= (int)sizeof name)
        return NULL;
    return source_find(model, name);
}

static bool same_kind(const struct tensor *a, const struct tensor *b)
{
    return a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Bytes of `t` as `type`, which is its own unless it is packed. */
size_t source_stored_size(const struct tensor *t, enum tensor_type type)
{
    return type == t->type ? t->size : tensor_block_place(type, tensor_values(t));
}

/* The stack that begins with `first`, if that is an expert of number 0 with at most seven axes. */
static bool add_stack(struct model_source *model, const struct tensor *first, struct error *err)
{
    struct tensor *stack = &model->stacks[model->stack_count];
    const char *at = strstr(first->name, ".experts.0.");
    const struct source_entry *each;
    uint64_t count = 0;

    if (!at || first->rank + 1 > sizeof first->dims / sizeof *first->dims)
        return true;
    /* groups of scales run through one expert: of several the scales stand as they are */
    *stack = (struct tensor){ .type = first->type == TENSOR_NF4_DQ ? TENSOR_NF4 : first->type,
                              .rank = first->rank + 1,
                              .name = strdup(first->name) };
    if (!stack->name)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
    model->stack_count++;
    stack->name[at + 9 - first->name] = '*';
    while ((each = source_expert(model, stack->name, count))) {
        if (!same_kind(&each->view, first))
            return error_set(err, ERROR_SHAPE, NULL, "%s is of another shape or type than that of expert 0", each->view.name);
        if (each->packed && tensor_values(&each->view) % tensor_block_values(TENSOR_NF4) != 0)
            return error_set(err, ERROR_UNSUPPORTED, NULL, "%s is no whole number of blocks", each->view.name);
        stack->size += source_stored_size(&each->view, stack->type);
        count++;
    }
    stack->dims[0] = count;
    memcpy(stack->dims + 1, first->dims, first->rank * sizeof *first->dims);
    return true;
}

bool source_stack_experts(struct model_source *model, struct error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < model->entry_count; i++)
        count += strstr(model->entries[i].view.name, ".experts.0.") != NULL;
    model->stacks = calloc(count + 1, sizeof *model->stacks);
    if (!model->stacks)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
    for (size_t i = 0; i < model->entry_count; i++)
        if (!add_stack(model, &model->entries[i].view, err))
            return false;
    return true;
}

const struct tensor *source_find_stack(const struct model_source *model, const char *name)
{
    for (size_t i = 0; i < model->stack_count; i++)
        if (strcmp(model->stacks[i].name, name) == 0)
            return &model->stacks[i];
    return NULL;
}
