-- larger: the task of scripts/runs/grpo_smollm2.lua: which of two numbers is larger, asked so that yes or no answers it.
--
--     luajit tools/larger.lua FOLDER
--
-- writes FOLDER/larger_train.jsonl and FOLDER/larger_held_out.jsonl, the same bytes on every machine: rows with `messages` and `reference`. A
-- pair of numbers, in whatever order, stands in one of the two files only; half of the answers are yes.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/pocket/?.lua;" .. package.path
local random = require "random"

local MOST, HELD_OUT, TRAIN, SEED = 99, 256, 2048, 11

local function row(a, b)
  return ('{"messages": [{"role": "system", "content": "Answer yes or no."}, {"role": "user", "content": "Is %d larger than %d?"}], "reference": "%s"}\n')
    :format(a, b, a > b and "yes" or "no")
end

local pairs_of = {}
for a = 1, MOST do
  for b = 1, a - 1 do pairs_of[#pairs_of + 1] = { a, b } end
end
random.new(SEED):shuffle(pairs_of)

local function write(path, first, last)
  local out = assert(io.open(path, "w"))
  for i = first, last do
    local p = pairs_of[i]
    out:write(i % 2 == 0 and row(p[1], p[2]) or row(p[2], p[1]))
  end
  out:close()
end

write(arg[1] .. "/larger_held_out.jsonl", 1, HELD_OUT)
write(arg[1] .. "/larger_train.jsonl", HELD_OUT + 1, HELD_OUT + TRAIN)
