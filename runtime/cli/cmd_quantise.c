#include <stdio.h>

#include "native/model/quantise.h"
#include "runtime/cli/commands.h"

static int quantise_main(struct invocation *in)
{
    struct error err = { 0 };
    const char *base = option_text(in, "model", NULL), *type = option_text(in, "type", "nf4_dq");
    enum tensor_type stored;
    size_t matrices = 0;
    bool ok = base != NULL || error_set(&err, ERROR_USAGE, NULL, "--model is needed");

    if (ok && !tensor_type_find(type, &stored)) {
        error_set(&err, ERROR_USAGE, "nf4 and nf4_dq are known", "\"%.40s\" is no type of weights", type);
        ok = error_at(&err, "--type");
    }
    if (!ok || !quantise_write(base, in->argument[0], stored, &matrices, &err))
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:s, s:s, s:I}", "path", in->argument[0], "type", type, "matrices", (json_int_t)matrices));
    else if (!in->quiet)
        printf("%s: %zu matrices as %s\n", in->argument[0], matrices, type);
    return EXIT_OK;
}

static const struct option options[] = {
    { "model", "PATH", "the original: a folder of Hugging Face files" },
    { "type", "TYPE", "nf4_dq (default; 4.13 bits a weight) or nf4 (4.5: the scales are not quantised themselves)" },
    { 0 },
};

const struct command command_model_quantise = {
    "model quantise",
    "OUT",
    "writes a model anew with its matrices in 4 bits (NF4), the base of a QLoRA run",
    "rondo model quantise pocket4 --model models/pocket\n"
    "rondo model quantise base4 --model Llama-3.2-1B --type nf4",
    "OUT is a folder that serves wherever a model does: as base_model of a run, whose adapter then trains over frozen 4-bit "
    "matrices, to sample, to "
    "merge. transformers reads it too (bitsandbytes). Embeddings, head, norms and biases stay as they are stored.",
    options,
    quantise_main,
};
