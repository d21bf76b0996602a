-- driver: calls the probe and reads its JSON. Used by the specs.
local json = require("cjson")
local D = {}
D.root = os.getenv("RONDO_SOURCE") or "."
D.build = os.getenv("RONDO_BINARY") or D.root .. "/build"
D.probe = D.build .. "/tests/script_probe"
D.lua51 = D.build .. "/tests/script_child_lua51"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end
local lists = { targets = true, params = true }
local function encode(v, key)
  if type(v) == "number" then return ("%.17g"):format(v) end
  if type(v) ~= "table" then return json.encode(v) end
  local out = {}
  if #v > 0 or lists[key] then
    for i, x in ipairs(v) do out[i] = encode(x) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for k, x in pairs(v) do out[#out + 1] = json.encode(k) .. ":" .. encode(x, k) end
  return "{" .. table.concat(out, ",") .. "}"
end

-- One call; `env`: { PROBE_CHILD = ... }; `graph`, `data`: run this graph too. Returns the decoded answer and its text.
function D.call(verb, file, args, options, env, folder, graph, data)
  local set = {}
  for k, v in pairs(env or {}) do set[#set + 1] = k .. "=" .. quote(v) end
  local command = table.concat(set, " ") .. " " .. table.concat({ D.probe, verb, quote(folder or D.root .. "/scripts"), quote(file), quote(encode(args or {})),
    quote(encode(options or {})), graph and graph .. " " .. quote(encode(data)) or "" }, " ")
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return json.decode(text), text
end

-- A script given as text.
function D.try(source, verb, args, options, env)
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir -p " .. folder)
  local file = folder .. "/bad.lua"
  local f = assert(io.open(file, "wb"))
  f:write(source)
  f:close()
  local answer, text = D.call(verb or "describe", file, args, options, env, D.root .. "/scripts")
  os.execute("rm -r " .. folder)
  return answer, text
end
return D
