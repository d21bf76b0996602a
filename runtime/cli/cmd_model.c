#include <stdio.h>

#include "native/model/source.h"
#include "runtime/cli/commands.h"

enum { SHOWN = 12 };

static void print_shape(const json_t *shape)
{
    json_t *size;
    size_t index;

    json_array_foreach(shape, index, size)
    {
        printf("%s%lld", index ? " x " : "", (long long)json_integer_value(size));
    }
}

static void print_tensors(const json_t *tensors)
{
    json_t *each;
    size_t index;

    json_array_foreach(tensors, index, each)
    {
        if (index == SHOWN) {
            printf("%-14s(%zu more; --json lists all)\n", "", json_array_size(tensors) - SHOWN);
            return;
        }
        printf("%-14s%-5s %s  ", index ? "" : "tensors", json_string_value(json_object_get(each, "type")),
               json_string_value(json_object_get(each, "name")));
        print_shape(json_object_get(each, "shape"));
        putchar('\n');
    }
}

static void print_model(const json_t *m)
{
    const json_t *types = json_object_get(m, "types"), *tokenizer = json_object_get(m, "tokenizer");
    const char *name;
    json_t *count;
    bool first = true;

    printf("format        %s\narchitecture  %s\nparameters    %lld\nbytes         %lld\n",
           json_string_value(json_object_get(m, "format")),
           json_is_string(json_object_get(m, "architecture")) ? json_string_value(json_object_get(m, "architecture"))
                                                              : "not named",
           (long long)json_integer_value(json_object_get(m, "parameters")),
           (long long)json_integer_value(json_object_get(m, "bytes")));
    json_object_foreach((json_t *)(uintptr_t)types, name, count)
    {
        printf("%s%s %lld", first ? "types         " : ", ", name, (long long)json_integer_value(count));
        first = false;
    }
    if (!first)
        putchar('\n');
    if (json_is_object(tokenizer))
        printf("tokenizer     %lld entries, %lld special\n", (long long)json_integer_value(json_object_get(tokenizer, "entries")),
               (long long)json_integer_value(json_object_get(tokenizer, "special")));
    if (json_is_true(json_object_get(m, "head_missing")))
        puts("head          the embedding: config.json has one of its own, but there is no lm_head.weight");
    printf("chat template %s\n", json_is_true(json_object_get(m, "chat_template")) ? "yes" : "no");
    print_tensors(json_object_get(m, "tensors"));
}

static int inspect_main(struct invocation *in)
{
    struct error err = { 0 };
    struct model_source *model = model_open(in->argument[0], &err);
    json_t *found = model ? model_inspect(model, &err) : NULL;

    model_close(model);
    if (!found)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(found);
        return EXIT_OK;
    }
    print_model(found);
    json_decref(found);
    return EXIT_OK;
}

const struct command command_model_inspect = {
    "model inspect",
    "PATH",
    "what a model's files hold",
    "rondo model inspect models/pocket\nrondo model inspect SmolLM2-135M-Instruct.Q4_1.gguf --json",
    "PATH is a folder of Hugging Face files or a .gguf file. Every header is read and checked; weights stay where they are.",
    NULL,
    inspect_main,
};
