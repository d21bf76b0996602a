-- init: the first weights of the pocket model, as a safetensors file, the same bytes on every machine.
--
--     luajit tools/pocket/init.lua SEED > model.safetensors
--
-- Normal of deviation 0.02 for the embedding, 1/sqrt(in) for q, k, v, gate and up, 1/sqrt(2 * layers * in) for o and down, which
-- add to the residual stream; norms are ones. Sizes are those of models/pocket/config.json. A normal is the sum of twelve
-- uniforms less six: no logarithm or cosine, whose last bit differs between machines.

local folder = arg and arg[0] and arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local random = require "random"

local LAYERS, VOCAB, EMBED, HEADS, KV_HEADS, DIM, FFN = 4, 1024, 128, 4, 2, 32, 384

local function inner(width) return 1 / math.sqrt(width) end
local function residual(width) return 1 / math.sqrt(2 * LAYERS * width) end

-- { name, rows (nil for a vector), columns, deviation (nil for ones) }, in bytewise order of their names: the order in the file.
local function tensors()
  local out = { { "model.embed_tokens.weight", VOCAB, EMBED, 0.02 } }
  for layer = 0, LAYERS - 1 do
    local function add(name, rows, columns, deviation)
      out[#out + 1] = { ("model.layers.%d.%s.weight"):format(layer, name), rows, columns, deviation }
    end
    add("input_layernorm", nil, EMBED)
    add("mlp.down_proj", EMBED, FFN, residual(FFN))
    add("mlp.gate_proj", FFN, EMBED, inner(EMBED))
    add("mlp.up_proj", FFN, EMBED, inner(EMBED))
    add("post_attention_layernorm", nil, EMBED)
    add("self_attn.k_proj", KV_HEADS * DIM, EMBED, inner(EMBED))
    add("self_attn.o_proj", EMBED, HEADS * DIM, residual(HEADS * DIM))
    add("self_attn.q_proj", HEADS * DIM, EMBED, inner(EMBED))
    add("self_attn.v_proj", KV_HEADS * DIM, EMBED, inner(EMBED))
  end
  out[#out + 1] = { "model.norm.weight", nil, EMBED }
  return out
end

-- The four bytes of a binary32 near x, cut to 24 bits of mantissa.
local function f32(x)
  if x == 0 then return "\0\0\0\0" end
  local sign = x < 0 and 0x80 or 0
  local mantissa, exponent = math.frexp(math.abs(x))                      -- mantissa in [0.5, 1)
  local bits = math.floor(mantissa * 2 ^ 24) - 2 ^ 23
  exponent = exponent + 126
  assert(exponent > 0 and exponent < 255)
  return string.char(bits % 256, math.floor(bits / 256) % 256, math.floor(bits / 65536) + exponent % 2 * 128,
    sign + math.floor(exponent / 2))
end

local function normal(r)
  local sum = -6
  for _ = 1, 12 do sum = sum + r:uniform() end
  return sum
end

local function u64(n)
  local out = {}
  for i = 1, 8 do out[i], n = string.char(n % 256), math.floor(n / 256) end
  return table.concat(out)
end

local function write(seed)
  local list, entries, offset = tensors(), { '"__metadata__":{"format":"pt"}' }, 0
  for _, t in ipairs(list) do
    local shape = t[2] and t[2] .. "," .. t[3] or t[3]
    local size = 4 * (t[2] or 1) * t[3]
    local entry = '"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%d,%d]}'
    entries[#entries + 1] = entry:format(t[1], shape, offset, offset + size)
    offset = offset + size
  end
  local header = "{" .. table.concat(entries, ",") .. "}"
  header = header .. (" "):rep(-#header % 8)
  io.write(u64(#header), header)
  local r = random.new(seed)
  for _, t in ipairs(list) do
    local values = {}
    for i = 1, (t[2] or 1) * t[3] do values[i] = f32(t[4] and normal(r) * t[4] or 1) end
    io.write(table.concat(values))
  end
end

local seed = tonumber(arg[1])
if not seed then
  io.stderr:write("usage: init.lua SEED > model.safetensors\n")
  os.exit(2)
end
write(seed)
