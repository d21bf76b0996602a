/* safetensors.h - the file format of Hugging Face weights, read as hostile input and written.
 *
 *     u64 N | N bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {}} | data
 *
 * Read: the tensors tile the data exactly, without hole or overlap; sizes follow from dtype and shape; every name is given once.
 * The dtypes are F64 F32 F16 BF16 I32 U8; any other is refused by name.
 */
#ifndef RONDO_MODEL_SAFETENSORS_H
#define RONDO_MODEL_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

enum {
    SAFETENSORS_HEADER = 100000000, /* most bytes of the JSON, as the reference reader */
    SAFETENSORS_TENSORS = 1 << 20,
};

struct safetensors {
    struct tensor *tensors; /* owned with their names, `count`, in bytewise name order; data points into the file */
    size_t count;
    json_t *metadata; /* owned; an object of strings, or NULL */
    const void *map;  /* the file, mapped; NULL when the bytes are borrowed */
    size_t size;
};

/* Opens a file, or bytes that stay where they are. Undo with safetensors_close, after a failure too. Errors (place: path, then
 * tensor): truncated, syntax, limit, type, unsupported, shape, range (offsets), conflict (hole or overlap), duplicate. */
bool safetensors_open(struct safetensors *file, const char *path, struct error *err);
bool safetensors_of(struct safetensors *file, const void *bytes, size_t size, struct error *err);
void safetensors_close(struct safetensors *file);

/* Writes tensors of type f32, f16, bf16, f64, i32 or u8, named, in any order, atomically (native/base/file.h). In the file they stand by
 * falling size of their type, then by name; `metadata` (borrowed, may be NULL) becomes __metadata__. Equal tensors give equal bytes.
 * Errors: type, missing (a name), duplicate, io. */
bool safetensors_write(const char *path, const struct tensor *tensors, size_t count, const json_t *metadata, struct error *err);

#endif
