/* adapter_read.c - a PEFT folder as hostile input (adapter.h). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/model/adapter.h"
#include "native/model/convert.h"
#include "native/model/safetensors.h"

enum { CONFIG_LIMIT = 1 << 20, RANK_MOST = 1024, ALPHA_MOST = 65536 };

static bool read_number(const json_t *config, const char *name, unsigned most, unsigned *out, struct error *err)
{
    const json_t *value = json_object_get(config, name);
    double number = json_number_value(value);

    if (!json_is_number(value))
        return error_set(err, value ? ERROR_TYPE : ERROR_MISSING, NULL, "%s is no number", name);
    if (!(number >= 1 && number <= most) || number != floor(number))
        return error_set(err, ERROR_RANGE, NULL, "%s %g is not a whole number from 1 to %u", name, number, most);
    *out = (unsigned)number;
    return true;
}

static bool check_plain(const json_t *config, struct error *err)
{
    static const char *const flags[] = { "use_rslora", "use_dora", "fan_in_fan_out" };
    const char *type = json_string_value(json_object_get(config, "peft_type"));

    if (!type || strcmp(type, "LORA") != 0)
        return error_set(err, ERROR_UNSUPPORTED, "LORA is read", "peft_type is %s", type ? type : "missing");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_is_true(json_object_get(config, flags[i])))
            return error_set(err, ERROR_UNSUPPORTED, NULL, "an adapter with %s", flags[i]);
    return true;
}

bool adapter_read_config(const char *folder, unsigned *rank, unsigned *alpha, struct error *err)
{
    char path[PATH_MAX];
    json_t *config;
    bool ok;

    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    config = json_read_file(path, CONFIG_LIMIT, err);
    if (!config)
        return false;
    ok = check_plain(config, err) && read_number(config, "r", RANK_MOST, rank, err) &&
         read_number(config, "lora_alpha", ALPHA_MOST, alpha, err);
    json_decref(config);
    return ok || error_at(err, "%s", path);
}

/* "base_model.model.X.lora_A.weight" and "X.lora_A" name the same. */
static size_t bare(const char **name)
{
    static const char prefix[] = "base_model.model.";
    size_t size;

    if (strncmp(*name, prefix, sizeof prefix - 1) == 0)
        *name += sizeof prefix - 1;
    size = strlen(*name);
    return size > 7 && strcmp(*name + size - 7, ".weight") == 0 ? size - 7 : size;
}

static struct tensor *find(struct tensor *tensors, size_t count, const char *name)
{
    size_t size = bare(&name);

    for (size_t i = 0; i < count; i++) {
        const char *own = tensors[i].name;

        if (bare(&own) == size && memcmp(own, name, size) == 0)
            return &tensors[i];
    }
    return NULL;
}

static bool take(struct tensor *to, const struct tensor *from, struct error *err)
{
    float *values = to->data;

    if (tensor_values(from) != tensor_values(to))
        return error_set(err, ERROR_SHAPE, "the adapter belongs to another model", "%llu values where the model needs %llu",
                         (unsigned long long)tensor_values(from), (unsigned long long)tensor_values(to));
    convert_to_f32(from->type, from->data, tensor_values(from), values);
    for (uint64_t i = 0; i < tensor_values(to); i++)
        if (!isfinite(values[i]))
            return error_set(err, ERROR_NON_FINITE, NULL, "value %llu is not finite", (unsigned long long)i);
    return true;
}

bool adapter_read(const char *folder, struct tensor *tensors, size_t count, struct error *err)
{
    struct safetensors file = { 0 };
    char path[PATH_MAX];
    bool ok;

    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    for (size_t i = 0; i < count; i++)
        memset(tensors[i].data, 0, tensors[i].size);
    ok = safetensors_open(&file, path, err);
    for (size_t i = 0; ok && i < file.count; i++) {
        struct tensor *to = find(tensors, count, file.tensors[i].name);

        ok = to ? take(to, &file.tensors[i], err)
                : error_set(err, ERROR_UNKNOWN, "the adapter belongs to another model", "the model has no such adapter");
        if (!ok)
            error_at(err, "%s: %s", path, file.tensors[i].name);
    }
    safetensors_close(&file);
    return ok;
}
