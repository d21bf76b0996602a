-- preferences: the data of scripts/runs/dpo_pocket.lua, made of the rows of first_word.lua: of what the model may answer, the first word alone is
-- preferred to all of the text.
--
--     luajit tools/pocket/preferences.lua FIRST_WORD_FOLDER FOLDER
--
-- writes FOLDER/train.jsonl and FOLDER/held_out.jsonl: rows with `messages`, `chosen` and `rejected`.
local from, to = unpack(arg)

for _, name in ipairs { "train", "held_out" } do
  local out = assert(io.open(to .. "/" .. name .. ".jsonl", "w"))
  for line in io.lines(from .. "/" .. name .. ".jsonl") do
    local text = line:match('"Repeat: ([^"]*)"')
    out:write('{"messages": [{"role": "user", "content": "Repeat: ', text, '"}], "chosen": "', text:match("^%S+"), '", "rejected": "', text, '"}\n')
  end
  out:close()
end
