/* A model's folder, its files any bytes with a zero byte between them, or without one a GGUF file: what opens can be described and
 * tokenized with; and an adapter's folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/model/adapter_add.h"
#include "native/model/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The last one holds the rest of the input, zeros too. */
static const char *const files[] = { "config.json",           "tokenizer.json",
                                     "tokenizer_config.json", "model.safetensors.index.json",
                                     "adapter_config.json",   "chat_template.jinja",
                                     "model.safetensors" };
static const char *const others[] = { "model.gguf", "adapter_model.safetensors" };
enum { FILES = sizeof files / sizeof *files };

static char folder[64];

static void remove_folder(void)
{
    char path[128];

    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void write_one(const char *name, const void *bytes, size_t size)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!size) {
        unlink(path);
        return;
    }

    FILE *file = fopen(path, "wb");

    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        abort();
}

static void open_model(const char *path)
{
    struct error err = { 0 };
    struct model_source *model = model_open(path, &err);
    struct tokenizer *tokenizer = model ? model_tokenizer(model, &err) : NULL;

    if (model)
        json_decref(model_inspect(model, &err));
    for (size_t i = 0; model && i < model_tensor_count(model); i++) {
        const struct tensor *t = model_tensor(model, i);
        float *out = malloc((tensor_values(t) + 1) * sizeof *out);

        if (out)
            model_read_tensor(model, t->name, out, &err);
        free(out);
    }
    tokenizer_free(tokenizer);
    model_close(model);
}

/* The adapter into a weight of its own, either way round. */
static void add_adapter(void)
{
    const struct tensor weight = { .name = "model.layers.0.self_attn.q_proj.weight", .rank = 2, .dims = { 2, 2 } };
    struct adapter_file file;
    struct error err;

    if (adapter_file_open(&file, folder, &err))
        for (int way = 0; way < 2; way++) {
            float values[4] = { 1, 2, 3, 4 };

            file.transposed = way;
            adapter_file_add(&file, &weight, values, &err);
        }
    adapter_file_close(&file);
}

static void open_adapter(void)
{
    const uint64_t dims[] = { 2, 2 };
    struct tensor pair[2] = { 0 };
    struct adapter_kind kind;
    struct error err;

    adapter_read_kind(folder, &kind, &err);
    adapter_kind_free(&kind);
    json_decref(adapter_describe(folder, &err));
    add_adapter();
    if (!tensor_new(&pair[0], "model.layers.0.self_attn.q_proj.lora_A", TENSOR_F32, 2, dims, SIZE_MAX, NULL) ||
        !tensor_new(&pair[1], "model.layers.0.self_attn.q_proj.lora_B", TENSOR_F32, 2, dims, SIZE_MAX, NULL))
        abort();
    adapter_read(folder, pair, 2, true, &err);
    tensor_free(&pair[0]);
    tensor_free(&pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128];

    if (!*folder) {
        const char *place = getenv("TMPDIR");

        snprintf(folder, sizeof folder, "%.40s/rondo-fuzz-XXXXXX", place ? place : "/tmp");
        if (!mkdtemp(folder) || atexit(remove_folder))
            abort();
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
        if (symlink("model.safetensors", path))
            abort();
    }
    if (!memchr(bytes, 0, size) || (size > 4 && !memcmp(bytes, "GGUF", 4))) {
        write_one("model.gguf", bytes, size);
        snprintf(path, sizeof path, "%s/model.gguf", folder);
        open_model(path);
        return 0;
    }
    for (size_t i = 0; i < FILES; i++) {
        const uint8_t *zero = i + 1 < FILES ? memchr(bytes, 0, size) : NULL;
        size_t part = zero ? (size_t)(zero - bytes) : size;

        write_one(files[i], bytes, part);
        bytes += part + (zero != NULL);
        size -= part + (zero != NULL);
    }
    open_model(folder);
    open_adapter();
    return 0;
}
