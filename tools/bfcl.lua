-- bfcl: Berkeley function-calling cases as OpenAI-shape conversations.
--
--     luajit tools/bfcl.lua DATA_FOLDER OUT_FOLDER
--
-- reads BFCL_v4_{simple_python,multiple,live_simple}.json and possible_answer/ of the package bfcl-eval (Apache-2.0) and writes
-- OUT_FOLDER/train.jsonl and held_out.jsonl, split by a hash of the case's id. The expected call takes the first accepted value
-- of each argument, in the order of the answers; an argument that may be absent is left out. Types become JSON Schema's, and a
-- dot in a function's name, which that shape does not allow, becomes an underscore. Held-out rows also carry all accepted values, for
-- `rondo eval --generate`.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local json = require "ordered_json"

local FILES = { "BFCL_v4_simple_python.json", "BFCL_v4_multiple.json", "BFCL_v4_live_simple.json" }
local HELD_OUT = 4                                                      -- one case in so many
-- A type that is absent here stays as it is; "any" allows every value, so it is left out.
local TYPES = { dict = "object", float = "number", tuple = "array", any = false }

local bfcl = {}

-- Schemas --------------------------------------------------------------------------------------------------------------

local schema

local function schemas(members)
  local out = json.object()
  for _, key in ipairs(members.keys) do json.set(out, key, schema(members.members[key])) end
  return out
end

function schema(source)
  local out = json.object()
  for _, key in ipairs(source.keys) do
    local value = source.members[key]
    if key == "type" then
      local mapped = TYPES[value]
      if mapped == nil then mapped = value end
      if mapped then json.set(out, key, mapped) end
    elseif key == "properties" then
      json.set(out, key, schemas(value))
    elseif key == "items" then
      json.set(out, key, schema(value))
    elseif key ~= "optional" then                                       -- no word of JSON Schema: `required` says it
      json.set(out, key, value)
    end
  end
  return out
end

local function function_name(name) return (name:gsub("%.", "_")) end

local function tool(source)
  local f = json.object()
  json.set(f, "name", function_name(source.members.name))
  json.set(f, "description", source.members.description)
  json.set(f, "parameters", schema(source.members.parameters))
  return json.set(json.set(json.object(), "type", "function"), "function", f)
end

-- Calls ----------------------------------------------------------------------------------------------------------------

local function may_be_absent(accepted)
  for _, value in ipairs(accepted) do
    if value == "" then return true end
  end
  return false
end

-- Objects inside an answer again hold lists of accepted values; arrays and scalars stand for themselves.
local function unfold(value)
  if type(value) ~= "table" or (value.kind ~= "object" and value.kind ~= "array") then return value end
  if value.kind == "object" then return bfcl.arguments(value) end
  local out = json.array {}
  for i = 1, #value do out[i] = unfold(value[i]) end
  return out
end

-- The first accepted value of each argument. Where nothing is accepted, the answers mean an empty array.
function bfcl.arguments(answer)
  local out = json.object()
  for _, name in ipairs(answer.keys) do
    local accepted = answer.members[name]
    if not may_be_absent(accepted) then json.set(out, name, accepted[1] == nil and json.array {} or unfold(accepted[1])) end
  end
  return out
end

local function call(answer)
  local name = answer.keys[1]
  local f = json.set(json.object(), "name", function_name(name))
  json.set(f, "arguments", json.print(bfcl.arguments(answer.members[name])))
  return json.set(json.set(json.object(), "type", "function"), "function", f)
end

-- Cases ----------------------------------------------------------------------------------------------------------------

-- A case and its answer as one conversation.
function bfcl.conversation(case, answer)
  local messages, tools = json.array {}, json.array {}
  for i, message in ipairs(case.members.question[1]) do messages[i] = message end
  local turn = json.set(json.object(), "role", "assistant")
  messages[#messages + 1] = json.set(turn, "tool_calls", json.array { call(answer.members.ground_truth[1]) })
  for i, f in ipairs(case.members["function"]) do tools[i] = tool(f) end
  return json.set(json.set(json.object(), "messages", messages), "tools", tools)
end

-- All that is right, under the names that the tools have.
function bfcl.accepted(answer)
  local out = json.array {}
  for i, wanted in ipairs(answer.members.ground_truth) do
    out[i] = json.set(json.object(), function_name(wanted.keys[1]), wanted.members[wanted.keys[1]])
  end
  return out
end

-- Polynomial hash of the id modulo a prime: the same on every machine, and a case stays where it is when others come.
function bfcl.held_out(id)
  local hash = 0
  for i = 1, #id do hash = (hash * 257 + id:byte(i)) % 2147483647 end
  return hash % HELD_OUT == 0
end

-- Calls found(object) for each line of a file.
local function each_line(path, found)
  local file = assert(io.open(path, "rb"))
  local number = 0
  for line in file:lines() do
    number = number + 1
    local ok, value = pcall(json.read, line)
    if not ok then error(("%s:%d: %s"):format(path, number, value), 0) end
    found(value)
  end
  file:close()
end

local function convert(data, train, held_out)
  for _, name in ipairs(FILES) do
    local answers, count = {}, 0
    each_line(data .. "/possible_answer/" .. name, function(answer) answers[answer.members.id] = answer end)
    each_line(data .. "/" .. name, function(case)
      local id = case.members.id
      local answer = answers[id] or error(("%s: the case %s has no answer"):format(name, id), 0)
      local rows, row = train, bfcl.conversation(case, answer)
      if bfcl.held_out(id) then
        rows = held_out
        json.set(row, "accepted", bfcl.accepted(answer))
      end
      rows[#rows + 1] = json.print(row) .. "\n"
      count = count + 1
    end)
    io.stderr:write(("%-28s %d cases\n"):format(name, count))
  end
end

local function write(path, rows)
  local file = assert(io.open(path, "wb"))
  assert(file:write(table.concat(rows)))
  assert(file:close())
end

if arg and arg[0] and arg[0]:match "bfcl%.lua$" then
  if not arg[2] then
    io.stderr:write("usage: bfcl.lua DATA_FOLDER OUT_FOLDER\n")
    os.exit(2)
  end
  local train, held_out = {}, {}
  convert(arg[1], train, held_out)
  write(arg[2] .. "/train.jsonl", train)
  write(arg[2] .. "/held_out.jsonl", held_out)
  io.stderr:write(("%d for training, %d held out\n"):format(#train, #held_out))
end

return bfcl
