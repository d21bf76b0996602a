/* adapter_add.h - an adapter's file, and its sums with the weights of a base, one by one.
 *
 *     W + s B A                          LoRA; the products are summed over the rank in ascending order, each step rounded to binary32
 *     m / ||W + s B A|| (W + s B A)      DoRA; a row's norm is the root of its squares' sum in binary64, rounded to binary32 once
 */
#ifndef RONDO_MODEL_ADAPTER_ADD_H
#define RONDO_MODEL_ADAPTER_ADD_H

#include "native/model/adapter.h"
#include "native/model/safetensors.h"

struct adapter_file {
    struct adapter_kind kind;
    struct safetensors file;
    bool transposed; /* the base's weights are [in, out], as gpt2's are; set after opening */
    size_t used;     /* tensors of the file that found their weight */
};

/* Opens a PEFT folder. Undo with adapter_file_close, after a failure too. Errors: those of adapter_read_kind and safetensors_open. */
bool adapter_file_open(struct adapter_file *adapter, const char *folder, struct error *err);
void adapter_file_close(struct adapter_file *adapter);

/* The part for the weight "X.weight"; NULL when the file has none. Borrowed. */
const struct tensor *adapter_file_part(const struct adapter_file *adapter, const char *weight, enum adapter_part part);

/* The copy of the tensor of that name, of a module that was trained whole; NULL when the file has none. Borrowed. */
const struct tensor *adapter_file_whole(const struct adapter_file *adapter, const char *name);

/* Whether the file has parts for the weight `t`; false with `err`: missing (not all of them), shape. */
bool adapter_file_has(const struct adapter_file *adapter, const struct tensor *t, bool *has, struct error *err);

/* The values of a part; the caller frees them. NULL with `err`: non_finite, memory. */
float *adapter_file_values(const struct tensor *part, struct error *err);

/* Adds the adapter into the values of `t`, where the file has parts for it, or puts the file's copy in their place, and counts what it took as used. Errors as above. */
bool adapter_file_add(struct adapter_file *adapter, const struct tensor *t, float *weight, struct error *err);

/* The norm of a row of `count` values, one every `stride`: as above. */
float adapter_row_norm(const float *row, uint64_t count, uint64_t stride);

#endif
