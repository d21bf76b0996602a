#include "native/model/merge.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/file.h"
#include "native/model/adapter_add.h"
#include "native/model/adapter_head.h"
#include "native/model/config.h"
#include "native/model/convert.h"
#include "native/model/folder.h"
#include "native/model/gguf.h"
#include "native/model/safetensors.h"
#include "native/model/source.h"
#include "native/numerics/f32.h"

struct merge {
    struct model_source *model;
    struct adapter_file adapter;
    const struct tensor *again; /* of the adapter's file: the head once more, where it is the embedding; NULL: none */
    enum tensor_type type;
};

/* The weights, one by one ------------------------------------------------------------------------------------------------ */

/* The merged values of a weight; the caller frees them. */
static float *merged(struct merge *m, const struct tensor *t, struct error *err)
{
    float *weight = malloc((tensor_values(t) + 1) * sizeof *weight);

    if (!weight) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);
        return NULL;
    }
    if (model_read_tensor(m->model, t->name, weight, err) && adapter_file_add(&m->adapter, t, weight, err))
        return weight;
    free(weight);
    return NULL;
}

/* Whether that tensor of the adapter's file took a weight's place, or was the head that is its embedding. */
static bool whole_used(const struct merge *m, const struct tensor *copy)
{
    bool found = copy == m->again;

    for (size_t i = 0; !found && i < model_tensor_count(m->model); i++)
        found = adapter_file_whole(&m->adapter, model_tensor(m->model, i)->name) == copy;
    return found;
}

/* Every tensor of the adapter must have found its weight. */
static bool all_used(const struct merge *m, struct error *err)
{
    const struct safetensors *file = &m->adapter.file;

    for (size_t i = 0; m->adapter.used != file->count && i < file->count; i++) {
        size_t module = 0;
        bool found = adapter_part_of(file->tensors[i].name, &module) == ADAPTER_WHOLE && whole_used(m, &file->tensors[i]);

        for (size_t j = 0; !found && j < model_tensor_count(m->model); j++)
            for (int part = ADAPTER_A; part < ADAPTER_WHOLE && !found; part++)
                found =
                    adapter_file_part(&m->adapter, model_tensor(m->model, j)->name, (enum adapter_part)part) == &file->tensors[i];
        if (!found)
            return error_set(err, ERROR_UNKNOWN, "the adapter belongs to another model", "%s: the model has no such module",
                             file->tensors[i].name);
    }
    return m->adapter.used == file->count || error_set(err, ERROR_UNSUPPORTED, "use_dora belongs to them",
                                                       "adapter_config.json tells of no DoRA, the file has magnitudes");
}

/* A new stored copy of the values; NULL with `err`. */
static bool store(enum tensor_type type, const struct tensor *shape, const float *values, struct tensor *out, struct error *err)
{
    if (!tensor_new(out, shape->name, type, shape->rank, shape->dims, SIZE_MAX / 2, err))
        return false;
    return convert_from_f32(type, values, tensor_values(shape), out->data) ||
           error_set(err, ERROR_UNSUPPORTED, NULL, "weights are not written as %s", tensor_type_name(type));
}

/* Folders ---------------------------------------------------------------------------------------------------------------- */

/* Of a model with other inputs the language part alone is written: so is its configuration. */
static bool write_part_config(const struct merge *m, const char *out, struct error *err)
{
    char path[PATH_MAX], *text;
    json_t *config;
    bool ok;

    if (!json_is_true(json_object_get(model_config(m->model), "language_part")))
        return true;
    if (snprintf(path, sizeof path, "%s/config.json", out) >= PATH_MAX)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long");
    config = json_copy((json_t *)(uintptr_t)model_config(m->model));
    json_object_del(config, "language_part");
    text = json_dumps(config, JSON_INDENT(2));
    ok = text && file_write(path, text, strlen(text), 0644, err);
    free(text);
    json_decref(config);
    return ok;
}

static bool write_folder(struct merge *m, const char *base, const char *out, struct error *err)
{
    const size_t count = model_tensor_count(m->model);
    struct tensor *tensors = calloc(count + 1, sizeof *tensors);
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    char path[PATH_MAX];
    bool ok = tensors || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);

    for (size_t i = 0; ok && i < count; i++) {
        float *values = merged(m, model_tensor(m->model, i), err);

        ok = values && store(m->type, model_tensor(m->model, i), values, &tensors[i], err);
        free(values);
    }
    if (ok && snprintf(path, sizeof path, "%s/model.safetensors", out) >= PATH_MAX)
        ok = error_set(err, ERROR_LIMIT, NULL, "path is too long");
    ok = ok && all_used(m, err) && file_make_folder(out, err) && safetensors_write(path, tensors, count, metadata, err) &&
         folder_copy_beside(base, out, NULL, err) && write_part_config(m, out, err);
    for (size_t i = 0; tensors && i < count; i++)
        tensor_free(&tensors[i]);
    free(tensors);
    json_decref(metadata);
    return ok;
}

/* GGUF ------------------------------------------------------------------------------------------------------------------- */

/* What ggml calls the type, and what llama.cpp calls a file of it (general.file_type). */
static uint32_t code_of(enum tensor_type type)
{
    return type == TENSOR_F32 ? 0 : type == TENSOR_F16 ? 1 : type == TENSOR_Q4_0 ? 2 : 8;
}

static uint32_t file_type_of(enum tensor_type type)
{
    return type == TENSOR_F16 ? 1 : type == TENSOR_Q4_0 ? 2 : 7;
}

static enum tensor_type stored_type(const struct merge *m, const struct tensor *t)
{
    if (t->rank < 2)
        return TENSOR_F32;
    return t->dims[t->rank - 1] % tensor_block_values(m->type) == 0 ? m->type : TENSOR_F16;
}

/* Puts rows into the file's order, config.h's `heads`. */
static bool interleave(float **values, const struct tensor *t, unsigned heads, struct error *err)
{
    const uint64_t d = t->dims[0] / heads, width = tensor_values(t) / t->dims[0];
    float *out = malloc((tensor_values(t) + 1) * sizeof *out);

    if (!out)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);
    for (uint64_t r = 0; r < t->dims[0]; r++) {
        const uint64_t half = r % d / (d / 2), p = r % d % (d / 2);

        memcpy(out + (r / d * d + 2 * p + half) * width, *values + r * width, width * sizeof *out);
    }
    free(*values);
    *values = out;
    return true;
}

/* Hugging Face's [in, out] into the file's `t`, [out, in]. */
static bool turn_back(float **values, const struct tensor *t, struct error *err)
{
    const uint64_t out = t->dims[0], in = t->dims[1];
    float *turned = malloc((out * in + 1) * sizeof *turned);

    if (!turned)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);
    for (uint64_t o = 0; o < out; o++)
        for (uint64_t i = 0; i < in; i++)
            turned[o * in + i] = (*values)[i * out + o];
    free(*values);
    *values = turned;
    return true;
}

/* One tensor of the file, merged and stored anew. */
static bool write_tensor(struct merge *m, const struct tensor *t, struct tensor *out, struct error *err)
{
    char name[2 * GGUF_NAME];
    struct config_form form;

    if (!config_name_from_gguf(model_config(m->model), t->name, name, sizeof name, &form, err))
        return false;
    float *values = form.computed ? malloc((tensor_values(t) + 1) * sizeof *values) : merged(m, model_find(m->model, name), err);
    bool ok = values && (form.heads == 0 || tensor_values(t) == 0 || interleave(&values, t, form.heads, err)) &&
              (!form.transposed || turn_back(&values, t, err));

    if (ok && (form.added != 0 || form.computed) && !adapter_file_whole(&m->adapter, name)) /* their bits are the file's */
        convert_to_f32(t->type, t->data, tensor_values(t), values);
    for (uint64_t i = 0; ok && form.added != 0 && adapter_file_whole(&m->adapter, name) && i < tensor_values(t); i++)
        values[i] += form.added;

    ok = ok && store(stored_type(m, t), t, values, out, err);
    free(values);
    return ok;
}

static void pad(struct buffer *b, size_t alignment)
{
    while (b->size % alignment != 0)
        buffer_add_u8(b, 0);
}

/* The keys as they stand in `file`, with the type of the new file. */
static void add_keys(struct buffer *b, const struct gguf *file, enum tensor_type type)
{
    const uint8_t *start = (const uint8_t *)file->map + 24, *end = start;
    const struct gguf_value *kind = gguf_find(file, "general.file_type");
    const uint32_t code = file_type_of(type);
    const size_t at = b->size;

    for (size_t i = 0; i < file->value_count; i++)
        if (file->values[i].bytes + file->values[i].size > end)
            end = file->values[i].bytes + file->values[i].size;
    buffer_add(b, start, (size_t)(end - start));
    for (unsigned i = 0; kind && !kind->array && kind->type == GGUF_U32 && i < 4; i++)
        b->bytes[at + (size_t)(kind->bytes - start) + i] = (uint8_t)(code >> 8 * i);
}

static void add_start(struct buffer *b, uint32_t version, size_t tensors, size_t values)
{
    buffer_add_text(b, "GGUF");
    buffer_add_u32(b, version);
    buffer_add_u64(b, tensors);
    buffer_add_u64(b, values);
}

/* The tensors' entries, then their data. */
static void add_tensors(struct buffer *b, const struct tensor *tensors, size_t count, size_t alignment)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < count; i++) {
        const struct tensor *t = &tensors[i];

        buffer_add_u64(b, strlen(t->name));
        buffer_add_text(b, t->name);
        buffer_add_u32(b, t->rank);
        for (unsigned j = t->rank; j-- > 0;)
            buffer_add_u64(b, t->dims[j]);
        buffer_add_u32(b, code_of(t->type));
        buffer_add_u64(b, offset);
        offset += (t->size + alignment - 1) / alignment * alignment;
    }
    pad(b, alignment);
    buffer_reserve(b, offset);
    for (size_t i = 0; i < count; i++) {
        buffer_add(b, tensors[i].data, tensors[i].size);
        pad(b, alignment);
    }
}

static bool write_gguf(struct merge *m, const char *base, const char *out, struct error *err)
{
    struct gguf file;
    struct buffer bytes = { 0 };
    bool ok = gguf_open(&file, base, err);
    struct tensor *tensors = calloc(file.tensor_count + 1, sizeof *tensors);

    if (ok && !tensors)
        ok = error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", file.tensor_count);
    for (size_t i = 0; ok && i < file.tensor_count; i++)
        ok = write_tensor(m, &file.tensors[i], &tensors[i], err);
    ok = ok && all_used(m, err);
    if (ok) {
        add_start(&bytes, file.version, file.tensor_count, file.value_count);
        add_keys(&bytes, &file, m->type);
        add_tensors(&bytes, tensors, file.tensor_count, file.alignment);
        ok = file_write(out, bytes.bytes, bytes.size, 0666, err);
    }
    for (size_t i = 0; tensors && i < file.tensor_count; i++)
        tensor_free(&tensors[i]);
    free(tensors);
    buffer_free(&bytes);
    gguf_close(&file);
    return ok;
}

/* An adapter by itself --------------------------------------------------------------------------------------------------- */

static void add_key(struct buffer *b, const char *key, enum gguf_type type)
{
    buffer_add_u64(b, strlen(key));
    buffer_add_text(b, key);
    buffer_add_u32(b, type);
}

static void add_text(struct buffer *b, const char *key, const char *text, size_t size)
{
    add_key(b, key, GGUF_STRING);
    buffer_add_u64(b, size);
    buffer_add(b, text, size);
}

/* A or B of the weight `t` of the base, as f32 and in its rows, under ggml's name. */
static bool write_part(struct merge *m, const struct tensor *t, enum adapter_part part, unsigned heads, const char *weight,
                       struct tensor *out, struct error *err)
{
    struct tensor shape = *adapter_file_part(&m->adapter, weight, part);
    char name[GGUF_NAME + 16];
    float *values = adapter_file_values(&shape, err);

    snprintf(name, sizeof name, "%s.lora_%c", t->name, part == ADAPTER_A ? 'a' : 'b');
    shape.name = name;
    bool ok = values && (part == ADAPTER_A || heads == 0 || interleave(&values, &shape, heads, err));

    ok = ok && store(TENSOR_F32, &shape, values, out, err);
    free(values);
    return ok;
}

/* The two parts that belong to `t`, if there are; counted in m->adapter.used. */
static bool write_pair(struct merge *m, const struct tensor *t, struct tensor *out, struct error *err)
{
    char name[2 * GGUF_NAME];
    struct config_form form;

    if (!config_name_from_gguf(model_config(m->model), t->name, name, sizeof name, &form, err))
        return false;
    const struct tensor *weight = model_find(m->model, name);
    bool has = false;

    if (weight && !adapter_file_has(&m->adapter, weight, &has, err))
        return false;
    for (int part = ADAPTER_A; has && part <= ADAPTER_B; part++, m->adapter.used++)
        if (!write_part(m, t, (enum adapter_part)part, form.heads, name, &out[m->adapter.used], err))
            return false;
    return true;
}

static void add_adapter_file(struct buffer *b, const struct merge *m, const struct gguf *file, const struct tensor *tensors)
{
    struct text_slice architecture = { "llama", 5 };

    gguf_text(file, "general.architecture", &architecture);
    add_start(b, 3, m->adapter.used, 4);
    add_text(b, "general.architecture", architecture.bytes, architecture.size);
    add_text(b, "general.type", "adapter", 7);
    add_text(b, "adapter.type", "lora", 4);
    add_key(b, "adapter.lora.alpha", GGUF_F32);
    buffer_add_u32(b, f32_bits((float)(adapter_scale(&m->adapter.kind) * m->adapter.kind.rank)));
    add_tensors(b, tensors, m->adapter.used, 32);
}

/* llama.cpp divides one alpha by each module's own rank. */
static bool one_alpha(const struct adapter_file *adapter, struct error *err)
{
    const struct adapter_kind *kind = &adapter->kind;
    const double wanted = adapter_scale(kind) * kind->rank;

    for (size_t i = 0; i < adapter->file.count; i++) {
        size_t module = 0;
        const char *name = adapter->file.tensors[i].name;

        if (adapter_part_of(name, &module) != ADAPTER_A)
            continue;

        const struct adapter_kind one = adapter_kind_of(kind, name, module);

        if (fabs(adapter_scale(&one) * one.rank - wanted) > 1e-6 * wanted)
            return error_set(err, ERROR_UNSUPPORTED, "merge it into the model instead",
                             "a GGUF adapter has one alpha for all modules, and %.*s has another", (int)module, name);
    }
    return true;
}

static bool write_adapter(struct merge *m, const char *base, const char *out, struct error *err)
{
    struct gguf file;
    struct buffer bytes = { 0 };
    struct tensor *tensors = calloc(m->adapter.file.count + 2, sizeof *tensors);
    bool ok = one_alpha(&m->adapter, err) && gguf_open(&file, base, err) &&
              (tensors || error_set(err, ERROR_MEMORY, NULL, "no memory for the adapter"));

    for (size_t i = 0; ok && i < file.tensor_count; i++)
        ok = write_pair(m, &file.tensors[i], tensors, err);
    ok = ok && all_used(m, err);
    if (ok) {
        add_adapter_file(&bytes, m, &file, tensors);
        ok = file_write(out, bytes.bytes, bytes.size, 0666, err);
    }
    for (size_t i = 0; tensors && i < m->adapter.file.count; i++)
        tensor_free(&tensors[i]);
    free(tensors);
    buffer_free(&bytes);
    gguf_close(&file);
    return ok;
}

/* Surface ---------------------------------------------------------------------------------------------------------------- */

static bool check_format(const struct merge *m, const char *out, struct error *err)
{
    const size_t length = strlen(out);
    const bool is_gguf = strcmp(model_format(m->model), "gguf") == 0;
    const bool ends = length > 5 && strcmp(out + length - 5, ".gguf") == 0;
    const bool fits = is_gguf ? m->type == TENSOR_F16 || m->type == TENSOR_Q8_0 || m->type == TENSOR_Q4_0
                              : m->type == TENSOR_F32 || m->type == TENSOR_F16 || m->type == TENSOR_BF16;

    if (is_gguf != ends)
        return error_set(err, ERROR_UNSUPPORTED, is_gguf ? "give a name that ends in .gguf" : "give the name of a folder",
                         "a base of format %s is merged into one of the same format", model_format(m->model));
    return fits || error_set(err, ERROR_UNSUPPORTED, is_gguf ? "choose f16, q8_0 or q4_0" : "choose f32, f16 or bf16",
                             "no %s files of %s are written", model_format(m->model), tensor_type_name(m->type));
}

static bool open_adapter(struct merge *m, const char *folder, struct error *err)
{
    const char *type = json_string_value(json_object_get(model_config(m->model), "model_type"));

    if (!adapter_file_open(&m->adapter, folder, err))
        return false;

    const bool tied =
        json_is_true(json_object_get(model_config(m->model), "tie_word_embeddings")) || !model_find(m->model, "lm_head.weight");

    if (tied && !adapter_head_check(&m->adapter.file, &m->adapter.kind, &m->again, err))
        return error_at(err, "%s", folder);
    m->adapter.used = m->again != NULL;
    m->adapter.transposed = type && strcmp(type, "gpt2") == 0;
    return true;
}

bool merge_write(const char *base, const char *adapter, const char *out, enum tensor_type type, struct error *err)
{
    struct merge m = { .model = model_open(base, err), .type = type };
    bool ok = m.model && check_format(&m, out, err) && open_adapter(&m, adapter, err);

    if (ok)
        ok = strcmp(model_format(m.model), "gguf") == 0 ? write_gguf(&m, base, out, err) : write_folder(&m, base, out, err);
    adapter_file_close(&m.adapter);
    model_close(m.model);
    return ok;
}

bool merge_write_adapter(const char *base, const char *adapter, const char *out, struct error *err)
{
    struct merge m = { .model = model_open(base, err) };
    size_t module = 0;
    bool ok = m.model != NULL;

    if (ok && strcmp(model_format(m.model), "gguf") != 0)
        ok = error_set(err, ERROR_UNSUPPORTED, "give the GGUF file that the adapter is to serve", "%s is no GGUF file", base);
    ok = ok && open_adapter(&m, adapter, err);
    for (size_t i = 0; ok && i < m.adapter.file.count; i++)
        if (adapter_part_of(m.adapter.file.tensors[i].name, &module) == ADAPTER_WHOLE)
            ok = error_set(err, ERROR_UNSUPPORTED, "merge it in: leave --only out", "llama.cpp reads no whole modules (%s)",
                           m.adapter.file.tensors[i].name);
    if (ok && m.adapter.kind.dora)
        ok = error_set(err, ERROR_UNSUPPORTED, "merge it in: leave --only out", "llama.cpp reads no magnitudes of DoRA");
    ok = ok && write_adapter(&m, base, out, err);
    adapter_file_close(&m.adapter);
    model_close(m.model);
    return ok;
}
