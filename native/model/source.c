#include "native/model/source.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/base/nearest.h"
#include "native/model/bitsandbytes.h"
#include "native/model/config.h"
#include "native/model/convert.h"
#include "native/model/gguf.h"
#include "native/model/gguf_tokenizer.h"
#include "native/model/language.h"
#include "native/model/safetensors.h"
#include "native/numerics/f32.h"

enum {
    CONFIG_LIMIT = 1 << 20,
    INDEX_LIMIT = 64 << 20,
    TEMPLATE_LIMIT = 1 << 20,
    PARTS = 1000,
};

/* A tensor as others see it, and how its values stand in the file. */
struct entry {
    struct tensor view;
    struct config_form form;
    const struct bitsandbytes *packed; /* in 4 bits: its parts; then the view has no data. NULL */
};

struct model_source {
    char *path;
    bool is_gguf;
    struct gguf gguf;
    struct safetensors *parts;
    size_t part_count;
    struct entry *entries; /* in name order */
    size_t entry_count;
    struct tensor *stacks; /* tensors of experts as one, without data: "a.experts.*.b" of a.experts.0.b, a.experts.1.b, ... */
    size_t stack_count;
    struct bitsandbytes_set quantised;
    json_t *config, *variables, *generation; /* generation: NULL without a file */
    bool head_missing;
    char *chat_template;
};

/* Entries ------------------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->view.name, ((const struct entry *)b)->view.name);
}

static bool sort_entries(struct model_source *model, struct error *err)
{
    qsort(model->entries, model->entry_count, sizeof *model->entries, by_name);
    for (size_t i = 1; i < model->entry_count; i++)
        if (by_name(&model->entries[i - 1], &model->entries[i]) == 0)
            return error_set(err, ERROR_DUPLICATE, NULL, "two tensors have the name %s", model->entries[i].view.name);
    return true;
}

static bool reserve_entries(struct model_source *model, size_t count, struct error *err)
{
    model->entries = calloc(count + 1, sizeof *model->entries);
    return model->entries || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
}

/* Adds a view of `stored` called `name`. */
static bool add_entry(struct model_source *model, const struct tensor *stored, const char *name, struct config_form form,
                      struct error *err)
{
    struct entry *entry = &model->entries[model->entry_count];

    entry->view = *stored;
    entry->form = form;
    entry->view.name = strdup(name);
    if (!entry->view.name)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
    model->entry_count++;
    return true;
}

/* Stacks of experts -------------------------------------------------------------------------------------------------------- */

static const struct entry *find(const struct model_source *model, const char *name);

/* Expert `e` of a stack; NULL when there is none. */
static const struct entry *expert_of(const struct model_source *model, const char *stack, uint64_t e)
{
    const char *star = strchr(stack, '*');
    char name[512];

    if (snprintf(name, sizeof name, "%.*s%" PRIu64 "%s", (int)(star - stack), stack, e, star + 1) >= (int)sizeof name)
        return NULL;
    return find(model, name);
}

static bool same_kind(const struct tensor *a, const struct tensor *b)
{
    return a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Bytes of `t` as `type`, which is its own unless it is packed. */
static size_t stored_size(const struct tensor *t, enum tensor_type type)
{
    return type == t->type ? t->size : tensor_block_place(type, tensor_values(t));
}

/* The stack that begins with `first`, if that is an expert of number 0 with at most seven axes. */
static bool add_stack(struct model_source *model, const struct tensor *first, struct error *err)
{
    struct tensor *stack = &model->stacks[model->stack_count];
    const char *at = strstr(first->name, ".experts.0.");
    const struct entry *each;
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
    while ((each = expert_of(model, stack->name, count))) {
        if (!same_kind(&each->view, first))
            return error_set(err, ERROR_SHAPE, NULL, "%s is of another shape or type than that of expert 0", each->view.name);
        if (each->packed && tensor_values(&each->view) % tensor_block_values(TENSOR_NF4) != 0)
            return error_set(err, ERROR_UNSUPPORTED, NULL, "%s is no whole number of blocks", each->view.name);
        stack->size += stored_size(&each->view, stack->type);
        count++;
    }
    stack->dims[0] = count;
    memcpy(stack->dims + 1, first->dims, first->rank * sizeof *first->dims);
    return true;
}

static bool stack_experts(struct model_source *model, struct error *err)
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

static const struct tensor *find_stack(const struct model_source *model, const char *name)
{
    for (size_t i = 0; i < model->stack_count; i++)
        if (strcmp(model->stacks[i].name, name) == 0)
            return &model->stacks[i];
    return NULL;
}

/* GGUF --------------------------------------------------------------------------------------------------------------------- */

static bool add_gguf_tensor(struct model_source *model, const struct tensor *t, struct error *err)
{
    char name[2 * GGUF_NAME];
    struct config_form form;

    if (!config_name_from_gguf(model->config, t->name, name, sizeof name, &form, err))
        return error_at(err, "%s", t->name);
    if (form.heads != 0 && (t->rank == 0 || t->dims[0] % (2 * form.heads) != 0)) {
        error_set(err, ERROR_SHAPE, NULL, "the rows are no even number for each of %u heads", form.heads);
        return error_at(err, "%s", t->name);
    }
    return add_entry(model, t, name, form, err);
}

/* The text of token `key` names becomes the variable `name`. */
static void add_token_variable(struct model_source *model, const struct text_slice *tokens, size_t count, const char *key,
                               const char *name)
{
    int64_t id;

    if (gguf_integer(&model->gguf, key, &id) && id >= 0 && (uint64_t)id < count)
        json_object_set_new(model->variables, name, json_stringn(tokens[id].bytes, tokens[id].size));
}

static void read_gguf_text(struct model_source *model)
{
    struct text_slice text;
    size_t count;
    struct text_slice *tokens = gguf_texts(&model->gguf, "tokenizer.ggml.tokens", &count);

    add_token_variable(model, tokens, count, "tokenizer.ggml.bos_token_id", "bos_token");
    add_token_variable(model, tokens, count, "tokenizer.ggml.eos_token_id", "eos_token");
    add_token_variable(model, tokens, count, "tokenizer.ggml.padding_token_id", "pad_token");
    add_token_variable(model, tokens, count, "tokenizer.ggml.unknown_token_id", "unk_token");
    free(tokens);
    if (gguf_text(&model->gguf, "tokenizer.chat_template", &text))
        model->chat_template = strndup(text.bytes, text.size);
}

static bool open_gguf(struct model_source *model, struct error *err)
{
    model->is_gguf = true;
    if (!gguf_open(&model->gguf, model->path, err))
        return false;
    model->config = config_from_gguf(&model->gguf, err);
    if (!model->config || !reserve_entries(model, model->gguf.tensor_count, err))
        return error_at(err, "%s", model->path);
    for (size_t i = 0; i < model->gguf.tensor_count; i++)
        if (!add_gguf_tensor(model, &model->gguf.tensors[i], err))
            return error_at(err, "%s", model->path);
    read_gguf_text(model);
    return sort_entries(model, err);
}

/* Folder ------------------------------------------------------------------------------------------------------------------- */

/* The path of `name` in the model's folder; *exists tells whether it is there. */
static bool path_of(const struct model_source *model, const char *name, char *path, bool *exists, struct error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", model->path, name) >= PATH_MAX)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s/%s", model->path, name);
    *exists = file_exists(path);
    return true;
}

static bool open_part(struct model_source *model, const char *name, struct error *err)
{
    char path[PATH_MAX];
    bool exists;

    if (name[0] == '.' || strchr(name, '/'))
        return error_set(err, ERROR_REFUSED, NULL, "the part %.80s does not lie in the folder", name);
    if (model->part_count == PARTS)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d parts", PARTS);
    if (!model->parts) {
        model->parts = calloc(PARTS, sizeof *model->parts);
        if (!model->parts)
            return error_set(err, ERROR_MEMORY, NULL, "no memory for the parts");
    }
    return path_of(model, name, path, &exists, err) && safetensors_open(&model->parts[model->part_count++], path, err);
}

/* Opens each file that the index names, once. */
static bool open_parts(struct model_source *model, const char *path, struct error *err)
{
    json_t *index = json_read_file(path, INDEX_LIMIT, err), *seen = json_object(), *file;
    json_t *map = json_object_get(index, "weight_map");
    const char *name;
    bool ok = index != NULL;

    if (ok && !json_is_object(map))
        ok = error_set(err, ERROR_TYPE, NULL, "%s: weight_map is missing or no object", path);
    json_object_foreach(map, name, file)
    {
        if (!json_is_string(file))
            ok = error_set(err, ERROR_TYPE, NULL, "%s: weight_map.%.80s is no string", path, name);
        else if (!json_object_get(seen, json_string_value(file)))
            ok = json_object_set_new(seen, json_string_value(file), json_true()) == 0 &&
                 open_part(model, json_string_value(file), err);
        if (!ok)
            break;
    }
    json_decref(seen);
    json_decref(index);
    return ok;
}

static bool add_part(struct model_source *model, const struct tensor *t, struct error *err)
{
    char name[512];

    if (!language_name(model->config, t->name, name, sizeof name))
        return true;
    if (!add_entry(model, t, name, (struct config_form){ 0 }, err))
        return false;
    model->entries[model->entry_count - 1].packed = bitsandbytes_find(&model->quantised, t->name);
    return true;
}

/* All tensors of all parts, 4-bit weights as one each. */
static bool add_parts(struct model_source *model, size_t count, struct error *err)
{
    struct tensor *all = malloc((count + 1) * sizeof *all);
    size_t at = 0;

    if (!all)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
    for (size_t i = 0; i < model->part_count; i++)
        for (size_t j = 0; j < model->parts[i].count; j++)
            all[at++] = model->parts[i].tensors[j];
    bool ok = bitsandbytes_fold(all, &count, &model->quantised, err);

    for (size_t i = 0; ok && i < count; i++)
        ok = add_part(model, &all[i], err);
    free(all);
    return ok || error_at(err, "%s", model->path);
}

static bool open_weights(struct model_source *model, struct error *err)
{
    char path[PATH_MAX];
    bool exists;
    size_t count = 0;

    if (!path_of(model, "model.safetensors", path, &exists, err))
        return false;
    if (exists && !open_part(model, "model.safetensors", err))
        return false;
    if (!exists) {
        if (!path_of(model, "model.safetensors.index.json", path, &exists, err))
            return false;
        if (exists && !open_parts(model, path, err))
            return false;
    }
    for (size_t i = 0; i < model->part_count; i++)
        count += model->parts[i].count;
    return reserve_entries(model, count, err) && add_parts(model, count, err) && sort_entries(model, err) &&
           stack_experts(model, err);
}

/* The template that tokenizer_config.json holds: a string, or a list of named ones. */
static const char *embedded_template(const json_t *config)
{
    const json_t *value = json_object_get(config, "chat_template"), *item;
    size_t i;

    json_array_foreach(value, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));

        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(item, "template"));
    }
    return json_string_value(value);
}

static void read_variables(struct model_source *model, const json_t *config)
{
    static const char *const names[] = { "bos_token", "eos_token", "pad_token", "unk_token" };

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(config, names[i]);

        if (json_is_object(value))
            value = json_object_get(value, "content");
        if (json_is_string(value))
            json_object_set(model->variables, names[i], value);
    }
}

static bool read_tokenizer_config(struct model_source *model, struct error *err)
{
    char path[PATH_MAX];
    bool exists;

    if (!path_of(model, "tokenizer_config.json", path, &exists, err))
        return false;
    if (!exists)
        return true;
    json_t *config = json_read_file(path, INDEX_LIMIT, err);

    if (!config)
        return false;
    read_variables(model, config);
    const char *text = embedded_template(config);

    if (text)
        model->chat_template = strdup(text);
    json_decref(config);
    return true;
}

static bool read_template_file(struct model_source *model, struct error *err)
{
    struct buffer text = { 0 };
    char path[PATH_MAX];
    bool exists;

    if (!path_of(model, "chat_template.jinja", path, &exists, err))
        return false;
    if (!exists)
        return true;
    const bool ok = file_read(path, TEMPLATE_LIMIT, &text, err);

    if (ok) {
        free(model->chat_template);
        model->chat_template = strdup(buffer_text(&text));
    }
    buffer_free(&text);
    return ok;
}

static bool read_config(struct model_source *model, struct error *err)
{
    char path[PATH_MAX];
    bool exists;

    if (!path_of(model, "config.json", path, &exists, err))
        return false;
    model->config = json_read_file(path, CONFIG_LIMIT, err);
    if (!model->config)
        return false;
    if (!json_is_object(model->config))
        return error_set(err, ERROR_TYPE, NULL, "%s: no object", path);
    model->config = language_config(model->config, err);
    return model->config || error_at(err, "%s", path);
}

/* The ends of a turn it names count beside those of config.json; the rest is for sampling. */
static bool read_generation(struct model_source *model, struct error *err)
{
    char path[PATH_MAX];
    bool exists;

    if (!path_of(model, "generation_config.json", path, &exists, err))
        return false;
    if (!exists)
        return true;
    model->generation = json_read_file(path, CONFIG_LIMIT, err);
    if (model->generation)
        language_add_ends(model->config, model->generation);
    return model->generation != NULL;
}

/* Files without a head are those of a tied model, whatever config.json says. */
static void tie_missing_head(struct model_source *model)
{
    if (find(model, "lm_head.weight") || !find(model, "model.embed_tokens.weight") ||
        json_is_true(json_object_get(model->config, "tie_word_embeddings")))
        return;
    model->head_missing = json_is_false(json_object_get(model->config, "tie_word_embeddings"));
    json_object_set_new(model->config, "tie_word_embeddings", json_true());
}

static bool open_folder(struct model_source *model, struct error *err)
{
    if (!read_config(model, err) || !open_weights(model, err) || !read_generation(model, err))
        return false;
    tie_missing_head(model);
    return read_tokenizer_config(model, err) && read_template_file(model, err);
}

/* Surface ------------------------------------------------------------------------------------------------------------------ */

struct model_source *model_open(const char *path, struct error *err)
{
    struct model_source *model = calloc(1, sizeof *model);
    const size_t length = strlen(path);

    if (model)
        model->path = strdup(path);
    if (!model || !model->path) {
        free(model);
        error_set(err, ERROR_MEMORY, NULL, "no memory for a model");
        return NULL;
    }
    model->variables = json_object();
    const bool is_gguf = length > 5 && strcmp(path + length - 5, ".gguf") == 0;

    if (is_gguf ? open_gguf(model, err) : open_folder(model, err))
        return model;
    model_close(model);
    return NULL;
}

void model_close(struct model_source *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->entry_count; i++)
        free(model->entries[i].view.name);
    for (size_t i = 0; i < model->stack_count; i++)
        free(model->stacks[i].name);
    free(model->stacks);
    for (size_t i = 0; i < model->part_count; i++)
        safetensors_close(&model->parts[i]);
    gguf_close(&model->gguf);
    bitsandbytes_free(&model->quantised);
    json_decref(model->config);
    json_decref(model->variables);
    json_decref(model->generation);
    free(model->entries);
    free(model->parts);
    free(model->chat_template);
    free(model->path);
    free(model);
}

const char *model_format(const struct model_source *model)
{
    return model->is_gguf ? "gguf" : "safetensors";
}

const json_t *model_config(const struct model_source *model)
{
    return model->config;
}

const json_t *model_generation(const struct model_source *model)
{
    return model->generation;
}

bool model_head_missing(const struct model_source *model)
{
    return model->head_missing;
}

const json_t *model_template_variables(const struct model_source *model)
{
    return model->variables;
}

const char *model_chat_template(const struct model_source *model)
{
    return model->chat_template;
}

size_t model_tensor_count(const struct model_source *model)
{
    return model->entry_count;
}

const struct tensor *model_tensor(const struct model_source *model, size_t index)
{
    return &model->entries[index].view;
}

static const struct entry *find(const struct model_source *model, const char *name)
{
    const struct entry wanted = { .view.name = (char *)(uintptr_t)name };

    return model->entry_count == 0 ? NULL : bsearch(&wanted, model->entries, model->entry_count, sizeof *model->entries, by_name);
}

const struct tensor *model_find(const struct model_source *model, const char *name)
{
    const struct entry *entry = find(model, name);

    return entry ? &entry->view : find_stack(model, name);
}

/* Reads the rows of one head: HF's row t*d/2 + p is the stored row 2p + t, d rows in all. */
static void read_head(const struct tensor *t, const uint8_t *stored, uint64_t d, uint64_t width, float *out)
{
    const size_t row_bytes = (size_t)(width / tensor_block_values(t->type)) * tensor_block_bytes(t->type);

    for (uint64_t r = 0; r < d; r++) {
        const uint64_t half = r / (d / 2), p = r % (d / 2);

        convert_to_f32(t->type, stored + (2 * p + half) * row_bytes, width, out + r * width);
    }
}

static void read_values(const struct entry *entry, float *out)
{
    const struct tensor *t = &entry->view;
    const uint64_t count = tensor_values(t);

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
static const void *stored_bytes(const struct entry *entry, enum tensor_type type, void **owned)
{
    *owned = NULL;
    if (!entry->packed)
        return entry->view.data;
    *owned = malloc(stored_size(&entry->view, type) + 1);
    if (*owned)
        bitsandbytes_pack(entry->packed, type, *owned);
    return *owned;
}

static bool read_packed(const struct entry *entry, float *out, struct error *err)
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
    const struct entry *entry = find(model, name);
    const struct tensor *stack = entry ? NULL : find_stack(model, name);
    char hint[200];

    for (uint64_t e = 0; stack && e < stack->dims[0]; e++) {
        const struct tensor *t = &expert_of(model, name, e)->view;

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
static void *rows_in_halves(const struct entry *entry)
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
        const struct entry *expert = expert_of(model, stack->name, e);
        const struct tensor *t = &expert->view;
        const size_t size = stored_size(t, stack->type);
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
static bool read_converted(const struct entry *entry, const void **bytes, void **owned, enum tensor_type *type, struct error *err)
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
    const struct entry *entry = find(model, name);
    const struct tensor *stack = entry ? NULL : find_stack(model, name);
    char hint[200];

    *owned = NULL;
    if (stack)
        return read_stack(model, stack, bytes, owned, type, err);
    if (!entry)
        return error_set(err, ERROR_MISSING, nearest(model, name, hint, sizeof hint), "%s has no tensor %s", model->path, name);
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

/* Tokenizer ---------------------------------------------------------------------------------------------------------------- */

struct tokenizer *model_tokenizer(const struct model_source *model, struct error *err)
{
    struct tokenizer *tokenizer;

    if (!model->is_gguf)
        return tokenizer_read_folder(model->path, err);
    tokenizer = gguf_tokenizer(&model->gguf, err);
    if (!tokenizer)
        error_at(err, "%s", model->path);
    return tokenizer;
}

struct tokenizer *model_tokenizer_file(const char *path, struct error *err)
{
    struct gguf file = { 0 };
    struct tokenizer *tokenizer = NULL;
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return tokenizer_read_folder(path, err);

    FILE *stream = fopen(path, "rb");
    char magic[4] = "";
    bool is_gguf = stream && fread(magic, 1, sizeof magic, stream) == sizeof magic && !memcmp(magic, "GGUF", 4);

    if (stream)
        fclose(stream);
    if (!is_gguf)
        return tokenizer_read_file(path, err);
    if (gguf_open(&file, path, err) && !(tokenizer = gguf_tokenizer(&file, err)))
        error_at(err, "%s", path);
    gguf_close(&file);
    return tokenizer;
}
