#include "native/model/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/model/gguf_tokenizer.h"
#include "native/model/source_part.h"

/* GGUF --------------------------------------------------------------------------------------------------------------------- */

/* A matrix of the file's rows becomes one of Hugging Face's, whose values are read anew each time. */
static bool add_transposed(struct model_source *model, const struct tensor *t, const char *name, struct config_form form,
                           struct error *err)
{
    struct tensor turned = *t;

    if (t->rank != 2)
        return error_set(err, ERROR_SHAPE, NULL, "no matrix");
    turned.dims[0] = t->dims[1];
    turned.dims[1] = t->dims[0];
    turned.type = TENSOR_F32;
    turned.size = tensor_values(t) * sizeof(float);
    if (!source_add(model, &turned, name, form, err))
        return false;
    model->entries[model->entry_count - 1].stored = t->type;
    return true;
}

/* The experts of one tensor, each by itself. */
static bool add_experts(struct model_source *model, const struct tensor *t, const char *stack, struct config_form form,
                        struct error *err)
{
    const int64_t experts = json_integer_value(json_object_get(model->config, "num_experts"));
    struct tensor one = *t;
    char name[2 * GGUF_NAME + 24];

    if (t->rank != 3 || t->dims[0] != (uint64_t)experts)
        return error_set(err, ERROR_SHAPE, NULL, "no %" PRId64 " matrices", experts);
    one.rank = 2;
    memmove(one.dims, one.dims + 1, 2 * sizeof *one.dims);
    one.size = t->size / t->dims[0];
    for (int64_t e = 0; e < experts; e++) {
        const char *star = strchr(stack, '*');

        one.data = (uint8_t *)t->data + (size_t)e * one.size;
        snprintf(name, sizeof name, "%.*s%" PRId64 "%s", (int)(star - stack), stack, e, star + 1);
        if (!source_add(model, &one, name, form, err))
            return false;
    }
    return true;
}

static bool add_gguf_tensor(struct model_source *model, const struct tensor *t, struct error *err)
{
    char name[2 * GGUF_NAME];
    struct config_form form;

    if (!config_name_from_gguf(model->config, t->name, name, sizeof name, &form, err))
        return error_at(err, "%s", t->name);
    if (form.computed)
        return true;
    if (form.heads != 0 && (t->rank == 0 || t->dims[0] % (2 * form.heads) != 0)) {
        error_set(err, ERROR_SHAPE, NULL, "the rows are no even number for each of %u heads", form.heads);
        return error_at(err, "%s", t->name);
    }
    const bool ok = form.transposed     ? add_transposed(model, t, name, form, err)
                    : strchr(name, '*') ? add_experts(model, t, name, form, err)
                                        : source_add(model, t, name, form, err);

    return ok || error_at(err, "%s", t->name);
}

/* How many entries the file's tensors become at most. */
static size_t gguf_entries(const struct model_source *model)
{
    const size_t experts = (size_t)json_integer_value(json_object_get(model->config, "num_experts"));
    size_t count = 0;

    for (size_t i = 0; i < model->gguf.tensor_count; i++)
        count += strstr(model->gguf.tensors[i].name, "_exps.") && experts > 1 ? experts : 1;
    return count;
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
    if (!model->config || !source_reserve(model, gguf_entries(model), err))
        return error_at(err, "%s", model->path);
    for (size_t i = 0; i < model->gguf.tensor_count; i++)
        if (!add_gguf_tensor(model, &model->gguf.tensors[i], err))
            return error_at(err, "%s", model->path);
    read_gguf_text(model);
    return source_sort(model, err) && source_stack_experts(model, err);
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

    if (is_gguf ? open_gguf(model, err) : source_open_folder(model, err))
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

const struct tensor *model_find(const struct model_source *model, const char *name)
{
    const struct source_entry *entry = source_find(model, name);

    return entry ? &entry->view : source_find_stack(model, name);
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
