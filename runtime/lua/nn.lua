-- nn: operators with more than one tensor in them.
local R = ...
local raise, node, need = R.raise, R.node, R.need
local nn = {}
R.nn = nn

local function number(x, default, what)
  if x == nil then return default end
  if type(x) ~= "number" or x ~= x then raise("%s: %s is no number", what, R.tostring(x)) end
  return x
end

-- config.json's rope_scaling -> kind (0 plain, 1 linear, 2 llama3), factor, low, high, original
local function scaling_of(s)
  if not s then return 0, 1, 1, 1, 0 end
  if type(s) ~= "table" then raise("rope: scaling is a table, as in config.json") end
  local kind = s.rope_type or s.type or "default"
  if kind == "default" then return 0, 1, 1, 1, 0 end
  local factor = number(s.factor, 1, "rope: factor")
  if kind == "linear" then return 1, factor, 1, 1, 0 end
  if kind ~= "llama3" then R.hint("plain, linear and llama3 exist", "rope: no scaling %s", R.tostring(kind)) end
  return 2, factor, number(s.low_freq_factor, 1, "rope: low_freq_factor"), number(s.high_freq_factor, 4, "rope: high_freq_factor"),
    number(s.original_max_position_embeddings, 8192, "rope: original_max_position_embeddings")
end

nn.rope = R.watch(function(x, position, axis, o)
  o = R.options(o, "base scaling interleaved width", "rope")
  local r, p = need(x, "rope"), need(position, "rope")
  if p.dt ~= "i32" then raise("rope: positions are i32, got %s", p.dt) end
  if type(axis) ~= "string" or not r.n[axis] then R.shape_error(nil, "rope: no axis %s in %s", R.tostring(axis), R.show(r)) end
  local kind, factor, low, high, original = scaling_of(o.scaling)
  local width = o.width == nil and 0 or R.integer(o.width, "rope: width", 2)
  return (node("rope", { r, p, axes = { axis, 0 }, numbers = { number(o.base, 10000, "rope: base"), factor, low, high, original },
    integers = { width, o.interleaved and 1 or 0, kind, 0 } }, r.grad))
end)

nn.attention = R.watch(function(q, k, v, over, feature, o)
  o = R.options(o, "causal segment window softcap scale", "attention")
  local a, b, c = need(q, "attention"), need(k, "attention"), need(v, "attention")
  if o.causal == nil then raise("attention: say causal = true or false") end
  if R.current.packed and over == "time" and o.segment == nil then raise("attention: rows are packed; give segment, or false") end
  if type(over) ~= "string" or type(feature) ~= "string" then raise("attention: name the axis attended over and the feature axis") end
  if not a.n[feature] then R.shape_error(nil, "attention: no axis %s in %s", feature, R.show(a)) end
  local segment = o.segment and need(o.segment, "attention: segment") or nil
  if segment and segment.dt ~= "i32" then raise("attention: segment is i32, got %s", segment.dt) end
  local scale = number(o.scale, 1 / R.native.math.sqrt(a.n[feature]), "attention: scale")
  local window = o.window and R.integer(o.window, "attention: window", 1) or 0
  return (node("attention", { a, b, c, segment, axes = { over, 0, feature, 0 },
    numbers = { scale, number(o.softcap or nil, 0, "attention: softcap") }, integers = { o.causal and 1 or 0, window } },
    a.grad or b.grad or c.grad))
end)

nn.dropout = R.watch(function(x, rate, label)
  local r = need(x, "dropout")
  if type(rate) ~= "number" or not (rate >= 0 and rate < 1) or type(label) ~= "string" then
    raise("dropout takes a tensor, a rate from 0 to below 1 and a label")
  end
  if not R.current.training or rate == 0 then return x end
  return (node("dropout", { r, numbers = { rate }, integers = { R.current.layer or -1 }, name = label }, r.grad))
end)
