/* source.h - one model, whatever it is stored in: a folder of Hugging Face files, or a GGUF file.
 *
 *     folder: config.json, generation_config.json, model.safetensors (or model.safetensors.index.json with its parts), tokenizer.json,
 *             tokenizer_config.json, chat_template.jinja
 *             4-bit weights as bitsandbytes lays them out are one tensor each, nf4 or nf4_dq (native/model/bitsandbytes.h)
 *     *.gguf: everything in one; names, row order and configuration are turned into Hugging Face's
 *
 * A source never changes after opening and may be read by several threads. All its bytes are hostile.
 */
#ifndef RONDO_MODEL_SOURCE_H
#define RONDO_MODEL_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"
#include "native/text/tokenizer.h"

struct model_source;

/* A folder without weights opens too (its tensor count is 0): configuration and tokenizer are enough to start from scratch.
 * NULL with `err`, the place starting with the file. */
struct model_source *model_open(const char *path, struct error *err);
void model_close(struct model_source *model);

/* "gguf" or "safetensors". */
const char *model_format(const struct model_source *model);

/* config.json, or the one that stands for a GGUF file's metadata; of models with other inputs that of the language part (language.h). Its
 * eos_token_id holds the ends that generation_config.json names, too. Borrowed. */
const json_t *model_config(const struct model_source *model);

/* generation_config.json, or NULL. Borrowed. */
const json_t *model_generation(const struct model_source *model);

/* Whether config.json asks for a head of its own that the files have not: the embedding serves instead. */
bool model_head_missing(const struct model_source *model);

/* The tensors in bytewise order of their Hugging Face names: name, shape and stored type. Their data is the stored bytes, rows
 * perhaps in another order, of 4-bit weights NULL: read values with model_read_tensor. Borrowed. */
size_t model_tensor_count(const struct model_source *model);
const struct tensor *model_tensor(const struct model_source *model, size_t index);
const struct tensor *model_find(const struct model_source *model, const char *name); /* NULL when there is none */

/* All values of a tensor as f32, row-major, in Hugging Face's row order, into `out` (tensor_values(t) floats). Errors: missing (with
 * the nearest name), non_finite. */
bool model_read_tensor(const struct model_source *model, const char *name, float *out, struct error *err);

/* The same values without converting them, in Hugging Face's row order, of type *type: the stored bytes themselves, or for rows in another
 * order and 4-bit weights a copy, which is then *owned as well (free; else NULL). Every value is finite, checked as by model_read_tensor. */
bool model_read_stored(const struct model_source *model, const char *name, const void **bytes, void **owned,
                       enum tensor_type *type, struct error *err);

/* A new tokenizer of the model (tokenizer_free). NULL with `err`. */
struct tokenizer *model_tokenizer(const struct model_source *model, struct error *err);

/* From a file by itself: a GGUF file's vocabulary, or what tokenizer_read_file reads. */
struct tokenizer *model_tokenizer_file(const char *path, struct error *err);

/* The text of the chat template, zero-terminated, or NULL when the model has none. Of several the one called "default". Borrowed. */
const char *model_chat_template(const struct model_source *model);

/* What templates may refer to: { "bos_token", "eos_token", "pad_token", "unk_token" }, those the model names. Borrowed. */
const json_t *model_template_variables(const struct model_source *model);

/* What `rondo model inspect` prints; the caller owns it. NULL with `err` when the tokenizer cannot be read.
 *
 *     { "format": "gguf", "architecture": "LlamaForCausalLM", "parameters": 134515008, "bytes": 98362432,
 *       "types": { "f32": 61, "q4_1": 210, "q8_0": 1 }, "chat_template": true, "head_missing": false, "config": { ... },
 *       "tokenizer": { "entries": 49152, "special": 17, "missing_bytes": [4, 6, ...] },
 *       "tensors": [ { "name", "type", "shape", "bytes" } ... ] }
 *
 * "missing_bytes": bytes that no token stands for, so that text with them cannot be encoded. "tokenizer" is null when the
 * folder has none. */
json_t *model_inspect(const struct model_source *model, struct error *err);

#endif
