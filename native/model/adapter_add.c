#include "native/model/adapter_add.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/model/convert.h"
#include "native/numerics/f32.h"

bool adapter_file_open(struct adapter_file *adapter, const char *folder, struct error *err)
{
    char path[PATH_MAX];

    *adapter = (struct adapter_file){ 0 };
    if (!adapter_read_kind(folder, &adapter->kind, err))
        return false;
    if (snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) >= PATH_MAX)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long");
    return safetensors_open(&adapter->file, path, err);
}

void adapter_file_close(struct adapter_file *adapter)
{
    safetensors_close(&adapter->file);
    adapter_kind_free(&adapter->kind);
}

/* Of the module whose weight has that name. */
static struct adapter_kind kind_of(const struct adapter_file *adapter, const char *weight)
{
    return adapter_kind_of(&adapter->kind, weight, strlen(weight) - strlen(".weight"));
}

const struct tensor *adapter_file_part(const struct adapter_file *adapter, const char *weight, enum adapter_part part)
{
    static const char *const ends[] = { ".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector" };
    const size_t length = strlen(weight);
    char name[1024];

    if (length < 8 || strcmp(weight + length - 7, ".weight") != 0)
        return NULL;
    snprintf(name, sizeof name, "base_model.model.%.*s%s", (int)length - 7, weight, ends[part]);
    for (size_t i = 0; i < adapter->file.count; i++)
        if (strcmp(adapter->file.tensors[i].name, name) == 0)
            return &adapter->file.tensors[i];
    return NULL;
}

const struct tensor *adapter_file_whole(const struct adapter_file *adapter, const char *name)
{
    static const char prefix[] = "base_model.model.";

    for (size_t i = 0; adapter->kind.whole && i < adapter->file.count; i++)
        if (strncmp(adapter->file.tensors[i].name, prefix, sizeof prefix - 1) == 0 &&
            strcmp(adapter->file.tensors[i].name + sizeof prefix - 1, name) == 0)
            return &adapter->file.tensors[i];
    return NULL;
}

static bool fits(const struct adapter_file *adapter, const struct tensor *t, const struct tensor *const parts[3])
{
    const struct tensor *a = parts[ADAPTER_A], *b = parts[ADAPTER_B], *m = parts[ADAPTER_MAGNITUDE];
    const uint64_t rank = kind_of(adapter, t->name).rank, out = t->dims[adapter->transposed], in = t->dims[!adapter->transposed];

    return t->rank == 2 && a->rank == 2 && b->rank == 2 && a->dims[0] == rank && b->dims[1] == rank && a->dims[1] == in &&
           b->dims[0] == out && (!m || (m->rank == 1 && m->dims[0] == out));
}

bool adapter_file_has(const struct adapter_file *adapter, const struct tensor *t, bool *has, struct error *err)
{
    const int count = adapter->kind.dora ? 3 : 2;
    const struct tensor *parts[3] = { NULL };
    int found = 0;

    for (int part = 0; part < count; part++)
        found += (parts[part] = adapter_file_part(adapter, t->name, (enum adapter_part)part)) != NULL;
    *has = found > 0;
    if (found != 0 && found != count)
        return error_set(err, ERROR_MISSING, "fetch the adapter again", "%s: the adapter has %d of its %d parts", t->name, found,
                         count);
    return !*has || fits(adapter, t, parts) ||
           error_set(err, ERROR_SHAPE, "the adapter belongs to another model", "%s: the adapter's shape does not fit", t->name);
}

float *adapter_file_values(const struct tensor *t, struct error *err)
{
    const uint64_t count = tensor_values(t);
    float *values = malloc((count + 1) * sizeof *values);

    if (!values) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);
        return NULL;
    }
    convert_to_f32(t->type, t->data, count, values);
    for (uint64_t i = 0; i < count; i++)
        if (!f32_is_finite(values[i])) {
            error_set(err, ERROR_NON_FINITE, "fetch the adapter again", "%s has a value that is not finite", t->name);
            free(values);
            return NULL;
        }
    return values;
}

float adapter_row_norm(const float *row, uint64_t count, uint64_t stride)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += (double)row[i * stride] * (double)row[i * stride];
    return (float)f64_sqrt(sum);
}

/* One module's values, and a row to sum in. */
struct module {
    struct adapter_kind kind;
    float *part[3], *sum;
};

static void module_free(struct module *m)
{
    for (int part = 0; part < 3; part++)
        free(m->part[part]);
    free(m->sum);
}

static bool module_read(struct module *m, const struct adapter_file *adapter, const struct tensor *t, uint64_t in,
                        struct error *err)
{
    *m = (struct module){ .kind = kind_of(adapter, t->name), .sum = malloc((in + 1) * sizeof *m->sum) };
    if (!m->sum)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a row");
    for (int part = 0; part < (adapter->kind.dora ? 3 : 2); part++)
        if (!(m->part[part] = adapter_file_values(adapter_file_part(adapter, t->name, (enum adapter_part)part), err)))
            return false;
    return true;
}

/* Row `o` of a weight whose values stand `stride` apart. */
static bool add_row(const struct module *m, float *row, uint64_t o, uint64_t in, uint64_t stride, struct error *err)
{
    const float scale = (float)adapter_scale(&m->kind), *b = m->part[ADAPTER_B] + o * m->kind.rank;

    memset(m->sum, 0, in * sizeof *m->sum);
    for (unsigned k = 0; k < m->kind.rank; k++)
        for (uint64_t i = 0; i < in; i++)
            m->sum[i] += b[k] * m->part[ADAPTER_A][k * in + i];
    for (uint64_t i = 0; i < in; i++)
        row[i * stride] += scale * m->sum[i];
    if (!m->kind.dora)
        return true;
    const float norm = adapter_row_norm(row, in, stride);

    if (!(norm > 0))
        return error_set(err, ERROR_NON_FINITE, "a row of zeros has no direction: leave the module out of the targets",
                         "row %llu has the norm %g", (unsigned long long)o, (double)norm);
    for (uint64_t i = 0; i < in; i++)
        row[i * stride] *= m->part[ADAPTER_MAGNITUDE][o] / norm;
    return true;
}

static bool put_whole(struct adapter_file *adapter, const struct tensor *t, const struct tensor *copy, float *weight,
                      struct error *err)
{
    if (copy->rank != t->rank || memcmp(copy->dims, t->dims, t->rank * sizeof *t->dims) != 0)
        return error_set(err, ERROR_SHAPE, "the adapter belongs to another model", "%s: the adapter's copy has another shape",
                         t->name);

    float *values = adapter_file_values(copy, err);

    if (!values)
        return false;
    memcpy(weight, values, tensor_values(t) * sizeof *weight);
    free(values);
    adapter->used++;
    return true;
}

bool adapter_file_add(struct adapter_file *adapter, const struct tensor *t, float *weight, struct error *err)
{
    const struct tensor *copy = adapter_file_whole(adapter, t->name);
    const uint64_t out = t->rank == 2 ? t->dims[adapter->transposed] : 0, in = t->rank == 2 ? t->dims[!adapter->transposed] : 0;
    struct module m;
    bool has;

    if (!adapter_file_has(adapter, t, &has, err))
        return false;
    if (copy && has)
        return error_set(err, ERROR_CONFLICT, "fetch the adapter again", "%s: the adapter has factors and a whole copy", t->name);
    if (copy)
        return put_whole(adapter, t, copy, weight, err);
    if (!has)
        return true;

    bool ok = module_read(&m, adapter, t, in, err);

    for (uint64_t o = 0; ok && o < out; o++)
        ok = add_row(&m, weight + o * (adapter->transposed ? 1 : in), o, in, adapter->transposed ? out : 1, err) ||
             error_at(err, "%s", t->name);
    adapter->used += adapter->kind.dora ? 3 : 2;
    module_free(&m);
    return ok;
}
