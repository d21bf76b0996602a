-- reward: the `text` and `json` that reward scripts name, and the verb that scores completions.
local R = ...
local native, raise = R.native, R.raise
local type, ipairs, concat, setmetatable, getmetatable = type, ipairs, table.concat, setmetatable, getmetatable
local sub, byte, char, find, gsub, floor = string.sub, string.byte, string.char, string.find, string.gsub, math.floor
local List = getmetatable(R.list())

local function text_of(x, what)
  if type(x) ~= "string" then raise("%s takes text, got %s", what, R.type(x)) end
  return x
end

-- ---- text: patterns in linear time ---------------------------------------------------------------------------------
-- A pattern becomes a program of Thompson's machine (Thompson 1968; Cox 2007), run over the text with one list of threads in order of
-- preference: leftmost, then as a backtracking matcher would choose. Time is at most program times text, whatever the pattern.
--     char set: [ok[256]]     split a b     jump a     save slot     start end     match
local classes = {
  d = function(c) return c >= 48 and c <= 57 end,
  s = function(c) return c == 32 or c >= 9 and c <= 13 end,
  w = function(c) return c >= 48 and c <= 57 or c >= 65 and c <= 90 or c >= 97 and c <= 122 or c == 95 end,
}
local controls = { n = 10, t = 9, r = 13, f = 12, v = 11 }

local function bad(pattern, why) R.hint("patterns know . [] () (?:) | * + ? {m,n} ^ $ and \\d \\s \\w \\D \\S \\W", "the pattern %q: %s", pattern, why) end

-- After a backslash: a set of bytes; its place afterwards.
local function escape(p, at)
  local e = sub(p, at, at)
  if e == "" then bad(p, "it ends in a backslash") end
  local class = classes[string.lower(e)]
  local set = {}
  if class then
    local want = string.lower(e) == e
    for c = 0, 255 do set[c] = class(c) == want or nil end
  elseif controls[e] then set[controls[e]] = true
  elseif find(e, "^[%w]") then bad(p, "\\" .. e .. " means nothing here")
  else set[byte(e)] = true end
  return set, at + 1
end

local function bracket(p, at)
  local negate, set, first = false, {}, true
  if sub(p, at, at) == "^" then negate = true; at = at + 1 end
  while first or sub(p, at, at) ~= "]" do
    first = false
    local c = sub(p, at, at)
    if c == "" then bad(p, "a [ is not closed") end
    local low, item = byte(c), nil
    at = at + 1
    if c == "\\" then
      item, at = escape(p, at)
      low = nil
      local n = 0
      for k in R.pairs(item) do n = n + 1; low = k end
      if n ~= 1 then low = nil end
    end
    if low and sub(p, at, at) == "-" and sub(p, at + 1, at + 1) ~= "]" and sub(p, at + 1, at + 1) ~= "" then
      local high = byte(p, at + 1)
      at = at + 2
      if high == 92 then
        local s
        s, at = escape(p, at)
        local n = 0
        for k in R.pairs(s) do n = n + 1; high = k end
        if n ~= 1 then bad(p, "a range ends in a class") end
      end
      if high < low then bad(p, "a range runs backwards") end
      for k = low, high do set[k] = true end
    elseif item then for k in R.pairs(item) do set[k] = true end
    else set[low] = true end
  end
  if negate then
    local other = {}
    for k = 0, 255 do if not set[k] then other[k] = true end end
    set = other
  end
  return set, at + 1
end

-- Pattern to tree: { kind = "set", set } "start" "end" { "cat", ... } { "alt", ... } { "group", x, slot } { "rep", x, least, most, lazy }.
local function parse(p)
  local at, groups, depth = 1, 0, 0
  local alternatives
  local function group()
    local slot
    if sub(p, at, at + 1) == "?:" then at = at + 2
    elseif sub(p, at, at) == "?" then bad(p, "no look-around or flags")
    else groups = groups + 1; slot = 2 * groups end
    depth = depth + 1
    if depth > 50 then bad(p, "it is nested too deep") end
    local x = alternatives()
    depth = depth - 1
    if sub(p, at, at) ~= ")" then bad(p, "a ( is not closed") end
    at = at + 1
    return { kind = "group", x, slot = slot }
  end
  local function atom()
    local c = sub(p, at, at)
    local set
    at = at + 1
    if c == "(" then return group() end
    if c == "^" then return { kind = "start" } end
    if c == "$" then return { kind = "end" } end
    if c == "*" or c == "+" or c == "?" then bad(p, c .. " repeats nothing") end
    if c == "[" then set, at = bracket(p, at)
    elseif c == "\\" then set, at = escape(p, at)
    elseif c == "." then
      set = {}
      for k = 0, 255 do set[k] = k ~= 10 or nil end
    else set = { [byte(c)] = true } end
    return { kind = "set", set = set }
  end
  local function counts()
    local a, b, m, comma, n = find(p, "^{(%d+)(,?)(%d*)}", at)
    if not a then bad(p, "a { that is no {m,n}: write \\{") end
    m = native.to_number(m)
    n = n ~= "" and native.to_number(n) or comma == "," and math.huge or m
    if m > 1000 or n ~= math.huge and n > 1000 or n < m then bad(p, "a bad {m,n}") end
    at = b + 1
    return m, n
  end
  local function repeated()
    local x = atom()
    local c = sub(p, at, at)
    local least, most
    if c == "*" then least, most = 0, math.huge
    elseif c == "+" then least, most = 1, math.huge
    elseif c == "?" then least, most = 0, 1
    elseif c == "{" then least, most = counts()
    else return x end
    if c ~= "{" then at = at + 1 end
    local lazy = sub(p, at, at) == "?"
    if lazy then at = at + 1 end
    if find(sub(p, at, at), "^[*+?{]") then bad(p, "a repeat of a repeat") end
    return { kind = "rep", x, least = least, most = most, lazy = lazy }
  end
  function alternatives()
    local alt = { kind = "alt", { kind = "cat" } }
    while at <= #p and sub(p, at, at) ~= ")" do
      if sub(p, at, at) == "|" then
        at = at + 1
        alt[#alt + 1] = { kind = "cat" }
      else
        local cat = alt[#alt]
        cat[#cat + 1] = repeated()
      end
    end
    return alt
  end
  local tree = alternatives()
  if at <= #p then bad(p, "a ) too many") end
  return tree, groups
end

local most_program = 4096
local function compile(p)
  local code = {}
  local tree, groups = parse(p)
  local function add(op)
    if #code >= most_program then bad(p, "it is too large") end
    code[#code + 1] = op
    return op
  end
  local emit = {}
  local function put(x) emit[x.kind](x) end
  function emit.set(x) add { op = "set", set = x.set } end
  emit["start"] = function() add { op = "start" } end
  emit["end"] = function() add { op = "end" } end
  function emit.cat(x) for _, y in ipairs(x) do put(y) end end
  function emit.group(x)
    if x.slot then add { op = "save", slot = x.slot } end
    put(x[1])
    if x.slot then add { op = "save", slot = x.slot + 1 } end
  end
  function emit.alt(x)
    local ends = {}
    for i = 1, #x - 1 do
      local split = add { op = "split", a = #code + 2 }
      put(x[i])
      ends[i] = add { op = "jump" }
      split.b = #code + 1
    end
    put(x[#x])
    for _, jump in ipairs(ends) do jump.a = #code + 1 end
  end
  function emit.rep(x)
    local function maybe()
      local split = add { op = "split" }
      split[x.lazy and "b" or "a"] = #code + 1
      return split, x.lazy and "a" or "b"
    end
    for _ = 1, x.least do put(x[1]) end
    if x.most == math.huge then
      local first = #code + 1
      local split, out = maybe()
      put(x[1])
      add { op = "jump", a = first }
      split[out] = #code + 1
    else
      local splits, side = {}, nil
      for _ = x.least + 1, x.most do
        splits[#splits + 1], side = maybe()
        put(x[1])
      end
      for _, split in ipairs(splits) do split[side] = #code + 1 end
    end
  end
  put(tree)
  add { op = "match" }
  return code, groups
end

local compiled = {}
local function program(p)
  local found = compiled[p]
  if not found then
    if #p > 1024 then raise("a pattern of %d characters", #p) end
    local code, groups = compile(p)
    found = { code = code, groups = groups }
    compiled[p] = found
  end
  return found
end

-- The first match from `from` on: slots (slots[1] start, slots[2] end behind it; of group g slots[2g + 1] and the next), or nil.
local function search(s, prog, from)
  local code = prog.code
  local function enter(list, seen, pc, i, slots)
    while true do
      if seen[pc] then return end
      seen[pc] = true
      local op = code[pc]
      local kind = op.op
      if kind == "jump" then pc = op.a
      elseif kind == "split" then
        enter(list, seen, op.a, i, slots)
        pc = op.b
      elseif kind == "save" then
        local old = slots
        slots = {}
        for k = 1, 2 * prog.groups + 2 do slots[k] = old[k] or false end
        slots[op.slot + 1] = i
        pc = pc + 1
      elseif kind == "start" then
        if i ~= 1 then return end
        pc = pc + 1
      elseif kind == "end" then
        if i ~= #s + 1 then return end
        pc = pc + 1
      else
        list[#list + 1] = { pc = pc, slots = slots }
        return
      end
    end
  end
  local threads, found = {}, nil
  local seen = {}
  for i = from, #s + 1 do
    if not found then enter(threads, seen, 1, i, { i }) end
    if #threads == 0 and found then break end
    local c, following = byte(s, i), {}
    seen = {}
    for _, t in ipairs(threads) do
      local op = code[t.pc]
      if op.op == "match" then
        found = R.copy(t.slots)
        found[2] = i
        break
      elseif c and op.set[c] then enter(following, seen, t.pc + 1, i + 1, t.slots) end
    end
    threads = following
  end
  return found
end

local function captures(s, prog, slots)
  local out = { [0] = sub(s, slots[1], slots[2] - 1) }
  for g = 1, prog.groups do
    local a, b = slots[2 * g + 1], slots[2 * g + 2]
    out[g] = a and b and sub(s, a, b - 1) or false
  end
  return out
end

R.text = {}
function R.text.trim(s) return (gsub(gsub(text_of(s, "text.trim"), "^%s+", ""), "%s+$", "")) end
function R.text.match(s, p)
  local prog = program(text_of(p, "text.match"))
  local slots = search(text_of(s, "text.match"), prog, 1)
  return slots and captures(s, prog, slots) or nil
end
function R.text.last(s, p)
  local prog, best, at = program(text_of(p, "text.last")), nil, 1
  text_of(s, "text.last")
  while at <= #s + 1 do
    local slots = search(s, prog, at)
    if not slots then break end
    best, at = slots, math.max(slots[2], slots[1] + 1)
  end
  return best and captures(s, prog, best) or nil
end

-- ---- json ----------------------------------------------------------------------------------------------------------
R.json = { null = setmetatable({}, { __newindex = function() raise("json.null is read only") end }) }
local null = R.json.null
local words = { ["true"] = true, ["false"] = false, null = null }
local marks = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function utf8(c)
  if c < 0x80 then return char(c) end
  if c < 0x800 then return char(0xc0 + floor(c / 64), 0x80 + c % 64) end
  if c < 0x10000 then return char(0xe0 + floor(c / 4096), 0x80 + floor(c / 64) % 64, 0x80 + c % 64) end
  return char(0xf0 + floor(c / 262144), 0x80 + floor(c / 4096) % 64, 0x80 + floor(c / 64) % 64, 0x80 + c % 64)
end
local function hex(s, at)
  local digits = string.match(s, "^%x%x%x%x", at)
  return digits and native.to_number("0x" .. digits)
end

-- Text of a JSON string that starts at `at` (behind the quote), and the place behind it; nil where it is none.
local function json_text(s, at)
  local out = {}
  while true do
    local stop = find(s, '["\\%z\1-\31]', at)
    if not stop then return nil end
    out[#out + 1] = sub(s, at, stop - 1)
    local c = sub(s, stop, stop)
    if c == '"' then return concat(out), stop + 1 end
    if c ~= "\\" then return nil end
    local e = sub(s, stop + 1, stop + 1)
    at = stop + 2
    if e == "u" then
      local c1 = hex(s, at)
      if not c1 then return nil end
      at = at + 4
      if c1 >= 0xd800 and c1 < 0xdc00 then
        local c2 = sub(s, at, at + 1) == "\\u" and hex(s, at + 2)
        if not c2 or c2 < 0xdc00 or c2 > 0xdfff then return nil end
        c1, at = 0x10000 + (c1 - 0xd800) * 1024 + c2 - 0xdc00, at + 6
      elseif c1 >= 0xdc00 and c1 < 0xe000 then return nil end
      out[#out + 1] = utf8(c1)
    elseif marks[e] then out[#out + 1] = marks[e]
    else return nil end
  end
end

local json_value
local function json_list(s, at, depth)
  local out, n = R.list(), 0
  at = find(s, "[^ \t\r\n]", at)
  if at and sub(s, at, at) == "]" then return out, at + 1 end
  while at do
    n = n + 1
    out[n], at = json_value(s, at, depth)
    at = at and find(s, "[^ \t\r\n]", at)
    local c = at and sub(s, at, at)
    if c == "]" then return out, at + 1 end
    if c ~= "," then return nil end
    at = at + 1
  end
end
local function json_map(s, at, depth)
  local out = {}
  at = find(s, "[^ \t\r\n]", at)
  if at and sub(s, at, at) == "}" then return out, at + 1 end
  while at do
    at = find(s, "[^ \t\r\n]", at)
    if not at or sub(s, at, at) ~= '"' then return nil end
    local key
    key, at = json_text(s, at + 1)
    at = at and find(s, "[^ \t\r\n]", at)
    if not at or sub(s, at, at) ~= ":" or out[key] ~= nil then return nil end
    out[key], at = json_value(s, at + 1, depth)
    at = at and find(s, "[^ \t\r\n]", at)
    local c = at and sub(s, at, at)
    if c == "}" then return out, at + 1 end
    if c ~= "," then return nil end
    at = at + 1
  end
end
-- A value and the place behind it; nil, nil where there is none.
function json_value(s, at, depth)
  at = find(s, "[^ \t\r\n]", at)
  if not at or depth > 64 then return nil end
  local c = sub(s, at, at)
  if c == '"' then return json_text(s, at + 1) end
  if c == "[" then return json_list(s, at + 1, depth + 1) end
  if c == "{" then return json_map(s, at + 1, depth + 1) end
  local word = string.match(s, "^%a+", at)
  if word then
    if words[word] == nil then return nil end
    return words[word], at + #word
  end
  local number = string.match(s, "^%-?%d+%.?%d*[eE]?[+-]?%d*", at)
  if not number or not (find(number, "^%-?0[.eE]") or find(number, "^%-?0$") or find(number, "^%-?[1-9]"))
    or not find(number, "%d$") or find(number, "%d[+-]") or find(number, "%.[eE]") then return nil end
  local value = native.to_number(number)
  if not value or value - value ~= 0 then return nil end
  return value, at + #number
end

function R.json.decode(s)
  local value, at = json_value(text_of(s, "json.decode"), 1, 0)
  if not at or find(s, "[^ \t\r\n]", at) then return nil end
  return value
end
function R.json.type(v)
  if v == null then return "null" end
  if type(v) ~= "table" then return type(v) end
  return (getmetatable(v) == List or #v > 0) and "array" or "object"
end
function R.json.equal(a, b)
  if R.json.type(a) ~= R.json.type(b) then return false end
  if type(a) ~= "table" or a == null then return a == b end
  for k, v in R.pairs(a) do if not R.json.equal(v, b[k]) then return false end end
  for k in R.pairs(b) do if a[k] == nil then return false end end
  return true
end

-- ---- scoring -------------------------------------------------------------------------------------------------------
-- What lies between two marks is taken out of the text: its parts, and what is left.
local function between(s, open, close)
  local parts, rest, at = {}, {}, 1
  while true do
    local a, b = find(s, open, at, true)
    local c, d = find(s, close, (b or #s) + 1, true)
    if not a or not c then break end
    rest[#rest + 1] = sub(s, at, a - 1)
    parts[#parts + 1] = sub(s, b + 1, c - 1)
    at = d + 1
  end
  rest[#rest + 1] = sub(s, at)
  return parts, concat(rest)
end

local function message_of(s)
  local thoughts, rest = between(s, "<think>", "</think>")
  local found, content = between(rest, "<tool_call>", "</tool_call>")
  local calls = R.list()
  for _, part in ipairs(found) do
    local call = R.json.decode(part)
    if type(call) == "table" and type(call.name) == "string" then
      calls[#calls + 1] = { name = call.name, arguments = call.arguments ~= nil and call.arguments or {} }
    end
  end
  return { content = R.text.trim(content), reasoning = R.text.trim(concat(thoughts, "\n")), tool_calls = calls }
end

local known = R.words("prompt text message reference tokens truncated round")
local function completion(c)
  return R.fields("r", function(name)
    if name == "message" then return message_of(c.text) end
    if name == "prompt" or name == "reference" then
      local value = R.json.decode(c[name])
      return value ~= null and value or false
    end
    return c[name]
  end, function() return known end)
end

function R.score(request)
  local out, kind, state = R.load(request)
  if kind ~= "reward" then
    native.fail(native.format("a script of kind reward is needed here, not %s", kind), nil, "type", state.label)
  end
  local rewards = R.list()
  for i, c in ipairs(request.args.completions) do
    local x = out.score(completion(c))
    if x ~= nil and (type(x) ~= "number" or x - x ~= 0) then raise("score returned %s: a reward is a finite number, or nil", R.tostring(x)) end
    rewards[i] = x or false
  end
  return rewards
end
