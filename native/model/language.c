#include "native/model/language.h"

#include <stdio.h>
#include <string.h>

/* Kinds of text_config: the model by itself, and its defaults (transformers 5.24). */
static const struct kind {
    const char *model_type, *architecture, *defaults;
} kinds[] = {
    { "llama", "LlamaForCausalLM",
      "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_hidden_layers\": 32, "
      "\"num_attention_heads\": 32, "
      "\"hidden_act\": \"silu\", \"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-6, \"tie_word_embeddings\": false}" },
    { "mistral", "MistralForCausalLM",
      "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, "
      "\"num_attention_heads\": 32, "
      "\"num_key_value_heads\": 8, \"hidden_act\": \"silu\", \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6, "
      "\"sliding_window\": 4096, \"tie_word_embeddings\": false}" },
    { "qwen2", "Qwen2ForCausalLM",
      "{\"vocab_size\": 151936, \"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32, "
      "\"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"hidden_act\": \"silu\", \"max_position_embeddings\": 32768, "
      "\"rms_norm_eps\": 1e-6, \"tie_word_embeddings\": false}" },
    { "gemma3_text", "Gemma3ForCausalLM",
      "{\"vocab_size\": 262208, \"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26, "
      "\"num_attention_heads\": 8, "
      "\"num_key_value_heads\": 4, \"head_dim\": 256, \"hidden_activation\": \"gelu_pytorch_tanh\", \"max_position_embeddings\": "
      "131072, "
      "\"rms_norm_eps\": 1e-6, \"rope_theta\": 1000000, \"query_pre_attn_scalar\": 256, \"sliding_window\": 4096, "
      "\"tie_word_embeddings\": true}" },
};

json_t *language_config(json_t *config, struct error *err)
{
    json_t *text = json_object_get(config, "text_config"), *out;
    const char *type = json_string_value(json_object_get(text, "model_type"));

    if (!json_is_object(text))
        return config;
    if (!type) /* the first files of Llava leave it out */
        type = "llama";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].model_type, type) != 0)
            continue;
        out = json_loads(kinds[i].defaults, 0, NULL);
        json_object_update(out, text);
        json_object_set_new(out, "architectures", json_pack("[s]", kinds[i].architecture));
        json_object_set_new(out, "model_type", json_string(type));
        if (!json_object_get(text, "eos_token_id") && json_object_get(config, "eos_token_id"))
            json_object_set(out, "eos_token_id", json_object_get(config, "eos_token_id"));
        json_object_set_new(out, "language_part", json_true());
        json_decref(config);
        return out;
    }
    error_set(err, ERROR_UNSUPPORTED,
              "of models with other inputs the language part is read where it is llama, mistral, qwen2 or gemma3_text",
              "text_config of model_type %.60s", type);
    json_decref(config);
    return NULL;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    const size_t length = strlen(text), size = strlen(with);

    return length >= size && strcmp(text + length - size, with) == 0;
}

/* The language part by the names that versions of Hugging Face's wrappers give it. */
static bool inside_name(const char *file_name, char *name, size_t size)
{
    static const struct {
        const char *from, *to;
    } prefixes[] = {
        { "language_model.model.", "model." }, { "language_model.lm_head.", "lm_head." },
        { "model.language_model.", "model." }, { "lm_head.", "lm_head." },
        { "model.layers.", "model.layers." },  { "model.embed_tokens.", "model.embed_tokens." },
        { "model.norm.", "model.norm." },
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts(file_name, prefixes[i].from))
            return snprintf(name, size, "%s%s", prefixes[i].to, file_name + strlen(prefixes[i].from)) < (int)size;
    return false;
}

bool language_name(const json_t *config, const char *file_name, char *name, size_t size)
{
    const char *architecture = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    const bool gpt2 = architecture && strcmp(architecture, "GPT2LMHeadModel") == 0;

    if (ends(file_name, ".rotary_emb.inv_freq")) /* computed from the configuration */
        return false;
    if (json_is_true(json_object_get(config, "language_part")))
        return inside_name(file_name, name, size);
    if (gpt2 && (ends(file_name, ".attn.bias") || ends(file_name, ".attn.masked_bias"))) /* the causal mask */
        return false;
    return snprintf(name, size, "%s%s",
                    gpt2 && !starts(file_name, "transformer.") && !starts(file_name, "lm_head.") ? "transformer." : "",
                    file_name) < (int)size;
}

static void add_end(json_t *list, json_t *id)
{
    json_t *known;
    size_t index;

    json_array_foreach(list, index, known)
    {
        if (json_equal(known, id))
            return;
    }
    if (json_is_integer(id))
        json_array_append(list, id);
}

static void add_ends(json_t *list, json_t *ids)
{
    json_t *id;
    size_t index;

    add_end(list, ids);
    json_array_foreach(ids, index, id)
    {
        add_end(list, id);
    }
}

void language_add_ends(json_t *config, const json_t *generation)
{
    json_t *more = json_object_get(generation, "eos_token_id"), *list = json_array();

    if (!more) {
        json_decref(list);
        return;
    }
    add_ends(list, json_object_get(config, "eos_token_id"));
    add_ends(list, more);
    json_object_set_new(config, "eos_token_id", list);
}
