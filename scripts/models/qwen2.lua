-- qwen2: llama with biases on queries, keys and values; windows from some layer on.
local decoder = import("decoder")
local llama = import("llama")

return model {
  data = "text",
  architectures = { "Qwen2ForCausalLM" },
  config = function(h)
    local from = h.use_sliding_window and (h.max_window_layers or 28) or h.num_hidden_layers
    return { layers = h.num_hidden_layers, scope = "model.layers.%d", axes = decoder.axes(h), tied = h.tie_word_embeddings,
             eps = h.rms_norm_eps, bias = true, act = decoder.act(h.hidden_act, "silu"), rope = decoder.rope(h),
             windows = decoder.windows(h, function(layer) return layer >= from end) }
  end,
  embed = llama.embed,
  block = llama.block,
  head = llama.head,
}
