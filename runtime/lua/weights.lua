-- weights: `w` of a model. Parameters are declared by use: name, axes and sizes must agree wherever a name is used again. Linear
-- maps get their adapters here, so that no model speaks of them.
local R = ...
local raise, node, need, parse = R.raise, R.node, R.need, R.parse
local W = {}
local kinds = { matrix = 0, table = 1, vector = 2 }
local roles = { lora_a = 1, lora_b = 2, magnitude = 3 }
local deviation = 0.02 -- of weights that nobody initialised otherwise

local function size_of(a) return R.current.sizes[a] or raise("axis %s has no size: neither in the input nor in config().axes", a) end

-- { name, size, ... } and "a=1 b=2" of axes with sizes
local function listed(axes, sizes)
  local words, text = {}, {}
  for i, a in ipairs(axes) do
    words[2 * i - 1], words[2 * i] = a, R.integer(sizes[a], "the size of axis " .. a, 1)
    text[i] = R.native.format("%s=%d", a, sizes[a])
  end
  return words, table.concat(text, " ")
end

-- init: nil, a deviation, "zeros" or "ones"
local function fill_of(init, default)
  if init == nil then init = default end
  if init == "zeros" then return 0, 0 end
  if init == "ones" then return 0, 1 end
  if type(init) ~= "number" or init ~= init then raise("init is a deviation, \"zeros\" or \"ones\", not %s", R.tostring(init)) end
  return 1, init
end

-- Whether a name of the list is the module's or an end of it; those that were are noted in `found`.
local function named(list, found, module)
  local yes = false
  for _, t in ipairs(list or {}) do
    if module == t or string.sub(module, -#t - 1) == "." .. t then yes, found[t] = true, true end
  end
  return yes
end

-- Whether the run trains the module of this tensor whole, beside the adapters (PEFT: modules_to_save).
local function kept(state, file)
  local lora = state.lora
  if not lora or not lora.whole or not named(lora.whole, state.found_whole, string.match(file, "^(.*)%.[^.]+$") or "") then return false end
  if string.find(file, "*", 1, true) then R.hint("name other modules to train whole", "%s: experts are not saved whole", file) end
  return true
end

-- The parameter `file` of the model, made when it is new. info: kind, role, module, out, inp, init.
local function declare(state, file, axes, sizes, info)
  local words, text = listed(axes, sizes)
  local old = state.all[file]
  if old then
    if old.axes ~= text then R.shape_error(nil, "%s is [%s] elsewhere, [%s] here", file, old.axes, text) end
    return old.record
  end
  local how, value = 2, 0
  if not info.norms_of then how, value = fill_of(info.init, info.default) end
  local trained = state.train_all or info.role ~= nil or kept(state, file)
  local layer = R.current.layer
  local _, record = node("parameter", { axes = words, name = file, numbers = { value },
    integers = { kinds[info.kind], layer or -1, roles[info.role] or 0, info.leading or 0, how } }, trained)
  local made = { name = file, axes = text, kind = info.kind, layer = layer, role = info.role, module = info.module, out = info.out,
    inp = info.inp, trained = trained, init = how == 0 and { fill = value } or how == 1 and { normal = value } or { row_norms = info.norms_of } }
  state.all[file] = { axes = text, record = record, made = made }
  state.order[#state.order + 1] = made
  return record
end

-- Unless the run names targets: every matrix but those at both ends, the embedding's and the head's. A target is the end of a module's name. What
-- is trained whole is none.
local function targeted(state, name)
  local lora, module = state.lora, state.scope .. name
  local same = state.all[module .. ".weight"]
  if #lora.targets == 0 then return not same.made.trained and name ~= "lm_head" and same.made.kind ~= "table" and not string.find(name, "embed", 1, true) end
  return named(lora.targets, state.found, module) and not same.made.trained
end

-- Every target and whole module that was named must have been met; where the head is the embedding, it is trained with that.
function R.check_targets(state)
  for _, t in ipairs(state.lora and state.lora.targets or {}) do
    if not state.found[t] then R.hint("name ends of modules, or \"all-linear\"", "the target %s is no linear map of this model", t) end
  end
  local head = state.head
  for _, t in ipairs(state.lora and state.lora.whole or {}) do
    local is_head = head and named({ t }, {}, "lm_head")
    if is_head and not head.trained then
      R.hint("name the embedding in modules_to_save", "the head of this model is its embedding %s", head.name)
    elseif not is_head and not state.found_whole[t] then
      R.hint("name ends of modules that hold weights, as \"lm_head\"", "modules_to_save: %s is no module of this model", t)
    end
  end
end

-- DoRA: a row of the adapted matrix has the length m, whatever its adapter makes of it; its norm carries no gradient.
local function magnified(state, y, weight, a, b, scale, module, inp, out, sizes)
  local m = declare(state, module .. ".lora_magnitude_vector", out, sizes, { kind = "vector", role = "magnitude", module = module,
    norms_of = module .. ".weight" })
  local _, product = node("dot", { b, a, axes = { "rank", 0 } }, true)
  local _, part = node("*", { product, scale }, true)
  local _, whole = node("+", { weight, part }, true)
  local _, norm = node("norm", { whole, axes = R.axis_words(inp) }, true)
  local _, length = node("detach", { norm })
  local _, ratio = node("/", { m, length }, true)
  local _, result = node("*", { y, ratio }, true)
  return result
end

-- The number of the longest name in the list that is the module's or an end of it, else its own.
local function patterned(list, module, own)
  local longest = 0
  for _, p in ipairs(list) do
    if #p[1] > longest and (module == p[1] or string.sub(module, -#p[1] - 1) == "." .. p[1]) then longest, own = #p[1], p[2] end
  end
  return own
end
-- Rank and scale of a module.
local function size_of_adapter(lora, module)
  local p = lora.patterns
  if not p then return lora.rank, lora.scale end
  local rank = patterned(p.ranks, module, lora.rank)
  return rank, patterned(p.alphas, module, p.alpha) / (p.root and R.native.math.sqrt(rank) or rank)
end

-- y + dot(dot(x, A), B) * scale, in the form that the canonical rewrites know.
local function adapted(state, y, x, weight, name, inp, out, sizes, info)
  local lora, module = state.lora, state.scope .. name
  local s = R.copy(sizes)
  local times
  s.rank, times = size_of_adapter(lora, module)
  local a_axes, b_axes, product = { "rank" }, {}, 1
  for i, a in ipairs(inp) do a_axes[i + 1] = a; product = product * s[a] end
  for i, a in ipairs(out) do b_axes[i] = a end
  b_axes[#b_axes + 1] = "rank"
  local width = "rank=" .. R.native.format("%d", s.rank)
  local a = declare(state, module .. ".lora_A.weight", a_axes, s, { kind = "matrix", role = "lora_a", module = module, out = width,
    inp = info.inp, leading = 1, default = 1 / R.native.math.sqrt(product) })
  local b = declare(state, module .. ".lora_B.weight", b_axes, s, { kind = "matrix", role = "lora_b", module = module, out = info.out,
    inp = width, leading = #out, default = "zeros" })
  local _, z = node("dot", { x, a, axes = R.axis_words(inp) }, true)
  local _, low = node("dot", { z, b, axes = { "rank", 0 } }, true)
  local _, scale = node("constant", { numbers = { times }, type = "f32" })
  local _, part = node("*", { low, scale }, true)
  local _, sum = node("+", { y, part }, true)
  return lora.dora and magnified(state, sum, weight, a, b, scale, module, inp, out, sizes) or sum
end

local function state_of(w, op)
  local state = R.states[w]
  if not state then raise("%s is a method: write w:%s(...)", op, op) end
  return state
end

function W.linear(w, x, name, shape, o)
  local state, r = state_of(w, "linear"), need(x, "linear")
  o = R.options(o, "bias expert init transposed", "linear")
  if type(name) ~= "string" or type(shape) ~= "string" then raise("linear takes a tensor, a name and \"in -> out\"") end
  local from, to = string.match(shape, "^%s*(.-)%s*%->%s*(.-)%s*$")
  if not from then raise("linear: %q is not \"in -> out\"", shape) end
  local inp, out = parse(from), parse(to)
  local sizes, inside, stored, back = {}, {}, {}, {}
  for _, a in ipairs(inp) do
    if not r.n[a] then R.shape_error(nil, "linear: no axis %s in %s", a, R.show(r)) end
    inside[a], sizes[a] = true, r.n[a]
  end
  for i, a in ipairs(out) do
    if r.n[a] and not inside[a] then R.shape_error(nil, "linear: %s is in the input already: %s", a, R.show(r)) end
    stored[i] = inside[a] and a .. "_out" or a
    back[stored[i]] = inside[a] and a or nil
    sizes[stored[i]] = size_of(a)
  end
  local axes = R.copy(o.transposed and inp or stored) -- transposed: the file has the input's axes first
  for _, a in ipairs(o.transposed and stored or inp) do axes[#axes + 1] = a end
  local _, out_text = listed(stored, sizes)
  local _, inp_text = listed(inp, sizes)
  local info = { kind = "matrix", module = state.scope .. name, out = out_text, inp = inp_text, leading = o.transposed and 0 or #out, init = o.init,
    default = deviation }
  local file = state.scope .. name .. ".weight"
  local _, y
  local over = R.axis_words(inp)
  if o.expert ~= nil then
    local expert = need(o.expert, "linear: expert")
    if expert.dt ~= "i32" then raise("linear: expert is i32, got %s", expert.dt) end
    sizes.expert = size_of("expert")
    table.insert(axes, 1, "expert")
    info.leading = #out + 1
    local all = declare(state, file, axes, sizes, info)
    local _, chosen = node("gather", { all, expert, axes = { "expert", 0 } }, all.grad)
    _, y = node("dot", { r, chosen, axes = over }, r.grad or all.grad)
  else
    local weight = declare(state, file, axes, sizes, info)
    local made = state.all[file].made
    if made.kind == "table" then made.head, state.head = true, made end
    _, y = node("dot", { r, weight, axes = over }, r.grad or weight.grad)
    if state.lora and targeted(state, name) then y = adapted(state, y, r, weight, name, inp, stored, sizes, info) end
  end
  if o.bias then
    local bias = declare(state, state.scope .. name .. ".bias", stored, sizes, { kind = "vector", default = "zeros" })
    _, y = node("+", { y, bias }, y.grad or bias.grad)
  end
  for _, a in ipairs(stored) do
    if back[a] then _, y = node("rename", { y, axes = { a, 0, back[a], 0 } }, y.grad) end
  end
  return (R.held(y))
end

function W.embedding(w, ids, name, shape)
  local state, r = state_of(w, "embedding"), need(ids, "embedding")
  local from, to = string.match(R.tostring(shape), "^%s*(%S+)%s*%->%s*(%S+)%s*$")
  if not from then raise("embedding: %q is not \"vocab -> embed\"", R.tostring(shape)) end
  local sizes = { [from] = size_of(from), [to] = size_of(to) }
  local t = declare(state, state.scope .. name .. ".weight", { from, to }, sizes, { kind = "table", leading = 1, default = deviation })
  local y = node("gather", { t, r, axes = { from, 0 } }, t.grad)
  return y
end

local function norm_axes(r, axes, op)
  local names, sizes = parse(axes), {}
  for _, a in ipairs(names) do sizes[a] = r.n[a] or R.shape_error(nil, "%s: no axis %s in %s", op, a, R.show(r)) end
  return names, sizes
end
local function positive(x, what)
  x = x == nil and 1e-6 or x
  if type(x) ~= "number" or x ~= x or x < 0 then raise("%s: eps is a number of at least 0, not %s", what, R.tostring(x)) end
  return x
end

function W.rmsnorm(w, x, name, axes, o)
  local state, r = state_of(w, "rmsnorm"), need(x, "rmsnorm")
  o = R.options(o, "eps offset", "rmsnorm")
  local names, sizes = norm_axes(r, axes, "rmsnorm")
  local weight = declare(state, state.scope .. name .. ".weight", names, sizes, { kind = "vector", default = o.offset and "zeros" or "ones" })
  local y = node("rmsnorm", { r, weight, axes = R.axis_words(names), numbers = { positive(o.eps, "rmsnorm"), o.offset or 0 } },
    r.grad or weight.grad)
  return y
end

function W.layernorm(w, x, name, axes, o)
  local state, r = state_of(w, "layernorm"), need(x, "layernorm")
  o = R.options(o, "eps bias", "layernorm")
  local names, sizes = norm_axes(r, axes, "layernorm")
  local weight = declare(state, state.scope .. name .. ".weight", names, sizes, { kind = "vector", default = "ones" })
  local bias = o.bias ~= false and declare(state, state.scope .. name .. ".bias", names, sizes, { kind = "vector", default = "zeros" }) or nil
  local y = node("layernorm", { r, weight, bias, axes = R.axis_words(names), numbers = { positive(o.eps, "layernorm") } },
    r.grad or weight.grad or bias ~= nil and bias.grad)
  return y
end

-- `name` is the file's whole name here: what is neither a matrix nor a norm has no ".weight".
function W.param(w, name, axes, o)
  local state = state_of(w, "param")
  o = R.options(o, "init kind", "param")
  local names, sizes = parse(axes)
  for _, a in ipairs(names) do sizes[a] = sizes[a] or size_of(a) end
  local kind = o.kind or (#names > 1 and "table" or "vector")
  if not kinds[kind] then raise("param: no kind %s; matrix, table and vector exist", R.tostring(kind)) end
  return (R.held(declare(state, state.scope .. name, names, sizes, { kind = kind, init = o.init, default = deviation })))
end

-- The box of a record: a script that gets a parameter twice holds the same tensor.
function R.held(record)
  record.box = record.box or R.boxed(record)
  return record.box
end

R.states = {}
for name, fn in next, W do W[name] = R.watch(fn) end

-- A fresh `w`. options: lora { rank, scale, targets, dora, patterns, whole } or nil, train_all.
function R.weights(options)
  local state = { scope = "", all = {}, found = {}, found_whole = {}, order = R.list(), lora = options.lora, train_all = options.train_all }
  local w = R.fields("w", function(name) return W[name] end, function() return R.keys(W) end)
  R.states[w] = state
  return w, state
end
