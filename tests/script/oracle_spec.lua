-- The graphs of the real host, run by the real executor in binary32, against the mock: an interpreter of the same API in plain Lua on
-- doubles (tests/script/mock, itself checked against published reference values).
local D, cases = require("driver"), require("cases")
package.path = D.root .. "/tests/script/mock/?.lua;" .. package.path
local H = require("host")
local M = H.M
H.root = D.root .. "/scripts"

-- ---- the same numbers for both sides -------------------------------------------------------------------------------
local function stream(name)
  local seed = 17
  for i = 1, #name do seed = (seed * 31 + name:byte(i)) % 65521 end
  return function() seed = (seed * 25173 + 13849) % 65536; return math.floor(seed / 64) / 1024 end -- multiples of 2^-10: exact in both
end
local function sizes_of(axes)
  local names, sizes, count = {}, {}, 1
  for a, n in axes:gmatch("([%w_]+)=(%d+)") do names[#names + 1] = a; sizes[a] = tonumber(n); count = count * sizes[a] end
  return names, sizes, count
end
local function shaped(r) -- r in [0, 1) -> a value that such a field may have
  return {
    logprobs = function() return -0.125 - r() end, ref_logprobs = function() return -0.125 - r() end,
    old_logprobs = function() return -0.125 - r() end, sampler_logprobs = function() return -0.125 - r() end,
    teacher_logprobs = function() return -2 - r() end, reward = r, entropy = r, valid = function() return 1 end,
    truncated = function() return r() < 0.25 and 1 or 0 end, observed = function() return 1 end, bytes = function() return 3 end,
    progress = function() return 0.5 end, lr = function() return 0.015625 end, agreement = function() return 0.5 end,
    weight = function() return 1 + r() end, tokens = function() return 1 + math.floor(r() * 90) end, sent = function() return r() < 0.5 and 1 or 0 end,
  }
end
local function numbers(name, axes, dt)
  local names, sizes, count = sizes_of(axes)
  local base, r, out = name:match("[%w_]+$"), stream(name), {}
  local make = shaped(r)[base]
  local inner, time = 1, nil
  for i = #names, 1, -1 do
    if names[i] == "time" then time = inner end
    inner = inner * sizes[names[i]]
  end
  for i = 1, count do
    local t = time and math.floor((i - 1) / time) % sizes.time
    if base == "scored" then out[i] = t > 0 and t < sizes.time - 1 and 1 or 0
    elseif base == "mask" then out[i] = t > 1 and t < sizes.time - 1 and 1 or 0
    elseif base == "label" then out[i] = dt == "i32" and (i * 3) % 5 or i % 2
    elseif base == "teacher_ids" then out[i] = (i - 1) % 3 + 2
    elseif dt == "i32" then out[i] = math.floor(r() * 7)
    elseif make then out[i] = make()
    else out[i] = (r() - 0.5) * 2 end
  end
  return out
end

local function plain_options(options) -- the mock takes numbers, not decimal text
  local out = {}
  for k, v in pairs(options) do out[k] = type(v) == "string" and k ~= "bits" and tonumber(v) or v end
  return out
end
local function near(want, got, what, tolerance)
  tolerance = (tolerance or 3e-5) * (1 + math.abs(want))
  assert(math.abs(want - got) <= tolerance, ("%s: the graph gives %.9g, the mock %.9g"):format(what, got, want))
end
local function all_near(tensor, answer, what, tolerance) -- a mock tensor against { axes, values }
  local names, sizes, count = sizes_of(answer.axes)
  local list = {}
  for i, a in ipairs(names) do list[i] = a .. "=" .. sizes[a]; assert(tensor.n[a] == sizes[a], what .. ": " .. answer.axes .. " and " .. M.show(tensor)) end
  assert(#names == #tensor.axes_, what .. ": " .. answer.axes .. " and " .. M.show(tensor))
  local laid = tensor:expand(table.concat(list, " "))
  if table.concat(laid.axes_, " ") ~= table.concat(names, " ") then laid = M.tensor.zeros(table.concat(list, " ")) + laid end
  for i = 1, count do near(laid.data[i], tonumber(answer.values[i]), what .. "[" .. i .. "]", tolerance) end
end
local function run(c, graph, data)
  local a = D.call(c[2], c[3], c[4], c[5], nil, nil, graph, data)
  assert(a.ok, a.error and a.error.place .. ": " .. a.error.message)
  return a.values
end
local function fresh()
  M.forbid, M.sizes, M.labels, H.scope, H.packed, H.cache, H.in_loss = {}, nil, {}, nil, nil, nil, false
end

-- ---- objectives ----------------------------------------------------------------------------------------------------
local function mock_fields(inputs)
  local fields, sides = {}, {}
  for _, f in ipairs(inputs) do
    local side, name = f.name:match("^b%.(%w+)%.([%w_]+)$")
    if not side then name = f.name:match("^b%.([%w_]+)$") end
    local t = M.of(f.axes, numbers(f.name, f.axes, f.type), f.type, f.gradient)
    if side then sides[side] = sides[side] or {}; sides[side][name] = t else fields[name] = t end
  end
  for side, list in pairs(sides) do fields[side] = (H.fields(side, list)) end
  return fields
end
local function value_of(terms, values)
  local sum = 0
  for _, t in ipairs(terms) do
    local s = tonumber(values[t.sum].values[1])
    local n = t.count and tonumber(values[t.count].values[1]) or 1
    sum = sum + tonumber(t.coef) * (n == 0 and 0 or s / n)
  end
  return sum
end
local function objective(c)
  local a = D.call(c[2], c[3], c[4], c[5])
  assert(a.ok, a.error and a.error.message)
  local o = H.run(c[3], plain_options(c[5]))
  local known = {}
  fresh()
  if a.ok.prepare then
    local data = {}
    for _, f in ipairs(a.ok.prepare.inputs) do data[f.name] = numbers(f.name, f.axes, f.type) end
    local values = run(c, a.ok.prepare.graph, data)
    local want = o.prepare((H.fields("b", mock_fields(a.ok.prepare.inputs))))
    for _, f in ipairs(a.ok.prepare.outputs) do
      all_near(want[f.name:sub(3)], values[f.name], f.name)
      known[f.name] = {}
      for i, v in ipairs(values[f.name].values) do known[f.name][i] = tonumber(v) end
    end
  end
  local data, fields = {}, mock_fields(a.ok.loss.inputs)
  for _, f in ipairs(a.ok.loss.inputs) do
    data[f.name] = known[f.name] or numbers(f.name, f.axes, f.type)
    if known[f.name] then fields[f.name:sub(3)] = M.of(f.axes, known[f.name]) end
  end
  local values = run(c, a.ok.loss.graph, data)
  H.metrics, H.in_loss = {}, true
  local loss = o.loss((H.fields("b", fields)))
  H.in_loss = false
  near(H.value(loss), value_of(a.ok.loss.terms, values), "loss")
  for _, m in ipairs(a.ok.loss.metrics) do near(H.value(H.metrics[m.name]), value_of(m.terms, values), m.name) end
end

-- ---- aggregators, optimisers ---------------------------------------------------------------------------------------
local function context(inputs, extra)
  local fields = extra or {}
  for _, f in ipairs(inputs) do fields[f.name:match("[%w_]+$")] = M.of(f.axes, numbers(f.name, f.axes, f.type), f.type) end
  return (H.fields("c", fields))
end
local function states(call, values) -- init's outputs as inputs of the next graph, and as mock tensors
  local data, s = {}, {}
  for _, f in ipairs(call.state) do
    data["s." .. f.name] = {}
    for i, v in ipairs(values["s." .. f.name].values) do data["s." .. f.name][i] = tonumber(v) end
    s[f.name] = M.of(f.axes, data["s." .. f.name], f.type)
  end
  return data, s
end
local function aggregator(c)
  local a = D.call(c[2], c[3], c[4], c[5])
  assert(a.ok, a.error and a.error.message)
  local o = H.run(c[3], plain_options(c[5]))
  local params = {}
  for _, p in ipairs(c[4].params) do params[p.name] = p end
  for _, call in ipairs(a.ok.calls) do
    fresh()
    local n = 0
    for _, name in ipairs(call.params) do n = n + select(3, sizes_of(params[name].axes)) end
    local axes = "peer=7 " .. (a.ok.over == "whole" and "n=" .. n or params[call.params[1]].axes)
    local u = numbers("u", axes)
    local data, s = {}, nil
    if call.init then data, s = states(call, run(c, call.init, { u = u })) end
    data.u = u
    for _, f in ipairs(call.inputs) do data[f.name] = numbers(f.name, f.axes, f.type) end
    local values = run(c, call.combine, data)
    local want, after = o.combine(M.of(axes, u), context(call.inputs, { round = 0 }), s)
    all_near(want, values.u, "u")
    for _, f in ipairs(call.state) do all_near(after[f.name], values["s." .. f.name], "s." .. f.name) end
  end
end
local function optimiser(c)
  local a = D.call(c[2], c[3], c[4], c[5])
  assert(a.ok, a.error and a.error.message)
  local o = H.run(c[3], plain_options(c[5]))
  for i, call in ipairs(a.ok.params) do
    fresh()
    local p = c[4].params[i]
    local first, g = numbers("p", p.axes), numbers("g", p.axes)
    local scalars = { lr = M.of("", { 0.015625 }), agreement = M.of("", { 0.5 }), param = p }
    local ctx = (H.fields("c", scalars))
    local data, s = {}, {}
    if call.init then data, s = states(call, run(c, call.init, { p = first })) end
    data.p, data.g, data.lr, data.agreement = first, g, { 0.015625 }, { 0.5 }
    local values = run(c, call.step, data)
    local want, after = o.step(M.of(p.axes, first), M.of(p.axes, g), ctx, s)
    all_near(want, values.p, p.name, 1e-4)
    for _, f in ipairs(call.state) do all_near(after[f.name], values["s." .. f.name], p.name .. " s." .. f.name) end
  end
end

-- ---- models --------------------------------------------------------------------------------------------------------
local function model(c)
  local a = D.call(c[2], c[3], c[4], c[5])
  assert(a.ok, a.error and a.error.message)
  fresh()
  local m = H.run(c[3], {})
  local h = c[4].config
  if h.rope_scaling and h.max_position_embeddings then h.rope_scaling.original_max_position_embeddings = h.max_position_embeddings end
  local config, data, fields, source = m.config(h), {}, {}, {}
  for _, p in ipairs(a.ok.params) do
    local list = numbers(p.name, p.axes)
    for i, v in ipairs(list) do list[i] = v * 0.5 + (p.kind == "vector" and p.name:find("norm") and 1 or 0) end
    data[p.name], source[p.name] = list, list
  end
  for _, f in ipairs(a.ok.inputs) do
    local list = numbers(f.name, f.axes, f.type)
    for i = 1, #list do
      if f.name == "position" then list[i] = (i - 1) % 6 elseif f.name == "segment" then list[i] = (i - 1) % 6 < 3 and 1 or 2
      elseif f.name == "real" then list[i] = 1 end
    end
    data[f.name] = list
    fields[f.name] = M.of(f.axes, list, f.type)
  end
  local values = run(c, 0, data)
  local w = H.weights(c[4].lora, source)
  local b = (H.fields("b", fields))
  M.sizes, H.packed = config.axes, m.data == "text"
  local x = m.embed(w, b, config)
  for layer = 0, config.layers - 1 do
    w.scope, w.layer = config.scope:format(layer) .. ".", layer
    H.scope = w.scope
    x = m.block(w, x, b, config, layer)
  end
  w.scope, w.layer = "", nil
  local out = m.head(w, x, b, config)
  M.sizes = nil
  for name, answer in pairs(values) do if out[name] then all_near(out[name], answer, name, 1e-4) end end
end

local kinds = { objective = objective, aggregator = aggregator, optimiser = optimiser, model = model }
local apart = { ["aggregator lora_product"] = true, ["model moe"] = true, ["model moe 2"] = true } -- inputs of another shape
describe("the real graphs and the mock agree on", function()
  for _, c in ipairs(cases) do
    if kinds[c[2]] and not apart[c[1]] then it(c[1], function() kinds[c[2]](c) end) end
  end
end)
