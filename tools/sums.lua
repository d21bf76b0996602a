-- sums: the task of scripts/runs/grpo_smollm2.lua: sums and differences of two numbers, whose answer is wanted as a number alone.
--
--     luajit tools/sums.lua FOLDER
--
-- writes FOLDER/sums_train.jsonl and FOLDER/sums_held_out.jsonl, the same bytes on every machine: rows with `messages` and `reference`. Every
-- sum and difference stands in one of the two files only.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/pocket/?.lua;" .. package.path
local random = require "random"

local MOST, HELD_OUT, SEED = 20, 128, 11

local function row(question, answer)
  return ('{"messages": [{"role": "system", "content": "Answer with a number."}, {"role": "user", "content": "%s"}], "reference": %d}\n'):format(question, answer)
end

local rows = {}
for a = 1, MOST do
  for b = 1, MOST do
    rows[#rows + 1] = row(("%d + %d"):format(a, b), a + b)
    if a > b then rows[#rows + 1] = row(("%d - %d"):format(a, b), a - b) end
  end
end
random.new(SEED):shuffle(rows)

local function write(path, first, last)
  local out = assert(io.open(path, "w"))
  for i = first, last do out:write(rows[i]) end
  out:close()
end

write(arg[1] .. "/sums_held_out.jsonl", 1, HELD_OUT)
write(arg[1] .. "/sums_train.jsonl", HELD_OUT + 1, #rows)
