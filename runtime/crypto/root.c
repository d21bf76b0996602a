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

/* What root_entry hashes, as bytes. */
static size_t entry_size(const struct named_tensor *tensor)
{
    return 8 + strlen(tensor->name) + 2 + 8 * tensor->rank + 8 + HASH_SIZE;
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static void put_entry(const struct named_tensor *tensor, struct hash root, uint8_t *at)
{
    const size_t length = strlen(tensor->name);
    uint64_t count = 0, size = 0;

    named_tensor_size(tensor, &count, &size);
    at = put_u64(at, length);
    memcpy(at, tensor->name, length);
    at += length;
    *at++ = (uint8_t)tensor->code;
    *at++ = (uint8_t)tensor->rank;
    for (size_t i = 0; i < tensor->rank; i++)
        at = put_u64(at, tensor->dims[i]);
    memcpy(put_u64(at, count), root.bytes, HASH_SIZE);
}

struct sized {
    size_t size, index;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    return x->size != y->size ? (x->size < y->size ? -1 : 1) : x->index < y->index ? -1 : 1;
}

/* Names of one length are many in a model: their entries are hashed at once. */
struct hash root_of_roots(const struct named_tensor *tensors, const struct hash *roots, size_t count)
{
    struct sized *order = calloc(count + 1, sizeof *order);
    struct hash *made = calloc(count + 1, sizeof *made), *entries = calloc(count + 1, sizeof *entries), root = root_empty();
    size_t total = 0;

    if (!order || !made || !entries)
        abort();
    for (size_t i = 0; i < count; i++)
        order[i] = (struct sized){ entry_size(&tensors[i]), i }, total += order[i].size;
    qsort(order, count, sizeof *order, by_size);

    uint8_t *bytes = malloc(total + 1), *at = bytes;

    if (!bytes)
        abort();
    for (size_t i = 0; i < count; at += order[i++].size)
        put_entry(&tensors[order[i].index], roots[order[i].index], at);
    at = bytes;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && order[next].size == order[i].size; next++)
            ;
        hash_many("rondo/tensor", at, order[i].size, next - i, made + i);
        at += (next - i) * order[i].size;
    }
    for (size_t i = 0; i < count; i++)
        entries[order[i].index] = made[i];
    if (count > 0)
        root = merkle_join(entries, count);
    free(order);
    free(made);
    free(entries);
    free(bytes);
    return root;
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
        *out = root_of_roots(tensors, roots, count);
    }
    free(roots);
    free(parts);
    return ok;
}
