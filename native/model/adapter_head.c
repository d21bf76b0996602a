#include "native/model/adapter_head.h"

#include <string.h>

static bool ends(const char *name, const char *end)
{
    const size_t size = strlen(end), length = strlen(name);

    return length > size && strcmp(name + length - size, end) == 0;
}

static bool same(const struct tensor *a, const struct tensor *b)
{
    return a != b && a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static bool apart(const char *what, struct error *err)
{
    return error_set(err, ERROR_MISMATCH,
                     "PEFT keeps them one with ensure_weight_tying and modules_to_save = [\"embed_tokens\"]; or take a base with "
                     "a head of its own",
                     "%s, and the base's head is its embedding", what);
}

bool adapter_head_check(const struct safetensors *file, const struct adapter_kind *kind, const struct tensor **again,
                        struct error *err)
{
    bool embedding = false, copied = false;

    *again = NULL;
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name;

        if (strcmp(name, "base_model.model.lm_head.weight") == 0)
            *again = &file->tensors[i];
        embedding = embedding || ends(name, ".embed_tokens.weight") || ends(name, ".wte.weight");
    }
    for (size_t i = 0; *again && !copied && i < file->count; i++)
        copied = same(*again, &file->tensors[i]);
    if (*again && !copied)
        return apart("the adapter has a head of its own", err);
    return *again || !embedding || kind->tied || apart("the adapter has an embedding without the head", err);
}
