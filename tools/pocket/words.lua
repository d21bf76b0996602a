-- words: the values that the pocket model reads and copies: pseudo-words, numbers, dates, codes, phrases.
-- Every maker takes a generator of random.lua and returns text.

local words = {}

local function split(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end

words.VERBS = split [[find get list show make send read write open close start stop add remove count check book buy sell
  rent move copy sort play call ask set convert translate search look save load print draw track order plan measure
  compare share fetch update cancel clean fix build test watch tell give]]
words.NOUNS = split [[weather price index message timer event person table music song stock unit text language city day
  date time hour minute name number year country item title model symbol artist restaurant people value temperature room
  ticket train flight bus hotel car bike house door light lamp phone email letter book page file folder photo video game
  map road river lake garden tree flower bird dog cat horse food bread water milk tea coffee sugar salt rice fruit apple
  market shop bank money coin card bill tax loan school class teacher student test exam doctor nurse drug team match score
  player ball race news story poem paper pen color size weight height length speed power energy sound voice code key lock
  box bag shirt shoe hat coat ring watch clock calendar meeting task note list plan report order parcel recipe meal kitchen
  office computer screen cable memory disk server network machine]]
words.ADJECTIVES = split [[new old big small red green blue black white fast slow good bad long short high low warm cold
  early late open free cheap heavy light clean quiet local public daily weekly first last next]]
words.OTHERS = split [[the a of for on in at to from with by and or is are was has please can you me my I we need want what
  which who how when where much many today tomorrow tonight morning evening this that it there about into over under
  between after before]]

local ONSETS = split "b c d f g h j k l m n p r s t v w z br dr gr kr pl st tr sh ch th"
local VOWELS = split "a e i o u ai ea oo ia ou"
local ENDINGS = split "n r s l t m k nd x ck rt ng st d"
for _ = 1, 8 do ENDINGS[#ENDINGS + 1] = "" end

local SYLLABLES = { 1, 2, 2, 2, 3 }
local DIGITS = { 1, 2, 2, 3, 3, 4, 5, 6 }
local MINUTES = { 0, 5, 10, 15, 20, 30, 40, 45, 50 }
local CAPITALS = {}
for letter in ("ABCDEFGHJKLMNPQRSTUVWXYZ"):gmatch "." do CAPITALS[#CAPITALS + 1] = letter end
local LEXICON = { words.VERBS, words.NOUNS, words.NOUNS, words.ADJECTIVES, words.OTHERS }

function words.capitalise(text) return text:sub(1, 1):upper() .. text:sub(2) end

-- `n` letters of "A".."Z" without I and O.
function words.capitals(r, n)
  local out = {}
  for i = 1, n do out[i] = r:choice(CAPITALS) end
  return table.concat(out)
end

-- A pseudo-word; `capital` true or false, or nil for either.
function words.pseudo(r, capital)
  local out = {}
  for i = 1, r:choice(SYLLABLES) do out[i] = r:choice(ONSETS) .. r:choice(VOWELS) end
  local word = table.concat(out) .. r:choice(ENDINGS)
  if capital == nil then capital = r:chance(.5) end
  return capital and words.capitalise(word) or word
end

function words.name(r) return words.pseudo(r, true) end
function words.two_names(r) return words.name(r) .. " " .. words.name(r) end
function words.integer(r, from, past) return string.format("%d", r:range(from, past)) end
function words.number(r) return words.integer(r, 0, 10 ^ r:choice(DIGITS)) end
function words.date(r) return string.format("%04d-%02d-%02d", r:range(1990, 2040), r:range(1, 13), r:range(1, 29)) end

function words.clock(r)
  local hour = r:below(24)
  return string.format("%02d:%02d", hour, r:chance(.7) and r:choice(MINUTES) or r:below(60))
end

function words.word(r) return r:choice(r:choice(LEXICON)) end

-- Two to four letters, mostly with a number: "EA", "KWB-418".
function words.code(r)
  local letters = words.capitals(r, r:range(2, 5))
  if not r:chance(.6) then return letters end
  return letters .. (r:chance(.5) and "-" or "") .. words.integer(r, 0, 1000)
end

-- From `least` to `past` - 1 words, one in five a pseudo-word.
function words.phrase(r, least, past)
  local out = {}
  for i = 1, r:range(least or 2, past or 6) do out[i] = r:chance(.8) and words.word(r) or words.pseudo(r) end
  return table.concat(out, " ")
end

-- Any value: its text, and whether JSON writes it as a number.
function words.value(r)
  local k = r:uniform()
  if k < .35 then return words.name(r), false end
  if k < .45 then return words.two_names(r), false end
  if k < .60 then return words.number(r), true end
  if k < .67 then return words.date(r), false end
  if k < .74 then return words.clock(r), false end
  if k < .81 then return words.code(r), false end
  if k < .90 then return words.phrase(r), false end
  return words.pseudo(r, false), false
end

function words.json(text, is_number) return is_number and text or '"' .. text .. '"' end

-- "{city} in {day}" filled from a table. A slot without a value is an error.
function words.fill(pattern, values)
  return (pattern:gsub("{(%w+)}", function(name) return values[name] or error("no value for {" .. name .. "}") end))
end

return words
