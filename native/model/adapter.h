/* adapter.h - a LoRA adapter as PEFT stores it: adapter_config.json and adapter_model.safetensors in one folder.
 *
 *     model.layers.0.self_attn.q_proj.lora_A  [r, in]    ->  base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight
 *     model.layers.0.self_attn.q_proj.lora_B  [out, r]   ->  base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight
 *
 * y = Wx + (alpha / r) B A x. Formats: huggingface/peft, PeftModel.save_pretrained.
 */
#ifndef RONDO_MODEL_ADAPTER_H
#define RONDO_MODEL_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

struct adapter {
    unsigned rank;
    double alpha;
    const char *base;             /* name or path of the base model, for base_model_name_or_path; NULL for none; borrowed */
    const struct tensor *tensors; /* f32, named as above, with or without ".weight", in any order; axes besides the rank's
                                     (first of A, last of B) are taken together; borrowed */
    size_t count;
};

/* Writes the two files into `folder`, which is made if missing. Errors, the place naming the tensor: unsupported (a name that is
 * neither an A nor a B), missing (an A without its B, or the reverse), shape (rank), io. */
bool adapter_write(const char *folder, const struct adapter *adapter, struct error *err);

/* Rank and alpha of a folder's adapter_config.json. Errors: missing, type, range, unsupported (what is no plain LoRA: another peft_type,
 * rslora, dora). The alpha that is returned is a whole number: others are refused. */
bool adapter_read_config(const char *folder, unsigned *rank, unsigned *alpha, struct error *err);

/* Fills f32 tensors, named and shaped as for adapter_write, from a folder's adapter_model.safetensors. A pair that the file has not got
 * becomes 0. Errors: unknown (a tensor of the file that none of these is), shape, non_finite, those of safetensors_open. */
bool adapter_read(const char *folder, struct tensor *tensors, size_t count, struct error *err);

#endif
