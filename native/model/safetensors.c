#include "native/model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/file.h"
#include "native/base/json.h"

static const struct {
    const char *name;
    enum tensor_type type;
} dtypes[] = {
    { "F64", TENSOR_F64 },   { "F32", TENSOR_F32 }, { "F16", TENSOR_F16 },
    { "BF16", TENSOR_BF16 }, { "I32", TENSOR_I32 }, { "U8", TENSOR_U8 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* Reading ----------------------------------------------------------------------------------------------------------------- */

static bool read_dtype(const json_t *entry, enum tensor_type *type, struct error *err)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));

    if (!name)
        return error_set(err, ERROR_TYPE, NULL, "dtype is missing or no string");
    for (unsigned i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *type = dtypes[i].type;
            return true;
        }
    return error_set(err, ERROR_UNSUPPORTED, "F64, F32, F16, BF16, I32 and U8 are read", "dtype %.20s", name);
}

static bool read_number(const json_t *value, uint64_t *number, struct error *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return error_set(err, ERROR_TYPE, NULL, "shape and data_offsets hold integers of at least 0");
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_shape(const json_t *entry, struct tensor *t, struct error *err)
{
    const json_t *shape = json_object_get(entry, "shape");

    if (!json_is_array(shape))
        return error_set(err, ERROR_TYPE, NULL, "shape is missing or no array");
    if (json_array_size(shape) > TENSOR_RANK)
        return error_set(err, ERROR_SHAPE, NULL, "%zu dimensions, at most %d are read", json_array_size(shape), TENSOR_RANK);
    t->rank = (unsigned)json_array_size(shape);
    for (unsigned i = 0; i < t->rank; i++)
        if (!read_number(json_array_get(shape, i), &t->dims[i], err))
            return false;
    return true;
}

/* One entry of the header; data_size is that of all tensors. */
static bool read_entry(const json_t *entry, const uint8_t *data, uint64_t data_size, struct tensor *t, struct error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin = 0, end = 0, values;

    if (!json_is_object(entry))
        return error_set(err, ERROR_TYPE, NULL, "a tensor's entry is an object");
    if (!read_dtype(entry, &t->type, err) || !read_shape(entry, t, err))
        return false;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return error_set(err, ERROR_TYPE, NULL, "data_offsets is missing or no pair");
    if (!read_number(json_array_get(offsets, 0), &begin, err) || !read_number(json_array_get(offsets, 1), &end, err))
        return false;
    if (begin > end || end > data_size)
        return error_set(err, ERROR_RANGE, "is the file whole?",
                         "data_offsets [%" PRIu64 ", %" PRIu64 "] in %" PRIu64 " bytes of data", begin, end, data_size);
    if (!tensor_measure(t->type, t->rank, t->dims, SIZE_MAX, &values, &t->size, err))
        return false;
    if (t->size != end - begin)
        return error_set(err, ERROR_SHAPE, NULL, "dtype and shape need %zu bytes, data_offsets give %" PRIu64, t->size,
                         end - begin);
    t->data = (void *)(uintptr_t)(data + begin);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;

    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size; /* empty ones stand before the one they touch */
}

static bool check_tiling(struct safetensors *file, const uint8_t *data, size_t size, struct error *err)
{
    const uint8_t *at = data;

    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *t = &file->tensors[i];

        if (t->data != at) {
            error_set(err, ERROR_CONFLICT, NULL, "the tensor's data %s",
                      (const uint8_t *)t->data < at ? "overlaps another's" : "leaves a hole before it");
            return error_at(err, "%s", t->name);
        }
        at += t->size;
    }
    if (at != data + size)
        return error_set(err, ERROR_CONFLICT, NULL, "%zu bytes after the last tensor", (size_t)(data + size - at));
    return true;
}

static bool read_entries(struct safetensors *file, const json_t *header, const uint8_t *data, size_t size, struct error *err)
{
    const char *name;
    json_t *entry;

    if (json_object_size(header) > SAFETENSORS_TENSORS)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d tensors", SAFETENSORS_TENSORS);
    file->tensors = calloc(json_object_size(header) + 1, sizeof *file->tensors);
    if (!file->tensors)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", json_object_size(header));
    json_object_foreach((json_t *)header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            file->metadata = json_incref(entry);
            continue;
        }
        struct tensor *t = &file->tensors[file->count];

        t->name = strdup(name);
        if (!t->name)
            return error_set(err, ERROR_MEMORY, NULL, "no memory for a name");
        file->count++;
        if (!read_entry(entry, data, size, t, err))
            return error_at(err, "%s", name);
    }
    return true;
}

static bool check_metadata(const json_t *metadata, struct error *err)
{
    const char *key;
    json_t *value;

    if (metadata && !json_is_object(metadata))
        return error_set(err, ERROR_TYPE, NULL, "__metadata__ is no object");
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (!json_is_string(value)) {
            error_set(err, ERROR_TYPE, NULL, "metadata are strings");
            return error_at(err, "__metadata__");
        }
    }
    return true;
}

bool safetensors_of(struct safetensors *file, const void *bytes, size_t size, struct error *err)
{
    struct reader in = reader_of(bytes, size);
    const uint64_t length = reader_u64(&in);

    *file = (struct safetensors){ .size = size };
    if (!in.ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "%zu bytes are no safetensors file", size);
    if (length > SAFETENSORS_HEADER)
        return error_set(err, ERROR_LIMIT, "is this a safetensors file?", "a header of %" PRIu64 " bytes", length);
    const uint8_t *text = reader_bytes(&in, length);

    if (!text)
        return error_set(err, ERROR_TRUNCATED, "fetch the file again", "the file ends inside its header");
    if (length == 0 || text[0] != '{')
        return error_set(err, ERROR_SYNTAX, NULL, "the header does not start with {");
    json_t *header = json_read((const char *)text, length, SAFETENSORS_HEADER, err);

    if (!header)
        return error_at(err, "header");
    const bool ok = read_entries(file, header, in.at, reader_left(&in), err) && check_metadata(file->metadata, err) &&
                    check_tiling(file, in.at, reader_left(&in), err);

    json_decref(header);
    if (ok)
        qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    return ok;
}

bool safetensors_open(struct safetensors *file, const char *path, struct error *err)
{
    size_t size = 0;
    const void *map = file_map(path, &size, err);

    *file = (struct safetensors){ 0 };
    if (!map)
        return false;
    const bool ok = safetensors_of(file, map, size, err);

    file->map = map;
    return ok || error_at(err, "%s", path);
}

void safetensors_close(struct safetensors *file)
{
    for (size_t i = 0; i < file->count; i++)
        free(file->tensors[i].name);
    free(file->tensors);
    json_decref(file->metadata);
    if (file->map)
        file_unmap(file->map, file->size);
    *file = (struct safetensors){ 0 };
}

/* Writing ----------------------------------------------------------------------------------------------------------------- */

static int by_type_and_name(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a, *y = *(const struct tensor *const *)b;
    const size_t p = tensor_block_bytes(x->type), q = tensor_block_bytes(y->type);

    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static const char *dtype_name(enum tensor_type type)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (dtypes[i].type == type)
            return dtypes[i].name;
    return NULL;
}

static json_t *entry_of(const struct tensor *t, uint64_t begin)
{
    json_t *shape = json_array();

    for (unsigned i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(t->type), "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + t->size));
}

/* The header's JSON for tensors in file order, or NULL with `err`. */
static json_t *header_of(const struct tensor **order, size_t count, const json_t *metadata, struct error *err)
{
    json_t *header = json_object();
    uint64_t begin = 0;

    if (metadata)
        json_object_set(header, "__metadata__", (json_t *)metadata);
    for (size_t i = 0; i < count; i++) {
        if (json_object_get(header, order[i]->name)) {
            error_set(err, ERROR_DUPLICATE, NULL, "two tensors have the name %s", order[i]->name);
            json_decref(header);
            return NULL;
        }
        if (json_object_set_new(header, order[i]->name, entry_of(order[i], begin)) != 0) {
            error_set(err, ERROR_SYNTAX, NULL, "a tensor's name is not UTF-8");
            json_decref(header);
            return NULL;
        }
        begin += order[i]->size;
    }
    return header;
}

static bool check_tensors(const struct tensor *tensors, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!tensors[i].name)
            return error_set(err, ERROR_MISSING, NULL, "tensor %zu has no name", i);
        if (!dtype_name(tensors[i].type)) {
            error_set(err, ERROR_TYPE, "convert it to f32 first", "safetensors cannot hold %s",
                      tensor_type_name(tensors[i].type));
            return error_at(err, "%s", tensors[i].name);
        }
    }
    return true;
}

static bool write_file(const char *path, const json_t *header, const struct tensor **order, size_t count, struct error *err)
{
    struct buffer out = { 0 };
    char *text = json_dumps(header, JSON_COMPACT);

    if (!text)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a header");
    const size_t length = strlen(text), padded = (length + 7) / 8 * 8;

    buffer_add_u64(&out, padded);
    buffer_add(&out, text, length);
    for (size_t i = length; i < padded; i++)
        buffer_add_u8(&out, ' ');
    for (size_t i = 0; i < count; i++)
        buffer_add(&out, order[i]->data, order[i]->size);
    const bool ok = file_write(path, out.bytes, out.size, 0666, err);

    free(text);
    buffer_free(&out);
    return ok;
}

bool safetensors_write(const char *path, const struct tensor *tensors, size_t count, const json_t *metadata, struct error *err)
{
    if (!check_tensors(tensors, count, err))
        return error_at(err, "%s", path);
    const struct tensor **order = malloc((count + 1) * sizeof *order);

    if (!order)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++)
        order[i] = &tensors[i];
    qsort(order, count, sizeof *order, by_type_and_name);
    json_t *header = header_of(order, count, metadata, err);
    const bool ok = header && write_file(path, header, order, count, err);

    json_decref(header);
    free(order);
    return ok;
}
