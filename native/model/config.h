/* config.h - what a model is, as Hugging Face's config.json says it. */
#ifndef RONDO_MODEL_CONFIG_H
#define RONDO_MODEL_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"
#include "native/model/gguf.h"

/* The config.json that a GGUF file's metadata stands for; the caller owns it. NULL with `err`: missing (a key), range, unsupported
 * (architectures besides llama, qwen2, qwen3, qwen3moe, gemma2, gemma3, phi3, olmo2, olmoe and gpt2; experts in others than the two mixtures; rotary
 * scaling besides linear and lists of divisors; a rotary width besides the head's in others than phi3). A
 * binary32 of the file becomes the real of the same value. Output and embedding are tied when the file has no output.weight. */
json_t *config_from_gguf(const struct gguf *file, struct error *err);

/* How the values of a tensor stand in such a file.
 *     heads     0, or over how many heads rows are interleaved: row h*d + t*d/2 + p of Hugging Face (d rows a head, t 0 or 1) is row
 *               h*d + 2p + t of the file
 *     added     what the file has added to each value: 1 to the norms of gemma
 *     transposed   the file has the output's rows where Hugging Face has the input's (the matrices of gpt2)
 *     computed  no weight: the configuration has taken it up (rope_freqs.weight, phi3's factors); its name is empty */
struct config_form {
    unsigned heads;
    float added;
    bool transposed, computed;
};

/* How a tensor of such a file is called in Hugging Face's naming ("blk.3.attn_q.weight": "model.layers.3.self_attn.q_proj.weight"; one of all
 * experts: "model.layers.3.mlp.experts.*.up_proj.weight"), into `name` of `size` bytes. False with `err`: unsupported (a tensor without a counterpart). `config` is what config_from_gguf gave. */
bool config_name_from_gguf(const json_t *config, const char *gguf_name, char *name, size_t size, struct config_form *form,
                           struct error *err);

#endif
