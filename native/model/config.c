#include "native/model/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Metadata to config.json -------------------------------------------------------------------------------------------------- */

static bool need_integer(const struct gguf *file, const char *key, int64_t *value, struct error *err)
{
    if (!gguf_find(file, key))
        return error_set(err, ERROR_MISSING, NULL, "the file has no %s", key);
    if (!gguf_integer(file, key, value))
        return error_set(err, ERROR_TYPE, "layers of different sizes are not offered", "%s is no single integer", key);
    if (*value < 1 || *value > 1 << 24)
        return error_set(err, ERROR_RANGE, NULL, "%s is %" PRId64 ", 1 to %d are allowed", key, *value, 1 << 24);
    return true;
}

static bool put_integer(json_t *config, const char *name, const struct gguf *file, const char *key, struct error *err)
{
    int64_t value;

    if (!need_integer(file, key, &value, err))
        return false;
    json_object_set_new(config, name, json_integer(value));
    return true;
}

static bool put_real(json_t *config, const char *name, const struct gguf *file, const char *key, struct error *err)
{
    double value;

    if (!gguf_real(file, key, &value))
        return error_set(err, ERROR_MISSING, NULL, "the file has no number %s", key);
    if (!(value > 0 && value < 1e30))
        return error_set(err, ERROR_RANGE, NULL, "%s is %g", key, value);
    json_object_set_new(config, name, json_real(value));
    return true;
}

static void put_token(json_t *config, const char *name, const struct gguf *file, const char *key)
{
    int64_t id;

    if (gguf_integer(file, key, &id) && id >= 0)
        json_object_set_new(config, name, json_integer(id));
}

static int64_t integer_of(const json_t *config, const char *name)
{
    return json_integer_value(json_object_get(config, name));
}

/* Heads: their number, that of key heads (the same by default), and their width. */
static bool put_heads(json_t *config, const struct gguf *file, struct error *err)
{
    const int64_t heads = integer_of(config, "num_attention_heads"), width = integer_of(config, "hidden_size");
    int64_t kv = heads, dim = width / heads, rotary;

    if (gguf_find(file, "llama.attention.head_count_kv") && !need_integer(file, "llama.attention.head_count_kv", &kv, err))
        return false;
    if (gguf_find(file, "llama.attention.key_length") && !need_integer(file, "llama.attention.key_length", &dim, err))
        return false;
    if (heads % kv != 0)
        return error_set(err, ERROR_RANGE, NULL, "%" PRId64 " heads do not share %" PRId64 " key heads", heads, kv);
    if (dim < 2 || dim % 2 != 0)
        return error_set(err, ERROR_RANGE, NULL, "heads of width %" PRId64, dim);
    rotary = dim;
    if (gguf_find(file, "llama.rope.dimension_count") && !need_integer(file, "llama.rope.dimension_count", &rotary, err))
        return false;
    if (rotary != dim)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "rotary width %" PRId64 " in heads of %" PRId64, rotary, dim);
    json_object_set_new(config, "num_key_value_heads", json_integer(kv));
    json_object_set_new(config, "head_dim", json_integer(dim));
    return true;
}

static bool put_rotary(json_t *config, const struct gguf *file, struct error *err)
{
    struct text_slice kind;
    double factor;

    json_object_set_new(config, "rope_theta", json_real(10000));
    if (gguf_find(file, "llama.rope.freq_base") && !put_real(config, "rope_theta", file, "llama.rope.freq_base", err))
        return false;
    if (gguf_tensor(file, "rope_freqs.weight"))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "rotary frequencies stored as a tensor (rope_freqs.weight)");
    if (!gguf_text(file, "llama.rope.scaling.type", &kind) || (kind.size == 4 && memcmp(kind.bytes, "none", 4) == 0))
        return true;
    if (kind.size != 6 || memcmp(kind.bytes, "linear", 6) != 0 || !gguf_real(file, "llama.rope.scaling.factor", &factor))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "rotary scaling %.*s", (int)(kind.size < 40 ? kind.size : 40), kind.bytes);
    json_object_set_new(config, "rope_scaling", json_pack("{s:s, s:f}", "rope_type", "linear", "factor", factor));
    return true;
}

static bool check_architecture(const struct gguf *file, struct error *err)
{
    struct text_slice name;
    int64_t experts;

    if (!gguf_text(file, "general.architecture", &name))
        return error_set(err, ERROR_MISSING, NULL, "the file has no general.architecture");
    if (name.size != 5 || memcmp(name.bytes, "llama", 5) != 0)
        return error_set(err, ERROR_UNSUPPORTED, "GGUF files of architecture llama are read", "architecture %.*s",
                         (int)(name.size < 40 ? name.size : 40), name.bytes);
    if (gguf_integer(file, "llama.expert_count", &experts) && experts > 0)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "a mixture of %" PRId64 " experts", experts);
    return true;
}

static bool put_sizes(json_t *config, const struct gguf *file, struct error *err)
{
    const struct tensor *embedding = gguf_tensor(file, "token_embd.weight");

    if (!embedding || embedding->rank != 2)
        return error_set(err, ERROR_MISSING, NULL, "the file has no matrix token_embd.weight");
    json_object_set_new(config, "vocab_size", json_integer((json_int_t)embedding->dims[0]));
    return put_integer(config, "hidden_size", file, "llama.embedding_length", err) &&
           put_integer(config, "num_hidden_layers", file, "llama.block_count", err) &&
           put_integer(config, "num_attention_heads", file, "llama.attention.head_count", err) && put_heads(config, file, err) &&
           put_integer(config, "intermediate_size", file, "llama.feed_forward_length", err) &&
           put_integer(config, "max_position_embeddings", file, "llama.context_length", err) &&
           put_real(config, "rms_norm_eps", file, "llama.attention.layer_norm_rms_epsilon", err) && put_rotary(config, file, err);
}

json_t *config_from_gguf(const struct gguf *file, struct error *err)
{
    json_t *config =
        json_pack("{s:[s], s:s, s:s}", "architectures", "LlamaForCausalLM", "model_type", "llama", "hidden_act", "silu");

    if (!check_architecture(file, err) || !put_sizes(config, file, err)) {
        json_decref(config);
        return NULL;
    }
    json_object_set_new(config, "attention_bias", json_boolean(gguf_tensor(file, "blk.0.attn_q.bias")));
    json_object_set_new(config, "tie_word_embeddings", json_boolean(!gguf_tensor(file, "output.weight")));
    put_token(config, "bos_token_id", file, "tokenizer.ggml.bos_token_id");
    put_token(config, "eos_token_id", file, "tokenizer.ggml.eos_token_id");
    put_token(config, "pad_token_id", file, "tokenizer.ggml.padding_token_id");
    return config;
}

/* Names -------------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *gguf, *hf;
} plain_names[] = {
    { "token_embd.weight", "model.embed_tokens.weight" },
    { "output_norm.weight", "model.norm.weight" },
    { "output.weight", "lm_head.weight" },
};

/* Inside a block; `heads` names the configuration's number of heads whose rows are interleaved. */
static const struct {
    const char *gguf, *hf, *heads;
} block_names[] = {
    { "attn_norm", "input_layernorm", NULL },
    { "attn_q", "self_attn.q_proj", "num_attention_heads" },
    { "attn_k", "self_attn.k_proj", "num_key_value_heads" },
    { "attn_v", "self_attn.v_proj", NULL },
    { "attn_output", "self_attn.o_proj", NULL },
    { "ffn_norm", "post_attention_layernorm", NULL },
    { "ffn_gate", "mlp.gate_proj", NULL },
    { "ffn_up", "mlp.up_proj", NULL },
    { "ffn_down", "mlp.down_proj", NULL },
};

static bool no_counterpart(struct error *err)
{
    return error_set(err, ERROR_UNSUPPORTED, NULL, "architecture llama has no such tensor");
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

bool config_name_from_gguf(const json_t *config, const char *gguf_name, char *name, size_t size, unsigned *heads,
                           struct error *err)
{
    const char *part, *kind;
    unsigned layer;
    size_t length;

    *heads = 0;
    for (unsigned i = 0; i < sizeof plain_names / sizeof *plain_names; i++)
        if (strcmp(plain_names[i].gguf, gguf_name) == 0)
            return snprintf(name, size, "%s", plain_names[i].hf) < (int)size;
    if (!split_name(gguf_name, &layer, &part, &length, &kind))
        return no_counterpart(err);
    if ((int64_t)layer >= integer_of(config, "num_hidden_layers"))
        return error_set(err, ERROR_RANGE, NULL, "a tensor of layer %u in a model of %d layers", layer,
                         (int)integer_of(config, "num_hidden_layers"));
    for (unsigned i = 0; i < sizeof block_names / sizeof *block_names; i++) {
        if (strlen(block_names[i].gguf) != length || memcmp(block_names[i].gguf, part, length) != 0)
            continue;
        if (block_names[i].heads)
            *heads = (unsigned)integer_of(config, block_names[i].heads);
        if (snprintf(name, size, "model.layers.%u.%s%s", layer, block_names[i].hf, kind) < (int)size)
            return true;
    }
    return no_counterpart(err);
}
