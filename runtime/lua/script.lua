-- script: loading. Each load runs the file anew in a fresh environment that holds exactly the globals a script may use.
local R = ...
local native, raise, unbox = R.native, R.raise, R.native.unbox
local type, ipairs, concat, sub = type, ipairs, table.concat, string.sub

local allowed = {
  objective = { need = "data loss", may = "prepare heads rollout" },
  aggregator = { need = "combine", may = "over init trains robust" },
  optimiser = { need = "step", may = "init" },
  model = { need = "data architectures config embed block head", may = "" },
  schedule = { need = "lr round", may = "init fragments fragment stages" },
  reward = { need = "score", may = "" },
}
local functions = R.set "loss prepare combine init trains step config embed block head lr round fragment stages score"
local data_kinds = { objective = R.set "chat text pairs labelled rollouts images series", model = R.set "text images series" }

local function kind_of(name, t)
  local fields = allowed[name]
  if type(t) ~= "table" or unbox(t) then raise("%s takes a table: %s { ... }", name, name) end
  local known = R.set(fields.need .. " " .. fields.may)
  for field, value in R.pairs(t) do
    if not known[field] then R.hint("it has " .. fields.need .. " " .. fields.may, "%s has no field %s", name, R.tostring(field)) end
    if functions[field] and type(value) ~= "function" then raise("%s: %s is a function, not a %s", name, field, R.type(value)) end
  end
  for _, field in ipairs(R.words(fields.need)) do
    if t[field] == nil then raise("%s: %s is missing", name, field) end
  end
  local kinds = data_kinds[name]
  if kinds and not kinds[t.data] then R.hint("it is one of " .. concat(R.keys(kinds), " "), "%s: no data %s", name, R.tostring(t.data)) end
  if name == "aggregator" and not R.set("whole tensor adapter")[t.over or "whole"] then
    R.hint("it is whole, tensor or adapter", "aggregator: over = %s", R.tostring(t.over))
  end
  if name == "schedule" and t.fragment and not t.fragments then raise("schedule: fragment without fragments") end
end

-- ---- options -------------------------------------------------------------------------------------------------------
local function in_range(v, o)
  if o.min and v < o.min or o.max and v > o.max then
    return native.format("%g is outside [%s, %s]", v, o.min and R.tostring(o.min) or "-inf", o.max and R.tostring(o.max) or "inf")
  end
end
-- A number of a spec: an integer, or decimal text.
local function number(v)
  if type(v) == "string" then v = native.to_number(v) end
  if type(v) == "number" and v == v then return v end
end
local readers = { -- (value, option) -> value or nil, why not
  number = function(v, o)
    local x = number(v)
    if not x then return nil, "no number" end
    return x, in_range(x, o)
  end,
  integer = function(v, o)
    local x = number(v)
    if not x or x % 1 ~= 0 then return nil, "no integer" end
    return x, in_range(x, o)
  end,
  flag = function(v)
    if type(v) ~= "boolean" then return nil, "neither true nor false" end
    return v
  end,
  text = function(v)
    if type(v) ~= "string" then return nil, "no text" end
    return v
  end,
  choice = function(v, o)
    if type(v) == "number" then v = native.number_text(v) end
    for _, c in ipairs(o.choices) do if c == v then return v end end
    return nil, R.tostring(v) .. " is none of " .. concat(o.choices, " ")
  end,
  list = function(v)
    if type(v) ~= "table" or unbox(v) then return nil, "no list" end
    local out = {}
    for i, x in ipairs(v) do
      if type(x) ~= "string" and type(x) ~= "number" then return nil, "an item that is neither text nor a number" end
      out[i] = x
    end
    return out
  end,
  numbers = function(v, o)
    if type(v) ~= "table" or unbox(v) then return nil, "no list" end
    local out = {}
    for i, x in ipairs(v) do
      out[i] = number(x)
      if not out[i] then return nil, "an item that is no number" end
      local bad = in_range(out[i], o)
      if bad then return nil, bad end
    end
    return out
  end,
}
local function declare(state, prefix, kind, name, default, limits, choices)
  if type(name) ~= "string" or not string.match(name, "^[%a_][%w_]*$") then raise("spec.%s: %q is no name", kind, R.tostring(name)) end
  local full = prefix .. name
  if state.declared[full] then raise("option %s is declared twice", full) end
  local o = R.options(limits, "min max help", "spec." .. kind)
  local read = readers[kind]
  local made = { name = full, type = kind, min = o.min, max = o.max, help = o.help, choices = choices }
  local function checked(v)
    local x, bad = read(v, made)
    if bad then native.fail(native.format("option %s: %s", full, bad), o.help, "range") end
    return x
  end
  made.default = checked(default)
  local value = made.default
  if state.given[full] ~= nil then value = checked(state.given[full]) end
  made.value = value
  state.declared[full] = true
  state.options[#state.options + 1] = made
  if type(value) == "table" then return R.copy(value) end
  return value
end

local function spec_library(state, prefix)
  local spec = {}
  for _, kind in ipairs { "number", "integer", "flag", "text", "list", "numbers" } do
    spec[kind] = function(name, default, o) return declare(state, prefix, kind, name, default, o) end
  end
  function spec.choice(name, default, choices, o)
    if type(choices) ~= "table" or #choices == 0 then raise("spec.choice takes a name, a default and a list") end
    for i, c in ipairs(choices) do if type(c) ~= "string" then raise("spec.choice: item %d is no text", i) end end
    return declare(state, prefix, "choice", name, default, o, R.list(R.copy(choices)))
  end
  return spec
end

-- ---- environment ---------------------------------------------------------------------------------------------------
local environment_names = R.words(
  "check import ipairs log metric pairs tonumber tostring type average total spec objective aggregator schedule optimiser model reward " ..
  "tensor nn string table math text json")

local load
local function environment(state, prefix, stack)
  local env = {
    ipairs = ipairs, pairs = R.pairs, tonumber = R.tonumber, tostring = R.tostring, type = R.type,
    string = R.string_library(), table = R.table_library(), math = R.math_library(),
    tensor = R.copy(R.tensor), nn = R.copy(R.nn), average = R.average, total = R.total, metric = R.metric,
    text = R.copy(R.text), json = R.copy(R.json), spec = spec_library(state, prefix),
  }
  function env.check(ok, fmt, ...)
    if R.is(ok) or R.is_average(ok) then raise("check takes a Lua condition; a tensor is always true") end
    if not ok then raise(fmt == nil and "check failed" or fmt, ...) end
    return ok
  end
  function env.log(fmt, ...)
    if #state.log < 100 then state.log[#state.log + 1] = native.format(fmt, ...) end
  end
  function env.import(name) return (load(state, name, prefix .. R.tostring(name) .. ".", stack)) end
  for _, kind in ipairs(R.keys(allowed)) do
    env[kind] = function(t)
      kind_of(kind, t)
      state.kinds[t] = kind
      return t
    end
  end
  return setmetatable(env, {
    __index = function(_, name) R.hint("globals are " .. concat(environment_names, " "), "no global %s", R.tostring(name)) end,
    __newindex = function(_, name) R.hint("write local " .. R.tostring(name), "assignment to global %s", R.tostring(name)) end,
  })
end

function load(state, name, prefix, stack)
  local file = type(name) == "string" and state.files[name]
  if not file then R.hint("the run names every script that is imported", "no script %s to import", R.tostring(name)) end
  local label = name .. ".lua@" .. sub(file.hash, 1, 8)
  local at = stack
  while at do
    if at.name == name then raise("import cycle: %s imports itself by way of %s", name, stack.name) end
    at = at.outer
  end
  if stack then state.imports[name] = file.hash end
  local inner = { name = name, outer = stack }
  local chunk = native.compile(file.source, label, environment(state, prefix, inner))
  local out = chunk()
  if type(out) ~= "table" then native.fail("the file returned no table", "end it with return objective { ... } or the like", "script", label .. ":1") end
  return out, label
end

-- Runs files[1] of the request; returns its table, its kind and the state (options, imports, log).
function R.load(request)
  local state = { files = {}, given = request.options or {}, declared = {}, options = R.list(), imports = {}, kinds = {}, log = R.list() }
  for i = #request.files, 1, -1 do state.files[request.files[i].name] = request.files[i] end
  R.metrics = {}
  local out, label = load(state, request.files[1].name, "", nil)
  local kind = state.kinds[out] or (type(out.spec) == "table" and "run") or "module"
  for _, name in ipairs(R.keys(state.given)) do
    if not state.declared[name] then
      local names = {}
      for i, o in ipairs(state.options) do names[i] = o.name end
      native.fail(native.format("no option %s", name), #names > 0 and "it has " .. concat(names, " ") or "it has none", "unknown", label)
    end
  end
  state.label = label
  return out, kind, state
end
