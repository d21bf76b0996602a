/* The values of a tensor: as f32, or as the file holds them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/nearest.h"
#include "native/model/convert.h"
#include "native/model/source_part.h"
#include "native/numerics/f32.h"

/* Reads the rows of one head: HF's row t*d/2 + p is the stored row 2p + t, d rows in all. */
static void read_head(const struct tensor *t, const uint8_t *stored, uint64_t d, uint64_t width, float *out)
{
    const size_t row_bytes = (size_t)(width / tensor_block_values(t->type)) * tensor_block_bytes(t->type);

    for (uint64_t r = 0; r < d; r++) {
        const uint64_t half = r / (d / 2), p = r % (d / 2);

        convert_to_f32(t->type, stored + (2 * p + half) * row_bytes, width, out + r * width);
    }
}

/* [in, out] of what the file has as [out, in]. */
static void read_transposed(const struct source_entry *entry, float *out)
{
    enum { PART = 256 }; /* a multiple of every block */
    const uint64_t in = entry->view.dims[0], rows = entry->view.dims[1];
    const size_t row_bytes = tensor_block_place(entry->stored, in);
    float values[PART];

    for (uint64_t o = 0; o < rows; o++)
        for (uint64_t i = 0; i < in; i += PART) {
            const uint64_t here = in - i < PART ? in - i : PART;

            convert_to_f32(entry->stored,
                           (const uint8_t *)entry->view.data + o * row_bytes + tensor_block_place(entry->stored, i), here,
                           values);
            for (uint64_t k = 0; k < here; k++)
                out[(i + k) * rows + o] = values[k];
        }
}

static void read_values(const struct source_entry *entry, float *out)
{
    const struct tensor *t = &entry->view;
    const uint64_t count = tensor_values(t);

    if (entry->form.transposed) {
        read_transposed(entry, out);
        return;
    }
    if (entry->form.heads == 0 || count == 0) {
        convert_to_f32(t->type, t->data, count, out);
        for (uint64_t i = 0; entry->form.added != 0 && i < count; i++)
            out[i] = out[i] - entry->form.added;
        return;
    }
    const uint64_t d = t->dims[0] / entry->form.heads, width = count / t->dims[0];
    const size_t head_bytes = t->size / entry->form.heads;

    for (unsigned h = 0; h < entry->form.heads; h++)
        read_head(t, (const uint8_t *)t->data + h * head_bytes, d, width, out + h * d * width);
}

/* The nearest name the model has, as a hint. */
static const char *nearest(const struct model_source *model, const char *name, char *hint, size_t size)
{
    const char **names = malloc((model->entry_count + 1) * sizeof *names);

    if (!names)
        return NULL;
    for (size_t i = 0; i < model->entry_count; i++)
        names[i] = model->entries[i].view.name;
    const char *best = nearest_name(name, names, model->entry_count);

    free(names);
    if (!best)
        return NULL;
    snprintf(hint, size, "did you mean %s?", best);
    return hint;
}

/* The stored bytes of an entry as `type`, which is its own unless it is packed: those of the file, or a copy that *owned has too. NULL: no memory. */
static const void *stored_bytes(const struct source_entry *entry, enum tensor_type type, void **owned)
{
    *owned = NULL;
    if (!entry->packed)
        return entry->view.data;
    *owned = malloc(source_stored_size(&entry->view, type) + 1);
    if (*owned)
        bitsandbytes_pack(entry->packed, type, *owned);
    return *owned;
}

static bool read_packed(const struct source_entry *entry, float *out, struct error *err)
{
    const struct tensor *t = &entry->view;
    void *owned;

    if (!stored_bytes(entry, t->type, &owned))
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);
    convert_to_f32(t->type, owned, tensor_values(t), out);
    free(owned);
    return true;
}

bool model_read_tensor(const struct model_source *model, const char *name, float *out, struct error *err)
{
    const struct source_entry *entry = source_find(model, name);
    const struct tensor *stack = entry ? NULL : source_find_stack(model, name);
    char hint[200];

    for (uint64_t e = 0; stack && e < stack->dims[0]; e++) {
        const struct tensor *t = &source_expert(model, name, e)->view;

        if (!model_read_tensor(model, t->name, out + e * tensor_values(t), err))
            return false;
    }
    if (stack)
        return true;

    if (!entry)
        return error_set(err, ERROR_MISSING, nearest(model, name, hint, sizeof hint), "%s has no tensor %s", model->path, name);
    if (!entry->packed)
        read_values(entry, out);
    else if (!read_packed(entry, out, err))
        return false;
    const uint64_t count = tensor_values(&entry->view);

    for (uint64_t i = 0; i < count; i++)
        if (!f32_is_finite(out[i])) {
            error_set(err, ERROR_NON_FINITE, "fetch the file again", "value %" PRIu64 " is NaN or infinite", i);
            return error_at(err, "%s: %s", model->path, name);
        }
    return true;
}

/* `bytes`: the tensor's, as `type`. */
static bool all_finite(const struct model_source *model, const struct tensor *t, enum tensor_type type, const void *bytes,
                       struct error *err)
{
    enum { PART = 16384 }; /* a multiple of every block and group of blocks */
    const uint64_t count = tensor_values(t);
    float values[PART];

    for (uint64_t at = 0; at < count; at += PART) {
        const uint64_t here = count - at < PART ? count - at : PART;

        convert_to_f32(type, (const uint8_t *)bytes + tensor_block_place(type, at), here, values);
        for (uint64_t i = 0; i < here; i++)
            if (!f32_is_finite(values[i])) {
                error_set(err, ERROR_NON_FINITE, "fetch the file again", "value %" PRIu64 " is NaN or infinite", at + i);
                return error_at(err, "%s: %s", model->path, t->name);
            }
    }
    return true;
}

/* Rows of a head lie as pairs in the file, as halves with Hugging Face. */
static void *rows_in_halves(const struct source_entry *entry)
{
    const struct tensor *t = &entry->view;
    const uint64_t d = t->dims[0] / entry->form.heads;
    const size_t row = t->size / t->dims[0];
    uint8_t *out = malloc(t->size + 1);

    for (uint64_t r = 0; out && r < t->dims[0]; r++) {
        const uint64_t head = r / d, half = r % d / (d / 2), p = r % d % (d / 2);

        memcpy(out + r * row, (const uint8_t *)t->data + (head * d + 2 * p + half) * row, row);
    }
    return out;
}

/* The experts one after the other, as they are stored. */
static bool read_stack(const struct model_source *model, const struct tensor *stack, const void **bytes, void **owned,
                       enum tensor_type *type, struct error *err)
{
    uint8_t *out = malloc(stack->size + 1);
    size_t at = 0;

    if (!out)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", stack->name);
    for (uint64_t e = 0; e < stack->dims[0]; e++) {
        const struct source_entry *expert = source_expert(model, stack->name, e);
        const struct tensor *t = &expert->view;
        const size_t size = source_stored_size(t, stack->type);
        void *copy;
        const void *own = stored_bytes(expert, stack->type, &copy);
        const bool good =
            own ? all_finite(model, t, stack->type, own, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);

        if (good)
            memcpy(out + at, own, size);
        free(copy);
        if (!good) {
            free(out);
            return false;
        }
        at += size;
    }
    *bytes = *owned = out;
    *type = stack->type;
    return true;
}

/* Values that are not those of the file, as f32. */
static bool read_converted(const struct source_entry *entry, const void **bytes, void **owned, enum tensor_type *type,
                           struct error *err)
{
    float *out = malloc((size_t)tensor_values(&entry->view) * sizeof *out + 1);

    if (!out)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", entry->view.name);
    read_values(entry, out);
    *bytes = *owned = out;
    *type = TENSOR_F32;
    return true;
}

bool model_read_stored(const struct model_source *model, const char *name, const void **bytes, void **owned,
                       enum tensor_type *type, struct error *err)
{
    const struct source_entry *entry = source_find(model, name);
    const struct tensor *stack = entry ? NULL : source_find_stack(model, name);
    char hint[200];

    *owned = NULL;
    if (stack)
        return read_stack(model, stack, bytes, owned, type, err);
    if (!entry)
        return error_set(err, ERROR_MISSING, nearest(model, name, hint, sizeof hint), "%s has no tensor %s", model->path, name);
    if (entry->form.transposed) {
        if (!read_converted(entry, bytes, owned, type, err))
            return false;
        if (all_finite(model, &entry->view, *type, *bytes, err))
            return true;
        free(*owned);
        *owned = NULL;
        return false;
    }
    *type = entry->view.type;
    *bytes = stored_bytes(entry, *type, owned);
    if (!*bytes && entry->view.size > 0)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
    if (!all_finite(model, &entry->view, *type, *bytes, err)) {
        free(*owned);
        *owned = NULL;
        return false;
    }
    if (entry->form.added != 0)
        return read_converted(entry, bytes, owned, type, err);
    if (entry->form.heads == 0 || entry->view.size == 0)
        return true;
    *bytes = *owned = rows_in_halves(entry);
    return *owned || error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
}
