#include "native/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint16_t values, bytes;
    uint16_t group, head; /* of blocks that run through the whole tensor: so many have so many bytes in front of them; else 0 */
} types[TENSOR_TYPES] = {
    [TENSOR_F32] = { "f32", 1, 4 },           [TENSOR_I32] = { "i32", 1, 4 },
    [TENSOR_F64] = { "f64", 1, 8 },           [TENSOR_F16] = { "f16", 1, 2 },
    [TENSOR_BF16] = { "bf16", 1, 2 },         [TENSOR_Q8_0] = { "q8_0", 32, 34 },
    [TENSOR_Q4_0] = { "q4_0", 32, 18 },       [TENSOR_Q4_1] = { "q4_1", 32, 20 },
    [TENSOR_Q5_0] = { "q5_0", 32, 22 },       [TENSOR_Q5_1] = { "q5_1", 32, 24 },
    [TENSOR_IQ4_NL] = { "iq4_nl", 32, 18 },   [TENSOR_MXFP4] = { "mxfp4", 32, 17 },
    [TENSOR_Q2_K] = { "q2_k", 256, 84 },      [TENSOR_Q3_K] = { "q3_k", 256, 110 },
    [TENSOR_Q4_K] = { "q4_k", 256, 144 },     [TENSOR_Q5_K] = { "q5_k", 256, 176 },
    [TENSOR_Q6_K] = { "q6_k", 256, 210 },     [TENSOR_U8] = { "u8", 1, 1 },
    [TENSOR_NF4] = { "nf4", 64, 36, 256, 0 }, [TENSOR_NF4_DQ] = { "nf4_dq", 64, 33, 256, 8 },
};

const char *tensor_type_name(enum tensor_type type)
{
    return type < TENSOR_TYPES ? types[type].name : "unknown";
}

bool tensor_type_find(const char *name, enum tensor_type *type)
{
    for (unsigned i = 0; i < TENSOR_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *type = (enum tensor_type)i;
            return true;
        }
    return false;
}

size_t tensor_block_values(enum tensor_type type)
{
    return types[type].values;
}
size_t tensor_block_bytes(enum tensor_type type)
{
    return types[type].bytes;
}

size_t tensor_block_place(enum tensor_type type, uint64_t first)
{
    const uint64_t block = first / types[type].values;
    return (size_t)(block * types[type].bytes +
                    (types[type].group ? (block + types[type].group - 1) / types[type].group * types[type].head : 0));
}

/* Bytes of a tensor of `count` values. */
static bool measure_blocks(enum tensor_type type, uint64_t count, uint64_t *size)
{
    const uint64_t block = types[type].values, blocks = count / block + (count % block != 0);
    const uint64_t heads = types[type].group ? (blocks + types[type].group - 1) / types[type].group * types[type].head : 0;
    return tensor_multiply(blocks, types[type].bytes, size) && !__builtin_add_overflow(*size, heads, size);
}

bool tensor_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool tensor_measure(enum tensor_type type, unsigned rank, const uint64_t *dims, size_t limit, uint64_t *values, size_t *bytes,
                    struct error *err)
{
    uint64_t count = 1, size;
    if ((unsigned)type >= TENSOR_TYPES)
        return error_set(err, ERROR_TYPE, NULL, "tensor type %u is not known", (unsigned)type);
    if (rank > TENSOR_RANK)
        return error_set(err, ERROR_SHAPE, NULL, "%u dimensions, at most %d are allowed", rank, TENSOR_RANK);
    for (unsigned i = 0; i < rank; i++)
        if (!tensor_multiply(count, dims[i], &count))
            return error_set(err, ERROR_LIMIT, NULL, "the product of the dimensions overflows");
    const unsigned block = types[type].values;
    if (block > 1 && !types[type].group && (rank == 0 || dims[rank - 1] % block != 0))
        return error_set(err, ERROR_SHAPE, NULL, "%s packs %u values, so the last dimension must be a multiple of it",
                         types[type].name, block);
    if (!measure_blocks(type, count, &size) || size > limit)
        return error_set(err, ERROR_LIMIT, NULL, "a tensor larger than the limit of %zu bytes", limit);
    *values = count;
    *bytes = (size_t)size;
    return true;
}

bool tensor_new(struct tensor *t, const char *name, enum tensor_type type, unsigned rank, const uint64_t *dims, size_t limit,
                struct error *err)
{
    uint64_t values;
    memset(t, 0, sizeof *t);
    if (!tensor_measure(type, rank, dims, limit, &values, &t->size, err))
        return false;
    t->type = type;
    t->rank = rank;
    for (unsigned i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    t->data = aligned_alloc(64, (t->size + 64) / 64 * 64);
    t->name = name ? strdup(name) : NULL;
    if (!t->data || (name && !t->name)) {
        tensor_free(t);
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a tensor");
    }
    memset(t->data, 0, t->size);
    return true;
}

void tensor_free(struct tensor *t)
{
    free(t->data);
    free(t->name);
    memset(t, 0, sizeof *t);
}

uint64_t tensor_values(const struct tensor *t)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < t->rank; i++)
        count *= t->dims[i];
    return count;
}
