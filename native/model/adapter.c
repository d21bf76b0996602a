#include "native/model/adapter.h"

#include <inttypes.h>
#include <limits.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/safetensors.h"
#include "native/numerics/f32.h"

static const char PREFIX[] = "base_model.model.";

static const char *const ENDS[] = { ".lora_A", ".lora_B", ".lora_magnitude_vector" };

void adapter_kind_free(struct adapter_kind *kind)
{
    json_decref(kind->ranks);
    json_decref(kind->alphas);
    json_decref(kind->whole);
    *kind = (struct adapter_kind){ 0 };
}

static bool ends_in(const char *name, size_t length, const char *end, size_t size)
{
    return size <= length && strncmp(name + length - size, end, size) == 0 && (size == length || name[length - size - 1] == '.');
}

/* The number of the longest name that fits, or `own`. */
static double number_of(const json_t *pattern, const char *module, size_t length, double own)
{
    size_t longest = 0;
    const char *name;
    json_t *number;

    json_object_foreach((json_t *)(uintptr_t)pattern, name, number)
    {
        const size_t size = strlen(name);

        if (size > longest && ends_in(module, length, name, size)) {
            longest = size;
            own = json_number_value(number);
        }
    }
    return own;
}

struct adapter_kind adapter_kind_of(const struct adapter_kind *kind, const char *module, size_t length)
{
    return (struct adapter_kind){ .rank = (unsigned)number_of(kind->ranks, module, length, kind->rank),
                                  .alpha = number_of(kind->alphas, module, length, kind->alpha),
                                  .root = kind->root,
                                  .dora = kind->dora };
}

/* Whether one of the names so far is an end of this one. */
static bool is_covered(const json_t *pattern, const char *name)
{
    const char *earlier;
    json_t *number;

    json_object_foreach((json_t *)(uintptr_t)pattern, earlier, number)
    {
        if (ends_in(name, strlen(name), earlier, strlen(earlier)))
            return true;
    }
    return false;
}

/* One pattern; `whole`: its numbers are ranks. */
static bool take_pattern(json_t **out, const json_t *given, bool whole, bool first, struct error *err)
{
    const double most = whole ? ADAPTER_RANK_MOST : ADAPTER_ALPHA_MOST;
    const char *name;
    json_t *number;

    if (!given || json_is_null(given))
        return true;
    if (!json_is_object(given) || json_object_size(given) > ADAPTER_PATTERNS_MOST)
        return error_set(err, ERROR_TYPE, "{ \"q_proj\": 8 }", "not an object of at most %d names", ADAPTER_PATTERNS_MOST);
    if (json_object_size(given))
        *out = json_object();
    json_object_foreach((json_t *)(uintptr_t)given, name, number)
    {
        const double value = json_number_value(number);

        if (!*name || strpbrk(name, "^$*+?()[]{}|\\") || strlen(name) > 512)
            return error_set(err, ERROR_UNSUPPORTED, "name ends of modules, as \"q_proj\" or \"layers.0.self_attn.q_proj\"",
                             "%.100s is no end of a name", name);
        if (!json_is_number(number) || !(value > 0 && value <= most) || (whole && value != (double)(unsigned)value))
            return error_set(err, ERROR_RANGE, NULL, "%.100s: %s %g at most is needed", name,
                             whole ? "a whole number from 1 and" : "a number above 0 and", most);
        if (!first || !is_covered(*out, name))
            json_object_set_new(*out, name, whole ? json_integer((json_int_t)value) : json_real(value));
    }
    return true;
}

bool adapter_patterns(struct adapter_kind *kind, const json_t *ranks, const json_t *alphas, bool first, struct error *err)
{
    return (take_pattern(&kind->ranks, ranks, true, first, err) || error_at(err, "rank_pattern")) &&
           (take_pattern(&kind->alphas, alphas, false, first, err) || error_at(err, "alpha_pattern"));
}

double adapter_scale(const struct adapter_kind *kind)
{
    return kind->alpha / (kind->root ? f64_sqrt((double)kind->rank) : (double)kind->rank);
}

enum adapter_part adapter_part_of(const char *name, size_t *module)
{
    size_t length = strlen(name);

    if (length > 7 && strcmp(name + length - 7, ".weight") == 0)
        length -= 7;
    for (int part = ADAPTER_A; part < ADAPTER_WHOLE; part++) {
        const size_t end = strlen(ENDS[part]);

        if (length <= end || strncmp(name + length - end, ENDS[part], end) != 0)
            continue;
        *module = length - end;
        return (enum adapter_part)part;
    }

    const char *dot = strrchr(name, '.');

    if (!dot || dot == name || !dot[1] || strstr(name, ".lora_"))
        return ADAPTER_NONE;
    *module = (size_t)(dot - name);
    return ADAPTER_WHOLE;
}

/* The tensor as PEFT shapes it: a vector, or two dimensions, of which the rank's is the first of A and the last of B; a whole module's as it is. */
static bool shape_tensor(const struct adapter *adapter, const struct tensor *t, enum adapter_part part, struct tensor *out,
                         struct error *err)
{
    size_t module = 0;
    const bool is_a = adapter_part_of(t->name, &module) == ADAPTER_A;
    const uint64_t values = tensor_values(t), rank = adapter_kind_of(&adapter->kind, t->name, module).rank;

    if (t->type != TENSOR_F32)
        return error_set(err, ERROR_TYPE, NULL, "an adapter is written as f32, not %s", tensor_type_name(t->type));
    if (part != ADAPTER_MAGNITUDE && part != ADAPTER_WHOLE &&
        (t->rank < 2 || rank == 0 || t->dims[is_a ? 0 : t->rank - 1] != rank))
        return error_set(err, ERROR_SHAPE, NULL, "the %s dimension of %s is not the rank %" PRIu64, is_a ? "first" : "last",
                         is_a ? "an A" : "a B", rank);
    *out = *t;
    if (part == ADAPTER_WHOLE)
        return true;
    out->rank = part == ADAPTER_MAGNITUDE ? 1 : 2;
    out->dims[0] = values;
    if (part == ADAPTER_MAGNITUDE)
        return true;
    out->dims[0] = is_a ? rank : values / rank;
    out->dims[1] = is_a ? values / rank : rank;
    return true;
}

static bool convert_tensor(const struct adapter *adapter, const struct tensor *t, struct tensor *out, struct error *err)
{
    size_t module = 0;

    if (!t->name)
        return error_set(err, ERROR_MISSING, NULL, "a tensor without a name");
    const enum adapter_part part = adapter_part_of(t->name, &module);

    if (part == ADAPTER_NONE || (part == ADAPTER_MAGNITUDE && !adapter->kind.dora) ||
        (part == ADAPTER_WHOLE && !adapter->kind.whole)) {
        error_set(err, ERROR_UNSUPPORTED, NULL, "the name is none that an adapter of this kind has");
        return error_at(err, "%s", t->name);
    }
    if (!shape_tensor(adapter, t, part, out, err))
        return error_at(err, "%s", t->name);
    const size_t size = sizeof PREFIX + strlen(t->name) + sizeof ".weight";

    out->name = malloc(size);
    if (!out->name)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
    if (part == ADAPTER_WHOLE)
        snprintf(out->name, size, "%s%s", PREFIX, t->name);
    else
        snprintf(out->name, size, "%s%.*s%s%s", PREFIX, (int)module, t->name, ENDS[part],
                 part == ADAPTER_MAGNITUDE ? "" : ".weight");
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* In name order the parts of a module follow each other, in order of their number. */
static bool check_parts(const struct adapter_kind *kind, struct tensor *tensors, size_t count, struct error *err)
{
    const size_t parts = kind->dora ? 3 : 2;
    const char *first = NULL, *last = NULL;
    size_t at = 0, size = 0;

    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 0; i < count; i++) {
        size_t module = 0;
        const enum adapter_part part = adapter_part_of(tensors[i].name, &module);

        if (part == ADAPTER_WHOLE)
            continue;
        if (at % parts == 0) {
            first = tensors[i].name;
            size = module;
        }
        last = tensors[i].name;
        if (part != (enum adapter_part)(at++ % parts) || module != size || strncmp(first, last, module) != 0)
            return error_set(err, ERROR_MISSING, NULL, "%s has no counterpart", last);
    }
    return at % parts == 0 || error_set(err, ERROR_MISSING, NULL, "%s has no counterpart", last);
}

/* Where the last part of a module's name begins. */
static size_t last_part(const char *name, size_t module)
{
    while (module > 0 && name[module - 1] != '.')
        module--;
    return module;
}

static void add_once(json_t *list, json_t *seen, const char *name, size_t size)
{
    json_t *text = json_stringn(name, size);

    if (!json_object_get(seen, json_string_value(text))) {
        json_object_set_new(seen, json_string_value(text), json_true());
        json_array_append(list, text);
    }
    json_decref(text);
}

/* The modules that are trained whole, each once, in order of name, without the prefix; NULL: none. `parts`: the last parts of their names. */
static json_t *whole_modules(const struct tensor *tensors, size_t count, json_t *parts)
{
    json_t *whole = json_array(), *seen = json_object(), *ignored = json_array();

    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        size_t module = 0;

        if (adapter_part_of(name, &module) != ADAPTER_WHOLE)
            continue;
        add_once(whole, seen, name + strlen(PREFIX), module - strlen(PREFIX));
        add_once(ignored, parts, name + last_part(name, module), module - last_part(name, module));
    }
    json_decref(ignored);
    json_decref(seen);
    if (json_array_size(whole))
        return whole;
    json_decref(whole);
    return NULL;
}

/* The last parts of the modules' names ("q_proj"), each once, in order of name; the whole name where another module of that end is trained whole. */
static json_t *target_modules(const struct tensor *tensors, size_t count, const json_t *whole)
{
    json_t *targets = json_array(), *seen = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        size_t module = 0, start;

        if (adapter_part_of(name, &module) == ADAPTER_WHOLE)
            continue;
        start = last_part(name, module);
        if (json_object_getn(whole, name + start, module - start))
            start = strlen(PREFIX);
        add_once(targets, seen, name + start, module - start);
    }
    json_decref(seen);
    return targets;
}

/* Ranks (which 0) or alphas of modules that differ from the adapter's, by the modules' whole names. */
static json_t *pattern_config(const struct adapter *adapter, const struct tensor *tensors, size_t count, bool alphas)
{
    json_t *pattern = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i].name + strlen(PREFIX);
        size_t module = 0;

        if (adapter_part_of(name, &module) != ADAPTER_A)
            continue;

        const struct adapter_kind one = adapter_kind_of(&adapter->kind, name, module);
        json_t *value = alphas                           ? one.alpha == adapter->kind.alpha ? NULL : json_real(one.alpha)
                                                  : one.rank == adapter->kind.rank ? NULL
                                                         : json_integer((json_int_t)one.rank);

        if (value)
            json_object_setn_new(pattern, name, module, value);
    }
    return pattern;
}

static bool write_config(const char *folder, const struct adapter *adapter, const struct tensor *tensors, size_t count,
                         struct error *err)
{
    char path[PATH_MAX];
    const struct adapter_kind *kind = &adapter->kind;
    json_t *alpha =
        kind->alpha == (double)(json_int_t)kind->alpha ? json_integer((json_int_t)kind->alpha) : json_real(kind->alpha);
    json_t *parts = json_object(), *whole = whole_modules(tensors, count, parts);
    json_t *config =
        json_pack("{s:s, s:s, s:s?, s:b, s:i, s:o, s:f, s:s, s:b, s:b, s:b, s:n, s:o}", "peft_type", "LORA", "task_type",
                  "CAUSAL_LM", "base_model_name_or_path", adapter->base, "inference_mode", 1, "r", (int)kind->rank, "lora_alpha",
                  alpha, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out", 0, "use_rslora", (int)kind->root, "use_dora",
                  (int)kind->dora, "modules_to_save", "target_modules", target_modules(tensors, count, parts));
    if (config && whole)
        json_object_set(config, "modules_to_save", whole);
    if (config && (kind->ranks || kind->alphas)) {
        json_object_set_new(config, "rank_pattern", pattern_config(adapter, tensors, count, false));
        json_object_set_new(config, "alpha_pattern", pattern_config(adapter, tensors, count, true));
    }
    json_decref(parts);
    json_decref(whole);

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

static bool write_tensors(const char *folder, const struct tensor *tensors, size_t count, struct error *err)
{
    char path[PATH_MAX];
    json_t *metadata = json_pack("{s:s}", "format", "pt"); /* some loaders insist on it */
    const bool fits = snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) < (int)sizeof path;
    const bool ok =
        fits ? safetensors_write(path, tensors, count, metadata, err) : error_set(err, ERROR_LIMIT, NULL, "path is too long");

    json_decref(metadata);
    return ok;
}

bool adapter_write(const char *folder, const struct adapter *adapter, struct error *err)
{
    struct tensor *tensors = calloc(adapter->count + 2, sizeof *tensors);
    size_t count = 0;
    bool ok = tensors || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", adapter->count);

    for (size_t i = 0; ok && i < adapter->count; i++) {
        struct tensor head = adapter->tensors[i];

        ok = convert_tensor(adapter, &head, &tensors[count++], err);
        if (!ok || !adapter->head || strcmp(head.name, adapter->head) != 0)
            continue;
        head.name = (char *)(uintptr_t) "lm_head.weight";
        ok = convert_tensor(adapter, &head, &tensors[count++], err);
    }
    ok = ok && check_parts(&adapter->kind, tensors, count, err) && file_make_folder(folder, err) &&
         write_tensors(folder, tensors, count, err) && write_config(folder, adapter, tensors, count, err);
    for (size_t i = 0; tensors && i < count; i++)
        free(tensors[i].name);
    free(tensors);
    return ok;
}
