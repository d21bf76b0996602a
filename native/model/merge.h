/* merge.h - a model with an adapter added into its weights, as new files.
 *
 *     W + s B A, of DoRA in its rows' norms: adapter_add.h
 *
 * A folder gives a folder (model.safetensors and copies of the small files beside it), a GGUF file a GGUF file with the same keys.
 */
#ifndef RONDO_MODEL_MERGE_H
#define RONDO_MODEL_MERGE_H

#include <stdbool.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

/* Merges the PEFT folder `adapter` (adapter.h) into the model at `base` and writes `out`. Matrices are stored as `type`: f32, f16 or
 * bf16 in a folder; f16, q8_0 or q4_0 in a GGUF file, where vectors stay f32 and matrices whose rows do not divide into blocks become
 * f16. Errors: unsupported (a type or an ending that the base's format has not), unknown (the adapter names a module that the model
 * lacks: it belongs to another), missing, shape, non_finite, those of model_open and of writing. */
bool merge_write(const char *base, const char *adapter, const char *out, enum tensor_type type, struct error *err);

/* Writes the adapter by itself as llama.cpp reads it (--lora): a GGUF file of general.type "adapter", whose tensors "X.lora_a" [rank, in] and
 * "X.lora_b" [out, rank] are named and ordered as those of the GGUF file `base`, as f32; adapter.lora.alpha is s r. Errors as above; unsupported: a DoRA. */
bool merge_write_adapter(const char *base, const char *adapter, const char *out, struct error *err);

#endif
