-- ordered_json: JSON with the order of members and the text of numbers kept, for makers of data files.
--
-- Values: strings, true, false; json.NULL; numbers { kind = "number", text = "25.0" }; arrays { kind = "array", v1, v2, ... };
-- objects { kind = "object", keys = { "a", ... }, members = { a = value, ... } }. Printed with ", " and ": " between, text
-- other than ASCII as it is: the way Python's json.dumps(value, ensure_ascii=False) prints.

local json = { NULL = setmetatable({}, { __tostring = function() return "null" end }) }

function json.number(text) return { kind = "number", text = tostring(text) } end
function json.array(list)
  list.kind = "array"
  return list
end
function json.object() return { kind = "object", keys = {}, members = {} } end

-- Sets a member; a new one goes to the end.
function json.set(object, key, value)
  if object.members[key] == nil then object.keys[#object.keys + 1] = key end
  object.members[key] = value
  return object
end

-- Reading --------------------------------------------------------------------------------------------------------------

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function fail(text, at, what)
  local _, line = text:sub(1, at):gsub("\n", "")
  error(("line %d: %s"):format(line + 1, what), 0)
end

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  local tail = string.char(0x80 + code % 64)
  code = math.floor(code / 64)
  if code < 32 then return string.char(0xC0 + code) .. tail end
  tail = string.char(0x80 + code % 64) .. tail
  code = math.floor(code / 64)
  if code < 16 then return string.char(0xE0 + code) .. tail end
  return string.char(0xF0 + math.floor(code / 64), 0x80 + code % 64) .. tail
end

-- The character after "\u" at `at`, and where it ends; two escapes make one of the higher planes.
local function unicode(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at) or fail(text, at, "a \\u without four digits"), 16)
  local low = code >= 0xD800 and code < 0xDC00 and text:match("^\\u(%x%x%x%x)", at + 4)
  if not low then return utf8(code), at + 4 end
  return utf8(0x10000 + (code - 0xD800) * 1024 + tonumber(low, 16) - 0xDC00), at + 10
end

local function read_string(text, at)
  local out = {}
  while true do
    local plain, stop = text:match('^([^"\\]*)()', at)
    out[#out + 1] = plain
    local c = text:sub(stop, stop)
    if c == '"' then return table.concat(out), stop + 1 end
    if c == "" then fail(text, at, "a string without an end") end
    local e = text:sub(stop + 1, stop + 1)
    if e == "u" then
      out[#out + 1], at = unicode(text, stop + 2)
    else
      out[#out + 1], at = ESCAPES[e] or fail(text, stop, "unknown escape"), stop + 2
    end
  end
end

local function skip(text, at) return text:match("^[ \t\r\n]*()", at) end

local read_value

local function read_array(text, at)
  local list = json.array {}
  at = skip(text, at)
  if text:sub(at, at) == "]" then return list, at + 1 end
  while true do
    list[#list + 1], at = read_value(text, at)
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "]" then return list, at + 1 end
    if c ~= "," then fail(text, at, "an array needs , or ]") end
    at = at + 1
  end
end

local function read_object(text, at)
  local object = json.object()
  at = skip(text, at)
  if text:sub(at, at) == "}" then return object, at + 1 end
  while true do
    at = skip(text, at)
    if text:sub(at, at) ~= '"' then fail(text, at, "a member needs a name") end
    local key, value
    key, at = read_string(text, at + 1)
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then fail(text, at, "a member needs :") end
    value, at = read_value(text, at + 1)
    json.set(object, key, value)
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "}" then return object, at + 1 end
    if c ~= "," then fail(text, at, "an object needs , or }") end
    at = at + 1
  end
end

local WORDS = { ["true"] = true, ["false"] = false, null = json.NULL }

function read_value(text, at)
  at = skip(text, at)
  local c = text:sub(at, at)
  if c == "{" then return read_object(text, at + 1) end
  if c == "[" then return read_array(text, at + 1) end
  if c == '"' then return read_string(text, at + 1) end
  local word, stop = text:match("^(%a+)()", at)
  if word and WORDS[word] ~= nil then return WORDS[word], stop end
  local number
  number, stop = text:match("^(-?%d+%.?%d*[eE]?[+-]?%d*)()", at)
  if not number or not tonumber(number) then fail(text, at, "no JSON value") end
  return json.number(number), stop
end

-- The value that `text` holds; an error that names the line otherwise.
function json.read(text)
  local value, at = read_value(text, 1)
  if skip(text, at) <= #text then fail(text, at, "text after the value") end
  return value
end

-- Printing -------------------------------------------------------------------------------------------------------------

local PRINTED = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function print_string(text)
  return '"' .. text:gsub('[%z\1-\31"\\]', function(c) return PRINTED[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

function json.print(value)
  if type(value) == "string" then return print_string(value) end
  if type(value) ~= "table" or value == json.NULL then return tostring(value) end
  if value.kind == "number" then return value.text end
  local out = {}
  if value.kind == "array" then
    for i = 1, #value do out[i] = json.print(value[i]) end
    return "[" .. table.concat(out, ", ") .. "]"
  end
  for i, key in ipairs(value.keys) do out[i] = print_string(key) .. ": " .. json.print(value.members[key]) end
  return "{" .. table.concat(out, ", ") .. "}"
end

return json
