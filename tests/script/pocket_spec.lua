-- The pocket model's data: the same seed gives the same bytes, and the sets keep what task.lua promises.
package.path = "tools/pocket/?.lua;" .. package.path
local cjson = require "cjson"
local random = require "random"
local corpus = require "corpus"
local task = require "task"

local function documents(seed, n)
  local r, out = random.new(seed), {}
  for i = 1, n do out[i] = corpus.row(corpus.document(r, corpus.MIXES.full)) end
  return table.concat(out)
end

describe("pocket data", function()
  it("draws the numbers of L'Ecuyer's generator", function()
    -- the recurrences written out once more, from the states after the 16 discarded draws
    local r = random.new(1)
    local s1, s2 = 2, 69621 + 12345 + 1
    for _ = 1, 16 do s1, s2 = 40014 * s1 % 2147483563, 40692 * s2 % 2147483399 end
    for _ = 1, 100 do
      s1, s2 = 40014 * s1 % 2147483563, 40692 * s2 % 2147483399
      assert.are.equal((s1 - s2) % 2147483562 / 2147483562, r:uniform())
    end
  end)

  it("is the same for the same seed and another for another", function()
    assert.are.equal(documents(3, 50), documents(3, 50))
    assert.are_not.equal(documents(3, 50), documents(4, 50))
  end)

  it("has no call syntax and none of the task's tools in the corpus", function()
    local text = documents(5, 2000)
    for _, word in ipairs { "tool_call", "get_weather", "find_person", "send_message", "arguments" } do
      assert.is_nil(text:find(word, 1, true), word)
    end
  end)

  it("has answers of JSON that parses in the corpus", function()
    local r, objects = random.new(6), 0
    for _ = 1, 2000 do
      for _, part in ipairs(corpus.document(r, corpus.MIXES.full)) do
        local object = part[2] == 1 and part[1]:match '^({".*})<|im_end|>$'
        if object and object:match '^{"[%w_]+": ["%d]' then
          objects = objects + 1
          assert.is_table(cjson.decode(object))
        end
      end
    end
    assert.is_true(objects > 300)
  end)

  it("calls an offered tool with just its required arguments, which the user stated", function()
    local train = task.sets(1, 300, 2, 0)
    for _, row in ipairs(train) do
      local conversation = cjson.decode(row)
      local call = conversation.messages[2].tool_calls[1]["function"]
      local offered
      for _, tool in ipairs(conversation.tools) do
        if tool["function"].name == call.name then offered = tool["function"] end
      end
      local arguments, count = cjson.decode(call.arguments), 0
      for name, value in pairs(arguments) do
        count = count + 1
        assert.are.equal(offered.parameters.properties[name].type, type(value))
        assert.is_truthy(conversation.messages[1].content:find(tostring(value), 1, true))
      end
      assert.are.equal(#offered.parameters.required, count)
    end
  end)

  it("keeps names, dates and long codes of training out of the held-out set", function()
    local train, held_out = task.sets(1, 1000, 2, 200)
    local shown = table.concat(train)
    for _, row in ipairs(held_out) do
      local arguments = cjson.decode(row).messages[2].tool_calls[1]["function"].arguments
      for value in arguments:gmatch '"(%u[^"]*)"' do
        if #value > 3 then assert.is_nil(shown:find('\\"' .. value .. '\\"', 1, true), value) end
      end
    end
  end)
end)
