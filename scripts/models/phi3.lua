-- phi3: llama whose queries, keys and values are one matrix, and whose gate and up projection another.
local decoder = import("decoder")

local function gated(w, h, c)
  local both = w:linear(h, "mlp.gate_up_proj", "embed -> both")
  local gate, up = both:trim("both", 0, c.axes.ffn):rename("both", "ffn"), both:trim("both", c.axes.ffn, 0):rename("both", "ffn")
  return w:linear(c.act(gate) * up, "mlp.down_proj", "ffn -> embed")
end

return model {
  data = "text",
  architectures = { "Phi3ForCausalLM" },

  config = function(h)
    local a = decoder.axes(h)
    a.qkv, a.both = a.kv * (a.group + 2) * a.dim, 2 * a.ffn
    return { layers = h.num_hidden_layers, scope = "model.layers.%d", axes = a, tied = h.tie_word_embeddings, eps = h.rms_norm_eps,
             window = h.sliding_window, rope = decoder.rope(h), act = decoder.act(h.hidden_act, "silu") }
  end,

  embed = decoder.embed,

  block = function(w, x, b, c)
    local o = { fused = "self_attn.qkv_proj", axes = c.axes, window = c.window, rope = c.rope }
    x = x + decoder.attention(w, w:rmsnorm(x, "input_layernorm", "embed", { eps = c.eps }), b, o)
    return x + gated(w, w:rmsnorm(x, "post_attention_layernorm", "embed", { eps = c.eps }), c)
  end,

  head = decoder.head,
}
