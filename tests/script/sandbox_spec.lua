-- Attempts to get out, to hang or to differ from run to run. Each is one test; most scripts run when the file is loaded.
local D = require("driver")

local function refused(source, pattern, env, verb, args)
  local a = D.try(source, verb or "describe", args or {}, {}, env)
  assert.is_not_nil(a.error, "was accepted")
  local text = a.error.place .. ": " .. a.error.message .. " (" .. a.error.hint .. ")"
  assert.is_truthy(text:find(pattern), text)
  return a.error
end
local function both(name, source, pattern, env, verb, args)
  for engine, child in pairs { luajit = false, ["lua 5.1"] = D.lua51 } do
    it(name .. " (" .. engine .. ")", function()
      local e = {}
      for k, v in pairs(env or {}) do e[k] = v end
      e.PROBE_CHILD = child or nil
      refused(source, pattern, e, verb, args)
    end)
  end
end
local function value(source, env) -- what a run file returns as spec
  local a = D.try("return { spec = { " .. source .. " } }", "run", {}, {}, env)
  assert.is_nil(a.error, a.error and (a.error.place .. ": " .. a.error.message))
  return a.ok.spec
end

describe("a script that does not end", function()
  both("stops when its instructions are used up", "while true do end", "used up its instructions")
  both("stops inside nested calls of its own", "local function f() return f() end f()", "used up its instructions")
  both("stops in a comparison of sort", "table.sort({3,2,1}, function() while true do end end)", "used up its instructions", { PROBE_FUEL = "1000000" })
  both("names the line it was at", "\n\nwhile true do end", "bad.lua@%x+:3: the script used up")
  it("is killed by the parent's clock when fuel would last longer", function()
    refused("local s = 0 for i = 1, 1e15 do s = s + i end", "did not end in time", { PROBE_SECONDS = "0.3", PROBE_FUEL = "1e18" })
  end)
end)

describe("a script that wants too much", function()
  both("has no ten gigabytes", "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1000) .. i end", "memory",
    { PROBE_FUEL = "1e12", PROBE_MEMORY = "16777216" })
  both("names the limit that its tables reach", "local t = {} for i = 1, 1e9 do t[i] = { i } end",
    "more than its memory of 16 MiB %(script_memory", { PROBE_FUEL = "1e12", PROBE_MEMORY = "16777216" })
  both("makes no garbage without end beside what it keeps", "local t = {} for i = 1, 5e4 do t[i] = { i } end while true do t[1] = { t } end",
    "more than 4 times its memory of 16 MiB", { PROBE_FUEL = "1e12", PROBE_MEMORY = "16777216" })
  both("doubles no text without end", "local s = 'x' while true do s = s .. s end", "memory")
  both("repeats no text beyond a mebibyte", "string.rep('x', 1e10)", "rep: more than 1048576 bytes")
  both("recurses no deeper than the engine", "local function f(n) return 1 + f(n + 1) end f(0)", "stack overflow")
  both("makes no graph larger than the limit", [[return objective { data = "chat", loss = function(b) local x = b.logprobs while true do x = x + 1 end end }]],
    "bad.lua@%x+:1: .*1000 nodes", { PROBE_NODES = "1000" }, "objective", { sizes = { batch = 2, time = 3 } })
  both("nests no brackets deeper than 64", "return " .. ("("):rep(70) .. "1" .. (")"):rep(70), "nested deeper than 64")
  both("is no longer than 64 KiB", "--" .. ("x"):rep(70000), "longer than 64 KiB")
end)

describe("what is not there", function()
  for _, name in ipairs { "os", "io", "debug", "package", "require", "ffi", "jit", "bit", "load", "loadstring", "loadfile", "dofile", "getfenv",
                          "setfenv", "newproxy", "collectgarbage", "gcinfo", "xpcall", "pcall", "error", "assert", "coroutine", "print", "_G",
                          "_VERSION", "rawget", "rawset", "rawequal", "getmetatable", "setmetatable", "select", "unpack", "next", "module" } do
    it("is an error by name: " .. name, function() refused("local x = " .. name, "no global " .. name) end)
  end
  for _, name in ipairs { "string.dump", "string.gsub", "string.gmatch", "string.match", "table.foreach", "table.getn", "math.random", "math.randomseed",
                          "math.tan" } do
    it("is nil: " .. name, function() refused("check(" .. name .. " ~= nil, 'absent')", "absent") end)
  end
  both("assigning a global", "x = 1", "assignment to global x")
  both("the metatable of text", "local m = ('').gsub return m.x", "attempt to index")
  both("bytecode", "\27LuaJIT", "bytecode is not accepted")
  both("bytecode of PUC Lua", "\27Lua", "bytecode is not accepted")
  both("a bytecode maker by a text's method", "local f = ('x'):dump(function() end)", "dump")
  both("a suffix that makes an FFI object", "local x = 5LL", "malformed number")
  both("an imaginary number", "local x = 3i", "malformed number")
  both("a binary literal", "local x = 0b101", "malformed number")
  both("a hexadecimal float", "local x = 0x1.8p3", "malformed number")
  both("goto", "goto x ::x::", "reserved")
  both("compound assignment", "local x = 1 x += 1", "compound assignment")
  both("an escape of later versions", [[local x = "\x41"]], "unknown escape")
  both("bytes that are not UTF-8", "local x = '\255'", "not UTF%-8")
  both("an operator of later versions", "local x = 1 & 2", "no part of Lua 5.1")
  both("a pattern that backtracks", "('x'):find('x', 1, true) local f = ('').match f('a', '.-b')", "attempt to call")
  both("a hook on text methods for others", "string.rep = function() return 'mine' end check(('x'):rep(2) == 'xx', 'hijacked') check(false, 'kept')", "kept")
end)

describe("what would differ from run to run", function()
  it("has one order: pairs", function()
    local source = [[order = (function() local t, out = {}, {}
      for _, k in ipairs { "pear", "apple", 3, 1, "fig", true, false, 2.5, "Zed", "a10", "a9" } do t[k] = 1 end
      for k in pairs(t) do out[#out + 1] = tostring(k) end return table.concat(out, " ") end)() ]]
    for _ = 1, 20 do assert.equal("1 2.5 3 Zed a10 a9 apple fig pear false true", value(source).order) end
    assert.equal("1 2.5 3 Zed a10 a9 apple fig pear false true", value(source, { PROBE_CHILD = D.lua51 }).order)
  end)
  it("shows no address: tostring", function()
    local v = value [[ a = tostring({}), b = tostring(pairs), c = tostring(tensor), d = string.format("%s", {}) ]]
    assert.same({ a = "table", b = "function", c = "table", d = "table" }, v)
  end)
  it("prints numbers alike: the shortest form that reads back", function()
    for _, env in ipairs { {}, { PROBE_CHILD = D.lua51 } } do
      local v = value([[ a = tostring(0.1), b = tostring(1/3), c = tostring(2^53), d = tostring(1e21), e = tostring(1e-7), f = tostring(-0.5),
        g = string.format("%d %5.2f %g %s %q %x", 3, 2.5, 0.1, 1e100, "a\"b", 255), h = tostring(1/0) ]], env)
      assert.same({ a = "0.1", b = "0.3333333333333333", c = "9007199254740992", d = "1e21", e = "1e-7", f = "-0.5",
        g = "3  2.50 0.1 1e100 \"a\\\"b\" ff", h = "inf" }, v)
    end
  end)
  it("is the program's own: the operator ^ and math", function()
    local source = [[ a = 3.7 ^ 2.2, b = math.pow(3.7, 2.2), c = math.exp(1), d = math.cos(1), e = math.log(10), f = 2 ^ 10, g = math.ceil(-0.9) ]]
    local one, two = value(source), value(source, { PROBE_CHILD = D.lua51 })
    assert.same(one, two)
    assert.equal(one.a, one.b)
    assert.equal("2.718281828459045", one.c)
    assert.equal(1024, one.f)
  end)
  it("sorts stably", function()
    local source = [[order = (function() local t = {} for i = 1, 40 do t[i] = { i % 3, i } end
      table.sort(t, function(a, b) return a[1] < b[1] end)
      local out = {} for i = 1, 40 do out[i] = t[i][2] end return out end)() ]]
    local v = value(source).order
    for i = 2, 40 do assert.is_true(v[i - 1] % 3 < v[i] % 3 or v[i - 1] % 3 == v[i] % 3 and v[i - 1] < v[i]) end
  end)
  both("a sort whose comparison contradicts itself is refused", "table.sort({1,2,3}, function() return true end)", "contradicts itself")
end)

describe("imports and options", function()
  it("refuses a script that is not there", function() refused([[import("nothing")]], "no script nothing to import") end)
  it("refuses a cycle", function() refused([[import("bad")]], "import cycle") end)
  it("refuses an option that no script declared, and lists those there are", function()
    local a = D.call("describe", "chat_sft", {}, { prompt = 1 })
    assert.equal("no option prompt", a.error.message)
    assert.is_truthy(a.error.hint:find("prompt_weight"))
  end)
  it("refuses a value out of range, by name", function()
    local a = D.call("describe", "chat_sft", {}, { prompt_weight = 2 })
    assert.is_truthy(a.error.message:find("option prompt_weight: 2 is outside %[0, 1%]"), a.error.message)
    assert.is_truthy(a.error.place:find("^chat_sft.lua@%x%x%x%x%x%x%x%x:2$"))
  end)
  it("takes options of imports by prefix", function()
    local a = D.call("describe", "muon", {}, { ["adamw.beta1"] = "0.8" })
    assert.is_nil(a.error)
    assert.equal("adamw", a.ok.imports[1].name)
  end)
end)
