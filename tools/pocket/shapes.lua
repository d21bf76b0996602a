-- shapes: the data of scripts/runs/vit_shapes.lua and waves_forecast.lua, which begin without weights.
--
--     luajit tools/pocket/shapes.lua MODELS
--
-- writes MODELS/shapes/{train,held_out}.jsonl: grey pictures of 8 x 8 with a bar across, a bar upright, a diagonal or a frame, brighter than the noise
-- around it, and MODELS/waves/{train,held_out}.jsonl: 32 values of a triangular wave of some period, height and level, some of them missing, and
-- the next 8. The same bytes on every machine.
local here = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local random = require "random"

local SIDE, PAST, NEXT = 8, 32, 8

local function inside(kind, at, size, y, x)
  if kind == 0 then return y == at and x < size + 3 end
  if kind == 1 then return x == at and y < size + 3 end
  if kind == 2 then return y - x == at - 3 end
  local low, high = at % 3, at % 3 + size
  return y >= low and y <= high and x >= low and x <= high and (y == low or y == high or x == low or x == high)
end

local function picture(r)
  local kind, at, size, bytes = r:below(4), 1 + r:below(6), 2 + r:below(3), {}
  for y = 0, SIDE - 1 do
    for x = 0, SIDE - 1 do bytes[#bytes + 1] = ("%02x"):format((inside(kind, at, size, y, x) and 150 or 0) + r:below(100)) end
  end
  return ('{"image": {"shape": [1, %d, %d], "bytes": "%s"}, "label": %d}\n'):format(SIDE, SIDE, table.concat(bytes), kind)
end

local function wave(r)
  local period, start, height, level, list = r:range(6, 17), r:uniform(), 1 + 3 * r:uniform(), 10 * r:uniform() - 5, {}
  for i = 0, PAST + NEXT - 1 do
    local phase = (i / period + start) % 1
    list[i] = ("%.2f"):format(level + height * (phase < 0.5 and 4 * phase - 1 or 3 - 4 * phase) + 0.1 * r:uniform())
    if i > 0 and r:chance(0.03) then list[i] = "null" end
  end
  return ('{"series": [%s], "target": [%s]}\n'):format(table.concat(list, ", ", 0, PAST - 1), table.concat(list, ", ", PAST, PAST + NEXT - 1))
end

local function write(path, make, seed, count)
  local r, out = random.new(seed), assert(io.open(path, "w"))
  for _ = 1, count do out:write(make(r)) end
  out:close()
end

for name, make in pairs { shapes = picture, waves = wave } do
  write(arg[1] .. "/" .. name .. "/train.jsonl", make, 3, 256)
  write(arg[1] .. "/" .. name .. "/held_out.jsonl", make, 4, 64)
end
