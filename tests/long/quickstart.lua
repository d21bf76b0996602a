-- What the result of the quickstart must say. arguments: two results of runs from one seed.
local cjson = require("cjson")

local function read(path)
  local file = assert(io.open(path))
  local result = cjson.decode(file:read("*a"))
  file:close()
  return result
end

local first, second = read(arg[1]), read(arg[2])
local before, after = first.eval.before.tool_call_accuracy, first.eval.after.tool_call_accuracy
print(("tool-call accuracy %.3f before, %.3f after"):format(before, after))
assert(before <= 0.10, "accuracy before is above 0.10")
assert(after >= 0.80, "accuracy after is below 0.80")
for _, round in ipairs(first.rounds) do
  assert(round.status == "final", "round " .. round.round .. " is not final")
end
assert(first.replay.checked > 0 and first.replay.checked == first.replay.matched, "a replay differs")
assert(first.rounds[#first.rounds].state_root == second.rounds[#second.rounds].state_root, "two runs from one seed end apart")
