/* language.h - the language model inside a folder of Hugging Face files: its configuration and the names of its tensors.
 *
 *     config.json of a model with other inputs too         { architectures: [Gemma3ForConditionalGeneration], text_config: { ... }, vision_config }
 *     language_config: its language part                   { architectures: [Gemma3ForCausalLM], model_type: gemma3_text, hidden_size, ... }
 *     language_name:   "model.language_model.layers.0..."   "model.layers.0..."       "model.vision_tower..."   left out
 *                      "h.0.ln_1.weight" of gpt2            "transformer.h.0.ln_1.weight"
 *
 * What is not of the language part (towers of other inputs, projectors, buffers) is left out: such a model reads text alone.
 */
#ifndef RONDO_MODEL_LANGUAGE_H
#define RONDO_MODEL_LANGUAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

/* Takes `config` and gives what stands for it: itself, or where it has a text_config that one, with the values that Hugging Face leaves out
 * because they are the defaults of its kind. NULL with `err`: unsupported (text_config of a kind that no model script knows). */
json_t *language_config(json_t *config, struct error *err);

/* What a file's tensor is called in the language model, into `name` of `size` bytes; false when it has no part in it. `config`: as
 * language_config gave it. */
bool language_name(const json_t *config, const char *file_name, char *name, size_t size);

/* Ends of a turn that generation_config.json names join those of the configuration, as a list "eos_token_id". */
void language_add_ends(json_t *config, const json_t *generation);

#endif
