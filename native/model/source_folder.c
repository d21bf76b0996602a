/* A folder of Hugging Face files: configuration, weights in parts, and the text beside them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/model/language.h"
#include "native/model/source_part.h"

enum {
    CONFIG_LIMIT = 1 << 20,
    INDEX_LIMIT = 64 << 20,
    TEMPLATE_LIMIT = 1 << 20,
    PARTS = 1000,
};

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
    if (!source_add(model, t, name, (struct config_form){ 0 }, err))
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
    return source_reserve(model, count, err) && add_parts(model, count, err) && source_sort(model, err) &&
           source_stack_experts(model, err);
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
    if (source_find(model, "lm_head.weight") || !source_find(model, "model.embed_tokens.weight") ||
        json_is_true(json_object_get(model->config, "tie_word_embeddings")))
        return;
    model->head_missing = json_is_false(json_object_get(model->config, "tie_word_embeddings"));
    json_object_set_new(model->config, "tie_word_embeddings", json_true());
}

bool source_open_folder(struct model_source *model, struct error *err)
{
    if (!read_config(model, err) || !open_weights(model, err) || !read_generation(model, err))
        return false;
    tie_missing_head(model);
    return read_tokenizer_config(model, err) && read_template_file(model, err);
}
