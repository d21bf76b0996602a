#include "native/model/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Architectures ------------------------------------------------------------------------------------------------------------ */

/* Block names: the file's, Hugging Face's ('*': of all experts in one tensor); and the configuration's number of heads over which rows of such
 * a tensor are interleaved. */
struct block_name {
    const char *gguf, *hf, *heads;
};

#define PROJECTIONS                                                                                                              \
    { "attn_v", "self_attn.v_proj", NULL }, { "attn_output", "self_attn.o_proj", NULL },                                         \
        { "attn_norm", "input_layernorm", NULL }, { "ffn_gate", "mlp.gate_proj", NULL }, { "ffn_up", "mlp.up_proj", NULL },      \
    {                                                                                                                            \
        "ffn_down", "mlp.down_proj", NULL                                                                                        \
    }
#define APART                                                                                                                    \
    { "attn_q", "self_attn.q_proj", NULL },                                                                                      \
    {                                                                                                                            \
        "attn_k", "self_attn.k_proj", NULL                                                                                       \
    }
#define NORMED                                                                                                                   \
    { "attn_q_norm", "self_attn.q_norm", NULL },                                                                                 \
    {                                                                                                                            \
        "attn_k_norm", "self_attn.k_norm", NULL                                                                                  \
    }

static const struct block_name of_llama[] = { PROJECTIONS,
                                              { "attn_q", "self_attn.q_proj", "num_attention_heads" },
                                              { "attn_k", "self_attn.k_proj", "num_key_value_heads" },
                                              { "ffn_norm", "post_attention_layernorm", NULL },
                                              { NULL, NULL, NULL } };
static const struct block_name of_qwen2[] = {
    PROJECTIONS, APART, { "ffn_norm", "post_attention_layernorm", NULL }, { NULL, NULL, NULL }
};
static const struct block_name of_qwen3[] = {
    PROJECTIONS, APART, NORMED, { "ffn_norm", "post_attention_layernorm", NULL }, { NULL, NULL, NULL }
};
static const struct block_name of_gemma[] = { PROJECTIONS,
                                              APART,
                                              NORMED,
                                              { "post_attention_norm", "post_attention_layernorm", NULL },
                                              { "ffn_norm", "pre_feedforward_layernorm", NULL },
                                              { "post_ffw_norm", "post_feedforward_layernorm", NULL },
                                              { NULL, NULL, NULL } };

static const struct block_name of_phi3[] = { { "attn_qkv", "self_attn.qkv_proj", NULL },
                                             { "attn_output", "self_attn.o_proj", NULL },
                                             { "attn_norm", "input_layernorm", NULL },
                                             { "ffn_up", "mlp.gate_up_proj", NULL },
                                             { "ffn_down", "mlp.down_proj", NULL },
                                             { "ffn_norm", "post_attention_layernorm", NULL },
                                             { NULL, NULL, NULL } };
static const struct block_name of_olmo2[] = { PROJECTIONS,
                                              APART,
                                              NORMED,
                                              { "post_attention_norm", "post_attention_layernorm", NULL },
                                              { "post_ffw_norm", "post_feedforward_layernorm", NULL },
                                              { NULL, NULL, NULL } };
static const struct block_name of_experts[] = { APART,
                                                NORMED,
                                                { "attn_v", "self_attn.v_proj", NULL },
                                                { "attn_output", "self_attn.o_proj", NULL },
                                                { "attn_norm", "input_layernorm", NULL },
                                                { "ffn_norm", "post_attention_layernorm", NULL },
                                                { "ffn_gate_inp", "mlp.gate", NULL },
                                                { "ffn_gate_exps", "mlp.experts.*.gate_proj", NULL },
                                                { "ffn_up_exps", "mlp.experts.*.up_proj", NULL },
                                                { "ffn_down_exps", "mlp.experts.*.down_proj", NULL },
                                                { NULL, NULL, NULL } };
static const struct block_name of_gpt2[] = { { "attn_qkv", "attn.c_attn", NULL },
                                             { "attn_output", "attn.c_proj", NULL },
                                             { "attn_norm", "ln_1", NULL },
                                             { "ffn_norm", "ln_2", NULL },
                                             { "ffn_up", "mlp.c_fc", NULL },
                                             { "ffn_down", "mlp.c_proj", NULL },
                                             { NULL, NULL, NULL } };

static const struct architecture {
    const char *gguf, *model_type, *name, *activation;
    const struct block_name *blocks;
    float norms; /* what the file adds to the weights of norms */
} architectures[] = {
    { "llama", "llama", "LlamaForCausalLM", "silu", of_llama, 0 },
    { "qwen2", "qwen2", "Qwen2ForCausalLM", "silu", of_qwen2, 0 },
    { "qwen3", "qwen3", "Qwen3ForCausalLM", "silu", of_qwen3, 0 },
    { "gemma2", "gemma2", "Gemma2ForCausalLM", "gelu_pytorch_tanh", of_gemma, 1 },
    { "gemma3", "gemma3_text", "Gemma3ForCausalLM", "gelu_pytorch_tanh", of_gemma, 1 },
    { "phi3", "phi3", "Phi3ForCausalLM", "silu", of_phi3, 0 },
    { "olmo2", "olmo2", "Olmo2ForCausalLM", "silu", of_olmo2, 0 },
    { "gpt2", "gpt2", "GPT2LMHeadModel", "gelu_new", of_gpt2, 0 },
    { "qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", "silu", of_experts, 0 },
    { "olmoe", "olmoe", "OlmoeForCausalLM", "silu", of_experts, 0 },
};

static bool is_gemma(const struct architecture *a)
{
    return a->blocks == of_gemma;
}

/* The architecture of a file, or of the configuration made from one. */
static const struct architecture *architecture_of(const struct gguf *file, struct error *err)
{
    struct text_slice name;
    size_t i = 0;

    if (!gguf_text(file, "general.architecture", &name)) {
        error_set(err, ERROR_MISSING, NULL, "the file has no general.architecture");
        return NULL;
    }
    for (; i < sizeof architectures / sizeof *architectures; i++)
        if (strlen(architectures[i].gguf) == name.size && memcmp(architectures[i].gguf, name.bytes, name.size) == 0)
            return &architectures[i];
    error_set(
        err, ERROR_UNSUPPORTED,
        "GGUF files of llama, qwen2, qwen3, qwen3moe, gemma2, gemma3, phi3, olmo2, olmoe and gpt2 are read; take the model's "
        "safetensors",
        "architecture %.*s", (int)(name.size < 40 ? name.size : 40), name.bytes);
    return NULL;
}

static const struct architecture *architecture_named(const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));

    for (size_t i = 0; type && i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(architectures[i].model_type, type) == 0)
            return &architectures[i];
    return architectures;
}

/* Metadata to config.json -------------------------------------------------------------------------------------------------- */

/* What is read from: keys of an architecture begin with its name ("gemma3.block_count"). */
struct reading {
    const struct gguf *file;
    const struct architecture *a;
    json_t *config;
    int64_t rotary; /* width of a head that is rotated */
    char key[96];
};

static const char *key_of(struct reading *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->a->gguf, name);
    return r->key;
}

static bool has(struct reading *r, const char *name)
{
    return gguf_find(r->file, key_of(r, name)) != NULL;
}

static bool need_integer(struct reading *r, const char *name, int64_t *value, struct error *err)
{
    const char *key = key_of(r, name);

    if (!gguf_find(r->file, key))
        return error_set(err, ERROR_MISSING, NULL, "the file has no %s", key);
    if (!gguf_integer(r->file, key, value))
        return error_set(err, ERROR_TYPE, "layers of different sizes are not offered", "%s is no single integer", key);
    if (*value < 1 || *value > 1 << 24)
        return error_set(err, ERROR_RANGE, NULL, "%s is %" PRId64 ", 1 to %d are allowed", key, *value, 1 << 24);
    return true;
}

static bool put_integer(struct reading *r, const char *field, const char *name, struct error *err)
{
    int64_t value;

    if (!need_integer(r, name, &value, err))
        return false;
    json_object_set_new(r->config, field, json_integer(value));
    return true;
}

static bool put_real(struct reading *r, const char *field, const char *name, struct error *err)
{
    double value;

    if (!gguf_real(r->file, key_of(r, name), &value))
        return error_set(err, ERROR_MISSING, NULL, "the file has no number %s", r->key);
    if (!(value > 0 && value < 1e30))
        return error_set(err, ERROR_RANGE, NULL, "%s is %g", r->key, value);
    json_object_set_new(r->config, field, json_real(value));
    return true;
}

static void put_token(struct reading *r, const char *field, const char *key)
{
    int64_t id;

    if (gguf_integer(r->file, key, &id) && id >= 0)
        json_object_set_new(r->config, field, json_integer(id));
}

static int64_t integer_of(const json_t *config, const char *name)
{
    return json_integer_value(json_object_get(config, name));
}

/* Heads: their number, that of key heads (the same by default), and their width. */
static bool put_heads(struct reading *r, struct error *err)
{
    const int64_t heads = integer_of(r->config, "num_attention_heads"), width = integer_of(r->config, "hidden_size");
    int64_t kv = heads, dim = width / heads;

    if (has(r, "attention.head_count_kv") && !need_integer(r, "attention.head_count_kv", &kv, err))
        return false;
    if (has(r, "attention.key_length") && !need_integer(r, "attention.key_length", &dim, err))
        return false;
    if (heads % kv != 0)
        return error_set(err, ERROR_RANGE, NULL, "%" PRId64 " heads do not share %" PRId64 " key heads", heads, kv);
    if (dim < 2 || dim % 2 != 0)
        return error_set(err, ERROR_RANGE, NULL, "heads of width %" PRId64, dim);
    r->rotary = dim;
    if (has(r, "rope.dimension_count") && !need_integer(r, "rope.dimension_count", &r->rotary, err))
        return false;
    if (r->rotary != dim && (r->a->blocks != of_phi3 || r->rotary > dim || r->rotary % 2 != 0))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "rotary width %" PRId64 " in heads of %" PRId64, r->rotary, dim);
    if (r->rotary != dim)
        json_object_set_new(r->config, "partial_rotary_factor", json_real((double)r->rotary / (double)dim));
    json_object_set_new(r->config, "num_key_value_heads", json_integer(kv));
    json_object_set_new(r->config, "head_dim", json_integer(dim));
    return true;
}

#define FREQUENCIES "rope_freqs.weight"
#define LONG        "rope_factors_long.weight"
#define SHORT       "rope_factors_short.weight"

/* A divisor for each pair, of a tensor in binary32. The caller owns the list; NULL with `err`. */
static json_t *divisors(struct reading *r, const char *name, struct error *err)
{
    const struct tensor *t = gguf_tensor(r->file, name);
    const int64_t pairs = r->rotary / 2;
    json_t *list = json_array();
    bool ok = (t && t->type == TENSOR_F32 && t->rank == 1 && t->dims[0] == (uint64_t)pairs) ||
              error_set(err, ERROR_SHAPE, NULL, "%s holds no %" PRId64 " binary32 numbers", name, pairs);

    for (int64_t i = 0; ok && i < pairs; i++) {
        float divisor;

        memcpy(&divisor, (const uint8_t *)t->data + (size_t)i * sizeof divisor, sizeof divisor);
        ok = (divisor >= 1e-6f && divisor <= 1e6f) ||
             error_set(err, ERROR_RANGE, NULL, "%s: number %" PRId64 " is %g", name, i, (double)divisor);
        json_array_append_new(list, json_real((double)divisor));
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* What llama.cpp makes of Llama 3's scaling: a divisor for each pair, the same for every length. LongRoPE with one list says that. */
static bool put_divisors(struct reading *r, struct error *err)
{
    json_t *list = divisors(r, FREQUENCIES, err);

    if (!list)
        return false;
    json_object_set_new(r->config, "rope_scaling",
                        json_pack("{s:s, s:i, s:i, s:O, s:o, s:O}", "rope_type", "longrope", "factor", 1, "attention_factor", 1,
                                  "short_factor", list, "long_factor", list, "original_max_position_embeddings",
                                  json_object_get(r->config, "max_position_embeddings")));
    return true;
}

/* LongRoPE of phi3: a list of divisors for sequences within the original length, and one for longer ones. */
static bool put_longrope(struct reading *r, struct error *err)
{
    int64_t original;
    double attention = 1;
    json_t *near = divisors(r, SHORT, err), *far = near ? divisors(r, LONG, err) : NULL;
    const bool ok = far && need_integer(r, "rope.scaling.original_context_length", &original, err);

    if (!ok) {
        json_decref(near);
        json_decref(far);
        return false;
    }
    gguf_real(r->file, key_of(r, "rope.scaling.attn_factor"), &attention);
    json_object_set_new(r->config, "rope_scaling",
                        json_pack("{s:s, s:f, s:o, s:o, s:I}", "rope_type", "longrope", "attention_factor", attention,
                                  "short_factor", near, "long_factor", far, "original_max_position_embeddings",
                                  (json_int_t)original));
    return true;
}

static bool put_rotary(struct reading *r, struct error *err)
{
    struct text_slice kind;
    double factor;

    json_object_set_new(r->config, "rope_theta", json_real(10000));
    if (has(r, "rope.freq_base") && !put_real(r, "rope_theta", "rope.freq_base", err))
        return false;
    if (gguf_tensor(r->file, FREQUENCIES))
        return put_divisors(r, err);
    if (gguf_tensor(r->file, LONG) || gguf_tensor(r->file, SHORT))
        return put_longrope(r, err);
    if (!gguf_text(r->file, key_of(r, "rope.scaling.type"), &kind) || (kind.size == 4 && memcmp(kind.bytes, "none", 4) == 0))
        return true;
    if (kind.size != 6 || memcmp(kind.bytes, "linear", 6) != 0 || !gguf_real(r->file, key_of(r, "rope.scaling.factor"), &factor))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "rotary scaling %.*s", (int)(kind.size < 40 ? kind.size : 40), kind.bytes);
    json_object_set_new(r->config, "rope_scaling", json_pack("{s:s, s:f}", "rope_type", "linear", "factor", factor));
    return true;
}

/* Queries are scaled by the width of a head, but in the 27 B models by hidden size over heads (as llama.cpp tells them: by their layers).
 * Scaled positions are those of the layers without windows. */
static bool put_gemma(struct reading *r, struct error *err)
{
    const bool two = strcmp(r->a->gguf, "gemma2") == 0;
    const int64_t layers = integer_of(r->config, "num_hidden_layers"), big = two ? 46 : 62;
    const int64_t heads = integer_of(r->config, "num_attention_heads");

    json_object_set_new(r->config, "query_pre_attn_scalar",
                        layers == big ? json_integer(integer_of(r->config, "hidden_size") / heads)
                                      : json_incref(json_object_get(r->config, "head_dim")));
    json_object_set_new(r->config, "rope_local_base_freq", json_real(10000));
    return put_integer(r, "sliding_window", "attention.sliding_window", err) &&
           (!has(r, "rope.freq_base_swa") || put_real(r, "rope_local_base_freq", "rope.freq_base_swa", err)) &&
           (!has(r, "attn_logit_softcapping") || put_real(r, "attn_logit_softcapping", "attn_logit_softcapping", err)) &&
           (!has(r, "final_logit_softcapping") || put_real(r, "final_logit_softcapping", "final_logit_softcapping", err));
}

/* Which of olmoe's and qwen3's are alike: OLMoE leaves the weights of the chosen experts as they are, and has one width. */
static bool put_experts(struct reading *r, struct error *err)
{
    const bool own = has(r, "expert_feed_forward_length");

    json_object_set_new(r->config, "norm_topk_prob", json_boolean(strcmp(r->a->gguf, "olmoe") != 0));
    return put_integer(r, "num_experts", "expert_count", err) &&
           put_integer(r, "num_experts_per_tok", "expert_used_count", err) &&
           (!own || put_integer(r, "moe_intermediate_size", "expert_feed_forward_length", err));
}

/* A window of 0 is none. */
static bool put_window(struct reading *r, struct error *err)
{
    int64_t window = 0;

    gguf_integer(r->file, key_of(r, "attention.sliding_window"), &window);
    if (window > 0 && r->a->blocks == of_olmo2)
        return error_set(err, ERROR_UNSUPPORTED, "take the model's safetensors", "%s: windows", r->key);
    return window <= 0 || put_integer(r, "sliding_window", "attention.sliding_window", err);
}

/* Hugging Face has other names for the sizes of gpt2, beside which the common ones stand. */
static bool put_gpt2(struct reading *r, struct error *err)
{
    return put_integer(r, "n_embd", "embedding_length", err) && put_integer(r, "n_layer", "block_count", err) &&
           put_integer(r, "n_head", "attention.head_count", err) && put_integer(r, "n_inner", "feed_forward_length", err) &&
           put_integer(r, "n_positions", "context_length", err) &&
           put_real(r, "layer_norm_epsilon", "attention.layer_norm_epsilon", err) &&
           json_object_set_new(r->config, "activation_function", json_string(r->a->activation)) == 0;
}

static bool put_sizes(struct reading *r, struct error *err)
{
    const struct tensor *embedding = gguf_tensor(r->file, "token_embd.weight");

    if (!embedding || embedding->rank != 2)
        return error_set(err, ERROR_MISSING, NULL, "the file has no matrix token_embd.weight");
    json_object_set_new(r->config, "vocab_size", json_integer((json_int_t)embedding->dims[0]));
    return put_integer(r, "hidden_size", "embedding_length", err) && put_integer(r, "num_hidden_layers", "block_count", err) &&
           put_integer(r, "num_attention_heads", "attention.head_count", err) && put_heads(r, err) &&
           put_integer(r, "intermediate_size", "feed_forward_length", err) &&
           put_integer(r, "max_position_embeddings", "context_length", err) &&
           (r->a->blocks == of_gpt2
                ? put_gpt2(r, err)
                : put_real(r, "rms_norm_eps", "attention.layer_norm_rms_epsilon", err) && put_rotary(r, err)) &&
           ((r->a->blocks != of_phi3 && r->a->blocks != of_olmo2) || put_window(r, err)) &&
           (r->a->blocks != of_experts || put_experts(r, err)) && (!is_gemma(r->a) || put_gemma(r, err));
}

json_t *config_from_gguf(const struct gguf *file, struct error *err)
{
    struct reading r = { .file = file, .a = architecture_of(file, err) };
    int64_t experts;

    if (!r.a)
        return NULL;
    if (r.a->blocks != of_experts && gguf_integer(file, key_of(&r, "expert_count"), &experts) && experts > 0) {
        error_set(err, ERROR_UNSUPPORTED, "take the model's safetensors", "a mixture of %" PRId64 " experts", experts);
        return NULL;
    }
    r.config =
        json_pack("{s:[s], s:s, s:s}", "architectures", r.a->name, "model_type", r.a->model_type, "hidden_act", r.a->activation);
    if (!put_sizes(&r, err)) {
        json_decref(r.config);
        return NULL;
    }
    json_object_set_new(r.config, "attention_bias", json_boolean(gguf_tensor(file, "blk.0.attn_q.bias")));
    json_object_set_new(r.config, "tie_word_embeddings", json_boolean(!gguf_tensor(file, "output.weight")));
    put_token(&r, "bos_token_id", "tokenizer.ggml.bos_token_id");
    put_token(&r, "eos_token_id", "tokenizer.ggml.eos_token_id");
    put_token(&r, "pad_token_id", "tokenizer.ggml.padding_token_id");
    return r.config;
}

/* Names -------------------------------------------------------------------------------------------------------------------- */

static const struct plain_name {
    const char *gguf, *hf;
} plain_names[] = {
    { "token_embd.weight", "model.embed_tokens.weight" },
    { "output_norm.weight", "model.norm.weight" },
    { "output.weight", "lm_head.weight" },
    { NULL, NULL },
}, plain_gpt2[] = {
    { "token_embd.weight", "transformer.wte.weight" },
    { "position_embd.weight", "transformer.wpe.weight" },
    { "output_norm.weight", "transformer.ln_f.weight" },
    { "output_norm.bias", "transformer.ln_f.bias" },
    { "output.weight", "lm_head.weight" },
    { NULL, NULL },
};

static bool no_counterpart(struct error *err)
{
    return error_set(err, ERROR_UNSUPPORTED, NULL, "the architecture has no such tensor");
}

/* "blk.12.attn_q.weight": the layer, and what stands between the dots as `part` and `kind`. */
static bool split_name(const char *name, unsigned *layer, const char **part, size_t *length, const char **kind)
{
    const char *at = name + 4;

    if (strncmp(name, "blk.", 4) != 0 || *at < '0' || *at > '9' || (*at == '0' && at[1] != '.'))
        return false;
    for (*layer = 0; *at >= '0' && *at <= '9' && *layer < 1000000; at++)
        *layer = *layer * 10 + (unsigned)(*at - '0');
    if (*at != '.')
        return false;
    *part = at + 1;
    *kind = strrchr(*part, '.');
    if (!*kind)
        return false;
    *length = (size_t)(*kind - *part);
    return strcmp(*kind, ".weight") == 0 || strcmp(*kind, ".bias") == 0;
}

bool config_name_from_gguf(const json_t *config, const char *gguf_name, char *name, size_t size, struct config_form *form,
                           struct error *err)
{
    const struct architecture *a = architecture_named(config);
    const char *part, *kind;
    unsigned layer;
    size_t length;

    *form = (struct config_form){ .computed = strcmp(gguf_name, FREQUENCIES) == 0 || strcmp(gguf_name, LONG) == 0 ||
                                              strcmp(gguf_name, SHORT) == 0 };
    if (form->computed) {
        name[0] = 0;
        return true;
    }
    for (const struct plain_name *p = a->blocks == of_gpt2 ? plain_gpt2 : plain_names; p->gguf; p++)
        if (strcmp(p->gguf, gguf_name) == 0) {
            form->added = strstr(gguf_name, "norm") ? a->norms : 0;
            return snprintf(name, size, "%s", p->hf) < (int)size;
        }
    if (!split_name(gguf_name, &layer, &part, &length, &kind))
        return no_counterpart(err);
    if ((int64_t)layer >= integer_of(config, "num_hidden_layers"))
        return error_set(err, ERROR_RANGE, NULL, "a tensor of layer %u in a model of %d layers", layer,
                         (int)integer_of(config, "num_hidden_layers"));
    for (const struct block_name *b = a->blocks; b->gguf; b++) {
        if (strlen(b->gguf) != length || memcmp(b->gguf, part, length) != 0)
            continue;
        if (b->heads)
            form->heads = (unsigned)integer_of(config, b->heads);
        form->added = strstr(b->gguf, "norm") ? a->norms : 0;
        form->transposed = a->blocks == of_gpt2 && strstr(b->hf, "c_") && strcmp(kind, ".weight") == 0;
        if (snprintf(name, size, "%s.%u.%s%s", a->blocks == of_gpt2 ? "transformer.h" : "model.layers", layer, b->hf, kind) <
            (int)size)
            return true;
    }
    return no_counterpart(err);
}
