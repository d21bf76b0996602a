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
    local function scored(text)
      local b = D.try(blocks("researcher.md")[2], "score",
        { completions = { { prompt = "null", reference = "7", text = text, tokens = 9, truncated = false, round = 1 } } })
      assert.is_nil(b.error, b.error and b.error.message)
      return tonumber(b.ok[1])
    end
    assert.near(1, scored("<think>hm</think>1. three\n2. four\nThe answer is 7."), 1e-12)
    assert.near(0.8, scored("answer: 7"), 1e-12)
    assert.near(0.1, scored("1. three\nThe answer is 8"), 1e-12)
  end)
  it("trace as they stand: scripting.md", function()
    local code = blocks("scripting.md")
    assert.is_nil(D.try(code[1], "objective", { sizes = { batch = 2, time = 4 } }).error)
    assert.is_nil(D.try(code[2], "aggregator", { peers = 4, n = 10 }).error)
  end)
end)
