#include "native/model/quantise.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/bitsandbytes.h"
#include "native/model/convert.h"
#include "native/model/folder.h"
#include "native/model/safetensors.h"
#include "native/model/source.h"

struct list {
    struct tensor *tensors; /* owned */
    size_t count;
};

bool quantise_takes(const struct tensor *t)
{
    static const char *const kept[] = { "embed", "wte", "wpe", "lm_head" };
    const size_t length = strlen(t->name);

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(t->name, kept[i]))
            return false;
    return t->rank == 2 && length > 7 && strcmp(t->name + length - 7, ".weight") == 0;
}

/* The weight's blocks; its parts join the list. */
static bool add_matrix(const struct model_source *model, const struct tensor *t, enum tensor_type type, struct list *list,
                       struct error *err)
{
    const uint64_t values = tensor_values(t);
    float *x = malloc((values + 1) * sizeof *x);
    struct tensor stored = { 0 };
    size_t parts = 0;
    bool ok = x || error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);

    ok = ok && model_read_tensor(model, t->name, x, err) &&
         tensor_new(&stored, t->name, type, t->rank, t->dims, SIZE_MAX / 2, err) &&
         (convert_from_f32(type, x, values, stored.data) || error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name));
    free(x);
    ok = ok && bitsandbytes_split(&stored, list->tensors + list->count, &parts, err);
    list->count += parts;
    tensor_free(&stored);
    return ok;
}

static bool add_as_it_is(const struct model_source *model, const struct tensor *t, struct list *list, struct error *err)
{
    struct tensor *out = &list->tensors[list->count];
    const void *bytes;
    void *owned = NULL;
    enum tensor_type type;

    if (!model_read_stored(model, t->name, &bytes, &owned, &type, err) ||
        !tensor_new(out, t->name, type, t->rank, t->dims, SIZE_MAX / 2, err))
        return false;
    memcpy(out->data, bytes, out->size);
    free(owned);
    list->count++;
    return true;
}

static bool add_all(const struct model_source *model, enum tensor_type type, struct list *list, size_t *matrices,
                    struct error *err)
{
    const size_t count = model_tensor_count(model);

    list->tensors = calloc(BITSANDBYTES_PARTS * count + 1, sizeof *list->tensors);
    if (!list->tensors)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        const struct tensor *t = model_tensor(model, i);

        if (t->type == TENSOR_NF4 || t->type == TENSOR_NF4_DQ)
            return error_set(err, ERROR_UNSUPPORTED, "give the original", "%s is quantised already", t->name);
        if (!(quantise_takes(t) ? add_matrix(model, t, type, list, err) : add_as_it_is(model, t, list, err)))
            return false;
        *matrices += quantise_takes(t);
    }
    return *matrices > 0 || error_set(err, ERROR_MISSING, NULL, "the model has no matrix to quantise");
}

/* As transformers writes it. */
static json_t *quantization_config(enum tensor_type type)
{
    return json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:s}", "quant_method", "bitsandbytes", "bnb_4bit_quant_type", "nf4",
                     "load_in_4bit", 1, "load_in_8bit", 0, "bnb_4bit_use_double_quant", type == TENSOR_NF4_DQ,
                     "bnb_4bit_compute_dtype", "float32", "bnb_4bit_quant_storage", "uint8");
}

static bool write_all(const char *base, const char *out, enum tensor_type type, const struct list *list, struct error *err)
{
    json_t *config = quantization_config(type), *metadata = json_pack("{s:s}", "format", "pt");
    char path[PATH_MAX];
    bool ok = snprintf(path, sizeof path, "%s/model.safetensors", out) < PATH_MAX ||
              error_set(err, ERROR_LIMIT, NULL, "path is too long");

    ok = ok && file_make_folder(out, err) && safetensors_write(path, list->tensors, list->count, metadata, err) &&
         folder_copy_beside(base, out, config, err);
    json_decref(config);
    json_decref(metadata);
    return ok;
}

bool quantise_write(const char *base, const char *out, enum tensor_type type, size_t *matrices, struct error *err)
{
    struct model_source *model = model_open(base, err);
    struct list list = { 0 };
    bool ok = model != NULL;

    *matrices = 0;
    if (ok && strcmp(model_format(model), "gguf") == 0)
        ok = error_set(err, ERROR_UNSUPPORTED, "its blocks serve as a 4-bit base as they are", "%s is a GGUF file", base);
    if (ok && type != TENSOR_NF4 && type != TENSOR_NF4_DQ)
        ok =
            error_set(err, ERROR_UNSUPPORTED, "choose nf4 or nf4_dq", "matrices are not quantised to %s", tensor_type_name(type));
    ok = ok && add_all(model, type, &list, matrices, err) && write_all(base, out, type, &list, err);
    for (size_t i = 0; list.tensors && i < list.count; i++)
        tensor_free(&list.tensors[i]);
    free(list.tensors);
    model_close(model);
    return ok;
}
