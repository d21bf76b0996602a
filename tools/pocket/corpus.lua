-- corpus: the pre-training documents of the pocket model, generated: copying, recalling, quoting, filling forms, choosing
-- from lists. ChatML turns; no call syntax, none of the task's tools; choosing and filling are never combined.
--
--     luajit tools/pocket/corpus.lua SEED BYTES MIX > corpus.jsonl         BYTES of text, at least; MIX is start or full
--
-- writes rows {"parts": [["text", weight], ...]}: weight 1 for answers and repetitions, 0.1 for everything else. The same
-- arguments give the same bytes on every machine. As a module: corpus.document(r, corpus.MIXES.full) -> list of { text, weight }.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local random = require "random"
local words = require "words"
local json_text = require "json_text"
local json, fill = words.json, words.fill

local CONTEXT, ANSWER = 0.1, 1
local START, END = "<|im_start|>", "<|im_end|>"

local corpus = {}

-- Documents ------------------------------------------------------------------------------------------------------------

-- chat { "user", "text", "assistant", "text", ... }
local function chat(turns)
  local parts = {}
  for i = 1, #turns, 2 do
    local role, text = turns[i], turns[i + 1]
    parts[#parts + 1] = { START .. role .. "\n", CONTEXT }
    parts[#parts + 1] = { text .. END, role == "assistant" and ANSWER or CONTEXT }
    parts[#parts + 1] = { "\n", CONTEXT }
  end
  return parts
end

local function add(turns, ...)
  for i = 1, select("#", ...) do turns[#turns + 1] = (select(i, ...)) end
end

local function many(n, make)
  local out = {}
  for i = 1, n do out[i] = make(i) end
  return out
end

local function json_value(r) return json(words.value(r)) end

local function pair_text(key, value) return '"' .. key .. '": ' .. value end

-- Repetition -----------------------------------------------------------------------------------------------------------

local LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
local SEPARATORS = { ", ", "; ", " / ", "-", "_" }
local MIXED = { words.number, words.pseudo, words.word }

local function any_text(r)
  local k = r:uniform()
  if k < .3 then return table.concat(many(r:range(2, 9), function() return words.pseudo(r) end), " ") end
  if k < .5 then return table.concat(many(r:range(2, 6), function() return (words.value(r)) end), " ") end
  if k < .7 then return words.phrase(r, 3, 10) end
  if k < .8 then
    local separator = r:choice(SEPARATORS)
    return table.concat(many(r:range(2, 8), function() return r:choice(MIXED)(r) end), separator)
  end
  if k < .9 then
    return table.concat(many(r:range(4, 16), function()
      local i = r:range(1, #LETTERS + 1)
      return LETTERS:sub(i, i)
    end))
  end
  return "{" .. table.concat(many(r:range(1, 4), function() return pair_text(words.word(r), json_value(r)) end), ", ") .. "}"
end

local REPEAT = { "Repeat: {text}", "Say this again: {text}", "Copy the text.\n{text}", "Echo {text}", 'Write "{text}"',
  'Please repeat "{text}"' }

local function repetition(r)
  local text = any_text(r)
  if r:chance(.5) then return chat { "user", fill(r:choice(REPEAT), { text = text }), "assistant", text } end
  local parts = { { text, CONTEXT }, { "\n", CONTEXT } }
  for _ = 1, r:range(1, 4) do
    parts[#parts + 1] = { text, ANSWER }
    parts[#parts + 1] = { "\n", ANSWER }
  end
  return parts
end

-- Keys and values, in several notations -----------------------------------------------------------------------------------

local function xml(key, value) return "<" .. key .. ">" .. value .. "</" .. key .. ">" end

local NOTATIONS = {
  { open = "{", close = "}", between = ", ", item = function(k, v, n) return pair_text(k, json(v, n)) end },
  { open = "", close = "", between = "\n", item = function(k, v) return k .. ": " .. v end },
  { open = "", close = "", between = "\n", item = xml },
  { open = "", close = "", between = ", ", item = function(k, v) return k .. " = " .. v end },
  { open = "[", close = "]", between = ", ",
    item = function(k, v, n) return '{"key": "' .. k .. '", "value": ' .. json(v, n) .. "}" end },
}
local ASK_VALUE = { "What is {k}?", "Tell me the {k}", "{k}", "Give the value of {k}" }
local RECALLS = {
  function(r, k, v) return fill(r:choice(ASK_VALUE), { k = k }), v end,
  function(_, k, v, n) return 'Value of "' .. k .. '" in JSON', json(v, n) end,
  function(_, k, v, n) return "Show " .. k .. " as JSON", "{" .. pair_text(k, json(v, n)) .. "}" end,
  function(_, k, v) return "Show " .. k .. " as XML", xml(k, v) end,
  function(_, k, v) return "Show " .. k, k .. " = " .. v end,
  function(_, k, v) return "Which key has the value " .. v .. "?", k end,
}

local function recall(r)
  local n = r:range(2, 7)
  local keys = r:chance(.6) and r:sample(words.NOUNS, n) or many(n, function() return words.pseudo(r, false) end)
  if r:chance(.3) then
    for i = 1, n do keys[i] = keys[i] .. "_" .. words.word(r) end
  end
  local values, numbers, order = {}, {}, {}
  for i = 1, n do
    values[i], numbers[i] = words.value(r)
    order[i] = i
  end
  local notation = r:choice(NOTATIONS)
  local text = many(n, function(i) return notation.item(keys[i], values[i], numbers[i]) end)
  local turns = { r:chance(.5) and "system" or "user", notation.open .. table.concat(text, notation.between) .. notation.close }
  r:shuffle(order)
  for i = 1, r:range(2, n + 1) do
    local question, answer = r:choice(RECALLS)(r, keys[order[i]], values[order[i]], numbers[order[i]])
    add(turns, "user", question, "assistant", answer)
  end
  return chat(turns)
end

-- Quoting --------------------------------------------------------------------------------------------------------------

local QUOTES = { '"', "'" }
local SAYING = { "wrote", "said", "told", "asked", "sent", "read" }
local QUOTING = { "{a} {verb} {q}{t}{q} to {b}.", "To {b}, {a} {verb} {q}{t}{q}.", "{q}{t}{q}, {verb} {a} to {b}.",
  "{a} {verb} to {b}: {t}" }

local function quotation(r)
  local a, b = words.name(r), words.name(r)
  local t
  if r:chance(.7) then t = words.phrase(r, 1, 7) else t = any_text(r):gsub('"', "") end
  local said = fill(r:choice(QUOTING), { a = a, b = b, t = t, q = r:choice(QUOTES), verb = r:choice(SAYING) })
  local questions = r:shuffle {
    { "What was it?", t }, { "Quote it", '"' .. t .. '"' }, { "By whom?", a }, { "To whom?", b },
    { "As JSON: from, to, text", '{"from": "' .. a .. '", "to": "' .. b .. '", "text": "' .. t .. '"}' },
    { "As JSON: text", '{"text": "' .. t .. '"}' },
  }
  local turns = { "user", said .. "\n" .. questions[1][1], "assistant", questions[1][2] }
  for i = 2, r:range(2, 4) do add(turns, "user", questions[i][1], "assistant", questions[i][2]) end
  return chat(turns)
end

-- Facts, filled into forms ---------------------------------------------------------------------------------------------------

local function one_or_two(share) return function(r) return r:chance(share) and words.two_names(r) or words.name(r) end end
local function small(r) return r:chance(.8) and words.integer(r, 1, 100) or words.number(r) end
local function year(r) return words.integer(r, 1900, 2050) end
local function phrase(r) return words.phrase(r) end
local function any_word(r) return r:chance(.5) and words.pseudo(r) or words.word(r) end
local function low_word(r) return r:chance(.5) and words.pseudo(r, false) or words.word(r) end
local place, owner = one_or_two(.2), one_or_two(.4)

-- { name, maker, number?, ways to state it }. A list, so that drawing from it does not depend on a table's order.
local FIELDS = {
  { "city", place, false, { "in {v}", "near {v}", "at {v}", "lives in {v}", "the city of {v}" } },
  { "person", words.name, false, { "with {v}", "by {v}", "for {v}", "from {v}", "named {v}" } },
  { "date", words.date, false, { "on {v}", "dated {v}", "since {v}", "for {v}" } },
  { "time", words.clock, false, { "at {v}", "from {v}", "after {v}" } },
  { "year", year, true, { "in {v}", "for {v}", "of the year {v}", "since {v}" } },
  { "count", small, true, { "{v} times", "{v} of them", "a set of {v}" } },
  { "minutes", small, true, { "{v} minutes", "for {v} minutes", "{v} min" } },
  { "hours", small, true, { "{v} hours", "for {v} hours", "{v} h" } },
  { "price", words.number, true, { "costs {v}", "for {v} coins", "at {v} each" } },
  { "people", small, true, { "{v} people", "for {v} people", "party of {v}" } },
  { "code", words.code, false, { "code {v}", "marked {v}", "with {v}" } },
  { "title", phrase, false, { '"{v}"', "'{v}'", 'called "{v}"', "the title '{v}'", "titled {v}" } },
  { "text", phrase, false, { 'says "{v}"', "reads '{v}'", "saying {v}", ": {v}" } },
  { "model", words.code, false, { "a {v}", "the {v}", "model {v}" } },
  { "language", words.name, false, { "in {v}", "speaks {v}", "into {v}", "to {v}" } },
  { "unit", low_word, false, { "in {v}", "of {v}", "as {v}" } },
  { "source", any_word, false, { "from {v}", "out of {v}" } },
  { "target", any_word, false, { "to {v}", "into {v}", "towards {v}" } },
  { "artist", owner, false, { "by {v}", "of {v}" } },
  { "shop", owner, false, { "at {v}", "from {v}", "in the shop {v}" } },
  { "country", place, false, { "of {v}", "in {v}", "for {v}" } },
  { "amount", words.number, true, { "{v}", "exactly {v}", "amount {v}" } },
}
local NAMED = { "{k} {v}", "the {k} is {v}", "{k}: {v}", "{v} as {k}", "{k} = {v}" }
local FIELD_COUNTS = { 1, 2, 2, 3, 3, 4 }
local JOINTS = { " ", " ", ", ", " and " }
local STOPS = { "", ".", "?", " please" }

-- One fact: { key, value, is_number, statement }. Two in five are stated by a key, which may be any word.
local function state(r, field)
  local key, value = field[1], field[2](r)
  if not r:chance(.4) then return { key, value, field[3], fill(r:choice(field[4]), { v = value }) } end
  local other = r:below(4)
  if other == 2 then key = r:choice(words.NOUNS) elseif other == 3 then key = words.pseudo(r, false) end
  return { key, value, field[3], fill(r:choice(NAMED), { k = key, v = value }) }
end

local function statement(r, facts)
  local lead = r:chance(.8) and words.phrase(r, 1, 5) or ""
  local said = table.concat(many(#facts, function(i) return facts[i][4] end), r:choice(JOINTS))
  local text = (lead .. " " .. said):gsub("^ +", "") .. r:choice(STOPS)
  return r:chance(.5) and words.capitalise(text) or text
end

local function form(r)
  local facts, used = {}, {}
  for _, field in ipairs(r:sample(FIELDS, r:choice(FIELD_COUNTS))) do
    local fact = state(r, field)
    if not used[fact[1]] then
      used[fact[1]] = true
      facts[#facts + 1] = fact
    end
  end
  local text = statement(r, facts)
  if r:chance(.7) then r:shuffle(facts) end
  if #facts > 1 and r:chance(.25) then facts[#facts] = nil end
  local schema = "Form: {" .. table.concat(many(#facts, function(i)
    return pair_text(facts[i][1], facts[i][3] and '"number"' or '"string"')
  end), ", ") .. "}"
  local filled = "{" .. table.concat(many(#facts, function(i)
    return pair_text(facts[i][1], json(facts[i][2], facts[i][3]))
  end), ", ") .. "}"
  local k = r:uniform()
  if k < .4 then return chat { "system", schema, "user", text, "assistant", filled } end
  if k < .6 then
    local keys = table.concat(many(#facts, function(i) return facts[i][1] end), ", ")
    return chat { "user", text, "user", "JSON with " .. keys, "assistant", filled }
  end
  if k < .8 then
    local tags = table.concat(many(#facts, function(i) return xml(facts[i][1], facts[i][2]) end))
    return chat { "system", schema, "user", text, "assistant", tags }
  end
  local turns = { "user", text }
  for i = 1, #facts do add(turns, "user", facts[i][1] .. "?", "assistant", facts[i][2]) end
  return chat(turns)
end

-- Lists of tools, with questions about them --------------------------------------------------------------------------------

-- Names that only the task may use.
local TASK_NAMES = {}
for name in ([[get_weather price_index rent_gpu add_event convert_units find_person set_timer send_message translate_text
  play_music book_table get_stock]]):gmatch "%S+" do TASK_NAMES[name] = true end

local DESCRIPTIONS = { "{V} a {n}", "{V} the {n}", "{V} {n} of a {m}", "{V} {n} for a {m}", "{V} {a} {n}" }
local TYPES = { "string", "string", "number" }

local function tool(r)
  local verb, noun, name
  repeat
    verb, noun = r:choice(words.VERBS), r:choice(words.NOUNS)
    name = (r:chance(.8) and verb or words.pseudo(r, false)) .. "_" .. noun
  until not TASK_NAMES[name]
  local description = fill(r:choice(DESCRIPTIONS),
    { V = words.capitalise(verb), n = noun, m = r:choice(words.NOUNS), a = r:choice(words.ADJECTIVES) })
  local keys, types = {}, {}
  for _ = 1, r:range(1, 4) do
    local key = r:chance(.6) and r:choice(FIELDS)[1] or r:choice(words.NOUNS)
    if not types[key] then keys[#keys + 1] = key end
    types[key] = r:choice(TYPES)
  end
  local parameters = table.concat(many(#keys, function(i) return pair_text(keys[i], '"' .. types[keys[i]] .. '"') end), ", ")
  return { name = name, description = description, verb = verb, noun = noun, keys = table.concat(keys, ", "),
    parameters = "{" .. parameters .. "}" }
end

local CHOOSING = { "Which tool has to do with {n}?", "Tool for {n}?", "{n}", "I need the {n} now", "Who can {v} a {n}?",
  "Can you {v} my {n}?", "{v} {n} {w}", "What about the {n} {w}?" }
local ENTRY = { "{n}?", "Show the entry for {n}", "I want to {v} the {n} {w}" }

local function entry(t, rest) return '{"name": "' .. t.name .. '", "description": "' .. t.description .. '"' .. rest .. "}" end

local QUESTIONS = {
  function(r, t) return fill(r:choice(CHOOSING), { n = t.noun, v = t.verb, w = (words.value(r)) }), t.name end,
  function(_, t) return "Parameters of " .. t.name .. "?", t.parameters end,
  function(_, t) return "What does " .. t.name .. " do?", t.description end,
  function(_, t) return "Names of the parameters of " .. t.name, t.keys end,
  function(r, t) return fill(r:choice(ENTRY), { n = t.noun, v = t.verb, w = (words.value(r)) }), entry(t, "") end,
}

local function tool_list(r)
  local tools = many(r:range(2, 5), function() return tool(r) end)
  local listed = many(#tools, function(i) return entry(tools[i], ', "parameters": ' .. tools[i].parameters) end)
  local turns = { "system", "Tools: [" .. table.concat(listed, ", ") .. "]" }
  for _ = 1, r:range(2, 5) do
    local question, answer = r:choice(QUESTIONS)(r, r:choice(tools))
    add(turns, "user", question, "assistant", answer)
  end
  return chat(turns)
end

-- Surface --------------------------------------------------------------------------------------------------------------

corpus.KINDS = { repetition, recall, quotation, form, tool_list }
corpus.KIND_NAMES = { "repeat", "kv", "quote", "facts", "tools" }
-- Shares of documents. Without the plain start (copying and recalling only) the full mix stays on a plateau.
corpus.MIXES = { start = { .60, .40, 0, 0, 0 }, full = { .15, .20, .12, .33, .20 } }

function corpus.document(r, mix) return corpus.KINDS[r:weighted(mix)](r) end

-- The parts of a document as one JSON row.
function corpus.row(parts)
  return '{"parts": [' .. table.concat(many(#parts, function(i)
    return "[" .. json_text(parts[i][1]) .. ", " .. parts[i][2] .. "]"
  end), ", ") .. "]}\n"
end

if arg and arg[0] and arg[0]:match "corpus%.lua$" then
  local seed, bytes, mix = tonumber(arg[1]), tonumber(arg[2]), corpus.MIXES[arg[3]]
  if not (seed and bytes and mix) then
    io.stderr:write("usage: corpus.lua SEED BYTES start|full > corpus.jsonl\n")
    os.exit(2)
  end
  local r, written = random.new(seed), 0
  while written < bytes do
    local parts = corpus.document(r, mix)
    for i = 1, #parts do written = written + #parts[i][1] end
    io.write(corpus.row(parts))
  end
end

return corpus
