#include "native/model/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/file.h"

/* Bytes of a scalar; 0 for strings and arrays. */
static const uint8_t scalar_size[GGUF_TYPES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* ggml's type codes that are read. */
static const struct {
    uint32_t code;
    enum tensor_type type;
} tensor_codes[] = {
    { 0, TENSOR_F32 },   { 1, TENSOR_F16 },    { 2, TENSOR_Q4_0 },    { 3, TENSOR_Q4_1 },  { 6, TENSOR_Q5_0 },
    { 7, TENSOR_Q5_1 },  { 8, TENSOR_Q8_0 },   { 10, TENSOR_Q2_K },   { 11, TENSOR_Q3_K }, { 12, TENSOR_Q4_K },
    { 13, TENSOR_Q5_K }, { 14, TENSOR_Q6_K },  { 20, TENSOR_IQ4_NL }, { 26, TENSOR_I32 },  { 28, TENSOR_F64 },
    { 30, TENSOR_BF16 }, { 39, TENSOR_MXFP4 },
};

static bool ends_early(struct error *err)
{
    return error_set(err, ERROR_TRUNCATED, "fetch the file again", "the file ends inside its header");
}

/* A name or key as a new string. */
static char *read_name(struct reader *in, struct error *err)
{
    const uint64_t size = reader_u64(in);

    if (size > GGUF_NAME || size == 0) {
        if (in->ok)
            error_set(err, ERROR_LIMIT, NULL, "a name of %" PRIu64 " bytes, 1 to %d are allowed", size, GGUF_NAME);
        else
            ends_early(err);
        return NULL;
    }
    const uint8_t *bytes = reader_bytes(in, size);

    if (!bytes) {
        ends_early(err);
        return NULL;
    }
    if (memchr(bytes, 0, size)) {
        error_set(err, ERROR_SYNTAX, NULL, "a name with a zero byte");
        return NULL;
    }
    return strndup((const char *)bytes, size);
}

/* Values ------------------------------------------------------------------------------------------------------------------ */

/* Moves past `count` strings. */
static bool skip_strings(struct reader *in, uint64_t count)
{
    for (uint64_t i = 0; i < count && in->ok; i++) {
        const uint64_t size = reader_u64(in);

        if (!in->ok || size > reader_left(in))
            return false;
        reader_bytes(in, size);
    }
    return in->ok;
}

static bool read_elements(struct reader *in, struct gguf_value *value, struct error *err)
{
    value->bytes = in->at;
    if (value->type == GGUF_STRING) {
        if (value->count > reader_left(in) / 8 || !skip_strings(in, value->count))
            return ends_early(err);
    } else {
        const unsigned size = scalar_size[value->type];

        if (value->count > reader_left(in) / size)
            return ends_early(err);
        reader_bytes(in, value->count * size);
    }
    value->size = (size_t)(in->at - value->bytes);
    return true;
}

static bool read_value(struct reader *in, struct gguf_value *value, struct error *err)
{
    uint32_t type = reader_u32(in);

    value->count = 1;
    value->array = type == GGUF_ARRAY;
    if (value->array) {
        type = reader_u32(in);
        value->count = reader_u64(in);
    }
    if (!in->ok)
        return ends_early(err);
    if (value->array && type == GGUF_ARRAY)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "an array of arrays");
    if (type >= GGUF_TYPES)
        return error_set(err, ERROR_SYNTAX, NULL, "value type %u", type);
    value->type = (enum gguf_type)type;
    return read_elements(in, value, err);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct gguf_value *)a)->key, ((const struct gguf_value *)b)->key);
}

static bool read_values(struct gguf *file, struct reader *in, uint64_t count, struct error *err)
{
    if (count > GGUF_VALUES)
        return error_set(err, ERROR_LIMIT, NULL, "%" PRIu64 " keys, at most %d are read", count, GGUF_VALUES);
    file->values = calloc(count + 1, sizeof *file->values);
    if (!file->values)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %" PRIu64 " keys", count);
    for (uint64_t i = 0; i < count; i++) {
        struct gguf_value *value = &file->values[i];

        value->key = read_name(in, err);
        if (!value->key)
            return error_at(err, "key %" PRIu64, i);
        file->value_count++;
        if (!read_value(in, value, err))
            return error_at(err, "%s", value->key);
    }
    qsort(file->values, count, sizeof *file->values, by_key);
    for (uint64_t i = 1; i < count; i++)
        if (by_key(&file->values[i - 1], &file->values[i]) == 0)
            return error_set(err, ERROR_DUPLICATE, NULL, "the key %s stands there twice", file->values[i].key);
    return true;
}

/* Tensors ----------------------------------------------------------------------------------------------------------------- */

static bool read_type(uint32_t code, enum tensor_type *type, struct error *err)
{
    for (unsigned i = 0; i < sizeof tensor_codes / sizeof *tensor_codes; i++)
        if (tensor_codes[i].code == code) {
            *type = tensor_codes[i].type;
            return true;
        }
    return error_set(err, ERROR_UNSUPPORTED,
                     "F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL and MXFP4 are read; convert the file to one of them",
                     "tensors of ggml type %u", code);
}

/* One tensor's entry; *offset is where its data is said to be. */
static bool read_tensor(struct reader *in, struct tensor *t, uint64_t *offset, struct error *err)
{
    const uint32_t rank = reader_u32(in);
    uint64_t values;

    if (rank > TENSOR_RANK)
        return error_set(err, ERROR_SHAPE, NULL, "%u dimensions, at most %d are read", rank, TENSOR_RANK);
    t->rank = rank;
    for (unsigned i = rank; i-- > 0;)
        t->dims[i] = reader_u64(in);
    const uint32_t code = reader_u32(in);

    *offset = reader_u64(in);
    if (!in->ok)
        return ends_early(err);
    return read_type(code, &t->type, err) && tensor_measure(t->type, t->rank, t->dims, SIZE_MAX, &values, &t->size, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;

    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Until the data section's start is known, `data` holds the offset. */
static bool read_tensors(struct gguf *file, struct reader *in, uint64_t count, struct error *err)
{
    if (count > GGUF_TENSORS)
        return error_set(err, ERROR_LIMIT, NULL, "%" PRIu64 " tensors, at most %d are read", count, GGUF_TENSORS);
    file->tensors = calloc(count + 1, sizeof *file->tensors);
    if (!file->tensors)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %" PRIu64 " tensors", count);
    for (uint64_t i = 0; i < count; i++) {
        struct tensor *t = &file->tensors[i];
        uint64_t offset = 0;

        t->name = read_name(in, err);
        if (!t->name)
            return error_at(err, "tensor %" PRIu64, i);
        file->tensor_count++;
        if (!read_tensor(in, t, &offset, err))
            return error_at(err, "%s", t->name);
        t->data = (void *)(uintptr_t)offset;
    }
    return true;
}

static bool place_tensor(const struct gguf *file, struct tensor *t, const uint8_t *data, uint64_t size, struct error *err)
{
    const uint64_t offset = (uintptr_t)t->data;

    if (offset % file->alignment != 0)
        return error_set(err, ERROR_RANGE, NULL, "offset %" PRIu64 " is no multiple of the alignment %u", offset,
                         file->alignment);
    if (offset > size || t->size > size - offset)
        return error_set(err, ERROR_TRUNCATED, "fetch the file again",
                         "%zu bytes at offset %" PRIu64 " in %" PRIu64 " bytes of data", t->size, offset, size);
    t->data = (void *)(uintptr_t)(data + offset);
    return true;
}

static bool check_overlap(struct gguf *file, struct error *err)
{
    qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_place);
    for (size_t i = 1; i < file->tensor_count; i++) {
        const struct tensor *t = &file->tensors[i - 1];

        if ((const uint8_t *)t->data + t->size > (const uint8_t *)file->tensors[i].data) {
            error_set(err, ERROR_CONFLICT, NULL, "the tensor's data overlaps that of %s", file->tensors[i].name);
            return error_at(err, "%s", t->name);
        }
    }
    qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (by_name(&file->tensors[i - 1], &file->tensors[i]) == 0)
            return error_set(err, ERROR_DUPLICATE, NULL, "two tensors have the name %s", file->tensors[i].name);
    return true;
}

/* Whole files ------------------------------------------------------------------------------------------------------------- */

static bool read_start(struct gguf *file, struct reader *in, uint64_t *tensors, uint64_t *values, struct error *err)
{
    const uint8_t *magic = reader_bytes(in, 4);

    if (magic && memcmp(magic, "GGUF", 4) != 0)
        return error_set(err, ERROR_SYNTAX, NULL, "not a GGUF file: it does not start with GGUF");
    file->version = reader_u32(in);
    *tensors = reader_u64(in);
    *values = reader_u64(in);
    if (!in->ok)
        return ends_early(err);
    if (file->version == 0x02000000 || file->version == 0x03000000)
        return error_set(err, ERROR_UNSUPPORTED, "convert it on a little-endian machine", "a big-endian GGUF file");
    if (file->version != 2 && file->version != 3)
        return error_set(err, ERROR_UNSUPPORTED, "versions 2 and 3 are read", "GGUF version %u", file->version);
    return true;
}

static bool read_alignment(struct gguf *file, struct error *err)
{
    int64_t alignment = 32;

    if (gguf_find(file, "general.alignment") && !gguf_integer(file, "general.alignment", &alignment))
        return error_set(err, ERROR_TYPE, NULL, "general.alignment is no integer");
    if (alignment < 1 || alignment > 1 << 16 || (alignment & (alignment - 1)) != 0)
        return error_set(err, ERROR_RANGE, NULL, "general.alignment %" PRId64 ", it is a power of two up to 65536", alignment);
    file->alignment = (uint32_t)alignment;
    return true;
}

bool gguf_of(struct gguf *file, const void *bytes, size_t size, struct error *err)
{
    struct reader in = reader_of(bytes, size);
    uint64_t tensors = 0, values = 0;

    *file = (struct gguf){ .size = size };
    if (!read_start(file, &in, &tensors, &values, err) || !read_values(file, &in, values, err) || !read_alignment(file, err) ||
        !read_tensors(file, &in, tensors, err))
        return false;
    const size_t header = size - reader_left(&in), start = (header + file->alignment - 1) / file->alignment * file->alignment;
    const uint64_t left = start < size ? size - start : 0;
    const uint8_t *data = (const uint8_t *)bytes + (start < size ? start : size);

    for (size_t i = 0; i < file->tensor_count; i++)
        if (!place_tensor(file, &file->tensors[i], data, left, err))
            return error_at(err, "%s", file->tensors[i].name);
    return check_overlap(file, err);
}

bool gguf_open(struct gguf *file, const char *path, struct error *err)
{
    size_t size = 0;
    const void *map = file_map(path, &size, err);

    *file = (struct gguf){ 0 };
    if (!map)
        return false;
    const bool ok = gguf_of(file, map, size, err);

    file->map = map;
    return ok || error_at(err, "%s", path);
}

void gguf_close(struct gguf *file)
{
    for (size_t i = 0; i < file->value_count; i++)
        free(file->values[i].key);
    for (size_t i = 0; i < file->tensor_count; i++)
        free(file->tensors[i].name);
    free(file->values);
    free(file->tensors);
    if (file->map)
        file_unmap(file->map, file->size);
    *file = (struct gguf){ 0 };
}

/* Asking ------------------------------------------------------------------------------------------------------------------ */

const struct gguf_value *gguf_find(const struct gguf *file, const char *key)
{
    const struct gguf_value wanted = { .key = (char *)(uintptr_t)key };

    return bsearch(&wanted, file->values, file->value_count, sizeof *file->values, by_key);
}

const struct tensor *gguf_tensor(const struct gguf *file, const char *name)
{
    const struct tensor wanted = { .name = (char *)(uintptr_t)name };

    return bsearch(&wanted, file->tensors, file->tensor_count, sizeof *file->tensors, by_name);
}

static const struct gguf_value *find_scalar(const struct gguf *file, const char *key)
{
    const struct gguf_value *value = gguf_find(file, key);

    return value && !value->array ? value : NULL;
}

/* The integer at `bytes`; false for other types and for numbers above INT64_MAX. */
static bool integer_at(enum gguf_type type, const uint8_t *bytes, int64_t *integer)
{
    uint64_t bits = 0;
    const unsigned size = scalar_size[type];

    if (type == GGUF_F32 || type == GGUF_F64 || type == GGUF_BOOL || size == 0)
        return false;
    for (unsigned i = 0; i < size; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    const bool is_signed = type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;

    if (is_signed && size < 8 && bits >> (8 * size - 1))
        bits |= UINT64_MAX << 8 * size;
    *integer = (int64_t)bits;
    return is_signed || *integer >= 0;
}

bool gguf_text(const struct gguf *file, const char *key, struct text_slice *text)
{
    const struct gguf_value *value = find_scalar(file, key);

    if (!value || value->type != GGUF_STRING)
        return false;
    *text = (struct text_slice){ (const char *)value->bytes + 8, value->size - 8 };
    return true;
}

bool gguf_integer(const struct gguf *file, const char *key, int64_t *integer)
{
    const struct gguf_value *value = find_scalar(file, key);

    return value && integer_at(value->type, value->bytes, integer);
}

bool gguf_real(const struct gguf *file, const char *key, double *real)
{
    const struct gguf_value *value = find_scalar(file, key);
    int64_t integer;
    float single;

    if (!value)
        return false;
    if (value->type == GGUF_F32) {
        memcpy(&single, value->bytes, sizeof single);
        *real = single;
    } else if (value->type == GGUF_F64) {
        memcpy(real, value->bytes, sizeof *real);
    } else if (integer_at(value->type, value->bytes, &integer)) {
        *real = (double)integer;
    } else {
        return false;
    }
    return true;
}

bool gguf_boolean(const struct gguf *file, const char *key, bool *boolean)
{
    const struct gguf_value *value = find_scalar(file, key);

    if (!value || value->type != GGUF_BOOL)
        return false;
    *boolean = *value->bytes != 0;
    return true;
}

struct text_slice *gguf_texts(const struct gguf *file, const char *key, size_t *count)
{
    const struct gguf_value *value = gguf_find(file, key);

    *count = 0;
    if (!value || !value->array || value->type != GGUF_STRING)
        return NULL;
    struct text_slice *texts = malloc((value->count + 1) * sizeof *texts);
    struct reader in = reader_of(value->bytes, value->size);

    if (!texts)
        return NULL;
    for (uint64_t i = 0; i < value->count; i++) {
        const size_t size = reader_u64(&in);

        texts[i] = (struct text_slice){ (const char *)reader_bytes(&in, size), size };
    }
    *count = value->count;
    return texts;
}

int32_t *gguf_integers(const struct gguf *file, const char *key, size_t *count)
{
    const struct gguf_value *value = gguf_find(file, key);

    *count = 0;
    if (!value || !value->array || value->type == GGUF_STRING)
        return NULL;
    int32_t *integers = malloc((value->count + 1) * sizeof *integers);

    for (uint64_t i = 0; integers && i < value->count; i++) {
        int64_t integer;

        if (!integer_at(value->type, value->bytes + i * scalar_size[value->type], &integer) || integer != (int32_t)integer) {
            free(integers);
            return NULL;
        }
        integers[i] = (int32_t)integer;
    }
    *count = integers ? value->count : 0;
    return integers;
}
