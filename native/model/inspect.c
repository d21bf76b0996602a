/* What `rondo model inspect` says of a model (source.h, model_inspect). */
#include <stdlib.h>
#include <string.h>

#include "native/model/source.h"

static json_t *shape_of(const struct tensor *t)
{
    json_t *shape = json_array();

    for (unsigned i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));
    return shape;
}

/* Adds tensors, parameters, bytes and types. */
static void add_tensors(const struct model_source *model, json_t *report)
{
    json_t *list = json_array(), *types = json_object();
    size_t bytes = 0, of_type[TENSOR_TYPES] = { 0 };
    uint64_t parameters = 0;

    for (size_t i = 0; i < model_tensor_count(model); i++) {
        const struct tensor *t = model_tensor(model, i);

        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I}", "name", t->name, "type", tensor_type_name(t->type), "shape",
                                              shape_of(t), "bytes", (json_int_t)t->size));
        parameters += tensor_values(t);
        bytes += t->size;
        of_type[t->type]++;
    }
    for (unsigned i = 0; i < TENSOR_TYPES; i++)
        if (of_type[i] > 0)
            json_object_set_new(types, tensor_type_name((enum tensor_type)i), json_integer((json_int_t)of_type[i]));
    json_object_set_new(report, "parameters", json_integer((json_int_t)parameters));
    json_object_set_new(report, "bytes", json_integer((json_int_t)bytes));
    json_object_set_new(report, "types", types);
    json_object_set_new(report, "tensors", list);
}

static json_t *tokenizer_report(const struct tokenizer *tokenizer)
{
    json_t *missing = json_array();
    json_int_t special = 0;
    uint32_t id;

    for (uint32_t i = 0; i < tokenizer_size(tokenizer); i++)
        special += tokenizer_is_special(tokenizer, i);
    for (unsigned byte = 0; byte < 256; byte++) {
        const char text = (char)byte;

        if (!tokenizer_find(tokenizer, &text, 1, &id))
            json_array_append_new(missing, json_integer(byte));
    }
    return json_pack("{s:I, s:I, s:o}", "entries", (json_int_t)tokenizer_size(tokenizer), "special", special, "missing_bytes",
                     missing);
}

json_t *model_inspect(const struct model_source *model, struct error *err)
{
    const json_t *config = model_config(model);
    const char *architecture = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    struct error fault = { 0 };
    struct tokenizer *tokenizer = model_tokenizer(model, &fault);

    if (!tokenizer && fault.code != ERROR_MISSING) {
        if (err)
            *err = fault;
        return NULL;
    }
    json_t *report = json_pack("{s:s, s:s?, s:b, s:b}", "format", model_format(model), "architecture", architecture,
                               "chat_template", model_chat_template(model) != NULL, "head_missing", model_head_missing(model));

    json_object_set_new(report, "config", json_deep_copy(config));
    json_object_set_new(report, "tokenizer", tokenizer ? tokenizer_report(tokenizer) : json_null());
    add_tensors(model, report);
    tokenizer_free(tokenizer);
    return report;
}
