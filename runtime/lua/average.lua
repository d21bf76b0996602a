-- average: what a loss is made of. A term is coef * Σ sum / Σ count, divided once over the whole optimiser step, so it adds and
-- scales by numbers and does nothing else. A total is Σ sum alone.
local R = ...
local native, unbox, raise, node = R.native, R.native.unbox, R.raise, R.node

local Average, Total = {}, {}
local function is_average(x) local r = unbox(x); return r and r.kind == "average" and r or nil end
local function is_total(x) local r = unbox(x); return r and r.kind == "total" and r or nil end
R.is_average, R.is_total = is_average, is_total

local function make_average(terms, grad) return native.box({ kind = "average", terms = terms, grad = grad, group = {} }, Average) end
local function make_total(sum, grad) return native.box({ kind = "total", sum = sum, grad = grad, group = {} }, Total) end

local function summed(a, op, count, w)
  local x = R.need(a, op)
  if count >= 2 and w == nil then raise("%s: the weight is nil", op) end
  if x.dt == "i32" then R.hint("cast it", "%s takes f32, got i32", op) end
  local weight = w ~= nil and R.weight_of(x, w, op) or nil
  local _, sum = node("sum", { x, weight, axes = R.axis_words(x.axes) }, x.grad)
  return x, weight, sum
end

local function count_of(x, weight)
  local rest = 1
  for _, a in ipairs(x.axes) do if not weight or not weight.n[a] then rest = rest * x.n[a] end end
  local _, times = node("constant", { numbers = { rest }, type = "f32" })
  if not weight then return times end
  local _, sum = node("sum", { weight, axes = R.axis_words(weight.axes) })
  if rest == 1 then return sum end
  local _, count = node("*", { sum, times })
  return count
end

R.average = R.watch(function(a, ...)
  local x, weight, sum = summed(a, "average", 1 + select("#", ...), (...))
  return make_average({ { coef = 1, sum = sum, count = count_of(x, weight) } }, x.grad)
end)
R.total = R.watch(function(a, ...)
  local x, _, sum = summed(a, "total", 1 + select("#", ...), (...))
  return make_total(sum, x.grad)
end)

Total.__div = R.watch(function(a, b)
  local x, y = is_total(a), is_total(b)
  if x and type(b) == "number" then
    local _, k = node("constant", { numbers = { b }, type = "f32" })
    local _, sum = node("/", { x.sum, k }, x.grad)
    return make_total(sum, x.grad)
  end
  if not x or not y then raise("a total divides by a number or a total") end
  if y.grad then raise("a denominator carries no gradient") end
  return make_average({ { coef = 1, sum = x.sum, count = y.sum } }, x.grad)
end)
local function no_total() R.hint("divide it by a total first: that is an average", "a total only divides by a number or a total") end
Total.__add, Total.__sub, Total.__mul, Total.__unm, Total.__pow = no_total, no_total, no_total, no_total, no_total

local function scaled(a, k)
  local x = is_average(a)
  if not x or type(k) ~= "number" or k ~= k then
    raise("an average scales by a number; its value is not known before the step ends")
  end
  local terms = {}
  for i, t in ipairs(x.terms) do terms[i] = { coef = t.coef * k, sum = t.sum, count = t.count } end
  return make_average(terms, x.grad)
end
local function added(a, b, sign)
  local x, y = is_average(a), is_average(b)
  if not x or not y then raise("an average adds to an average") end
  local terms = {}
  for _, t in ipairs(x.terms) do terms[#terms + 1] = t end
  for _, t in ipairs(y.terms) do terms[#terms + 1] = { coef = sign * t.coef, sum = t.sum, count = t.count } end
  return make_average(terms, x.grad or y.grad)
end
Average.__mul = R.watch(function(a, b) if is_average(a) then return (scaled(a, b)) end; return (scaled(b, a)) end)
Average.__div = R.watch(function(a, b) return (scaled(a, type(b) == "number" and 1 / b or b)) end)
Average.__unm = R.watch(function(a) return (scaled(a, -1)) end)
Average.__add = R.watch(function(a, b) return (added(a, b, 1)) end)
Average.__sub = R.watch(function(a, b) return (added(a, b, -1)) end)
Average.__pow = function() raise("an average scales by a number; its value is not known before the step ends") end
local function opaque(what)
  return function(_, name) R.hint("it adds and scales by numbers", "an %s has no %s", what, R.tostring(name)) end
end
Average.__index, Total.__index = opaque("average"), opaque("total")
Average.__newindex, Total.__newindex = Average.__index, Total.__index
local function compared() raise("an average has no value while the script runs") end
Average.__lt, Average.__le, Average.__eq, Total.__lt, Total.__le, Total.__eq = compared, compared, compared, compared, compared, compared

-- The terms of an average or a total as outputs "PREFIX.0.sum", "PREFIX.0.count" of the current graph, and their list for the host.
function R.write_terms(prefix, value)
  local r, out = unbox(value), R.list()
  local terms = r.kind == "total" and { { coef = 1, sum = r.sum } } or r.terms
  for i, t in ipairs(terms) do
    local name = native.format("%s.%d", prefix, i - 1)
    native.graph_output(r.graph or R.current.graph, name .. ".sum", t.sum.id)
    if t.count then native.graph_output(R.current.graph, name .. ".count", t.count.id) end
    out[i] = { coef = t.coef, sum = name .. ".sum", count = t.count and name .. ".count" or nil }
  end
  return out
end

-- metric(name, value): collected by the trace that runs; in a loss averages and totals, elsewhere scalar tensors.
R.metrics = {}
function R.metric(name, value)
  if type(name) ~= "string" or not string.match(name, "^[%a_][%w_]*$") or #name > 40 then raise("metric: %q is no name", R.tostring(name)) end
  local r = unbox(value)
  if R.current.averages then
    if not is_average(value) and not is_total(value) then raise("metric %s: in a loss it is an average or a total", name) end
  elseif R.current.graph then
    if not R.is(value) or #r.axes > 0 then raise("metric %s: it is a scalar tensor here", name) end
  end
  R.use(value)
  R.metrics[name] = value
end
