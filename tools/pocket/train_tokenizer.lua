-- train_tokenizer: the pocket model's tokenizer, a byte-level BPE of 1,024 entries, from 40,000 corpus documents.
--
--     luajit tools/pocket/train_tokenizer.lua > models/pocket/tokenizer.json
--
-- Ids: three special tokens, the 256 bytes in the order of their printable stand-ins (GPT-2's table), then the merges in the
-- order they were learnt. Each merge is the most frequent pair of neighbours, counted over words; of equals the lower pair of
-- ids (the rule of Hugging Face's trainer, so that both learn the same merges from the same text). A word has the same tokens
-- everywhere: no space is glued to it.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local random = require "random"
local corpus = require "corpus"
local json_text = require "json_text"

local ENTRIES, DOCUMENTS, SEED = 1024, 40000, 7
local SPECIAL = { "<|endoftext|>", "<|im_start|>", "<|im_end|>" }
local SPLIT = "[A-Za-z]+|[0-9]+|\\n|[^A-Za-z0-9\\n]+"

-- Words ----------------------------------------------------------------------------------------------------------------

-- Calls found(word) for each piece of the text, as SPLIT cuts it.
local function split(text, found)
  local at = 1
  while at <= #text do
    local _, stop = text:find("^%a+", at)
    if not stop then _, stop = text:find("^%d+", at) end
    if not stop then _, stop = text:find("^\n", at) end
    if not stop then _, stop = text:find("^[^%w\n]+", at) end
    found(text:sub(at, stop))
    at = stop + 1
  end
end

-- The words of the documents in order of appearance, each with its count. Special tokens are no text: a line end stands for them.
local function count_words()
  local r, list, index = random.new(SEED), {}, {}
  local function found(word)
    local entry = index[word]
    if not entry then
      entry = { text = word, count = 0 }
      index[word], list[#list + 1] = entry, entry
    end
    entry.count = entry.count + 1
  end
  for _ = 1, DOCUMENTS do
    local parts = corpus.document(r, corpus.MIXES.full)
    local text = {}
    for i = 1, #parts do text[i] = parts[i][1] end
    split((table.concat(text):gsub("<|im_start|>", "\n"):gsub("<|im_end|>", "\n")), found)
  end
  return list
end

-- Bytes ----------------------------------------------------------------------------------------------------------------

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
end

-- GPT-2's table: printable Latin-1 bytes stand for themselves, the others for U+0100 and up in ascending order.
local function stand_ins()
  local code, spare = {}, 256
  for byte = 0, 255 do
    local printable = (byte >= 33 and byte <= 126) or (byte >= 161 and byte <= 172) or byte >= 174
    code[byte] = printable and byte or spare
    if not printable then spare = spare + 1 end
  end
  return code
end

-- Merges ---------------------------------------------------------------------------------------------------------------

-- Pairs of neighbours: pair.count over all words, pair.words the words that (may) hold it. `list` keeps them in order.
local function pair_table()
  local index, list = {}, {}
  return list, function(left, right)
    local key = left * 65536 + right
    local pair = index[key]
    if not pair then
      pair = { left = left, right = right, count = 0, words = {} }
      index[key], list[#list + 1] = pair, pair
    end
    return pair
  end
end

local function best(list)
  local top = list[1]
  for i = 2, #list do
    local pair = list[i]
    if pair.count > top.count or (pair.count == top.count
      and (pair.left < top.left or (pair.left == top.left and pair.right < top.right))) then top = pair end
  end
  return top
end

local function count_pairs(word, sign, pair_of)
  for i = 1, #word.ids - 1 do
    local pair = pair_of(word.ids[i], word.ids[i + 1])
    pair.count = pair.count + sign * word.count
    if sign > 0 and pair.last ~= word then
      pair.words[#pair.words + 1], pair.last = word, word
    end
  end
end

local function merge_word(ids, left, right, id)
  local out, i = {}, 1
  while i <= #ids do
    if ids[i] == left and ids[i + 1] == right then
      out[#out + 1], i = id, i + 2
    else
      out[#out + 1], i = ids[i], i + 1
    end
  end
  return out
end

-- Learns merges until `entries` ids exist; `pieces` maps ids to text and grows. Returns the merges as { left, right }.
local function learn(list, pieces, entries)
  local known, pair_of = pair_table()
  for _, word in ipairs(list) do count_pairs(word, 1, pair_of) end
  local merges = {}
  for id = #pieces + 1, entries - 1 do
    local pair = best(known)
    assert(pair.count > 0, "too little text for so many entries")
    pieces[id] = pieces[pair.left] .. pieces[pair.right]
    merges[#merges + 1] = { pair.left, pair.right }
    local touched = pair.words
    pair.words, pair.last = {}, nil
    for _, word in ipairs(touched) do
      local ids = merge_word(word.ids, pair.left, pair.right, id)
      if #ids < #word.ids then
        count_pairs(word, -1, pair_of)
        word.ids = ids
        count_pairs(word, 1, pair_of)
      end
    end
  end
  return merges
end

-- The file -------------------------------------------------------------------------------------------------------------

local function train()
  local pieces, order, id_of_byte = {}, {}, {}                           -- pieces[0] is the first
  for i, text in ipairs(SPECIAL) do pieces[i - 1] = text end
  local code = stand_ins()
  for byte = 0, 255 do order[byte + 1] = byte end
  table.sort(order, function(a, b) return code[a] < code[b] end)
  for i, byte in ipairs(order) do
    pieces[#SPECIAL + i - 1], id_of_byte[byte] = utf8(code[byte]), #SPECIAL + i - 1
  end
  local list = count_words()
  for _, word in ipairs(list) do
    word.ids = {}
    for i = 1, #word.text do word.ids[i] = id_of_byte[word.text:byte(i)] end
  end
  return pieces, learn(list, pieces, ENTRIES)
end

local function lines(count, line)
  local out = {}
  for i = 1, count do out[i] = line(i) end
  return table.concat(out, ",\n")
end

local function file_text(pieces, merges)
  local special = lines(#SPECIAL, function(i)
    return '    {"id": ' .. i - 1 .. ', "content": ' .. json_text(SPECIAL[i])
      .. ', "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}'
  end)
  local vocabulary = lines(ENTRIES, function(i) return "      " .. json_text(pieces[i - 1]) .. ": " .. i - 1 end)
  local merged = lines(#merges, function(i)
    return "      [" .. json_text(pieces[merges[i][1]]) .. ", " .. json_text(pieces[merges[i][2]]) .. "]"
  end)
  return ([[
{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
%s
  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "Sequence",
    "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": %s}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
    ]
  },
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {
%s
    },
    "merges": [
%s
    ]
  }
}
]]):format(special, json_text(SPLIT), vocabulary, merged)
end

io.write(file_text(train()))
