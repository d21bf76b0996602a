#include "native/model/adapter.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/safetensors.h"

static const char PREFIX[] = "base_model.model.";

/* Where a name's module ends and whether it is an A; false for other names. */
static bool split_name(const char *name, size_t *module, bool *is_a)
{
    size_t length = strlen(name);

    if (length > 7 && strcmp(name + length - 7, ".weight") == 0)
        length -= 7;
    if (length <= 7)
        return false;
    *module = length - 7;
    *is_a = strncmp(name + *module, ".lora_A", 7) == 0;
    return *is_a || strncmp(name + *module, ".lora_B", 7) == 0;
}

/* The tensor as PEFT shapes it: two dimensions, of which the rank's is the first of A and the last of B. */
static bool shape_tensor(const struct adapter *adapter, const struct tensor *t, bool is_a, struct tensor *out, struct error *err)
{
    const uint64_t values = tensor_values(t), rank = adapter->rank;

    if (t->type != TENSOR_F32)
        return error_set(err, ERROR_TYPE, NULL, "an adapter is written as f32, not %s", tensor_type_name(t->type));
    if (t->rank < 2 || rank == 0 || t->dims[is_a ? 0 : t->rank - 1] != rank)
        return error_set(err, ERROR_SHAPE, NULL, "the %s dimension of %s is not the rank %" PRIu64, is_a ? "first" : "last",
                         is_a ? "an A" : "a B", rank);
    *out = *t;
    out->rank = 2;
    out->dims[0] = is_a ? rank : values / rank;
    out->dims[1] = is_a ? values / rank : rank;
    return true;
}

static bool convert_tensor(const struct adapter *adapter, const struct tensor *t, struct tensor *out, struct error *err)
{
    size_t module;
    bool is_a;

    if (!t->name)
        return error_set(err, ERROR_MISSING, NULL, "a tensor without a name");
    if (!split_name(t->name, &module, &is_a)) {
        error_set(err, ERROR_UNSUPPORTED, NULL, "the name ends neither in .lora_A nor in .lora_B");
        return error_at(err, "%s", t->name);
    }
    if (!shape_tensor(adapter, t, is_a, out, err))
        return error_at(err, "%s", t->name);
    const size_t size = sizeof PREFIX + module + sizeof ".lora_A.weight";

    out->name = malloc(size);
    if (!out->name)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
    snprintf(out->name, size, "%s%.*s.lora_%c.weight", PREFIX, (int)module, t->name, is_a ? 'A' : 'B');
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* In name order each A is followed by its B: their names differ in one letter. */
static bool check_pairs(struct tensor *tensors, size_t count, struct error *err)
{
    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 0; i < count; i += 2) {
        const size_t at = strlen(tensors[i].name) - strlen("A.weight");
        const bool paired = i + 1 < count && tensors[i].name[at] == 'A' && strlen(tensors[i + 1].name) == at + 8 &&
                            strncmp(tensors[i].name, tensors[i + 1].name, at) == 0 && tensors[i + 1].name[at] == 'B';

        if (!paired)
            return error_set(err, ERROR_MISSING, NULL, "%s has no counterpart", tensors[i].name);
    }
    return true;
}

/* The last parts of the modules' names ("q_proj"), each once, in order of name. */
static json_t *target_modules(const struct tensor *tensors, size_t count)
{
    json_t *targets = json_array(), *seen = json_object();

    for (size_t i = 0; i < count; i += 2) {
        const char *name = tensors[i].name, *end = name + strlen(name) - strlen(".lora_A.weight"), *start = end;

        while (start > name && start[-1] != '.')
            start--;
        json_t *target = json_stringn(start, (size_t)(end - start));

        if (!json_object_get(seen, json_string_value(target))) {
            json_object_set_new(seen, json_string_value(target), json_true());
            json_array_append(targets, target);
        }
        json_decref(target);
    }
    json_decref(seen);
    return targets;
}

static bool write_config(const char *folder, const struct adapter *adapter, const struct tensor *tensors, struct error *err)
{
    char path[PATH_MAX];
    json_t *alpha = adapter->alpha == (double)(json_int_t)adapter->alpha ? json_integer((json_int_t)adapter->alpha)
                                                                         : json_real(adapter->alpha);
    json_t *config =
        json_pack("{s:s, s:s, s:s?, s:b, s:i, s:o, s:f, s:s, s:b, s:b, s:b, s:n, s:o}", "peft_type", "LORA", "task_type",
                  "CAUSAL_LM", "base_model_name_or_path", adapter->base, "inference_mode", 1, "r", (int)adapter->rank,
                  "lora_alpha", alpha, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out", 0, "use_rslora", 0, "use_dora", 0,
                  "modules_to_save", "target_modules", target_modules(tensors, adapter->count));
    char *text = config ? json_dumps(config, JSON_INDENT(2)) : NULL;

    json_decref(config);
    if (!text)
        return error_set(err, ERROR_FAULT, NULL, "the adapter's configuration cannot be printed");
    const bool fits = snprintf(path, sizeof path, "%s/adapter_config.json", folder) < (int)sizeof path;
    const bool ok =
        fits ? file_write(path, text, strlen(text), 0666, err) : error_set(err, ERROR_LIMIT, NULL, "path is too long");

    free(text);
    return ok;
}

static bool write_tensors(const char *folder, const struct adapter *adapter, const struct tensor *tensors, struct error *err)
{
    char path[PATH_MAX];
    json_t *metadata = json_pack("{s:s}", "format", "pt"); /* some loaders insist on it */
    const bool fits = snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) < (int)sizeof path;
    const bool ok = fits ? safetensors_write(path, tensors, adapter->count, metadata, err)
                         : error_set(err, ERROR_LIMIT, NULL, "path is too long");

    json_decref(metadata);
    return ok;
}

bool adapter_write(const char *folder, const struct adapter *adapter, struct error *err)
{
    struct tensor *tensors = calloc(adapter->count + 1, sizeof *tensors);
    bool ok = tensors || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", adapter->count);

    for (size_t i = 0; ok && i < adapter->count; i++)
        ok = convert_tensor(adapter, &adapter->tensors[i], &tensors[i], err);
    ok = ok && check_pairs(tensors, adapter->count, err) && file_make_folder(folder, err) &&
         write_tensors(folder, adapter, tensors, err) && write_config(folder, adapter, tensors, err);
    for (size_t i = 0; tensors && i < adapter->count; i++)
        free(tensors[i].name);
    free(tensors);
    return ok;
}
