/* tensor.h - a named array in memory, as model files, payloads and checkpoints hold it.
 *
 * Rows are contiguous: the last dimension varies fastest. Block types pack 32 consecutive values of the last dimension, those
 * called _k 256, so that dimension is a multiple of it. Layouts of the blocks are those of ggml (the others: native/model/blocks.h):
 *
 *     q8_0   f16 scale, 32 x i8                      34 bytes      value = scale * q
 *     q4_0   f16 scale, 16 bytes                     18 bytes      value = scale * (q - 8)
 *     q4_1   f16 scale, f16 minimum, 16 bytes        20 bytes      value = scale * q + minimum
 *                                                                  byte j holds values j (low half) and j + 16 (high half)
 *
 * The types of QLoRA (native/model/nf4.h) count their blocks through the whole tensor, whatever its rows, the last of them perhaps in part:
 *
 *     nf4    f32 scale, 32 bytes                     36 bytes      64 values: scale * value of the code
 *     nf4_dq before every 256 blocks f32 scale of scales, f32 mean of scales;                4.13 bits a value
 *            u8 code of the scale, 32 bytes          33 bytes      byte j holds values 2 j (high half) and 2 j + 1 (low half)
 *
 * The computing side (native/graph) knows f32, i32 and f64 only; native/model converts.
 */
#ifndef RONDO_TENSOR_TENSOR_H
#define RONDO_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { TENSOR_RANK = 8 };

/* The first three are the types of a graph; their numbers are on the wire and never change. */
enum tensor_type {
    TENSOR_F32,
    TENSOR_I32,
    TENSOR_F64,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_Q8_0,
    TENSOR_Q4_0,
    TENSOR_Q4_1,
    TENSOR_Q5_0,
    TENSOR_Q5_1,
    TENSOR_IQ4_NL,
    TENSOR_MXFP4,
    TENSOR_Q2_K,
    TENSOR_Q3_K,
    TENSOR_Q4_K,
    TENSOR_Q5_K,
    TENSOR_Q6_K,
    TENSOR_U8, /* bytes that a file's other tensors are told by, never computed with */
    TENSOR_NF4,
    TENSOR_NF4_DQ,
    TENSOR_TYPES
};

struct tensor {
    char *name; /* owned by who made the tensor; may be NULL */
    enum tensor_type type;
    unsigned rank; /* 0 is a scalar */
    uint64_t dims[TENSOR_RANK];
    void *data;  /* owned by who made the tensor, or a view into a file map */
    size_t size; /* bytes */
};

/* "f32", "q4_1". */
const char *tensor_type_name(enum tensor_type type);
/* By that name; false when there is none. */
bool tensor_type_find(const char *name, enum tensor_type *type);

/* Values in one block and bytes of it; plain types have blocks of one value. */
size_t tensor_block_values(enum tensor_type type);
size_t tensor_block_bytes(enum tensor_type type);

/* Where the block that begins with value `first`, a multiple of the block, lies in a tensor: bytes from its start. */
size_t tensor_block_place(enum tensor_type type, uint64_t first);

/* Number of values, and bytes of a whole tensor. Errors: shape (a block type whose last dimension is no multiple of the block, a
 * rank above TENSOR_RANK), limit (a product that overflows, or more than `limit` bytes). A dimension may be 0. */
bool tensor_measure(enum tensor_type type, unsigned rank, const uint64_t *dims, size_t limit, uint64_t *values, size_t *bytes,
                    struct error *err);

/* A new zeroed tensor that owns name and data, 64-byte aligned; freed by tensor_free. */
bool tensor_new(struct tensor *t, const char *name, enum tensor_type type, unsigned rank, const uint64_t *dims, size_t limit,
                struct error *err);
void tensor_free(struct tensor *t);

/* Values of a tensor whose sizes were measured before. */
uint64_t tensor_values(const struct tensor *t);

/* Whether a * b fits; the product in *out. */
bool tensor_multiply(uint64_t a, uint64_t b, uint64_t *out);

#endif
