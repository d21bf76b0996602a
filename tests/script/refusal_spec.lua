-- Mistakes of a researcher: each is refused by name, with the line, the operator and the shapes.
local D = require("driver")
local rows = { batch = 4, time = 6, vocab = 7, embed = 4 }

local function refuses(name, pattern, source, verb, args)
  it("refuses " .. name, function()
    local a = D.try(source, verb, args)
    assert.is_not_nil(a.error, "was accepted")
    local text = a.error.place .. ": " .. a.error.message .. " (" .. a.error.hint .. ")"
    assert.is_truthy(text:find(pattern), text)
  end)
end
local function loss(name, pattern, body)
  refuses(name, pattern, "return objective { data = 'chat', loss = function(b)\n" .. body .. "\nend }", "objective", { sizes = rows })
end

describe("a loss", function()
  loss("a mean over rows", "bad.lua@%x+:2: mean over batch: it depends on how the step is cut %(use average", "return average(b.logprobs - b.logprobs:mean('batch'))")
  loss("a sum over everything", "sum over batch: it depends", "return -b.logprobs:sum()")
  loss("a tensor as a condition", "bad.lua@%x+:2: a comparison that nothing uses", "if b.mask:gt(0) then return average(b.logprobs) end")
  loss("a nil axis", "mean: the axis is nil", "local t = {} return average(b.logprobs:mean(t.axis))")
  loss("a metric that depends on the cut", "in a loss it is an average or a total", "metric('m', b.progress * 2) return average(b.logprobs)")
  loss("attention that does not say whether it is causal", "say causal", "local q = b.hidden:rename('embed', 'dim') return average(nn.attention(q, q, q, 'time', 'dim', {}))")
  loss("a plain tensor", "loss returns an average", "return (-b.logprobs):sum('time')")
  loss("a product of averages", "scales by a number", "return average(b.logprobs) * average(b.logprobs)")
  loss("a weight with a gradient", "a weight carries no gradient", "return average(b.logprobs, b.logprobs:exp())")
  loss("an accidental outer product", "neither holds all axes", "return average(b.mask * tensor.full('vocab=7', 1))")
  loss("shapes that do not fit", "%+: .*time.*6.*5", "return average(b.logprobs + b.logprobs:trim('time', 0, 1))")
  loss("a field that this data has not", "b has no reward %(it has bytes", "return average(b.reward)")
  loss("a Lua comparison", "use x:lt%(y%)", "if b.logprobs < b.mask then return 1 end")
  loss("a global by mistake", "assignment to global nll", "nll = -b.logprobs return average(nll)")
  loss("a tensor in a text", "a tensor is no text", "return 'x' .. b.logprobs")
  loss("ids in arithmetic", "f32 meets i32", "return average(b.logprobs * b.ids)")
  loss("no gradient", "no gradient reaches", "return average(b.mask)")
  loss("a label drawn twice", "label", "return average(b.logprobs + tensor.normal('time=6', 'x') + tensor.normal('time=6', 'x'))")
  loss("a method that does not exist", "a tensor has no item", "return average(b.logprobs * b.logprobs:item())")
  loss("an assignment to a tensor", "a tensor is immutable", "b.logprobs.x = 1 return average(b.logprobs)")
  loss("a check that fails, with its text", "bad.lua@%x+:2: 6 tokens", "check(b.logprobs:size('time') == 5, '%d tokens', b.logprobs:size('time')) return average(b.logprobs)")
  it("warns of a value that nothing uses", function()
    local a = D.try("return objective { data = 'chat', loss = function(b)\nlocal x = -b.logprobs x:clamp(0, 1) return average(x)\nend }", "objective", { sizes = rows })
    assert.is_truthy(a.ok.warnings[1]:find("bad.lua@%x+:2: a value that nothing uses"))
  end)
end)

local matrix = { name = "w", kind = "matrix", axes = "dim=2 embed=3", out = "dim=2", inp = "embed=3" }
describe("an aggregator", function()
  local args = { peers = 4, params = { matrix } }
  refuses("sorting along n", "n may only be summed", "return aggregator { combine = function(u) return u:sort('n'):mean('peer') end }", "aggregator", args)
  refuses("state with peers", "has the axis peer", "return aggregator { init = function(u) return { old = tensor.zeros(u) } end, combine = function(u, c, s) return u:mean('peer'), s end }", "aggregator", args)
  refuses("a result of another shape", "combine's result is", "return aggregator { combine = function(u) return u:sum('n') end }", "aggregator", args)
  refuses("an unknown field of its table", "aggregator has no field combines", "return aggregator { combine = function(u) return u end, combines = 1 }")
  it("refuses too few peers for krum", function()
    local a = D.call("aggregator", "krum", args)
    assert.is_truthy(a.error.message:find("needs 5 peers"))
  end)
end)

describe("an optimiser", function()
  local args = { params = { matrix }, outer = false }
  refuses("a step of another shape", "step: %[dim=2 embed=3%] becomes", "return optimiser { step = function(p, g, c) return (p - g):sum('dim') end }", "optimiser", args)
  refuses("state that is lost", "state m is missing", "return optimiser { init = function(p) return { m = tensor.zeros(p) } end, step = function(p, g, c, s) return p - g, {} end }", "optimiser", args)
  refuses("agreement inside", "c has no agreement", "return optimiser { step = function(p, g, c) return p - c.agreement * g end }", "optimiser", args)
end)

describe("a schedule", function()
  local context = { context = { round = 0, rounds = 2, peers = 3, layers = 1, last = false } }
  local function plan(name, pattern, body)
    refuses(name, pattern, "return schedule { lr = function() return 1 end, round = function(c) return " .. body .. " end }", "plan", context)
  end
  plan("an unknown field of the plan", "plan has no field stepz", "{ stepz = 3, steps = 3, outer_lr = 1, codec = { bits = 4 } }")
  plan("half a step", "plan.steps", "{ steps = 2.5, outer_lr = 1, codec = { bits = 4 } }")
  plan("a plan without a codec", "plan.codec is a table", "{ steps = 2, outer_lr = 1 }")
  refuses("a rate that is not a number", "lr%(0%) is nan", "return schedule { lr = function() return 0 / 0 end, round = function() end }", "rates",
    { context = context.context, first = 0, count = 1 })
end)
