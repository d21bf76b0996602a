/* gguf.h - the file format of llama.cpp, versions 2 and 3, little-endian, read as hostile input.
 *
 *     "GGUF" | u32 version | u64 tensors | u64 values
 *     values:   key, u32 type, value                         string = u64 length, bytes; array = u32 type, u64 count, elements
 *     tensors:  name, u32 rank, u64 dims[], u32 type, u64 offset         dims[0] varies fastest
 *     padding to general.alignment | data, each tensor at a multiple of the alignment
 *
 * Tensors get their dimensions here in the order of the other formats, the slowest first. Types: F32 F16 BF16 F64 I32 Q4_0 Q4_1
 * Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4; any other is refused by number. Tensors may not overlap. Names and keys are given once.
 */
#ifndef RONDO_MODEL_GGUF_H
#define RONDO_MODEL_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"
#include "native/text/tokenizer.h"

enum {
    GGUF_VALUES = 1 << 16,  /* most keys              */
    GGUF_TENSORS = 1 << 16, /* most tensors           */
    GGUF_NAME = 256,        /* most bytes of a name or key */
};

/* The type codes of values. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

struct gguf_value {
    char *key;           /* owned */
    enum gguf_type type; /* of the value, or of an array's elements */
    bool array;
    uint64_t count;       /* elements; 1 if no array */
    const uint8_t *bytes; /* the first element, in the file */
    size_t size;
};

struct gguf {
    struct gguf_value *values; /* owned, in bytewise key order */
    size_t value_count;
    struct tensor *tensors; /* owned with their names, in bytewise name order; data points into the file */
    size_t tensor_count;
    uint32_t version, alignment;
    const void *map; /* the file, mapped; NULL when the bytes are borrowed */
    size_t size;
};

/* Opens a file, or bytes that stay where they are. Undo with gguf_close, after a failure too. Errors (place: path, then key or
 * tensor): truncated, syntax, unsupported (version, byte order, tensor type, nested arrays), limit, duplicate, range (alignment,
 * offset), shape, conflict (overlap). */
bool gguf_open(struct gguf *file, const char *path, struct error *err);
bool gguf_of(struct gguf *file, const void *bytes, size_t size, struct error *err);
void gguf_close(struct gguf *file);

/* NULL when there is none. Borrowed. */
const struct gguf_value *gguf_find(const struct gguf *file, const char *key);
const struct tensor *gguf_tensor(const struct gguf *file, const char *name);

/* The value of a key; false when it is absent or of another kind (any integer type that fits is an integer, f32 and f64 and any
 * integer are reals). */
bool gguf_text(const struct gguf *file, const char *key, struct text_slice *text);
bool gguf_integer(const struct gguf *file, const char *key, int64_t *value);
bool gguf_real(const struct gguf *file, const char *key, double *value);
bool gguf_boolean(const struct gguf *file, const char *key, bool *value);

/* An array of strings as slices (borrowed from the file; free the array), or of integers as i32. NULL when the key is absent, of
 * another kind, or a number does not fit; then *count is 0. */
struct text_slice *gguf_texts(const struct gguf *file, const char *key, size_t *count);
int32_t *gguf_integers(const struct gguf *file, const char *key, size_t *count);

#endif
