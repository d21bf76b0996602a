-- first_word: the task of scripts/runs/grpo_pocket.lua: texts of three to five words, of which the first alone is wanted. The base model copies
-- what it is told to repeat; that it should stop after one word, rewards alone tell it. The held-out texts have nouns of their own, every third, which
-- no text of the training set has.
--
--     luajit tools/pocket/first_word.lua FOLDER TRAIN_SEED TRAIN_COUNT HELD_OUT_SEED HELD_OUT_COUNT
--
-- writes FOLDER/train.jsonl and FOLDER/held_out.jsonl, the same bytes on every machine: rows with `messages` and `reference`.

local here = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local random = require "random"
local words = require "words"

local nouns = { train = {}, held_out = {} }
for i, noun in ipairs(words.NOUNS) do table.insert(nouns[i % 3 == 0 and "held_out" or "train"], noun) end

local function write(folder, name, seed, count)
  local r, out = random.new(seed), assert(io.open(folder .. "/" .. name .. ".jsonl", "w"))
  for _ = 1, count do
    local text = {}
    for i = 1, r:range(3, 6) do text[i] = r:choice(nouns[name]) end
    out:write('{"messages": [{"role": "user", "content": "Repeat: ', table.concat(text, " "), '"}], "reference": "', text[1], '"}\n')
  end
  out:close()
end

local target, seed, count, held_seed, held_count = unpack(arg)
write(target, "train", tonumber(seed), tonumber(count))
write(target, "held_out", tonumber(held_seed), tonumber(held_count))
