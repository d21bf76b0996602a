/* adapter.h - a LoRA adapter as PEFT stores it: adapter_config.json and adapter_model.safetensors in one folder.
 *
 *     model.layers.0.self_attn.q_proj.lora_A  [r, in]    ->  base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight
 *     model.layers.0.self_attn.q_proj.lora_B  [out, r]   ->  base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight
 *     model.layers.0.self_attn.q_proj.lora_magnitude_vector [out], of DoRA alone, under that name behind base_model.model.
 *     model.norm.weight [embed], any tensor of a module that is trained whole (modules_to_save), likewise
 *
 * LoRA: y = Wx + s B A x; DoRA: y = m / ||W + s B A|| (Wx + s B A x), norms of rows. s = alpha / r, of rsLoRA alpha / sqrt(r).
 * Formats: huggingface/peft, PeftModel.save_pretrained.
 */
#ifndef RONDO_MODEL_ADAPTER_H
#define RONDO_MODEL_ADAPTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

enum { ADAPTER_RANK_MOST = 1024, ADAPTER_PATTERNS_MOST = 4096 };

#define ADAPTER_ALPHA_MOST (65536.0 * 32) /* of a plain LoRA that was an rsLoRA of the greatest alpha and rank */

/* What adapter_config.json says of the whole adapter. */
struct adapter_kind {
    unsigned rank;
    double alpha;
    bool root; /* rsLoRA: divided by the rank's square root (use_rslora) */
    bool dora;
    json_t *ranks, *alphas; /* owned: { end of a module's name: number } of others (rank_pattern, alpha_pattern); NULL: none */
    json_t *whole;          /* owned: [ end of a module's name ] of those trained whole (modules_to_save); NULL: none */
    bool tied;              /* a copy of an embedding serves as the head, too, where the base has it so (ensure_weight_tying) */
};

void adapter_kind_free(struct adapter_kind *kind);

/* Rank and alpha of one module, without patterns: for each that of the longest name that is the module's or an end of it behind a dot, else the
 * adapter's own. `length` of the name without its part. */
struct adapter_kind adapter_kind_of(const struct adapter_kind *kind, const char *module, size_t length);

/* Takes two objects { end of a name: number } over into `kind`; either may be NULL. With `first`, as PEFT has it, a name counts for nothing where an
 * earlier one is an end of it. Errors, the place "rank_pattern": type, range, unsupported (a regular expression). */
bool adapter_patterns(struct adapter_kind *kind, const json_t *ranks, const json_t *alphas, bool first, struct error *err);

/* s: what the product of B and A is multiplied by. */
double adapter_scale(const struct adapter_kind *kind);

struct adapter {
    struct adapter_kind kind;
    const char *base;             /* name or path of the base model, for base_model_name_or_path; NULL for none; borrowed */
    const struct tensor *tensors; /* f32, named as above, with or without ".weight", in any order; axes besides the rank's
                                     (first of A, last of B) are taken together; borrowed */
    size_t count;
    const char
        *head; /* of `tensors`, the embedding that is the base's head as well: it is written as lm_head.weight, too, since PEFT
                         has two modules of it; NULL: none; borrowed */
};

/* The parts of a module: what a name ends in. Of a module that is trained whole each of its own tensors is one. */
enum adapter_part { ADAPTER_A, ADAPTER_B, ADAPTER_MAGNITUDE, ADAPTER_WHOLE, ADAPTER_NONE };

/* The part that a tensor's name tells, and how long its module's name is (base_model.model. included where it is there). ADAPTER_WHOLE: any name
 * behind a dot that has no ".lora_"; whether the adapter has such modules, its kind says. */
enum adapter_part adapter_part_of(const char *name, size_t *module);

/* Writes the two files into `folder`, which is made if missing. Errors, the place naming the tensor: unsupported (a name that is
 * none of the parts, or of a whole module where kind.whole is NULL), missing (a module without one of its parts), shape (rank), io. */
bool adapter_write(const char *folder, const struct adapter *adapter, struct error *err);

/* A folder's adapter_config.json. Errors: missing, type, range (the rank is 1 to 1024, alpha above 0 and at most 65536 * 32), unsupported
 * (another peft_type, and by name what Rondo has not: biases, single tokens, further variants), those of adapter_patterns. Free with
 * adapter_kind_free, after a failure too. */
bool adapter_read_kind(const char *folder, struct adapter_kind *kind, struct error *err);

/* The modules that a folder's adapter_model.safetensors has factors for, or with `whole` copies, each once, in order of name, without
 * base_model.model.; new reference. NULL with `err`: unknown (a name that is none of the parts), those of safetensors_open. */
json_t *adapter_modules(const char *folder, bool whole, struct error *err);

/* The adapter as a run spec describes one: { kind, rank, alpha, scaling?, rank_pattern?, alpha_pattern?, targets: [ modules ], modules_to_save?: [ modules ] }, alpha
 * perhaps with a fraction; new reference. NULL with `err`: those of both above, and unknown (whole modules of which adapter_config.json says nothing). */
json_t *adapter_describe(const char *folder, struct error *err);

/* Fills f32 tensors, named and shaped as for adapter_write, from a folder's adapter_model.safetensors: its tensors and these must be the
 * same. `tied`: the base's head is its embedding (adapter_head.h). Errors: unknown (a tensor of the file that none of these is), missing (the
 * reverse), shape, non_finite, those of safetensors_open, adapter_read_kind and adapter_head_check. */
bool adapter_read(const char *folder, struct tensor *tensors, size_t count, bool tied, struct error *err);

#endif
