-- tensor: the operations of scripts on named-axis tensors. Each checks what only a script can get wrong, then adds nodes to
-- the graph; shapes and types are the builder's (native/graph), whose errors name both.
local R = ...
local native = R.native
local raise, parse, unbox = R.raise, R.parse, R.native.unbox
local type, select, ipairs = type, select, ipairs
local concat, sub, format = table.concat, string.sub, native.format

local T, Meta = {}, {}
R.T, R.tensor = T, {}
R.current = { forbid = {} } -- of the trace that runs: graph, forbid (axis -> { why, allow }), sizes, training, layer

local function is(x)
  local r = unbox(x)
  return r and r.kind == "tensor" and r or nil
end
R.is = is

local function show(r)
  local out = {}
  for i, a in ipairs(r.axes) do out[i] = a .. "=" .. format("%d", r.n[a]) end
  return "[" .. concat(out, " ") .. "]"
end
R.show = show

-- ---- watching: whatever a script makes must be used ----------------------------------------------------------------
local depth = 0
R.made = {}
local function use(x)
  local r = unbox(x)
  if r then r.group.used = true
  elseif type(x) == "table" and not getmetatable(x) then
    for _, v in next, x do local w = unbox(v); if w then w.group.used = true end end
  end
end
R.use = use
local function settled(test, ...)
  depth = 0
  local group
  for i = 1, select("#", ...) do
    local r = unbox((select(i, ...)))
    if r and not r.watched then
      group = group or { line = native.line(), test = test }
      r.group, r.watched = group, true
    end
  end
  if group then R.made[#R.made + 1] = group end
  return ...
end
function R.watch(fn, test)
  return function(...)
    if depth > 0 then return fn(...) end
    for i = 1, select("#", ...) do use((select(i, ...))) end
    depth = 1
    return settled(test, fn(...))
  end
end
local watch = R.watch
-- Errors on a comparison that nothing used; the others are warnings.
function R.settle_unused(warnings)
  for _, group in ipairs(R.made) do
    if not group.used then
      if group.test then
        native.fail("a comparison that nothing uses", "a tensor is true in Lua, so `if x:gt(y)` tests nothing; use where", "script", group.line)
      end
      warnings[#warnings + 1] = group.line .. ": a value that nothing uses"
    end
  end
  R.made = {}
end

-- ---- nodes ---------------------------------------------------------------------------------------------------------
local function ids(list)
  local out = {}
  for i, r in ipairs(list) do out[i] = r.id end
  return out
end
-- q: in = records, axes = { name, size, ... }, numbers, integers, name, type; grad: whether a gradient may reach it
local function node(op, q, grad)
  local g = R.current.graph
  for _, r in ipairs(q) do
    if r.graph ~= g then R.hint("make it where it is used", "%s: a tensor of another trace", op) end
  end
  local id, dt, axes, n = native.graph_add(g, op, ids(q), q.axes, q.numbers, q.integers, q.name, q.type)
  local r = { kind = "tensor", graph = g, id = id, dt = dt, axes = axes, n = n, grad = grad or false, group = {}, show = show }
  return native.box(r, Meta), r
end
R.node = node
function R.boxed(record) return native.box(record, Meta) end

local function holds(big, small)
  for _, a in ipairs(small.axes) do if not big.n[a] then return false end end
  return true
end
R.holds = holds

local function constant(v, dt)
  local _, r = node("constant", { numbers = { v }, type = dt })
  r.constant = true
  return r
end
local function need(x, op)
  local r = is(x)
  if not r then
    if type(x) == "nil" then raise("%s: a tensor was expected, got nil", op) end
    raise("%s: a tensor was expected, got %s", op, R.type(x))
  end
  return r
end
R.need = need
local function lift(x, like, op)
  local r = is(x)
  if r then return r end
  if type(x) ~= "number" then
    local kind = R.type(x)
    if kind == "average" or kind == "total" then
      R.hint("its value is known only when the step ends", "%s: a tensor meets an %s", op, kind)
    end
    raise("%s: a tensor meets a %s", op, kind)
  end
  if x ~= x then raise("%s: the number is NaN", op) end
  return constant(x, like and like.dt or "f32")
end
local function two(a, b, op)
  local x = is(a)
  local y = is(b)
  x = x or lift(a, y, op)
  y = y or lift(b, x, op)
  if x.dt ~= y.dt and (x.dt == "i32" or y.dt == "i32") then R.hint("cast one", "%s: %s meets %s: %s and %s", op, x.dt, y.dt, show(x), show(y)) end
  if not holds(x, y) and not holds(y, x) then
    R.shape_error("expand one, or is a dot meant?", "%s: %s and %s: neither holds all axes of the other", op, show(x), show(y))
  end
  return x, y
end

-- Axes named by a list: nil means all, "-a b" all but these. Refuses axes that this part of a script may not touch.
local function resolve(r, list, op, one)
  local out = {}
  if list == nil then
    for i, a in ipairs(r.axes) do out[i] = a end
  else
    local minus = type(list) == "string" and sub(list, 1, 1) == "-"
    local names, sizes = parse(minus and sub(list, 2) or list)
    local named = {}
    for _, a in ipairs(names) do
      if not r.n[a] then R.shape_error(nil, "%s: no axis %s in %s", op, a, show(r)) end
      if sizes[a] and sizes[a] ~= r.n[a] then R.shape_error(nil, "%s: axis %s is %d, not %d", op, a, r.n[a], sizes[a]) end
      named[a] = true
    end
    if minus then
      for _, a in ipairs(r.axes) do if not named[a] then out[#out + 1] = a end end
    else out = names end
  end
  if one and #out ~= 1 then raise("%s takes one axis, got %q", op, concat(out, " ")) end
  for _, a in ipairs(out) do
    local f = R.current.forbid[a]
    if f and not (f.allow and f.allow[op]) then R.hint(f.hint, "%s over %s: %s", op, a, f.why) end
  end
  return out
end
local function words(names, sizes)
  local out = {}
  for _, a in ipairs(names) do out[#out + 1] = a; out[#out + 1] = sizes and sizes[a] or 0 end
  return out
end
R.axis_words = words

-- ---- arithmetic ----------------------------------------------------------------------------------------------------
local function binary(op, test)
  return watch(function(a, b)
    local x, y = two(a, b, op)
    return (node(op, { x, y }, not test and (x.grad or y.grad)))
  end, test)
end
Meta.__add, Meta.__sub, Meta.__mul, Meta.__div, Meta.__pow = binary("+"), binary("-"), binary("*"), binary("/"), binary("^")
T.minimum, T.maximum = binary("minimum"), binary("maximum")
for _, op in ipairs { "lt", "le", "gt", "ge", "eq", "ne" } do T[op] = binary(op, true) end
Meta.__unm = watch(function(a)
  local x = need(a, "-")
  return (node("neg", { x }, x.grad))
end)
Meta.__index = function(_, name)
  local f = T[name]
  if f == nil then R.hint("values do not exist while the script runs", "a tensor has no %s", R.tostring(name)) end
  return f
end
Meta.__newindex = function() raise("a tensor is immutable") end
Meta.__concat = function() raise("a tensor is no text: its value does not exist while the script runs") end
Meta.__lt = function() raise("use x:lt(y): a comparison of tensors is a tensor") end
Meta.__le = Meta.__lt
Meta.__eq = function() raise("use x:eq(y): a comparison of tensors is a tensor") end
Meta.__call = function() raise("a tensor is not called") end
Meta.__len = function() raise("use x:size(axis)") end

local inexact = R.set "exp log log1p log1mexp tanh sigmoid logsigmoid softplus silu gelu gelu_tanh"
for _, op in ipairs(R.words "exp log log1p log1mexp sqrt rsqrt abs sign square tanh sigmoid logsigmoid softplus relu silu gelu gelu_tanh") do
  T[op] = watch(function(a)
    local x = need(a, op)
    if x.dt == "i32" or x.dt == "f64" and inexact[op] then raise("%s takes f32, got %s: cast", op, x.dt) end
    return (node(op, { x }, x.grad and op ~= "sign"))
  end)
end
T.clamp = watch(function(a, low, high)
  local x = need(a, "clamp")
  for _, v in next, { low or 0, high or 0 } do
    if is(v) then raise("clamp takes numbers; use minimum and maximum with tensors") end
    if type(v) ~= "number" then raise("clamp takes numbers or nil, got %s", R.type(v)) end
  end
  return (node("clamp", { x, numbers = { low or -1 / 0, high or 1 / 0 } }, x.grad))
end)
T.where = watch(function(m, yes, no)
  local mask = need(m, "where")
  local y, z = is(yes), is(no)
  y = y or lift(yes, z, "where")
  z = z or lift(no, y, "where")
  return (node("where", { mask, y, z }, y.grad or z.grad))
end)

-- ---- reductions ----------------------------------------------------------------------------------------------------
local function weight_of(x, w, op)
  local r = is(w)
  if not r or not holds(x, r) then raise("%s: weight %s must lie within %s", op, r and show(r) or R.type(w), show(x)) end
  if r.grad then R.hint("detach it", "%s: a weight carries no gradient", op) end
  return r
end
R.weight_of = weight_of
local function reduction(op, what)
  T[op] = watch(function(a, ...)
    local list, w = ...
    local count, x = select("#", ...), need(a, op)
    if count == 1 and list == nil then R.hint("name it, or give none for all axes", "%s: the axis is nil", op) end
    if count >= 2 and w == nil then raise("%s: the %s is nil", op, what) end
    if x.dt == "i32" then raise("%s takes f32, got i32: cast", op) end
    local axes = resolve(x, list, op)
    return (node(op, { x, w ~= nil and weight_of(x, w, op) or nil, axes = words(axes) }, x.grad))
  end)
end
for _, op in ipairs { "sum", "mean", "max", "min", "norm", "median" } do reduction(op, "weight") end
for _, op in ipairs { "logsumexp", "softmax", "log_softmax" } do reduction(op, "mask") end

-- ---- order and position --------------------------------------------------------------------------------------------
local function along(op, grad, fill)
  T[op] = watch(function(a, axis, ...)
    local x = need(a, op)
    local q = { x, axes = words(resolve(x, axis, op, true)) }
    if fill then fill(q, x, ...) end
    return (node(op, q, grad and x.grad))
  end)
end
along("sort", true)
along("rank", false)
along("argmax", false)
along("shift", true, function(q, _, by) q.integers = { R.integer(by, "shift") } end)
along("trim", true, function(q, x, front, back)
  front, back = R.integer(front, "trim", 0), R.integer(back or 0, "trim", 0)
  local a = q.axes[1]
  if front + back >= x.n[a] then R.shape_error(nil, "trim: %d and %d leave nothing of %s=%d", front, back, a, x.n[a]) end
  q.integers = { front, back }
end)
along("at", true, function(q, x, i)
  local a = q.axes[1]
  if R.integer(i, "at") < 0 or i >= x.n[a] then R.shape_error("positions count from 0", "at: %d outside %s=%d", i, a, x.n[a]) end
  q.integers = { i }
end)
along("cumsum", true, function(q, x, o)
  o = R.options(o, "decay reverse", "cumsum")
  local decay = o.decay == nil and 1 or o.decay
  if is(decay) then
    q[2] = weight_of(x, decay, "cumsum")
    decay = 1
  end
  if type(decay) ~= "number" then raise("cumsum: decay is a number or a tensor") end
  q.numbers, q.integers = { decay }, { o.reverse and 1 or 0 }
end)
T.topk = watch(function(a, axis, k, new)
  local x = need(a, "topk")
  local name = resolve(x, axis, "topk", true)[1]
  if R.integer(k, "topk", 1) > x.n[name] then R.shape_error(nil, "topk: %d of %s=%d", k, name, x.n[name]) end
  if type(new) ~= "string" then raise("topk: name the new axis") end
  local value, r = node("topk", { x, axes = { name, 0, new, k } }, x.grad)
  return value, (node("result", { r, integers = { 1 } }))
end)
T.gather = watch(function(a, axis, index)
  local x, i = need(a, "gather"), need(index, "gather")
  if i.dt ~= "i32" then R.hint("cast it", "gather: the index is %s, not i32", i.dt) end
  return (node("gather", { x, i, axes = words(resolve(x, axis, "gather", true)) }, x.grad))
end)
local function sized(list, op)
  local names, sizes = parse(list)
  for _, a in ipairs(names) do
    sizes[a] = sizes[a] or R.current.sizes and R.current.sizes[a] or R.hint("write it as " .. a .. "=4", "%s: axis %s needs a size", op, a)
  end
  return names, sizes
end
R.sized = sized
T.scatter = watch(function(a, axis, index, new)
  local x, i = need(a, "scatter"), need(index, "scatter")
  local names, sizes = sized(new, "scatter")
  if i.dt ~= "i32" then R.hint("cast it", "scatter: the index is %s, not i32", i.dt) end
  if #names ~= 1 then raise("scatter: one new axis, got %q", new) end
  local axes = words(resolve(x, axis, "scatter"))
  axes[#axes + 1], axes[#axes + 2] = names[1], sizes[names[1]]
  return (node("scatter", { x, i, axes = axes }, x.grad))
end)
T.one_hot = watch(function(a, new)
  local x = need(a, "one_hot")
  local names, sizes = sized(new, "one_hot")
  if #names ~= 1 then raise("one_hot: one new axis, got %q", new) end
  if x.dt ~= "i32" then raise("one_hot takes i32, got %s", x.dt) end
  return (node("one_hot", { x, axes = words(names, sizes) }))
end)

-- ---- products ------------------------------------------------------------------------------------------------------
T.dot = watch(function(a, b, axes)
  local x, y = need(a, "dot"), need(b, "dot")
  local over = resolve(x, axes == nil and raise("dot: name the axes to sum over") or axes, "dot")
  for _, name in ipairs(over) do
    if not y.n[name] then R.shape_error(nil, "dot: axis %s must be in both %s and %s", name, show(x), show(y)) end
  end
  return (node("dot", { x, y, axes = words(over) }, x.grad or y.grad))
end)
T.dist2 = watch(function(a, axis, other)
  local x = need(a, "dist2")
  local name = resolve(x, axis, "dist2", true)[1]
  for _, n in ipairs(x.axes) do
    local f = R.current.forbid[n]
    if f and not (f.allow and f.allow.dist2) then R.hint(f.hint, "dist2 over %s: %s", n, f.why) end
  end
  if type(other) ~= "string" then raise("dist2: name the second axis") end
  return (node("dist2", { x, axes = { name, 0, other, 0 } }, x.grad))
end)

-- ---- shape ---------------------------------------------------------------------------------------------------------
function T.size(a, axis)
  local x = need(a, "size")
  return x.n[axis] or R.shape_error(nil, "size: no axis %s in %s", R.tostring(axis), show(x))
end
function T.has(a, axis) return need(a, "has").n[axis] ~= nil end
function T.axes(a) return sub(show(need(a, "axes")), 2, -2) end

local function shaped(op, axes_of)
  T[op] = watch(function(a, ...)
    local x = need(a, op)
    return (node(op, { x, axes = axes_of(x, ...) }, x.grad))
  end)
end
shaped("rename", function(x, old, new)
  if type(new) ~= "string" or type(old) ~= "string" then raise("rename takes two names") end
  if not x.n[old] then R.shape_error(nil, "rename: no axis %s in %s", old, show(x)) end
  return { old, 0, new, 0 }
end)
shaped("split", function(x, axis, list)
  local names, sizes = parse(list)
  if not x.n[axis] then R.shape_error(nil, "split: no axis %s in %s", R.tostring(axis), show(x)) end
  for _, a in ipairs(names) do sizes[a] = sizes[a] or R.current.sizes and R.current.sizes[a] end
  local out = words(names, sizes)
  table.insert(out, 1, 0)
  table.insert(out, 1, axis)
  return out
end)
shaped("merge", function(x, list, name)
  local names = parse(list)
  for _, a in ipairs(names) do if not x.n[a] then R.shape_error(nil, "merge: no axis %s in %s", a, show(x)) end end
  if type(name) ~= "string" then raise("merge: name the new axis") end
  local out = words(names)
  table.insert(out, 1, 0)
  table.insert(out, 1, name)
  return out
end)
shaped("expand", function(x, like)
  local r = is(like)
  if r then return words(r.axes, r.n) end
  local names, sizes = parse(like)
  for _, a in ipairs(names) do
    sizes[a] = sizes[a] or x.n[a] or R.current.sizes and R.current.sizes[a] or
      R.hint("write it as " .. a .. "=4", "expand: axis %s needs a size", a)
  end
  return words(names, sizes)
end)
T.detach = watch(function(a) return (node("detach", { need(a, "detach") })) end)
T.cast = watch(function(a, dt)
  local x = need(a, "cast")
  if dt ~= "f32" and dt ~= "f64" and dt ~= "i32" then raise("cast: no type %s; f32, f64 and i32 exist", R.tostring(dt)) end
  return (node("cast", { x, type = dt }, x.grad and dt ~= "i32"))
end)

-- ---- constructors --------------------------------------------------------------------------------------------------
local C = R.tensor
local function shape_like(like, op)
  local r = is(like)
  if r then return r.axes, r.n end
  return sized(like, op)
end
local function full(like, value, op)
  if type(value) ~= "number" then raise("%s takes a number, got %s", op, R.type(value)) end
  if value ~= value then raise("%s: the number is NaN", op) end
  local axes, n = shape_like(like, op)
  local r = is(like)
  local x = constant(value, r and r.dt ~= "i32" and r.dt or "f32")
  local out, record = node("expand", { x, axes = words(axes, n) })
  record.constant = nil
  return out
end
C.full = watch(function(like, value) return full(like, value, "full") end)
C.zeros = watch(function(like) return full(like, 0, "zeros") end)
C.of = watch(function(axis, list)
  local names, sizes = parse(axis)
  if #names ~= 1 or type(list) ~= "table" then raise("tensor.of takes one axis and a list of numbers") end
  if sizes[names[1]] and sizes[names[1]] ~= #list then R.shape_error(nil, "of: %q holds %d numbers", axis, #list) end
  local numbers = {}
  for i, v in ipairs(list) do
    if type(v) ~= "number" or v ~= v then raise("tensor.of: item %d is no number", i) end
    numbers[i] = v
  end
  return (node("table", { axes = { names[1], #numbers }, numbers = numbers, type = "f32" }))
end)
C.iota = watch(function(list)
  local names, sizes = sized(list, "iota")
  if #names ~= 1 then raise("iota takes one axis, got %q", list) end
  return (node("iota", { axes = words(names, sizes) }))
end)
local function draw(op)
  return watch(function(like, label)
    if type(label) ~= "string" or label == "" then raise("%s: a random tensor needs a label", op) end
    local axes, n = shape_like(like, op)
    return (node(op, { axes = words(axes, n), integers = { R.current.layer or -1 }, name = label }))
  end)
end
C.normal, C.uniform = draw("normal"), draw("uniform")
local function list_of(list, op)
  if type(list) ~= "table" or #list == 0 then raise("%s takes a list of tensors", op) end
  local out, grad = {}, false
  for i, x in ipairs(list) do
    out[i] = need(x, op)
    grad = grad or out[i].grad
  end
  return out, grad
end
C.concat = watch(function(axis, list)
  local q, grad = list_of(list, "concat")
  resolve(q[1], axis, "concat", true)
  q.axes = { axis, 0 }
  return (node("concat", q, grad))
end)
C.stack = watch(function(new, list)
  if type(new) ~= "string" then raise("stack: name the new axis") end
  local from, grad = list_of(list, "stack")
  local q = { axes = { new, 0 } }
  for i, r in ipairs(from) do
    local _, one = node("expand", { r, axes = { new, 1 } }, r.grad)
    q[i] = one
  end
  return (node("concat", q, grad))
end)
C.low_rank = watch(function(b, a, axis, r)
  local x, y = need(b, "low_rank"), need(a, "low_rank")
  resolve(x, axis, "low_rank", true)
  local first, record = node("factor", { x, y, axes = { axis, R.integer(r, "low_rank", 1) } })
  return first, (node("result", { record, integers = { 1 } }))
end)

-- { name = value } with only the names of `known`.
function R.options(o, known, op)
  if o == nil then return {} end
  if type(o) ~= "table" or unbox(o) then raise("%s: options are a table", op) end
  local set = R.set(known)
  for k in R.pairs(o) do if not set[k] then R.hint("it has " .. known, "%s: no option %s", op, R.tostring(k)) end end
  return o
end

-- A fresh trace: an empty graph. `t` fields: forbid, sizes, training.
function R.begin(t)
  t.graph, t.forbid = native.graph_new(), t.forbid or {}
  R.current, R.made, depth = t, {}, 0
  return t.graph
end
-- An input of the current graph; `axes` as "batch=4 time=8".
function R.input(name, axes, dt, grad)
  local names, sizes = parse(axes)
  local x, r = node("input", { axes = words(names, sizes), name = name, type = dt or "f32" }, grad)
  r.watched = true
  return x
end
function R.output(name, x) native.graph_output(R.current.graph, name, unbox(x).id) end
function R.axes_text(r) return sub(show(r), 2, -2) end
