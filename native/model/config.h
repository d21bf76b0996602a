/* config.h - what a model is, as Hugging Face's config.json says it. */
#ifndef RONDO_MODEL_CONFIG_H
#define RONDO_MODEL_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"
#include "native/model/gguf.h"

/* The config.json that a GGUF file's metadata stands for; the caller owns it. NULL with `err`: missing (a key), range, unsupported
 * (architectures besides llama; experts; rotary scaling besides linear; a rotary width besides the head's). A binary32 of the file
 * becomes the real of the same value. Output and embedding are tied when the file has no output.weight. */
json_t *config_from_gguf(const struct gguf *file, struct error *err);

/* How a tensor of such a file is called in Hugging Face's naming ("blk.3.attn_q.weight": "model.layers.3.self_attn.q_proj.weight"),
 * into `name` of `size` bytes. *heads: 0, or the number of heads over which llama.cpp interleaved its rows: row h*d + t*d/2 + p of
 * Hugging Face (d rows a head, t 0 or 1) is row h*d + 2p + t of the file. False with `err`: unsupported (a tensor without a
 * counterpart). `config` is what config_from_gguf gave. */
bool config_name_from_gguf(const json_t *config, const char *gguf_name, char *name, size_t size, unsigned *heads,
                           struct error *err);

#endif
