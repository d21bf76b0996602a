-- olmo2: norms behind each sub-layer instead of before it; queries and keys are normed over all heads at once.
local decoder = import("decoder")

return model {
  data = "text",
  architectures = { "Olmo2ForCausalLM" },

  config = function(h)
    return { layers = h.num_hidden_layers, scope = "model.layers.%d", axes = decoder.axes(h), tied = h.tie_word_embeddings,
             eps = h.rms_norm_eps, bias = h.attention_bias, bias_out = h.attention_bias, rope = decoder.rope(h), qk_norm = "whole",
             act = decoder.act(h.hidden_act, "silu") }
  end,

  embed = decoder.embed,

  block = function(w, x, b, c)
    x = x + w:rmsnorm(decoder.attention(w, x, b, c), "post_attention_layernorm", "embed", { eps = c.eps })
    return x + w:rmsnorm(decoder.gated(w, x, c.act), "post_feedforward_layernorm", "embed", { eps = c.eps })
  end,

  head = decoder.head,
}
