local D, cases = require("driver"), require("cases")

local function hashes(answer)
  local out = {}
  for i, g in ipairs(answer.graphs) do out[i] = g.hash end
  return table.concat(out, " ")
end

describe("graphs of the shipped scripts", function()
  local golden = {}
  for line in io.lines(D.root .. "/tests/script/golden/graphs.txt") do
    local name, list = line:match("^(.-)\t(.*)$")
    golden[name] = list
  end
  for _, c in ipairs(cases) do
    it("are as recorded, and the same under both engines: " .. c[1], function()
      local a, text = D.call(c[2], c[3], c[4], c[5])
      assert.is_nil(a.error, a.error and (a.error.place .. ": " .. a.error.message))
      assert.equal(golden[c[1]], hashes(a))
      local _, other = D.call(c[2], c[3], c[4], c[5], { PROBE_CHILD = D.lua51 })
      assert.equal(text, other)
    end)
  end
  it("are the same in fresh processes, again and again", function()
    for _, name in ipairs { "objective grpo", "optimiser muon", "model llama", "aggregator bulyan" } do
      for _, c in ipairs(cases) do
        if c[1] == name then
          local _, first = D.call(c[2], c[3], c[4], c[5])
          for _ = 1, 10 do assert.equal(first, (select(2, D.call(c[2], c[3], c[4], c[5])))) end
        end
      end
    end
  end)
end)
