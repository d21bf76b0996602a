/* adapter_read.c - a PEFT folder as hostile input (adapter.h). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/model/adapter_head.h"
#include "native/model/convert.h"
#include "native/model/safetensors.h"

enum { CONFIG_LIMIT = 1 << 20 };

static bool read_number(const json_t *config, const char *name, double *out, struct error *err)
{
    const json_t *value = json_object_get(config, name);

    *out = json_number_value(value);
    return json_is_number(value) ||
           error_set(err, value ? ERROR_TYPE : ERROR_MISSING, NULL, "%s is %s", name, value ? "no number" : "missing");
}

/* Whether a field says nothing: null, false, "none", an empty list or object, or its default. */
static bool says_nothing(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && strcmp(json_string_value(value), "none") == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) || (json_is_object(value) && json_object_size(value) == 0);
}

/* Some ways to begin take the adapter's first values out of the base: such an adapter belongs to a base of its own. */
static bool check_start(const json_t *start, struct error *err)
{
    static const char *const plain[] = { "gaussian", "orthogonal", "eva" };
    const char *name = json_string_value(start);

    for (size_t i = 0; name && i < sizeof plain / sizeof *plain; i++)
        if (strcmp(name, plain[i]) == 0)
            return true;
    return !name || error_set(err, ERROR_UNSUPPORTED,
                              "convert it to a plain LoRA (PEFT: save_pretrained with path_initial_model_for_weight_conversion)",
                              "an adapter with init_lora_weights %.40s changes its base", name);
}

/* What would change the adapter's meaning and is not offered. */
static bool check_plain(const json_t *config, struct error *err)
{
    static const char *const fields[] = { "bias",
                                          "lora_bias",
                                          "trainable_token_indices",
                                          "target_parameters",
                                          "layer_replication",
                                          "alora_invocation_tokens",
                                          "use_qalora",
                                          "use_bdlora",
                                          "arrow_config",
                                          "kasa_config",
                                          "velora_config",
                                          "monteclora_config" };
    const char *type = json_string_value(json_object_get(config, "peft_type"));

    if (!type || strcmp(type, "LORA") != 0)
        return error_set(err, ERROR_UNSUPPORTED, "LORA is read", "peft_type is %s", type ? type : "missing");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!says_nothing(json_object_get(config, fields[i])))
            return error_set(err, ERROR_UNSUPPORTED, "low-rank factors, and whole modules beside them", "an adapter with %s",
                             fields[i]);
    return check_start(json_object_get(config, "init_lora_weights"), err);
}

/* Names of modules; PEFT trains every module whose name ends so. */
static bool read_whole(const json_t *config, struct adapter_kind *kind, struct error *err)
{
    const json_t *list = json_object_get(config, "modules_to_save"), *name;
    size_t index;

    if (says_nothing(list))
        return true;
    if (!json_is_array(list) || json_array_size(list) > ADAPTER_PATTERNS_MOST)
        return error_set(err, ERROR_TYPE, "[ \"lm_head\" ]", "modules_to_save is no list of at most %d names",
                         ADAPTER_PATTERNS_MOST);
    json_array_foreach(list, index, name)
    {
        if (!json_is_string(name))
            return error_set(err, ERROR_TYPE, "[ \"lm_head\" ]", "modules_to_save[%zu] is no name", index);
    }
    kind->whole = json_deep_copy(list);
    kind->tied = json_is_true(json_object_get(config, "ensure_weight_tying"));
    return true;
}

static bool read_kind(const json_t *config, struct adapter_kind *kind, struct error *err)
{
    double rank;

    if (!check_plain(config, err) || !read_number(config, "r", &rank, err) ||
        !read_number(config, "lora_alpha", &kind->alpha, err))
        return false;
    if (!(rank >= 1 && rank <= ADAPTER_RANK_MOST) || rank != floor(rank))
        return error_set(err, ERROR_RANGE, NULL, "r %g is not a whole number from 1 to %d", rank, ADAPTER_RANK_MOST);
    if (!(kind->alpha > 0 && kind->alpha <= ADAPTER_ALPHA_MOST))
        return error_set(err, ERROR_RANGE, NULL, "lora_alpha %g is not above 0 and at most %g", kind->alpha, ADAPTER_ALPHA_MOST);
    kind->rank = (unsigned)rank;
    kind->root = json_is_true(json_object_get(config, "use_rslora"));
    kind->dora = json_is_true(json_object_get(config, "use_dora"));
    return read_whole(config, kind, err) &&
           adapter_patterns(kind, json_object_get(config, "rank_pattern"), json_object_get(config, "alpha_pattern"), true, err);
}

bool adapter_read_kind(const char *folder, struct adapter_kind *kind, struct error *err)
{
    char path[PATH_MAX];
    json_t *config;
    bool ok;

    *kind = (struct adapter_kind){ 0 };
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    config = json_read_file(path, CONFIG_LIMIT, err);
    if (!config)
        return false;
    ok = read_kind(config, kind, err);
    json_decref(config);
    return ok || error_at(err, "%s", path);
}

static void file_of(const char *folder, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/adapter_model.safetensors", folder);
}

/* "base_model.model.X.lora_A.weight" and "X.lora_A" name the same. */
static const char *bare(const char *name)
{
    static const char prefix[] = "base_model.model.";

    return name + (strncmp(name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0);
}

static bool same_part(const char *a, const char *b)
{
    size_t size_a = 0, size_b = 0;

    a = bare(a);
    b = bare(b);

    const enum adapter_part part = adapter_part_of(a, &size_a);

    if (part == ADAPTER_WHOLE)
        return strcmp(a, b) == 0;
    return part == adapter_part_of(b, &size_b) && size_a == size_b && size_a > 0 && memcmp(a, b, size_a) == 0;
}

static struct tensor *find(struct tensor *tensors, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (same_part(tensors[i].name, name))
            return &tensors[i];
    return NULL;
}

json_t *adapter_modules(const char *folder, bool whole, struct error *err)
{
    struct safetensors file = { 0 };
    char path[PATH_MAX];
    json_t *list = json_array();

    file_of(folder, path);
    bool ok = safetensors_open(&file, path, err);

    for (size_t i = 0; ok && i < file.count; i++) {
        const char *name = bare(file.tensors[i].name), *last;
        size_t module = 0;

        const enum adapter_part part = adapter_part_of(name, &module);

        if (part == ADAPTER_NONE) {
            error_set(err, ERROR_UNKNOWN, "lora_A, lora_B and lora_magnitude_vector of linear maps are read",
                      "a tensor that is no part of an adapter");
            ok = error_at(err, "%s: %s", path, file.tensors[i].name);
            break;
        }
        if ((part == ADAPTER_WHOLE) != whole)
            continue;
        last = json_string_value(json_array_get(list, json_array_size(list) - 1));
        if (!last || strlen(last) != module ||
            strncmp(last, name, module) != 0) /* in order of name a module's parts are together */
            json_array_append_new(list, json_stringn(name, module));
    }
    safetensors_close(&file);
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* Whole numbers as such: a run spec has no others. */
static json_t *told_pattern(json_t *pattern)
{
    json_t *told = json_copy(pattern), *number;
    const char *name;

    json_object_foreach(pattern, name, number)
    {
        const double value = json_number_value(number);

        if (value == floor(value))
            json_object_set_new(told, name, json_integer((json_int_t)value));
    }
    return told;
}

/* The modules that are trained whole, empty for none. NULL with `err`. */
static json_t *told_whole(const char *folder, const struct adapter_kind *kind, struct error *err)
{
    json_t *whole = adapter_modules(folder, true, err);

    if (!json_array_size(whole) || kind->whole)
        return whole;
    error_set(err, ERROR_UNKNOWN, "modules_to_save names such modules",
              "%s: a whole module of which adapter_config.json says nothing", json_string_value(json_array_get(whole, 0)));
    json_decref(whole);
    return NULL;
}

json_t *adapter_describe(const char *folder, struct error *err)
{
    struct adapter_kind kind;
    json_t *modules = adapter_read_kind(folder, &kind, err) ? adapter_modules(folder, false, err) : NULL,
           *whole = modules ? told_whole(folder, &kind, err) : NULL, *told = NULL;

    if (whole)
        told = json_pack("{s:s, s:i, s:o, s:s*, s:o*, s:o*, s:O}", "kind", kind.dora ? "dora" : "lora", "rank", (int)kind.rank,
                         "alpha", kind.alpha == floor(kind.alpha) ? json_integer((json_int_t)kind.alpha) : json_real(kind.alpha),
                         "scaling", kind.root ? "root" : NULL, "rank_pattern", told_pattern(kind.ranks), "alpha_pattern",
                         told_pattern(kind.alphas), "targets", modules);
    if (json_array_size(whole))
        json_object_set(told, "modules_to_save", whole);
    json_decref(modules);
    json_decref(whole);
    adapter_kind_free(&kind);
    return told;
}

/* Whether each of the dimensions is the product of neighbours of the other's. */
static bool joined(const struct tensor *many, const struct tensor *few)
{
    unsigned at = 0;

    for (unsigned i = 0; i < few->rank; i++) {
        uint64_t product = 1;

        while (at < many->rank && product < few->dims[i])
            product *= many->dims[at++];
        if (product != few->dims[i])
            return false;
    }
    return true;
}

/* The file has A as [rank, in], B as [out, rank]; what is of another form may hold as many values. */
static bool same_shape(const struct tensor *to, const struct tensor *from, enum adapter_part part)
{
    if (tensor_values(from) != tensor_values(to))
        return false;
    if (part == ADAPTER_MAGNITUDE)
        return from->rank == 1;
    if (part == ADAPTER_WHOLE)
        return joined(to, from);
    return from->rank == 2 && (part == ADAPTER_A ? from->dims[0] == to->dims[0] : from->dims[1] == to->dims[to->rank - 1]);
}

static const char *shape_text(const struct tensor *t, char text[160])
{
    size_t size = 0;

    for (unsigned i = 0; i < t->rank; i++)
        size += (size_t)snprintf(text + size, 160 - size, "%s%llu", i ? " x " : "", (unsigned long long)t->dims[i]);
    return t->rank ? text : "one value";
}

static bool take(struct tensor *to, const struct tensor *from, struct error *err)
{
    float *values = to->data;
    char wanted[160], found[160];
    size_t module = 0;

    if (!same_shape(to, from, adapter_part_of(to->name, &module)))
        return error_set(err, ERROR_SHAPE, "the adapter belongs to another model or has another rank",
                         "%s where the model needs %s", shape_text(from, found), shape_text(to, wanted));
    convert_to_f32(from->type, from->data, tensor_values(from), values);
    for (uint64_t i = 0; i < tensor_values(to); i++)
        if (!isfinite(values[i]))
            return error_set(err, ERROR_NON_FINITE, NULL, "value %llu is not finite", (unsigned long long)i);
    return true;
}

/* What the file lacks is told by name. */
static bool check_whole(const struct safetensors *file, const struct tensor *tensors, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!find(file->tensors, file->count, tensors[i].name)) {
            error_set(err, ERROR_MISSING, "name as targets what the adapter has, or take the adapter that belongs to this model",
                      "the adapter has no such tensor");
            return error_at(err, "%s", tensors[i].name);
        }
    return true;
}

static bool check_head(const char *folder, const struct safetensors *file, const struct tensor **again, struct error *err)
{
    struct adapter_kind kind;
    bool ok = adapter_read_kind(folder, &kind, err) && adapter_head_check(file, &kind, again, err);

    adapter_kind_free(&kind);
    return ok;
}

bool adapter_read(const char *folder, struct tensor *tensors, size_t count, bool tied, struct error *err)
{
    struct safetensors file = { 0 };
    const struct tensor *again = NULL;
    char path[PATH_MAX];
    bool ok;

    file_of(folder, path);
    ok = safetensors_open(&file, path, err) && (!tied || check_head(folder, &file, &again, err) || error_at(err, "%s", path));
    for (size_t i = 0; ok && i < file.count; i++) {
        if (&file.tensors[i] == again)
            continue;

        struct tensor *to = find(tensors, count, file.tensors[i].name);

        ok = to ? take(to, &file.tensors[i], err)
                : error_set(err, ERROR_UNKNOWN, "the adapter belongs to another model, or has more targets",
                            "the model has no such adapter");
        if (!ok)
            error_at(err, "%s: %s", path, file.tensors[i].name);
    }
    ok = ok && (check_whole(&file, tensors, count, err) || error_at(err, "%s", path));
    safetensors_close(&file);
    return ok;
}
