-- gpt2: learned positions, LayerNorm, plain feed-forward; matrices stored input first. Its dropout is left out.
local decoder = import("decoder")
local linear = { bias = true, transposed = true }

return model {
  data = "text",
  architectures = { "GPT2LMHeadModel" },

  config = function(h)
    local dim = h.n_embd / h.n_head
    return { layers = h.n_layer, scope = "transformer.h.%d", eps = h.layer_norm_epsilon or 1e-5, tied = h.tie_word_embeddings ~= false,
             act = decoder.act(h.activation_function, "gelu_new"), scale = h.scale_attn_weights == false and 1 or 1 / math.sqrt(dim),
             by_layer = h.scale_attn_by_inverse_layer_idx,
             axes = { vocab = h.vocab_size, embed = h.n_embd, ffn = h.n_inner or 4 * h.n_embd, position = h.n_positions, kv = h.n_head,
                      group = 1, dim = dim, qkv = 3 * h.n_embd } }
  end,

  embed = function(w, b)
    return w:embedding(b.ids, "transformer.wte", "vocab -> embed") + w:embedding(b.position, "transformer.wpe", "position -> embed")
  end,

  block = function(w, x, b, c, layer)
    local q, k, v = decoder.fused(w, w:layernorm(x, "ln_1", "embed", { eps = c.eps }), "attn.c_attn", c.axes, linear)
    local scale = c.by_layer and c.scale / (layer + 1) or c.scale
    local y = nn.attention(q, k, v, "time", "dim", { causal = true, segment = b.segment, scale = scale })
    x = x + w:linear(y, "attn.c_proj", "kv group dim -> embed", linear)
    y = w:linear(w:layernorm(x, "ln_2", "embed", { eps = c.eps }), "mlp.c_fc", "embed -> ffn", linear)
    return x + w:linear(c.act(y), "mlp.c_proj", "ffn -> embed", linear)
  end,

  head = function(w, x, _, c)
    local hidden = w:layernorm(x, "transformer.ln_f", "embed", { eps = c.eps })
    return { hidden = hidden, logits = w:linear(hidden, c.tied and "transformer.wte" or "lm_head", "embed -> vocab") }
  end,
}
