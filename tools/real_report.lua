-- real_report: what tools/real_run.sh measured, as a table.
--
--     luajit tools/real_report.lua FOLDER
--
-- reads FOLDER/real_{before,run,after,peak}.json and the run's metrics.jsonl.

local folder = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local json = require "ordered_json"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

-- The member that the names lead to; numbers as Lua's.
local function member(value, ...)
  for _, name in ipairs { ... } do value = value.members[name] end
  return type(value) == "table" and value.kind == "number" and tonumber(value.text) or value
end

local function result(name) return json.read(read(("%s/real_%s.json"):format(arg[1], name))) end

-- Tokens a second of each trainer: the mean over rounds and trainers of what the last step of a round said.
local function training_speed(path)
  local last, sum, count = {}, 0, 0
  for line in read(path):gmatch "[^\n]+" do
    local event = json.read(line)
    if member(event, "event") == "progress" and member(event, "job") == "train" then
      last[member(event, "node") .. " " .. member(event, "round")] = member(event, "tokens_per_second")
    end
  end
  for _, speed in pairs(last) do
    sum, count = sum + speed, count + 1
  end
  return sum / count
end

local before, run, after = result "before", result "run", result "after"
local function row(title, format, a, b) print(("| %s | " .. format .. " | " .. format .. " |"):format(title, a, b)) end

print(("%d held-out calls, %d rounds\n"):format(member(after, "cases"), #member(run, "rounds")))
print("| | before | after |\n| --- | --- | --- |")
row("held-out loss", "%.4f", member(run, "eval", "before", "loss"), member(run, "eval", "after", "loss"))
row("every token the arg max", "%.3f", member(run, "eval", "before", "tool_call_accuracy"),
  member(run, "eval", "after", "tool_call_accuracy"))
row("written and right by the leaderboard's rules", "%.3f", member(before, "accuracy"), member(after, "accuracy"))
row("right", "%d", member(before, "right"), member(after, "right"))
row("tokens written", "%d", member(before, "tokens"), member(after, "tokens"))
row("tokens a second, prompts included", "%.1f",
  (member(before, "tokens") + member(before, "prompt_tokens")) / member(before, "seconds"),
  (member(after, "tokens") + member(after, "prompt_tokens")) / member(after, "seconds"))
row("most memory of writing, MB", "%.0f", member(before, "peak_bytes") / 1e6, member(after, "peak_bytes") / 1e6)
print(("\na trainer learned %.0f tokens a second; all processes of the run together held %.0f MB at most"):format(
  training_speed(member(run, "adapter"):match "^(.*)/[^/]*$" .. "/metrics.jsonl"), member(result "peak", "megabytes")))
print(("recomputed %d, equal %d; sent %.1f MB, dense exchange of every step %.0f MB"):format(
  member(run, "replay", "checked"), member(run, "replay", "matched"), member(run, "bytes_sent") / 1e6,
  member(run, "bytes_dense") / 1e6))
local why = {}
for _, name in ipairs(after.members.why.keys) do why[#why + 1] = name .. " " .. member(after, "why", name) end
print("after: " .. table.concat(why, ", "))
