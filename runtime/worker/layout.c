#include "runtime/worker/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/numerics/random.h"

bool axes_measure(const char *axes, unsigned *rank, uint64_t dims[8], uint64_t *values, struct error *err)
{
    *rank = 0;
    *values = 1;
    if (!axes)
        return error_set(err, ERROR_SHAPE, NULL, "no axes");
    for (const char *at = axes; *at;) {
        const char *equals = strchr(at, '=');
        char *end;

        if (!equals || *rank == 8)
            return error_set(err, ERROR_SHAPE, NULL, "axes \"%s\" are not name=size, at most eight", axes);
        dims[*rank] = strtoull(equals + 1, &end, 10);
        if (end == equals + 1 || (*end && *end != ' ') || dims[*rank] == 0 ||
            __builtin_mul_overflow(*values, dims[*rank], values) || *values > UINT64_C(1) << 40)
            return error_set(err, ERROR_SHAPE, NULL, "axes \"%s\" have no usable sizes", axes);
        ++*rank;
        at = end + (*end == ' ');
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct layout_parameter *)a)->name, ((const struct layout_parameter *)b)->name);
}

bool layout_new(struct layout *l, json_t *meta, struct error *err)
{
    json_t *params = json_object_get(meta, "params"), *param;
    size_t index;

    *l = (struct layout){ .meta = json_incref(meta) };
    l->parameters = calloc(json_array_size(params) + 1, sizeof *l->parameters);
    json_array_foreach(params, index, param)
    {
        struct layout_parameter *p = &l->parameters[l->count];

        if (!json_is_true(json_object_get(param, "trained")))
            continue;
        p->name = json_string_value(json_object_get(param, "name"));
        p->meta = param;
        if (!p->name || strncmp(p->name, "s.", 2) == 0) { /* s. is an optimiser's */
            error_set(err, ERROR_SCRIPT, NULL, "params[%zu] has no usable name", index);
            layout_free(l);
            return false;
        }
        if (!axes_measure(json_string_value(json_object_get(param, "axes")), &p->rank, p->dims, &p->values, err)) {
            error_at(err, "%s", p->name);
            layout_free(l);
            return false;
        }
        l->count++;
    }
    if (l->count == 0) {
        layout_free(l);
        return error_set(err, ERROR_MISSING, "check adapter.targets", "the model and adapter leave nothing to train");
    }
    qsort(l->parameters, l->count, sizeof *l->parameters, by_name);
    for (size_t i = 0; i < l->count; i++) {
        if (i && strcmp(l->parameters[i - 1].name, l->parameters[i].name) == 0) {
            error_set(err, ERROR_DUPLICATE, NULL, "the model has the parameter %s twice", l->parameters[i].name);
            layout_free(l);
            return false;
        }
        l->parameters[i].offset = l->values;
        l->values += l->parameters[i].values;
    }
    return true;
}

void layout_free(struct layout *l)
{
    free(l->parameters);
    json_decref(l->meta);
    *l = (struct layout){ 0 };
}

const char *layout_head(const struct layout *l)
{
    json_t *param;
    size_t index;

    json_array_foreach(json_object_get(l->meta, "params"), index, param)
    {
        if (json_is_true(json_object_get(param, "head")))
            return json_string_value(json_object_get(param, "name"));
    }
    return NULL;
}

long layout_find(const struct layout *l, const char *name)
{
    struct layout_parameter key = { .name = name }, *found = bsearch(&key, l->parameters, l->count, sizeof key, by_name);

    return found ? found - l->parameters : -1;
}

/* A number of the meta: an integer, or a decimal text. False when it is neither. */
static bool meta_number(const json_t *value, double *out)
{
    *out = json_decimal(value, 0);
    return json_is_string(value) || json_is_number(value);
}

static void draw_normal(const char *seed, const char *name, float deviation, float *values, uint64_t count)
{
    struct hasher h;
    uint32_t key[2], words[4];

    hash_start(&h, "rondo/init");
    hash_text(&h, seed);
    hash_text(&h, name);

    struct hash digest = hash_end(&h);

    memcpy(key, digest.bytes, sizeof key);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t counter[4] = { (uint32_t)(i / 4), (uint32_t)(i >> 34), 0, 0 };

        if (i % 4 == 0)
            philox_block(counter, key, words);
        values[i] = random_normal(words[i % 4]) * deviation;
    }
}

bool layout_draw(const json_t *meta, const char *seed, float *values, struct error *err)
{
    const json_t *init = json_object_get(meta, "init");
    const char *name = json_string_value(json_object_get(meta, "name"));
    unsigned rank;
    uint64_t dims[8], count;
    double number;

    if (!axes_measure(json_string_value(json_object_get(meta, "axes")), &rank, dims, &count, err))
        return false;
    if (meta_number(json_object_get(init, "normal"), &number)) {
        draw_normal(seed, name, (float)number, values, count);
        return true;
    }
    if (!meta_number(json_object_get(init, "fill"), &number))
        return error_set(err, ERROR_SCRIPT, NULL, "nothing says how %s begins", name);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)number;
    return true;
}

float *layout_values(const struct layout *l, struct error *err)
{
    float *values = calloc((size_t)l->values, sizeof *values);

    if (!values)
        error_set(err, ERROR_MEMORY, NULL, "no memory for %llu trained values", (unsigned long long)l->values);
    return values;
}

json_t *layout_metas(const struct layout *l)
{
    json_t *list = json_array();

    for (size_t i = 0; i < l->count; i++)
        json_array_append(list, l->parameters[i].meta);
    return list;
}

void layout_tensors(const struct layout *l, const float *values, struct named_tensor *out)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct layout_parameter *p = &l->parameters[i];

        out[i] = (struct named_tensor){
            .name = p->name, .code = CODE_F32, .rank = p->rank, .bytes = values ? values + p->offset : NULL
        };
        memcpy(out[i].dims, p->dims, sizeof p->dims);
    }
}

struct hash layout_root(const struct layout *l, const float *values)
{
    struct named_tensor *tensors = calloc(l->count, sizeof *tensors);
    struct error err = { 0 };
    struct hash root = { 0 };

    layout_tensors(l, values, tensors);
    if (!root_of_state(tensors, l->count, &root, &err))
        abort(); /* the layout is sorted and measured */
    free(tensors);
    return root;
}
