/* quantise.h - a model's folder with its matrices as NF4, as bitsandbytes and transformers read it: the base of a QLoRA run. */
#ifndef RONDO_MODEL_QUANTISE_H
#define RONDO_MODEL_QUANTISE_H

#include <stdbool.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

/* Whether the weight of that name and shape becomes 4-bit: matrices "X.weight" but embeddings and the head (embed, wte, wpe, lm_head in the
 * name), as transformers does. */
bool quantise_takes(const struct tensor *t);

/* Writes the folder `base` anew into the folder `out`: those as `type`, nf4 or nf4_dq (native/model/nf4.h), the rest as it is stored; "quantization_config"
 * in config.json says so. Experts are quantised each by itself. Sets *matrices, how many became 4-bit. Errors: unsupported (a GGUF file, another
 * type, a base that is quantised already), missing (no matrix), non_finite, those of model_open and of writing. */
bool quantise_write(const char *base, const char *out, enum tensor_type type, size_t *matrices, struct error *err);

#endif
