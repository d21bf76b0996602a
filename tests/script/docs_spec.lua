-- The examples of the documentation are scripts: each must pass.
local D = require("driver")
local function blocks(page)
  local f = assert(io.open(D.root .. "/docs/" .. page))
  local text = f:read("*a")
  f:close()
  local out = {}
  for code in text:gmatch("```lua\n(.-)```") do out[#out + 1] = code end
  return out
end
describe("examples in the documentation", function()
  it("trace as they stand: researcher.md", function()
    local code = blocks("researcher.md")[1]
    local lines = select(2, code:gsub("\n", ""))
    assert.is_true(lines <= 20)
    local a = D.try(code, "objective", { sizes = { batch = 2, time = 4 } })
    assert.is_nil(a.error, a.error and a.error.message)
    assert.same({ "b.logprobs", "b.mask" }, a.ok.fields)
    assert.same({}, a.ok.warnings)
  end)
  it("trace as they stand: scripting.md", function()
    local code = blocks("scripting.md")
    assert.is_nil(D.try(code[1], "objective", { sizes = { batch = 2, time = 4 } }).error)
    assert.is_nil(D.try(code[2], "aggregator", { peers = 4, n = 10 }).error)
  end)
end)
