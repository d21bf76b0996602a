#include "runtime/crypto/root.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} codes[CODES] = {
    [CODE_F32] = { "f32", 4 }, [CODE_I32] = { "i32", 4 }, [CODE_F64] = { "f64", 8 }, [CODE_BF16] = { "bf16", 2 },
    [CODE_F16] = { "f16", 2 }, [CODE_I8] = { "i8", 1 },   [CODE_U8] = { "u8", 1 },
};

size_t tensor_code_size(enum tensor_code code)
{
    return codes[code].size;
}

const char *tensor_code_name(enum tensor_code code)
{
    return codes[code].name;
}

bool tensor_code_parse(const char *name, enum tensor_code *out)
{
    for (size_t i = 0; i < CODES; i++)
        if (strcmp(name, codes[i].name) == 0) {
            *out = (enum tensor_code)i;
            return true;
        }
    return false;
}

bool named_tensor_size(const struct named_tensor *tensor, uint64_t *count, uint64_t *size)
{
    *count = 1;
    if (tensor->rank > ROOT_RANK || (unsigned)tensor->code >= CODES)
        return false;
    for (size_t i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(*count, tensor->dims[i], count))
            return false;
    return !__builtin_mul_overflow(*count, (uint64_t)codes[tensor->code].size, size) && *size <= SIZE_MAX / 2;
}

struct hash root_empty(void)
{
    return merkle_of(NULL, 0);
}

struct hash root_entry(const struct named_tensor *tensor, struct hash tensor_root)
{
    struct hasher h;
    uint64_t count = 0, size = 0;

    named_tensor_size(tensor, &count, &size);
    hash_start(&h, "rondo/tensor");
    hash_text(&h, tensor->name);
    hash_u8(&h, (uint8_t)tensor->code);
    hash_u8(&h, (uint8_t)tensor->rank);
    for (size_t i = 0; i < tensor->rank; i++)
        hash_u64(&h, tensor->dims[i]);
    hash_u64(&h, count);
    hash_fixed(&h, tensor_root.bytes, HASH_SIZE);
    return hash_end(&h);
}

static bool check_order(const struct named_tensor *tensors, size_t i, struct error *err)
{
    const int order = i ? strcmp(tensors[i - 1].name, tensors[i].name) : -1;

    if (order == 0)
        return error_set(err, ERROR_DUPLICATE, NULL, "tensor \"%s\" stands twice in a state", tensors[i].name);
    if (order > 0)
        return error_set(err, ERROR_RANGE, "sort the tensors by name", "tensor \"%s\" does not follow \"%s\"", tensors[i].name,
                         tensors[i - 1].name);
    return true;
}

bool root_of_state(const struct named_tensor *tensors, size_t count, struct hash *out, struct error *err)
{
    struct merkle_input *parts = calloc(count + 1, sizeof *parts);
    struct hash *roots = calloc(count + 1, sizeof *roots);
    struct merkle tree;
    bool ok = (parts && roots) || error_set(err, ERROR_MEMORY, NULL, "no memory for the roots of %zu tensors", count);

    for (size_t i = 0; ok && i < count; i++) {
        uint64_t elements, size;

        ok = check_order(tensors, i, err) && (named_tensor_size(&tensors[i], &elements, &size) ||
                                              error_set(err, ERROR_LIMIT, NULL, "tensor \"%s\" is too large", tensors[i].name));
        if (ok)
            parts[i] = (struct merkle_input){ tensors[i].bytes, (size_t)size };
    }
    if (ok) {
        merkle_of_many(parts, count, roots);
        merkle_start(&tree);
        for (size_t i = 0; i < count; i++)
            merkle_add_hash(&tree, root_entry(&tensors[i], roots[i]));
        *out = merkle_root(&tree);
    }
    free(roots);
    free(parts);
    return ok;
}
