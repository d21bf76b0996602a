-- task: the tool-call task of the quickstart, generated: conversations in the OpenAI shape, with the tools on offer.
--
--     luajit tools/pocket/task.lua FOLDER TRAIN_SEED TRAIN_COUNT HELD_OUT_SEED HELD_OUT_COUNT
--
-- writes FOLDER/train.jsonl and FOLDER/held_out.jsonl, the same bytes on every machine. Eight tools, two to four offered in a
-- conversation, one called. One training conversation in four goes on with the tool's result and a final answer. Held out:
-- a quarter in phrasings that training never shows, and no telling value (a name, a date, a code, a quoted text) that
-- training shows.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local random = require "random"
local words = require "words"
local json_text = require "json_text"

local function list(text)
  local out = {}
  for item in text:gmatch("[^\n]+") do out[#out + 1] = item:match("^%s*(.-)%s*$") end
  return out
end

-- Values ---------------------------------------------------------------------------------------------------------------

local UNITS = {}
for unit in ([[km m cm mm miles feet inches yards kg g mg pounds ounces tons liters gallons cups pints celsius fahrenheit
  kelvin watts joules bytes bits hours days weeks seconds]]):gmatch "%S+" do UNITS[#UNITS + 1] = unit end
local DAYS = { "today", "tomorrow", "tonight" }

local function small(r) return words.integer(r, 1, 100) end
local function amount(r) return words.integer(r, 1, 100000) end
local function year(r) return words.integer(r, 1950, 2050) end
local function day(r) return r:chance(.6) and words.date(r) or r:choice(DAYS) end
local function unit(r) return r:choice(UNITS) end
local function phrase(r) return words.phrase(r) end
local function string(name, make) return { name = name, type = "string", make = make } end
local function number(name, make) return { name = name, type = "number", make = make } end

-- Tools: each with eight phrasings, of which the last two are held out -----------------------------------------------------

local UNSEEN = 2
local TOOLS = {
  { "get_weather", "Weather of a city on a day", { string("city", words.name), string("day", day) }, list [[
    What is the weather in {city} {day}?
    Weather in {city} for {day}
    Tell me the weather {day} in {city}
    How warm is it in {city} {day}?
    I need the weather of {city}, {day}
    {day}: weather in {city} please
    Show me the weather for {city} {day}
    Can you check the weather {day} in {city}?]] },
  { "price_index", "Price index of a country in a year", { string("country", words.name), number("year", year) }, list [[
    What is the price index of {country} in {year}?
    Price index for {country}, {year}
    Tell me the {year} price index of {country}
    Look up prices in {country} in {year}
    How high was the price index in {country} in {year}?
    I need the price index of {country} for {year}
    Show the price index for {country} in {year}
    Please find the {year} price index for {country}]] },
  { "rent_gpu", "Rent a GPU for some hours", { string("model", words.code), number("hours", small) }, list [[
    Rent a {model} for {hours} hours
    I need a {model} GPU for {hours} hours
    Please rent {hours} hours of a {model}
    Get me a {model} for {hours} h
    Can I rent the GPU {model} for {hours} hours?
    {hours} hours on a {model} GPU please
    I want to rent a {model} GPU, {hours} hours
    Rent me the {model} for {hours} h please]] },
  { "add_event", "Add an event to the calendar",
    { string("title", phrase), string("date", words.date), string("time", words.clock) }, list [[
    Add "{title}" on {date} at {time}
    Put "{title}" in my calendar on {date} at {time}
    New event "{title}", {date}, {time}
    Calendar: "{title}" on {date} at {time}
    On {date} at {time} I have "{title}"
    Plan "{title}" for {date} at {time}
    Please add the event "{title}" on {date} at {time}
    At {time} on {date}: "{title}"]] },
  { "convert_units", "Convert a value to another unit",
    { number("value", amount), string("source", unit), string("target", unit) }, list [[
    Convert {value} {source} to {target}
    How many {target} are {value} {source}?
    What is {value} {source} in {target}?
    {value} {source} in {target}
    Please convert {value} {source} into {target}
    Give me {value} {source} as {target}
    Change {value} {source} to {target}
    I need {value} {source} in {target}]] },
  { "find_person", "Find a person by name", { string("name", words.name) }, list [[
    Who is {name}?
    Find {name}
    Look up {name}
    Tell me about {name}
    Search for the person {name}
    I need to find {name}
    Please look up the person {name}
    Can you find {name}?]] },
  { "set_timer", "Set a timer", { number("minutes", small) }, list [[
    Set a timer for {minutes} minutes
    Timer {minutes} minutes
    Wake me in {minutes} minutes
    Start a {minutes} minute timer
    Remind me in {minutes} minutes
    {minutes} minutes timer please
    Please set the timer to {minutes} minutes
    I need a timer of {minutes} minutes]] },
  { "send_message", "Send a message to a person", { string("to", words.name), string("text", phrase) }, list [[
    Send {to} the message "{text}"
    Tell {to} "{text}"
    Write to {to}: "{text}"
    Message "{text}" to {to}
    Please send "{text}" to {to}
    Let {to} know "{text}"
    Send a message to {to}: "{text}"
    Write "{text}" to {to} please]] },
}

-- Conversations --------------------------------------------------------------------------------------------------------

local RESULTS = { "result", "value", "answer" }
local ANSWERS = { small, amount, words.name, function() return "done" end }

local function member(name, value) return '"' .. name .. '": ' .. value end

local function spec(tool)
  local properties, required = {}, {}
  for i, p in ipairs(tool[3]) do
    properties[i] = member(p.name, '{"type": "' .. p.type .. '"}')
    required[i] = '"' .. p.name .. '"'
  end
  return '{"type": "function", "function": {"name": "' .. tool[1] .. '", "description": "' .. tool[2]
    .. '", "parameters": {"type": "object", "properties": {' .. table.concat(properties, ", ")
    .. '}, "required": [' .. table.concat(required, ", ") .. "]}}}"
end

-- Two to four different tools in any order, `tool` among them.
local function offer(r, tool)
  local others = {}
  for _, other in ipairs(TOOLS) do
    if other ~= tool then others[#others + 1] = other end
  end
  local offered = r:sample(others, r:range(1, 4))
  offered[#offered + 1] = tool
  return r:shuffle(offered)
end

local function message(role, text) return '{"role": "' .. role .. '", "content": ' .. json_text(text) .. "}" end

local function result_turns(r)
  local value, key = r:choice(ANSWERS)(r), r:choice(RESULTS)
  local is_number = value:match "^%d+$" ~= nil
  return message("tool", "{" .. member(key, words.json(value, is_number)) .. "}"),
    message("assistant", "The " .. key .. " is " .. value .. ".")
end

-- One conversation as a JSON row, and the values of its call.
local function conversation(r, held_out)
  local tool = r:choice(TOOLS)
  local offered = offer(r, tool)
  local values, listed, arguments = {}, {}, {}
  for i, p in ipairs(tool[3]) do
    local value = p.make(r)
    values[p.name], listed[i] = value, value
    arguments[i] = member(p.name, words.json(value, p.type == "number"))
  end
  local seen = #tool[4] - UNSEEN
  local unseen = held_out and r:chance(.25)
  local phrasing = tool[4][unseen and seen + 1 + r:below(UNSEEN) or 1 + r:below(seen)]
  local turns = {
    message("user", words.fill(phrasing, values)),
    '{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "' .. tool[1] .. '", "arguments": '
      .. json_text("{" .. table.concat(arguments, ", ") .. "}") .. "}}]}",
  }
  if not held_out and r:chance(.25) then turns[3], turns[4] = result_turns(r) end
  local specs = {}
  for i = 1, #offered do specs[i] = spec(offered[i]) end
  return '{"messages": [' .. table.concat(turns, ", ") .. '], "tools": [' .. table.concat(specs, ", ") .. "]}\n", listed
end

-- Values that would turn up in both sets by chance alone: short ones, words, small numbers.
local function common(value)
  return #value < 4 or value:match "^%l+$" ~= nil or (#value < 5 and value:match "^%d+$" ~= nil)
end

local task = {}

-- The two sets as lists of JSON rows.
function task.sets(train_seed, train_count, held_out_seed, held_out_count)
  local train, held_out, shown = {}, {}, {}
  local r = random.new(train_seed)
  for i = 1, train_count do
    local row, values = conversation(r, false)
    train[i] = row
    for _, value in ipairs(values) do shown[value] = true end
  end
  r = random.new(held_out_seed)
  while #held_out < held_out_count do
    local row, values = conversation(r, true)
    local fresh = true
    for _, value in ipairs(values) do fresh = fresh and (common(value) or not shown[value]) end
    if fresh then held_out[#held_out + 1] = row end
  end
  return train, held_out
end

local function write(path, rows)
  local file = assert(io.open(path, "wb"))
  assert(file:write(table.concat(rows)))
  assert(file:close())
end

if arg and arg[0] and arg[0]:match "task%.lua$" then
  local numbers = {}
  for i = 2, 5 do numbers[#numbers + 1] = tonumber(arg[i]) end
  if #numbers < 4 then
    io.stderr:write("usage: task.lua FOLDER TRAIN_SEED TRAIN_COUNT HELD_OUT_SEED HELD_OUT_COUNT\n")
    os.exit(2)
  end
  local train, held_out = task.sets(unpack(numbers))
  write(arg[1] .. "/train.jsonl", train)
  write(arg[1] .. "/held_out.jsonl", held_out)
end

return task
