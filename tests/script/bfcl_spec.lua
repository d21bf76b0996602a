-- The converter of function-calling cases, and the JSON it stands on.
package.path = "tools/?.lua;" .. package.path
local json = require "ordered_json"
local bfcl = require "bfcl"

describe("ordered json", function()
  it("prints what it read: order, numbers and text stay", function()
    for _, text in ipairs { '{"b": 25.0, "a": [1, -2e3, true, false, null, {}, []], "": "ü"}', '"\\"\\\\\\n\\u0001/"', "[]" } do
      assert.are.equal(text, json.print(json.read(text)))
    end
    assert.are.equal('"é/😀"', json.print(json.read ' "\\u00e9\\/\\ud83d\\ude00" '))
  end)

  it("refuses what is no JSON, with the line", function()
    for _, text in ipairs { "", "{", "[1,]", '{"a" 1}', '"a', "[1] 2", "nul", '"\\x"', "-" } do
      local ok, message = pcall(json.read, text)
      assert.is_false(ok, text)
      assert.is_truthy(message:match "^line 1: ", message)
    end
  end)
end)

describe("function-calling cases", function()
  local case = json.read [=[{"id": "x_1", "question": [[{"role": "user", "content": "Area?"}]], "function": [{"name": "math.area",
    "description": "d", "parameters": {"type": "dict", "properties": {"type": {"type": "float", "optional": true},
    "box": {"type": "tuple", "items": {"type": "any"}}}, "required": ["type"]}}]}]=]

  local function arguments(answer) return json.print(bfcl.arguments(json.read(answer))) end

  it("become conversations in the OpenAI shape", function()
    local answer = json.read '{"id": "x_1", "ground_truth": [{"math.area": {"box": [[1, 2]], "type": ["", 3.0]}}]}'
    local row = json.print(bfcl.conversation(case, answer))
    assert.are.equal('{"messages": [{"role": "user", "content": "Area?"}, {"role": "assistant", "tool_calls": [{"type": '
      .. '"function", "function": {"name": "math_area", "arguments": "{\\"box\\": [1, 2]}"}}]}], "tools": [{"type": "function", "function": '
      .. '{"name": "math_area", "description": "d", "parameters": {"type": "object", "properties": {"type": {"type": "number"}, '
      .. '"box": {"type": "array", "items": {}}}, "required": ["type"]}}}]}', row)
  end)

  it("take the first accepted value, inside objects too, and leave out what may be absent", function()
    assert.are.equal('{"a": 5, "c": [], "d": {"x": "u"}, "e": [{"y": 1}, 2]}',
      arguments '{"a": [5, 6], "b": [7, ""], "c": [], "d": [{"x": ["u", "v"], "z": ["", 1]}], "e": [[{"y": [1, 2]}, 2]]}')
  end)

  it("are split by their id alone", function()
    local held_out = 0
    for i = 1, 6000 do
      if bfcl.held_out("simple_python_" .. i) then held_out = held_out + 1 end
    end
    assert.is_true(held_out > 1400 and held_out < 1600, tostring(held_out))
  end)
end)
