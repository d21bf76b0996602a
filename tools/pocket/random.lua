-- random: a small seeded generator whose numbers are the same under LuaJIT and PUC Lua 5.1.
--
-- Two multiplicative congruential generators, combined (P. L'Ecuyer, "Efficient and portable combined random number
-- generators", CACM 31(6), 1988, figure 3). Every product stays below 2^53, so binary64 holds it exactly: no bit
-- operations are needed and no library generator is asked. Period about 2.3e18.
--
--     local r = random.new(7)
--     r:uniform()              -- in [0, 1)
--     r:below(10)              -- 0..9
--     r:range(5, 8)            -- 5..7, as Python's randrange
--     r:choice(list)           -- one element
--     r:sample(list, 3)        -- three different elements, in random order
--     r:shuffle(list)          -- in place

local M1, A1 = 2147483563, 40014
local M2, A2 = 2147483399, 40692

local Random = {}
Random.__index = Random

local random = {}

function random.new(seed)
  assert(type(seed) == "number" and seed >= 0 and seed % 1 == 0 and seed < 2 ^ 31, "a seed is an integer from 0 to 2^31 - 1")
  local r = setmetatable({ first = 1 + seed % (M1 - 1), second = 1 + (seed * 69621 + 12345) % (M2 - 1) }, Random)
  for _ = 1, 16 do r:uniform() end                      -- neighbouring seeds start with neighbouring numbers
  return r
end

function Random:uniform()
  self.first = self.first * A1 % M1
  self.second = self.second * A2 % M2
  return (self.first - self.second) % (M1 - 1) / (M1 - 1)
end

function Random:below(n) return math.floor(self:uniform() * n) end

function Random:range(from, past) return from + self:below(past - from) end

function Random:choice(list) return list[1 + self:below(#list)] end

function Random:chance(p) return self:uniform() < p end

-- The index of one of `weights`, which sum to 1.
function Random:weighted(weights)
  local u, last = self:uniform(), nil
  for i = 1, #weights do
    if weights[i] > 0 then
      if u < weights[i] then return i end
      u, last = u - weights[i], i
    end
  end
  return last
end

function Random:shuffle(list)
  for i = #list, 2, -1 do
    local j = 1 + self:below(i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

function Random:sample(list, n)
  local rest, out = {}, {}
  for i = 1, #list do rest[i] = list[i] end
  for i = 1, n do
    local j = self:range(i, #rest + 1)
    rest[i], rest[j] = rest[j], rest[i]
    out[i] = rest[i]
  end
  return out
end

return random
