/* GGUF files of any bytes: opening either fails with a code or gives tensors and values that lie in the file. */
#include <stdlib.h>
#include <string.h>

#include "native/model/config.h"
#include "native/model/convert.h"
#include "native/model/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_all(const struct gguf *file)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct tensor *t = &file->tensors[i];
        const uint64_t count = tensor_values(t);
        float *out = malloc((count + 1) * sizeof *out);

        if (out)
            convert_to_f32(t->type, t->data, count, out);
        free(out);
    }
}

static void ask_all(const struct gguf *file)
{
    for (size_t i = 0; i < file->value_count; i++) {
        const char *key = file->values[i].key;
        struct text_slice text, *texts;
        int64_t integer;
        double real;
        bool boolean;
        size_t count, total = 0;

        if (gguf_text(file, key, &text))
            total += text.size;
        gguf_integer(file, key, &integer);
        gguf_real(file, key, &real);
        gguf_boolean(file, key, &boolean);
        texts = gguf_texts(file, key, &count);
        for (size_t j = 0; j < count; j++)
            total += texts[j].size;
        if (total > file->size)
            abort();
        free(texts);
        free(gguf_integers(file, key, &count));
    }
}

static void name_all(const struct gguf *file)
{
    struct error err = { 0 };
    json_t *config = config_from_gguf(file, &err);
    char name[2 * GGUF_NAME];
    struct config_form form;

    for (size_t i = 0; config && i < file->tensor_count; i++)
        config_name_from_gguf(config, file->tensors[i].name, name, sizeof name, &form, &err);
    json_decref(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct gguf file;
    struct error err = { 0 };

    if (gguf_of(&file, bytes, size, &err)) {
        read_all(&file);
        ask_all(&file);
        name_all(&file);
    } else if (err.code == ERROR_NONE) {
        abort();
    }
    gguf_close(&file);
    return 0;
}
