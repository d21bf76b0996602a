#include <stdio.h>
#include <string.h>

#include "native/model/merge.h"
#include "runtime/cli/commands.h"

static bool merge(const struct invocation *in, const char **type, struct error *err)
{
    const char *base = option_text(in, "model", NULL), *adapter = option_text(in, "adapter", NULL), *out = in->argument[0];
    const size_t length = strlen(out);
    const bool is_gguf = length > 5 && strcmp(out + length - 5, ".gguf") == 0;
    enum tensor_type stored;

    if (!base || !adapter)
        return error_set(err, ERROR_USAGE, NULL, "--model and --adapter are needed");
    if (option_flag(in, "only")) {
        *type = "f32";
        return merge_write_adapter(base, adapter, out, err);
    }
    *type = option_text(in, "type", is_gguf ? "f16" : "f32");
    if (!tensor_type_find(*type, &stored))
        return error_set(err, ERROR_USAGE, "f32, f16, bf16, q8_0 and q4_0 are known", "\"%.40s\" is no type of weights", *type) ||
               error_at(err, "--type");
    return merge_write(base, adapter, out, stored, err);
}

static int merge_main(struct invocation *in)
{
    struct error err = { 0 };
    const char *type = NULL;

    if (!merge(in, &type, &err))
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:s, s:s}", "path", in->argument[0], "type", type));
    else if (!in->quiet)
        printf("%s\n", in->argument[0]);
    return EXIT_OK;
}

static const struct option options[] = {
    { "model", "PATH", "the base: a folder of Hugging Face files or a .gguf file" },
    { "adapter", "DIR", "the adapter: a folder as PEFT writes it" },
    { "type", "TYPE", "how matrices are stored; folder: f32 (default), f16, bf16; .gguf: f16 (default), q8_0, q4_0" },
    { "only", NULL, "writes the adapter by itself as a GGUF file for llama.cpp; the base is a .gguf file" },
    { 0 },
};

const struct command command_model_merge = {
    "model merge",
    "OUT",
    "adds an adapter into a model's weights and writes the model anew",
    "rondo model merge merged --model models/pocket --adapter adapter\n"
    "rondo model merge merged.gguf --model SmolLM2-135M-Instruct.Q4_1.gguf --adapter adapter --type q8_0",
    "OUT has the format of the base: a folder for a folder, a name that ends in .gguf for a GGUF file, whose keys are kept. An "
    "adapter of "
    "another base is refused.",
    options,
    merge_main,
};
