-- nn: operators with more than one tensor in them.
local R = ...
local raise, node, need = R.raise, R.node, R.need
local nn, M = {}, R.native.math
R.nn = nn

local function number(x, default, what)
  if x == nil then return default end
  if type(x) ~= "number" or x ~= x then raise("%s: %s is no number", what, R.tostring(x)) end
  return x
end

-- YaRN's factor of the rotated values (Peng et al. 2023): given, a quotient of two, or by the factor of scaling.
local function yarn_attention(s, factor)
  local function at(m) return factor <= 1 and 1 or 0.1 * m * M.log(factor) + 1 end
  local given = s.attention_factor
  if given then return number(given, 1, "rope: attention_factor") end
  local some, all = number(s.mscale, 0, "rope: mscale"), number(s.mscale_all_dim, 0, "rope: mscale_all_dim")
  return some ~= 0 and all ~= 0 and at(some) / at(all) or at(1)
end

-- The pairs between which YaRN ramps from frequencies kept to frequencies divided: those that turn beta_fast and beta_slow times in the
-- original length.
local function yarn_range(s, base, d, original)
  local function pair(turns) return d * M.log(original / (turns * 6.283185307179586)) / (2 * M.log(base)) end
  local low, high = pair(number(s.beta_fast, 32, "rope: beta_fast")), pair(number(s.beta_slow, 1, "rope: beta_slow"))
  if s.truncate ~= false then low, high = M.floor(low), M.ceil(high) end
  low, high = M.max(low, 0), M.min(high, d - 1)
  return low, low == high and high + 0.001 or high
end

-- LongRoPE's factors (Ding and others, 2024): for sequences longer than the original length, or for the others; and what the rotated
-- values are multiplied by.
local function longrope(s, d, length, original)
  local factors, name = s.short_factor, "short_factor"
  if length > original then factors, name = s.long_factor, "long_factor" end
  if type(factors) ~= "table" or #factors ~= d / 2 then raise("rope: %s holds one factor for each of %d pairs", name, d / 2) end
  for i = 1, d / 2 do
    local f = number(factors[i], 0, "rope: " .. name)
    if f < 1e-6 or f > 1e6 then raise("rope: %s has %g as number %d", name, f, i) end
  end
  local factor = number(s.factor, nil, "rope: factor")
  if not factor then raise("rope: longrope takes factor, or max_position_embeddings beside it") end
  local given = number(s.attention_factor, nil, "rope: attention_factor")
  return factors, given or factor <= 1 and 1 or M.sqrt(1 + M.log(factor) / M.log(original))
end

-- config.json's rope_scaling -> kind (0 plain, 1 linear, 2 llama3, 3 yarn, 4 factors), the numbers of the operator, and factors. d: rotated
-- elements; length: of the longest sequence.
local function scaling_of(s, base, d, length)
  if not s then return 0, { base, 1, 1, 1, 0 } end
  if type(s) ~= "table" then raise("rope: scaling is a table, as in config.json") end
  local kind = s.rope_type or s.type or "default"
  if kind == "default" then return 0, { base, 1, 1, 1, 0 } end
  local factor = number(s.factor, 1, "rope: factor")
  if kind == "linear" then return 1, { base, factor, 1, 1, 0 } end
  if kind == "llama3" then
    return 2, { base, factor, number(s.low_freq_factor, 1, "rope: low_freq_factor"), number(s.high_freq_factor, 4, "rope: high_freq_factor"),
      number(s.original_max_position_embeddings, 8192, "rope: original_max_position_embeddings") }
  end
  if kind == "su" then kind = "longrope" end -- as the first files of Phi-3 call it
  if kind ~= "dynamic" and kind ~= "yarn" and kind ~= "longrope" then
    R.hint("default, linear, dynamic, yarn, longrope and llama3 exist", "rope: no scaling %s", R.tostring(kind))
  end
  local original = number(s.original_max_position_embeddings, nil, "rope: original_max_position_embeddings")
  if not original or original < 1 or factor < 1 or d < 4 or base <= 1 then
    raise("rope: %s takes factor, from 1, and original_max_position_embeddings", kind)
  end
  if kind == "yarn" then
    local low, high = yarn_range(s, base, d, original)
    return 3, { base, factor, low, high, yarn_attention(s, factor) }
  end
  if not length then raise("rope: %s scaling needs positions along time, or along one axis", kind) end
  if kind == "longrope" then
    local factors, size = longrope(s, d, length, original)
    return 4, { base, 1, 1, 1, size }, factors
  end
  local longer = M.max(length, original) / original
  return 0, { base * M.pow(factor * longer - (factor - 1), d / (d - 2)), 1, 1, 1, 0 }
end

nn.rope = R.watch(function(x, position, axis, o)
  o = R.options(o, "base scaling interleaved width", "rope")
  local r, p = need(x, "rope"), need(position, "rope")
  if p.dt ~= "i32" then raise("rope: positions are i32, got %s", p.dt) end
  if type(axis) ~= "string" or not r.n[axis] then R.shape_error(nil, "rope: no axis %s in %s", R.tostring(axis), R.show(r)) end
  local width = o.width == nil and 0 or R.integer(o.width, "rope: width", 2)
  local kind, numbers, factors = scaling_of(o.scaling, number(o.base, 10000, "rope: base"), width == 0 and r.n[axis] or width,
    p.n.time and R.current.length or p.n.time or #p.axes == 1 and p.n[p.axes[1]] or nil)
  local _, divided
  if factors then _, divided = node("table", { axes = { "pair", #factors }, numbers = factors, type = "f32" }) end
  return (node("rope", { r, p, divided, axes = { axis, 0 }, numbers = numbers, integers = { width, o.interleaved and 1 or 0, kind, 0 } }, r.grad))
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
  local scale = number(o.scale, 1 / M.sqrt(a.n[feature]), "attention: scale")
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
