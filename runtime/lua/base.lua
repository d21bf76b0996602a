-- base: what the other trusted modules stand on, and the plain libraries that scripts get.
-- Every module of this folder receives one shared table R; scripts never see it. Nothing here catches an error.
local R = ...
local native = R.native
local type, next, ipairs, select = type, next, ipairs, select
local gmatch, match, sub, rep, find, byte = string.gmatch, string.match, string.sub, string.rep, string.find, string.byte
local concat, insert, remove = table.concat, table.insert, table.remove
local floor = math.floor
local unbox = native.unbox

function R.raise(fmt, ...) native.fail(native.format(fmt, ...)) end
local raise = R.raise
function R.hint(hint, fmt, ...) native.fail(native.format(fmt, ...), hint) end
function R.shape_error(hint, fmt, ...) native.fail(native.format(fmt, ...), hint, "shape") end

-- Lists that stay lists when they are empty, on the way to the host.
local List = {}
function R.list(t) return setmetatable(t or {}, List) end
native.register("list", List)

function R.type(x)
  local record = unbox(x)
  return record and record.kind or type(x)
end

function R.tostring(x)
  local record, kind = unbox(x), type(x)
  if record then return record.show and record.show(record) or record.kind end
  if kind == "number" then return native.number_text(x) end
  if kind == "string" then return x end
  if kind == "boolean" then return x and "true" or "false" end
  return kind
end
native.register("tostring", R.tostring)

function R.integer(x, what, low)
  if type(x) ~= "number" or x % 1 ~= 0 or x > 9007199254740992 or x < (low or -9007199254740992) then
    raise("%s: %s is no integer%s", what, R.tostring(x), low and " of at least " .. low or "")
  end
  return x
end

-- Keys in one order everywhere: numbers ascending, text bytewise, false, true.
local rank = { number = 1, string = 2, boolean = 3 }
local function before(a, b)
  local ra, rb = rank[type(a)], rank[type(b)]
  if ra ~= rb then return ra < rb end
  if ra == 3 then return not a and b end
  return a < b
end
function R.keys(t)
  local keys, n = {}, 0
  for k in next, t do
    if not rank[type(k)] then raise("pairs: a key is a %s", type(k)) end
    n = n + 1
    keys[n] = k
  end
  table.sort(keys, before)
  return keys
end
native.register("keys", R.keys)

function R.pairs(t)
  if type(t) ~= "table" or getmetatable(t) and getmetatable(t) ~= List then raise("pairs takes a table, got %s", R.type(t)) end
  local keys, i = R.keys(t), 0
  return function()
    i = i + 1
    local k = keys[i]
    while k ~= nil and t[k] == nil do i = i + 1; k = keys[i] end
    if k ~= nil then return k, t[k] end
  end
end

-- Words of a text, and "a b=3" -> { "a", "b" }, { b = 3 }.
function R.words(text)
  local out, n = {}, 0
  for word in gmatch(text, "%S+") do n = n + 1; out[n] = word end
  return out
end
function R.set(text)
  local out = {}
  for _, word in ipairs(R.words(text)) do out[word] = true end
  return out
end
function R.parse(list)
  if type(list) ~= "string" then R.hint("an axis list is text such as \"batch time\"", "an axis list was expected, got %s", R.type(list)) end
  if #list > 1024 then raise("an axis list of %d characters", #list) end
  local names, sizes, seen = {}, {}, {}
  for word in gmatch(list, "%S+") do
    local name, size = match(word, "^([%a_][%w_]*)=?(%d*)$")
    if not name then raise("bad axis list %q", list) end
    if seen[name] then raise("axis %s twice in %q", name, list) end
    seen[name] = true
    names[#names + 1] = name
    if size ~= "" then sizes[name] = native.to_number(size) end
  end
  return names, sizes
end

function R.copy(t) local c = {}; for k, v in next, t do c[k] = v end; return c end

-- A closed set of fields. `make(name)` gives a field's value or nil; `known()` lists the names.
function R.fields(what, make, known)
  local values = {}
  return setmetatable({}, {
    __index = function(_, name)
      local v = values[name]
      if v == nil then
        v = type(name) == "string" and make(name)
        if v == nil then R.hint("it has " .. concat(known(), " "), "%s has no %s", what, R.tostring(name)) end
        values[name] = v
      end
      return v
    end,
    __newindex = function(_, name) raise("%s is read only; %s was assigned", what, R.tostring(name)) end,
  })
end
function R.fixed(what, values) -- of plain values; false stands for absent ones
  return R.fields(what, function(name) return values[name] end, function() return R.keys(values) end)
end

-- ---- string, table, math of scripts --------------------------------------------------------------------------------
local function text_of(x, what)
  if type(x) == "number" then return native.number_text(x) end
  if type(x) ~= "string" then raise("%s takes text, got %s", what, R.type(x)) end
  return x
end
local function position(x, default, what)
  if x == nil then return default end
  return R.integer(x, what)
end

local text_limit = 1048576
function R.string_library()
  local S = {}
  function S.byte(s, i, j)
    i = position(i, 1, "byte")
    s, j = text_of(s, "byte"), position(j, i, "byte")
    if j - i > 4096 then raise("byte: more than 4096 at once") end
    return byte(s, i, j)
  end
  function S.char(...)
    local out = {}
    for i = 1, select("#", ...) do
      local c = R.integer((select(i, ...)), "char", 0)
      if c > 255 then raise("char: %d is above 255", c) end
      out[i] = string.char(c)
    end
    return concat(out)
  end
  function S.find(s, what, from) return find(text_of(s, "find"), text_of(what, "find"), position(from, 1, "find"), true) end
  function S.format(fmt, ...) return native.format(text_of(fmt, "format"), ...) end
  function S.len(s) return #text_of(s, "len") end
  function S.lower(s) return string.lower(text_of(s, "lower")) end
  function S.upper(s) return string.upper(text_of(s, "upper")) end
  function S.reverse(s) return string.reverse(text_of(s, "reverse")) end
  function S.rep(s, n)
    s, n = text_of(s, "rep"), R.integer(n, "rep")
    if n > 0 and #s * n > text_limit then raise("rep: more than %d bytes", text_limit) end
    return n > 0 and rep(s, n) or ""
  end
  function S.sub(s, i, j) return sub(text_of(s, "sub"), position(i, 1, "sub"), position(j, -1, "sub")) end
  function S.starts_with(s, start) return sub(text_of(s, "starts_with"), 1, #text_of(start, "starts_with")) == start end
  function S.split(s, by)
    s, by = text_of(s, "split"), text_of(by, "split")
    if by == "" then raise("split: the separator is empty") end
    local out, from = {}, 1
    while true do
      local a, b = find(s, by, from, true)
      if not a then break end
      out[#out + 1] = sub(s, from, a - 1)
      from = b + 1
    end
    out[#out + 1] = sub(s, from)
    return out
  end
  return S
end

-- Stable merge sort; a comparison that contradicts itself is an error, not an order.
local function merge_sort(list, less)
  local n, from, width = #list, list, 1
  local to = {}
  while width < n do
    local at = 1
    for low = 1, n, 2 * width do
      local i, mid, high = low, low + width, low + 2 * width
      local j = mid
      if mid > n + 1 then mid = n + 1 end
      if high > n + 1 then high = n + 1 end
      while i < mid or j < high do
        if j >= high or i < mid and not less(from[j], from[i]) then to[at] = from[i]; i = i + 1
        else to[at] = from[j]; j = j + 1 end
        at = at + 1
      end
    end
    from, to, width = to, from, 2 * width
  end
  for i = 2, n do
    if less(from[i], from[i - 1]) then raise("sort: the comparison contradicts itself") end
  end
  if from ~= list then for i = 1, n do list[i] = from[i] end end
end
local function table_of(t, what)
  if type(t) ~= "table" then raise("%s takes a table, got %s", what, R.type(t)) end
  return t
end
function R.table_library()
  local L = {}
  function L.sort(t, less)
    table_of(t, "sort")
    if less == nil then
      for i = 2, #t do
        if type(t[i]) ~= type(t[1]) or type(t[i]) ~= "number" and type(t[i]) ~= "string" then raise("sort: give a comparison") end
      end
      less = function(a, b) return a < b end
    end
    merge_sort(t, less)
  end
  function L.concat(t, by)
    local out = {}
    for i, v in ipairs(table_of(t, "concat")) do out[i] = text_of(v, "concat") end
    return concat(out, by == nil and "" or text_of(by, "concat"))
  end
  function L.insert(t, a, ...)
    table_of(t, "insert")
    if select("#", ...) == 0 then t[#t + 1] = a; return end
    if R.integer(a, "insert", 1) > #t + 1 then raise("insert: position %d of %d", a, #t) end
    insert(t, a, (...))
  end
  function L.remove(t, at)
    table_of(t, "remove")
    if #t == 0 then return nil end
    if R.integer(at or #t, "remove", 1) > #t then raise("remove: position %d of %d", at, #t) end
    return remove(t, at or #t)
  end
  return L
end
function R.math_library()
  local M = R.copy(native.math)
  M.pi, M.huge = 3.141592653589793, 1 / 0
  return M
end
native.string_methods(R.string_library())

function R.tonumber(x)
  if type(x) == "number" then return x end
  if type(x) == "string" then return native.to_number(x) end
end
R.floor = floor
