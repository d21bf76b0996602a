-- cases: every shipped script with the options and sizes at which tests trace it. { name, verb, script, args, options }
local rows = { batch = 6, time = 6, vocab = 7, embed = 4, pair = 4, rejected_time = 5, prompt = 2, sample = 3, class = 5, horizon = 5,
               quantile = 3, k = 3 }
local cases = {}
local function add(verb, script, args, options) cases[#cases + 1] = { verb .. " " .. script, verb, script, args, options or {} } end

for _, case in ipairs {
  { "chat_sft" }, { "chat_sft", { prompt_weight = "0.3" } }, { "chat_sft", { per = "example" } }, { "pretrain" }, { "pretrain", { z_loss = "0.0001" } },
  { "dft" }, { "grpo" }, { "grpo", { per = "sequence", kl = "0.1", kl_kind = "k2" } },
  { "grpo", { per = "constant", advantage = "centred", dual_clip = 3 } },
  { "grpo", { advantage = "leave_one_out", sampler_cap = 2, keep_truncated = false, keep_constant = false } },
  { "gspo" }, { "ppo" }, { "ppo", { entropy_weight = "0.01" } }, { "dpo" }, { "dpo", { form = "robust", label_smoothing = "0.1" } },
  { "dpo", { form = "hinge" } }, { "dpo", { length_normalised = true, beta = 5 } }, { "ipo" }, { "ipo", { per_token = false } },
  { "kto" }, { "orpo" }, { "simpo" }, { "reward_model" }, { "reward_model", { centre = "0.01" } },
  { "distill" }, { "distill", { direction = "reverse" } }, { "distill", { direction = "jsd" } }, { "distill", { teacher = "topk" } },
  { "distill", { teacher = "topk", tail = "drop" } }, { "distill", { teacher = "topk", tail = "renormalise", direction = "reverse" } },
  { "classify" }, { "classify", { label_smoothing = "0.1" } }, { "forecast" },
} do add("objective", case[1], { sizes = rows }, case[2]) end

local matrix = { name = "model.layers.0.mlp.up_proj.weight", kind = "matrix", layer = 0, axes = "head=1 dim=2 embed=3", out = "head=1 dim=2", inp = "embed=3",
                 module = "model.layers.0.mlp.up_proj" }
local vector = { name = "model.norm.weight", kind = "vector", axes = "embed=3" }
local lora_a = { name = "m.lora_A.weight", kind = "matrix", role = "lora_a", module = "m", axes = "rank=2 embed=3", out = "rank=2", inp = "embed=3" }
local lora_b = { name = "m.lora_B.weight", kind = "matrix", role = "lora_b", module = "m", axes = "dim=4 rank=2", out = "dim=4", inp = "rank=2" }

for _, case in ipairs {
  { "mean" }, { "weighted_mean" }, { "weighted_mean", { by = "weight" } }, { "median" }, { "trimmed_mean" }, { "trimmed_mean", { hostile = 2 } }, { "krum" }, { "multi_krum" },
  { "bulyan" }, { "geometric_median", { iterations = 3 } }, { "centered_clip" }, { "centered_clip", { radius = 1, iterations = 3 } }, { "norm_clip" },
  { "norm_clip", { over = "whole" } }, { "nearest_mix" }, { "fltrust" }, { "sign_majority" }, { "quality_weighted" },
  { "quality_weighted", { mode = "softmax" } }, { "quality_weighted", { mode = "proportional" } }, { "alternating_lora" }, { "sparse_mean" },
  { "sparse_mean", { among = "senders" } }, { "lora_product" },
} do add("aggregator", case[1], { peers = 7, round = 0, params = { matrix, vector, lora_a, lora_b } }, case[2]) end

for _, name in ipairs { "sgd", "adamw", "muon", "adafactor", "lion", "nesterov", "adaptive", "sign" } do
  add("optimiser", name, { params = { matrix, vector, lora_a, lora_b }, outer = name == "adaptive" })
end
add("optimiser", "sgd", { params = { matrix }, outer = true }, { momentum = "0.9", weight_decay = "0.1" })
add("optimiser", "muon", { params = { matrix }, outer = false }, { scale = "keller", ["adamw.beta1"] = "0.8" })
add("optimiser", "adamw", { params = { lora_a, lora_b }, outer = false }, { lora_plus = 16 })

local llama = { num_hidden_layers = 2, num_attention_heads = 4, num_key_value_heads = 2, hidden_size = 8, intermediate_size = 6, vocab_size = 7,
                rms_norm_eps = 1e-6, head_dim = 4, rope_theta = 10000, tie_word_embeddings = true }
local function plus(t)
  local out = {}
  for k, v in pairs(llama) do out[k] = v end
  for k, v in pairs(t) do out[k] = v end
  return out
end
local models = {
  { "llama", llama }, { "llama", plus { tie_word_embeddings = false, sliding_window = 2, attention_bias = true } },
  { "llama", plus { rope_scaling = { rope_type = "llama3", factor = 8, low_freq_factor = 1, high_freq_factor = 4, original_max_position_embeddings = 32 } } },
  { "llama", plus { rope_scaling = { type = "linear", factor = 4 } } },
  { "llama", plus { rope_scaling = { rope_type = "dynamic", factor = 2, original_max_position_embeddings = 4 } } },
  { "llama", plus { rope_scaling = { rope_type = "dynamic", factor = 2 }, max_position_embeddings = 4 } },
  { "llama", plus { head_dim = 8, rope_theta = 100, rope_scaling = { type = "yarn", factor = 4, original_max_position_embeddings = 64 } } },
  { "llama", plus { head_dim = 8, rope_parameters = { rope_theta = 100, rope_type = "yarn", factor = 4, original_max_position_embeddings = 64,
                                                      beta_fast = 4, beta_slow = 2, truncate = false, attention_factor = 1.5 } } },
  { "qwen3", llama },
  { "phi3", plus { head_dim = 8, rope_scaling = { type = "longrope", factor = 4, original_max_position_embeddings = 4,
                                                  short_factor = { 1, 1, 1, 1 }, long_factor = { 1, 1.5, 3, 5 } } } },
  { "llama", plus { model_type = "smollm3", no_rope_layers = { 1, 0 }, mlp_bias = true } },
  { "qwen2", plus { use_sliding_window = true, sliding_window = 2, max_window_layers = 1 } },
  { "phi3", plus { partial_rotary_factor = 0.5, sliding_window = 3 } }, { "olmo2", llama },
  { "gpt2", { n_layer = 2, n_head = 2, n_embd = 8, n_positions = 8, vocab_size = 7, scale_attn_by_inverse_layer_idx = true } },
  { "gemma", plus { model_type = "gemma2", query_pre_attn_scalar = 4, attn_logit_softcapping = 50, final_logit_softcapping = 30, sliding_window = 2 } },
  { "gemma", plus { model_type = "gemma3_text", query_pre_attn_scalar = 4, sliding_window = 2 } },
  { "moe", plus { num_experts = 4, num_experts_per_tok = 2, moe_intermediate_size = 5, norm_topk_prob = true, decoder_sparse_step = 1 } },
  { "vit", { num_hidden_layers = 2, num_attention_heads = 2, hidden_size = 8, intermediate_size = 6, image_size = 4, patch_size = 2, num_labels = 5, layer_norm_eps = 1e-12 } },
  { "patch_series", plus { patch = 2, horizon = 5, quantiles = 3 } },
}
for _, m in ipairs(models) do
  local sizes = m[1] == "vit" and { row = 2, height = 4, width = 4 } or { row = 2, time = 6 }
  add("model", m[1], { config = m[2], sizes = sizes, train_all = true, training = false })
  add("model", m[1], { config = m[2], sizes = sizes, train_all = false, training = true, lora = { rank = 2, scale = 2, targets = {} } })
end

for _, name in ipairs { "diloco", "streaming", "delayed", "eager", "sparse", "demo", "ring", "hierarchical", "pipeline", "plateau" } do
  add("plan", name, { context = { round = 3, rounds = 12, peers = 5, layers = 8, last = false }, params = { matrix, vector } })
  add("rates", name, { context = { round = 3, rounds = 12, peers = 5, layers = 8, last = false }, first = 0, count = 40 }, { ["rate.warmup"] = 10 })
end
for _, name in ipairs { "exact_match", "tool_call", "json_schema", "length_penalty", "combine", "policy", "preference", "robust", "decoder", "rate" } do
  add("describe", name, {})
end

local seen = {}
for _, c in ipairs(cases) do -- names: "objective grpo", then "objective grpo 2"
  seen[c[1]] = (seen[c[1]] or 0) + 1
  if seen[c[1]] > 1 then c[1] = c[1] .. " " .. seen[c[1]] end
end
return cases
