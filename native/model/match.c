#include "native/model/match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether the file's dims are the sizes of `axes`, neighbours taken together. */
static bool same_shape(const struct tensor *t, const char *axes)
{
    uint64_t have = 1;
    unsigned at = 0;

    for (const char *equals = strchr(axes, '='); equals; equals = strchr(equals + 1, '=')) {
        have *= strtoull(equals + 1, NULL, 10);
        while (at < t->rank && t->dims[at] == 1)
            at++;
        if (at < t->rank && have == t->dims[at]) {
            have = 1;
            at++;
        }
    }
    while (at < t->rank && t->dims[at] == 1)
        at++;
    return have == 1 && at == t->rank;
}

static uint64_t values_of(const char *axes)
{
    uint64_t values = 1;

    for (const char *equals = strchr(axes, '='); equals; equals = strchr(equals + 1, '='))
        values *= strtoull(equals + 1, NULL, 10);
    return values;
}

static bool match_one(const struct model_source *model, const char *name, const char *axes, struct error *err)
{
    const struct tensor *t = model_find(model, name);

    if (!t)
        error_set(err, ERROR_MISSING, "fetch the model again, or name the architecture that its files are of in config.json",
                  "the model's files hold no tensor %s", name);
    else if (!same_shape(t, axes))
        error_set(err, ERROR_SHAPE, "config.json and the weights do not belong together",
                  "%s has %" PRIu64 " values in the file, %" PRIu64 " in the model (%s)", name, tensor_values(t), values_of(axes),
                  axes);
    else
        return true;
    return false;
}

static bool is_tied_head(const struct model_source *model, const char *name)
{
    return strcmp(name, "lm_head.weight") == 0 && !json_is_false(json_object_get(model_config(model), "tie_word_embeddings"));
}

/* "model.layers.0.mlp.experts.7.up_proj.weight" to the name of all experts' tensor, with '*' for the number. */
static const char *stacked(const char *name, char *text, size_t size)
{
    const char *at = strstr(name, ".experts."), *end = at ? strchr(at + 9, '.') : NULL;

    if (!end || strlen(name) >= size)
        return name;
    memcpy(text, name, (size_t)(at + 9 - name));
    text[at + 9 - name] = '*';
    strcpy(text + (at + 10 - name), end);
    return text;
}

bool model_match(const struct model_source *model, const json_t *params, struct error *err)
{
    json_t *known = json_object(), *p;
    size_t index;
    bool ok = true;

    if (model_tensor_count(model) == 0) {
        json_decref(known);
        return true;
    }
    json_array_foreach(params, index, p)
    {
        const char *name = json_string_value(json_object_get(p, "name")), *axes = json_string_value(json_object_get(p, "axes"));

        if (json_object_get(p, "role") || !name || !axes)
            continue;
        json_object_set_new(known, name, json_true());
        if (ok)
            ok = match_one(model, name, axes, err);
    }
    for (size_t i = 0; ok && i < model_tensor_count(model); i++) {
        const char *name = model_tensor(model, i)->name;
        char text[256];

        if (!json_object_get(known, stacked(name, text, sizeof text)) && !is_tied_head(model, name))
            ok = error_set(err, ERROR_UNKNOWN, "config.json and the weights do not belong together",
                           "the model's files hold a tensor %s that the model has not", name);
    }
    json_decref(known);
    return ok;
}
