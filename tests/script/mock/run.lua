-- run.lua: traces every shipped script at small sizes, then checks values against the reference vectors and misuse against errors.
-- usage: luajit tests/script/mock/run.lua [scripts folder]
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path
local H = require("host")
H.root = arg[1] or here .. "/../../../scripts"
local M = H.M
local of, show = M.of, M.show
local passed, failed = 0, 0

local function test(name, fn)
  M.forbid, M.sizes, M.labels, M.touched, H.scope = {}, nil, {}, {}, nil
  M.nodes = 0
  M.reseed()
  local ok, err = xpcall(fn, function(e) return type(e) == "string" and e:find("%.lua:%d+: ") and not e:find("mock/") and e or debug.traceback(e) end)
  if ok then passed = passed + 1 else failed = failed + 1; print("FAIL " .. name .. "\n     " .. tostring(err)) end
end
local function near(got, want, tol, what)
  tol = tol or 1e-5
  if type(want) == "table" then
    local data = M.is(got) and got.data or got
    assert(#data == #want, ("%s: %d values, wanted %d"):format(what or "", #data, #want))
    for i = 1, #want do near(data[i], want[i], tol, (what or "") .. "[" .. i .. "]") end
    return
  end
  got = H.value(got)
  assert(math.abs(got - want) <= tol, ("%s: got %.9f, wanted %.9f"):format(what or "value", got, want))
end
local function refuses(name, pattern, fn)
  test("refuses: " .. name, function()
    local ok, err = pcall(fn)
    assert(not ok, "was accepted")
    assert(tostring(err):find(pattern), "wrong error: " .. tostring(err))
    if os.getenv("SHOW") then print("  " .. tostring(err)) end
  end)
end
local function axes_are(x, list) local a, b = {}, {}
  for w in list:gmatch("%S+") do a[w] = true end
  for _, w in ipairs(x.axes_) do b[w] = true; assert(a[w], "unexpected axis in " .. show(x) .. ", wanted " .. list) end
  for w in pairs(a) do assert(b[w], "missing axis " .. w .. " in " .. show(x)) end
end
local function noise(list, scale, grad)
  local x = M.of(list, 0, "f32", grad)
  for i = 1, #x.data do x.data[i] = (M.random() - 0.5) * 2 * (scale or 1) end
  return x
end
local function ints(list, n) local x = M.of(list, 0, "i32"); for i = 1, #x.data do x.data[i] = math.floor(M.random() * n) end; return x end
local function clone(t) local o = {}; for k, v in pairs(t) do o[k] = v end; return o end

-- ---------------------------------------------------------------- objectives
local V, K = 7, 3
local function tokens(rows, time) -- what every per-token data kind offers; rows: "batch=4" and the like
  local all = rows .. " time=" .. time
  local f = { ids = ints(all, V), mask = M.of(all, 1), scored = M.of(all, 1), bytes = M.of(all, 3),
              logits = noise(all .. " vocab=" .. V, 2, true), hidden = noise(all .. " embed=4", 1, true) }
  for i = 1, #f.mask.data do
    local t = (i - 1) % time
    f.scored.data[i] = t > 0 and t < time - 1 and 1 or 0            -- first token and padding are not scored
    f.mask.data[i] = f.scored.data[i] * (t > 1 and 1 or 0)
  end
  f.logprobs = f.logits:log_softmax("vocab"):gather("vocab", f.ids)
  f.entropy = -(f.logits:softmax("vocab") * f.logits:log_softmax("vocab")):sum("vocab")
  f.ref_logprobs = f.logprobs:detach() + noise(all, 0.3)
  f.score_end = noise(rows, 1, true)
  f.progress = of("", { 0.5 })
  f.teacher_logits = noise(all .. " vocab=" .. V, 2)
  f.teacher_logprobs, f.teacher_ids = f.teacher_logits:log_softmax("vocab"):topk("vocab", K, "k")
  return f
end
local samples = {
  chat = function() return tokens("batch=4", 6) end,
  text = function() return tokens("batch=4", 6) end,
  pairs = function() return { chosen = H.fields("chosen", tokens("pair=4", 6)), rejected = H.fields("rejected", tokens("pair=4", 5)) } end,
  labelled = function()
    local f = tokens("batch=4", 6)
    f.label = of("batch=4", { 1, 0, 1, 0 })
    f.mismatched = H.fields("mismatched", tokens("batch=4", 6))
    return f
  end,
  rollouts = function()
    local f = tokens("prompt=2 sample=3", 6)
    f.old_logprobs = f.logprobs:detach() + noise("prompt=2 sample=3 time=6", 0.2)
    f.sampler_logprobs = f.old_logprobs + noise("prompt=2 sample=3 time=6", 0.05)
    f.reward = of("prompt=2 sample=3", { 1, 0, 0.5, 1, 1, 1 })
    f.valid, f.truncated = of("prompt=2 sample=3", 1), of("prompt=2 sample=3", 0)
    f.value = noise("prompt=2 sample=3 time=6", 1, true)
    return f
  end,
  images = function() return { logits = noise("batch=4 class=5", 1, true), label = ints("batch=4", 5) } end,
  series = function()
    return { forecast = noise("batch=4 horizon=5 quantile=3", 1, true), target = noise("batch=4 horizon=5"), observed = of("batch=4 horizon=5", 1) }
  end,
}
local why = "it depends on how the step is cut; use average or total, or move it to prepare"
local rows = { batch = { why = why }, pair = { why = why }, prompt = { why = why } }
local function detached(f) local o = {}; for k, v in pairs(f) do o[k] = M.is(v) and v:detach() or v end; return o end

local warnings = {}
local function nothing_dead(fn, ...)
  M.made, M.watching = setmetatable({}, { __mode = "k" }), true
  local out = { fn(...) }
  M.watching = false
  for _, o in ipairs(out) do
    if M.is(o) then o.used = true
    elseif type(o) == "table" then for _, v in pairs(o) do if M.is(v) then v.used = true end end end
  end
  local dead = M.dead()
  for _, line in ipairs(dead) do
    if not line:find("warning") then error(line .. ": a comparison that nothing uses (`if x:gt(y)` tests no tensor; use where)", 0) end
    warnings[line] = true
  end
  return unpack(out)
end

-- prepare on the whole batch, then loss on it; `fields` is changed to what loss sees.
local function objective(name, given, fields)
  local o, kind = H.run(name, given)
  assert(kind == "objective")
  if o.prepare then
    M.forbid = {}
    local out = nothing_dead(o.prepare, (H.fields("batch in prepare", detached(fields))))
    for k, v in pairs(out) do
      assert(fields[k] == nil, "prepare's " .. k .. " is a field already")
      fields[k] = v:detach()
    end
  end
  if o.data == "rollouts" then -- prompt and sample become batch
    local like = fields.reward
    for k, v in pairs(fields) do
      if v.n.prompt then
        if not v.n.sample then v = v:expand("sample=" .. like.n.sample) end
        fields[k] = v:merge("prompt sample", "batch")
      end
    end
  end
  return o, fields
end
local function loss(o, fields)
  M.forbid = rows
  local b, read = H.fields("batch", fields)
  H.in_loss = true
  local ok, l = pcall(nothing_dead, o.loss, b)
  H.in_loss = false
  if not ok then error(l, 0) end
  M.forbid = {}
  assert(getmetatable(l) == H.Average or getmetatable(l) == H.Total, "loss returns an average or a total")
  assert(l.grad, "no gradient reaches the loss")
  return l, read
end
local function cut(f, axis, first, last) -- rows first..last of every field that has them
  local out = {}
  for k, v in pairs(f) do
    if M.is(v) then out[k] = v.n[axis] and v:trim(axis, first - 1, v.n[axis] - last) or v else out[k] = v end
  end
  return out
end

local report = {}
local objective_cases = {
  chat_sft = { {}, { prompt_weight = 0.3 }, { per = "example" } }, pretrain = { {}, { z_loss = 1e-4 } }, dft = { {} },
  grpo = { {}, { per = "sequence", kl = 0.1, kl_kind = "k2" }, { per = "constant", advantage = "centred", dual_clip = 3 },
           { advantage = "leave_one_out", sampler_cap = 2, keep_truncated = false, keep_constant = false } },
  gspo = { {} }, ppo = { {}, { entropy_weight = 0.01 } },
  dpo = { {}, { form = "robust", label_smoothing = 0.1 }, { form = "hinge" }, { length_normalised = true, beta = 5 } },
  ipo = { {}, { per_token = false } }, kto = { {} }, orpo = { {} }, simpo = { {} }, reward_model = { {}, { centre = 0.01 } },
  distill = { {}, { direction = "reverse" }, { direction = "jsd" }, { teacher = "topk" }, { teacher = "topk", tail = "drop" },
              { teacher = "topk", tail = "renormalise", direction = "reverse" } },
  classify = { {}, { label_smoothing = 0.1 } }, forecast = { {} },
}
local function sorted(t) -- the order of pairs differs from run to run
  local keys, i = {}, 0
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return function() i = i + 1; if keys[i] then return keys[i], t[keys[i]] end end
end
for name, cases in sorted(objective_cases) do
  for i, given in ipairs(cases) do
    test(("objective %s #%d"):format(name, i), function()
      local o, f = objective(name, given, samples[H.run(name, given).data]())
      M.nodes = 0
      local l, read = loss(o, f)
      local nodes, whole = M.nodes, H.value(l)
      local names = {}
      for k in pairs(read) do names[#names + 1] = k end
      table.sort(names)
      report[#report + 1] = ("%-12s %3d nodes  loss %9.6f  reads %s"):format(name .. "#" .. i, nodes, whole, table.concat(names, " "))
      for k, v in pairs(H.metrics) do assert(H.value(v) == H.value(v), "metric " .. k .. " is NaN") end
      -- the same step cut into micro-batches of one row gives the same loss
      local axis = o.data == "pairs" and "pair" or "batch"
      if o.data ~= "pairs" then
        local parts = {}
        for r = 1, (f.logprobs or f.label or f.target):size(axis) do
          M.labels = {}
          parts[r] = loss(o, cut(f, axis, r, r))
        end
        near(H.joined(parts), whole, 1e-12, "cut into micro-batches")
      end
    end)
  end
end

-- Reference vectors (objectives.md). T-RL: one prompt, four samples.
local function rl()
  local shape = "prompt=1 sample=4 time=4"
  local function seq(list) -- four lists, padded with 0
    local out = {}
    for i = 1, 4 do for t = 1, 4 do out[#out + 1] = list[i][t] or 0 end end
    return out
  end
  local f = {
    old_logprobs = of(shape, seq { { -1, -.5 }, { -2, -1, -.7 }, { -.4 }, { -1.5, -1.2, -.3, -2 } }),
    logprobs = of(shape, seq { { -.8, -.6 }, { -2.3, -.9, -.7 }, { -.1 }, { -1.5, -1.6, -.2, -1.6 } }, "f32", true),
    ref_logprobs = of(shape, seq { { -1.1, -.5 }, { -1.9, -1, -.8 }, { -.5 }, { -1.4, -1.2, -.4, -2.1 } }),
    mask = of(shape, seq { { 1, 1 }, { 1, 1, 1 }, { 1 }, { 1, 0, 1, 1 } }),
    reward = of("prompt=1 sample=4", { 1, 0, .5, 0 }), valid = of("prompt=1 sample=4", 1), truncated = of("prompt=1 sample=4", 0),
  }
  f.sampler_logprobs = f.old_logprobs
  return f
end
local function published(given) -- the published numbers divide by G - 1 and add 1e-4
  local out = { advantage = "sample_std", eps = 1e-4 }
  for k, v in pairs(given) do out[k] = v end
  return out
end
local function grpo_value(given) local o, f = objective("grpo", published(given), rl()); return loss(o, f) end
test("group-relative advantages: by the population deviation, exactly zero in a group of equal rewards", function()
  local _, f = objective("grpo", {}, rl())
  for i, x in ipairs { 1.507553, -.904532, .301511, -.904532 } do near(f.advantage.data[i], x, 2e-6, "std") end
  local g = rl()
  g.reward = of("prompt=1 sample=4", { .1, .1, .1, .1 })
  _, f = objective("grpo", {}, g)
  for i = 1, 4 do assert(f.advantage.data[i] == 0) end
  g = rl()
  g.reward, g.valid = of("prompt=1 sample=4", { 1, 9, 0, 0 }), of("prompt=1 sample=4", { 1, 0, 1, 1 })
  _, f = objective("grpo", { advantage = "centred" }, g)
  for i, x in ipairs { 2 / 3, 0, -1 / 3, -1 / 3 } do near(f.advantage.data[i], x, 1e-12, "a declined reward") end
end)
test("T-GRPO", function()
  near(grpo_value { clip_high = .28 }, .220316, 2e-6, "token 0.2/0.28")
  near(grpo_value { clip_high = .2 }, .225741, 2e-6, "token 0.2/0.2")
  near(grpo_value { clip_high = .28, per = "sequence" }, -.006098, 2e-6, "sequence")
  near(grpo_value { clip_high = .28, per = "constant", length = 8 }, .061964, 2e-6, "constant")
  near(grpo_value { clip_high = .28, per = "constant", length = 8, advantage = "centred" }, .029669, 2e-6, "Dr. GRPO")
  near(grpo_value { clip_high = .28, kl = .04 }, .221864, 2e-6, "with KL")
  near(grpo_value { clip_high = .2, per = "sequence", kl = .04 }, .004322, 2e-6, "with KL, sequence")
  near(H.metrics.kl_k3, .038693, 2e-6, "k3")
end)
test("T-GSPO", function()
  local o, f = objective("gspo", published {}, rl())
  near(loss(o, f), .035294, 2e-6)
  o, f = objective("gspo", published { clip_low = .2, clip_high = .28 }, rl())
  near(loss(o, f), -.012123, 2e-6)
end)
test("T-PPO", function()
  local s = "prompt=1 sample=1 time=5" -- a masked token in the middle changes nothing
  local f = { mask = of(s, { 1, 1, 0, 1, 1 }), value = of(s, { .5, .6, 9, .4, .7 }), old_logprobs = of(s, 0), reward = of("prompt=1 sample=1", { 1 }),
              ref_logprobs = of(s, { -.02, .01, 5, -.03, 0 }), logprobs = of(s, 0, "f32", true), valid = of("prompt=1 sample=1", 1) }
  for i, v in ipairs(f.ref_logprobs.data) do f.ref_logprobs.data[i] = v / .05 end
  local o, g = objective("ppo", {}, f)
  near(g.advantage.data[1], .019811, 2e-6) near(g.advantage.data[2], -.541556, 2e-6)
  near(g.advantage.data[4], 1.394498, 2e-6) near(g.advantage.data[5], -.872753, 2e-6)
  near(g.returns.data[1], .900387, 2e-6) near(g.returns.data[4], .955, 2e-6)
  g.value = of("batch=1 time=5", { .8, .55, 9, .4, 1 }, "f32", true)
  loss(o, g)
  near(H.metrics.value_loss, .063518, 2e-6, "value loss")
end)
local function pref()
  local function side(p, r, n)
    local function pad(l) local out = {}; for i = 1, 2 do for t = 1, 3 do out[#out + 1] = l[i][t] or 0 end end; return out end
    local m = {}
    for i = 1, 2 do for t = 1, 3 do m[#m + 1] = p[i][t] and 1 or 0 end end
    return (H.fields("side", { logprobs = of("pair=2 time=3", pad(p), "f32", true), ref_logprobs = of("pair=2 time=3", pad(r)), mask = of("pair=2 time=3", m) }))
  end
  return { chosen = side({ { -.5, -.7 }, { -.4, -.6, -.5 } }, { { -.7, -.8 }, { -.4, -.5, -.5 } }),
           rejected = side({ { -1, -.9, -1.1 }, { -.8, -.3 } }, { { -.9, -.9, -1 }, { -.9, -.4 } }) }
end
test("T-PREF", function()
  local function v(name, given) local o, f = objective(name, given, pref()); return loss(o, f) end
  near(v("dpo", {}), .688360, 2e-6, "dpo") near(v("dpo", { label_smoothing = .1 }), .689360, 2e-6, "cdpo")
  near(v("dpo", { label_smoothing = .1, form = "robust" }), .687110, 2e-6, "robust") near(v("dpo", { form = "hinge" }), .99, 2e-6, "hinge")
  near(v("dpo", { length_normalised = true, beta = 5 }), .686280, 2e-6, "normalised")
  near(v("ipo", {}), 24.615694, 2e-5, "ipo") near(v("ipo", { per_token = false }), 24.17, 2e-5, "ipo sums")
  near(v("simpo", {}), 1.019646, 2e-6, "simpo") near(v("orpo", {}), .591239, 2e-6, "orpo")
  near(H.metrics.accuracy, 1, 1e-9)
end)
test("T-PREF reward model", function()
  local function side(v) return (H.fields("side", { score_end = of("pair=2", v, "f32", true) })) end
  near(loss(objective("reward_model", {}, { chosen = side { 1.2, .3 }, rejected = side { .4, .5 } })), .584620, 2e-6)
end)
test("T-KTO", function()
  local one = "batch=4 time=1"
  local f = { label = of("batch=4", { 1, 1, 0, 0 }), logprobs = of(one, { .3, -.1, -.2, .2 }, "f32", true), ref_logprobs = of(one, 0), mask = of(one, 1),
              mismatched = (H.fields("m", { logprobs = of(one, { .3, -.1, .2, 0 }), ref_logprobs = of(one, 0), mask = of(one, 1) })) }
  local o, g = objective("kto", {}, clone(f))
  near(loss(o, g), .498750, 2e-6)
  o, g = objective("kto", { good_weight = 1.33 }, clone(f))
  near(loss(o, g), .581250, 2e-6)
end)
test("T-SFT, T-DFT", function()
  local f = { logprobs = of("batch=2 time=3", { -2, 0, 0, -.5, -.7, -.6 }, "f32", true), mask = of("batch=2 time=3", { 1, 0, 0, 1, 1, 1 }), scored = of("batch=2 time=3", { 1, 0, 0, 1, 1, 1 }) }
  near(loss(objective("chat_sft", {}, clone(f))), .95) near(loss(objective("chat_sft", { per = "example" }, clone(f))), 1.3)
  near(loss(objective("dft", {}, clone(f))), .312708, 2e-6)
  f.mask = of("batch=2 time=3", { 1, 0, 0, .5, .5, .5 })
  near(loss(objective("chat_sft", {}, clone(f))), 1.16)
end)
test("T-KD", function()
  local t, s = { .7, .2, .1 }, { .5, .3, .2 }
  local function f(x, grad) local o = {}; for i, v in ipairs(x) do o[i] = math.log(v) end; return of("batch=1 time=1 vocab=3", o, "f32", grad) end
  local function case(given)
    local lt = f(t)
    local tl, ti = lt:topk("vocab", 2, "k")
    local g = { logits = f(s, true), logprobs = of("batch=1 time=1", 0, "f32", true), mask = of("batch=1 time=1", 1), teacher_logits = lt, teacher_logprobs = tl, teacher_ids = ti }
    return loss(objective("distill", given, g))
  end
  near(case {}, .085123, 2e-6) near(case { direction = "reverse" }, .092033, 2e-6)
  near(case { direction = "jsd" }, .021901, 2e-6) near(case { temperature = 2 }, .024574, 2e-6)
  near(case { teacher = "topk", tail = "drop" }, .154438, 2e-6) near(case { teacher = "topk", tail = "renormalise" }, .053814, 2e-6)
  near(case { teacher = "topk" }, .085123, 2e-6)
end)

-- Gradients by central differences on logprobs, with detached values held.
local function gradient(name, given, make)
  local base = make().logprobs
  local frozen, out = { at = 0 }, {}
  local function only(i, by, replay) -- prepare's own detaches stay out of the tape
    local f = make()
    if i then f.logprobs.data[i] = f.logprobs.data[i] + by end
    M.frozen = nil
    local o, g = objective(name, given, f)
    M.frozen = frozen
    frozen.at, frozen.replay = 0, replay
    return H.value((loss(o, g)))
  end
  only(nil, 0, false)
  for i = 1, #base.data do out[i] = (only(i, 1e-5, true) - only(i, -1e-5, true)) / 2e-5 end
  M.frozen = nil
  return out
end
test("gradients of T-GRPO, T-GSPO", function()
  near(gradient("grpo", published { clip_high = .28 }, rl), { -.177145, -.131233, 0, 0, 0, .096173, .087021, 0, 0, 0, 0, 0, .087021, 0, .096173, .129820 }, 2e-6, "grpo token")
  near(gradient("grpo", published { clip_high = .28, per = "sequence" }, rl), { -.199289, -.147637, 0, 0, 0, .072130, .065265, 0, 0, 0, 0, 0, .065265, 0, .072130, .097365 }, 2e-6, "grpo sequence")
  near(gradient("gspo", published { clip_low = .2, clip_high = .28 }, rl), { -.171529, -.171529, 0, 0, .061056, .061056, .061056, 0, 0, 0, 0, 0, .077102, 0, .077102, .077102 }, 2e-6, "gspo")
end)
test("gradient of T-DFT sees through no detach", function()
  local function make()
    local m = of("batch=2 time=3", { 1, 0, 0, 1, 1, 1 })
    return { logprobs = of("batch=2 time=3", { -2, 0, 0, -.5, -.7, -.6 }, "f32", true), mask = m, scored = m }
  end
  near(gradient("dft", {}, make), { -.033834, 0, 0, -.151633, -.124146, -.137203 }, 2e-6)
end)

-- ---------------------------------------------------------------- aggregators
local V7 = { 1, 2, -1, 1.5, 1.75, -.5, .5, 2.5, -1.25, 1.75, 2.25, -.25, .75, 3, -1.5, .25, 1.25, -2, 8, -6, 4 }
local far = "the rule is run block by block along n; n may only be summed over"
local blocked = { n = { why = far, allow = { sum = true, mean = true, norm = true, max = true, min = true, dot = true, dist2 = true } } }
local function aggregate(name, given, u, c, s)
  local a, kind = H.run(name, given)
  assert(kind == "aggregator")
  M.forbid = (a.over or "whole") == "whole" and blocked or {}
  if a.init and not s then
    s = a.init(u, c or {})
    for k, v in pairs(s) do assert(not v.n.peer, "state " .. k .. " has the axis peer, whose size changes") end
  end
  local out, state = nothing_dead(a.combine, u, c or {}, s)
  M.forbid = {}
  if s then for k, v in pairs(s) do assert(state and state[k], "state " .. k .. " is missing"); axes_are(state[k], table.concat(v.axes_, " ")) end end
  return out, state
end
local function v7() return of("peer=7 n=3", V7) end
local function rule(name, given, want, tol, c)
  test("V7 " .. name, function()
    M.nodes = 0
    local x = aggregate(name, given, v7(), c)
    local nodes = M.nodes
    if x.n.peer then x = x:mean("peer") end
    axes_are(x, "n")
    near(x, want, tol or 1e-9, name)
    report[#report + 1] = ("%-18s %4d nodes"):format(name, nodes)
  end)
end
local cxt = (H.fields("aggregator context", { weight = of("peer=7", { 1, 2, 3, 4, 5, 6, 7 }), tokens = of("peer=7", { 1, 2, 3, 4, 5, 6, 7 }), round = 3,
  quality = of("peer=7", { .1, .05, -.02, .01, .04, 0, -3 }), anchor = of("n=3", { 1, 2, -1 }), sent = of("peer=7 n=3", 1) }))
local meanH = { .958333333333, 2.125, -1.083333333333 }
rule("mean", {}, { 1.964285714286, .964285714286, -.357142857143 })
rule("weighted_mean", {}, { 2.633928571429, .089285714286, .0625 }, nil, cxt)
rule("median", {}, { 1, 2, -1 })
rule("trimmed_mean", { hostile = 1 }, { 1.1, 1.95, -.9 })
rule("trimmed_mean", { hostile = 2 }, { 1.083333333333, 2, -.916666666667 })
rule("krum", {}, { 1, 2, -1 })
rule("multi_krum", { keep = 2 }, { .75, 2.25, -1.125 })
rule("multi_krum", {}, meanH)
rule("multi_krum", { hostile = 2 }, { 1.1, 2.3, -.9 })
rule("bulyan", {}, { 1.083333333333, 2.25, -.916666666667 })
rule("geometric_median", { iterations = 1 }, { 1.307658144474, 1.848039661941, -.767485968929 })
rule("geometric_median", { iterations = 3 }, { 1.163265214775, 1.984394729486, -.865255640984 })
rule("geometric_median", {}, { 1.000002061384, 2.000000897638, -.999998785848 }, 1e-8)
rule("centered_clip", { radius = 1 }, { .414048362526, .58115878248, -.29373755316 })
rule("centered_clip", { radius = 1, iterations = 3 }, { 1.012559872265, 1.625210958709, -.794737054198 })
rule("centered_clip", { radius = 100 }, { 1.964285714286, .964285714286, -.357142857143 })
rule("norm_clip", { over = "whole" }, { 1.102186162805, 1.518488133109, -.740396692482 }, 1e-8)
rule("nearest_mix", {}, { (6 * meanH[1] + 2.166666666667) / 7, (6 * meanH[2] + .625) / 7, (6 * meanH[3] - .166666666667) / 7 })
rule("fltrust", {}, { .889947733918, 1.905339333489, -.969609555189 }, 1e-9, cxt)
rule("sign_majority", {}, { 1, 1, -1 })
rule("quality_weighted", { mode = "proportional" }, { 1.1125, 2.15, -.9375 }, nil, cxt)
rule("quality_weighted", { mode = "softmax" }, { 1.041619987298, 2.094352628463, -1.000338760450 }, nil, cxt)
rule("quality_weighted", { mode = "gate", keep = 3 }, { 1.083333333333, 2.25, -1 }, nil, cxt)
rule("alternating_lora", {}, { 1.964285714286, .964285714286, -.357142857143 })
test("centered_clip from a given centre", function()
  local x = aggregate("centered_clip", { radius = 1, iterations = 3 }, v7(), {}, { centre = of("n=3", { 1, 2, -1 }) })
  near(x, { 1.115748600685, 2.033443148116, -.936734709114 }, 1e-9)
end)
test("bulyan is iterated, not one pass", function()
  near(aggregate("bulyan", {}, of("peer=7 n=2", { 2, 2, -4, 0, 4, 3, 2, 0, 3, 1, -1, 4, -2, 0 })), { 2.666666666667, 0 }, 1e-9)
end)
test("ties go to the peer that comes first", function()
  local t5 = of("peer=5 n=2", { 0, 0, 0, 0, 1, 0, 1, 0, 9, 9 })
  near(aggregate("krum", {}, t5), { 0, 0 }) near(aggregate("multi_krum", { keep = 3 }, t5), { 1 / 3, 0 }, 1e-9)
end)
test("trimmed mean is no total less extremes", function()
  near(aggregate("trimmed_mean", {}, of("peer=5 n=1", { 1, 2, 3, 4, 1e200 })), { 3 }, 1e-9)
end)
test("sparse_mean", function()
  local u = of("peer=4 n=4", { 1, -1, 0, 0, 2, 2, 0, 0, 0, -1, -2, 0, 0, 0, 0, 8 })
  local sent = of("peer=4 n=4", { 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1 })
  near(aggregate("sparse_mean", {}, u), { .75, 0, -.5, 2 }) near(aggregate("sparse_mean", { among = "senders" }, u, { sent = sent }), { 1.5, 0, -2, 8 })
end)
test("norm_clip a tensor", function()
  local u = v7()
  near(aggregate("norm_clip", {}, u:trim("n", 0, 1)):mean("peer"), { 1.067600332, 1.493734725 }, 1e-8)
  near(aggregate("norm_clip", {}, u:trim("n", 2, 0)):mean("peer"), { -.607142854 }, 1e-8)
end)
test("alternating_lora trains one factor a round", function()
  local a = H.run("alternating_lora", {})
  assert(a.trains({ role = "lora_b" }, 0) and not a.trains({ role = "lora_a" }, 0) and a.trains({ role = "lora_a" }, 1))
end)
test("a chain: nearest_mix, then trimmed_mean", function()
  local u = aggregate("nearest_mix", { hostile = 2 }, v7())
  near(aggregate("trimmed_mean", { hostile = 2 }, u), { 1.1, 2.233333333333, -.9 }, 1e-9)
end)
test("lora_product", function()
  local B, A = of("peer=4 row=2 rank=1", { 1, 0, 0, 1, 1, 1, 2, -1 }), of("peer=4 rank=1 col=2", { 1, 2, 3, -1, 2, 0, 0, 1 })
  local start_b, start_a = of("row=2 rank=1", { .3, -.2 }), of("rank=1 col=2", { .5, .1 })
  local m = { a = { start = start_a, update = start_a - A }, b = { start = start_b, update = start_b - B } }
  local out = aggregate("lora_product", {}, m)
  axes_are(out.a, "rank col") axes_are(out.b, "row rank")
  local product = (start_b - out.b):dot(start_a - out.a, "rank") -- aggregation.md 1.23
  local ideal = (B / 4):merge("peer rank", "stack"):dot(A:merge("peer rank", "stack"), "stack")
  near(ideal, { .75, 1, 1.25, -.5 }, 1e-9, "mean product")
  near(product, { .872932044, .122258449, 1.157272185, .162081692 }, 1e-8, "FlexLoRA, rank 1")
end)

-- ---------------------------------------------------------------- optimisers
local matrix = { kind = "matrix", name = "w", out = "head=1 dim=2", inp = "embed=3", layer = 0 }
local vector = { kind = "vector", name = "norm", layer = 0 }
local function optimise(name, given, param, p, grads, c)
  local o, kind = H.run(name, given)
  assert(kind == "optimiser")
  c.param = param
  local ctx = (H.fields("optimiser context", c))
  local s = o.init and o.init(p, ctx) or {}
  local trail = {}
  for i, g in ipairs(grads) do
    local q, t = nothing_dead(o.step, p, g, ctx, s)
    axes_are(q, table.concat(p.axes_, " "))
    t = t or {}
    for k, v in pairs(s) do assert(t[k], "state " .. k .. " is missing"); axes_are(t[k], table.concat(v.axes_, " ")) end
    for k in pairs(t) do assert(s[k], "state " .. k .. " was not in init") end
    p, s, trail[i] = q, t, q
  end
  return trail
end
local function lr(v) return { lr = of("", { v }), agreement = of("", { .5 }) } end
test("T-ADAMW", function()
  local g = { of("n=1", { .5 }), of("n=1", { -.25 }), of("n=1", { .1 }) }
  local t = optimise("adamw", { beta2 = .999 }, { kind = "matrix", name = "w", out = "n=1", inp = "" }, of("n=1", { 1 }), g, lr(.1))
  near(t[1], { .899000002 }, 1e-8) near(t[2], { .871467299 }, 1e-8) near(t[3], { .839071476 }, 1e-8)
end)
local function two(x, y) return of("head=1 dim=2 embed=3", x), y end
test("T-MUON", function()
  local g1 = of("head=1 dim=2 embed=3", { 1, 0, -1, 2, 1, .5 })
  local g2 = of("head=1 dim=2 embed=3", { -.5, .5, 0, 1, -1, .25 })
  local W = of("head=1 dim=2 embed=3", { .5, -.5, .1, .2, .3, -.4 })
  local t = optimise("muon", { scale = "keller" }, matrix, W, { g1, g2 }, lr(.02))
  near(t[1], { .490824, -.494494, .119241, .189256, .291975, -.407419 }, 2e-6, "keller 1")
  near(t[2], { .484706, -.506422, .131011, .174176, .293909, -.408813 }, 2e-6, "keller 2")
  local tall = { kind = "matrix", name = "w", out = "ffn=3", inp = "embed=2" }
  local turned = of("ffn=3 embed=2", { 1, 2, 0, 1, -1, .5 })
  local q = optimise("muon", { scale = "keller", weight_decay = 0 }, tall, of("ffn=3 embed=2", 0), { turned }, lr(1))[1]
  near(q * (-1 / math.sqrt(1.5)), { .408800, .517188, -.225309, .371249, -.972074, .410934 }, 2e-6, "tall")
end)
test("muon leaves the rest to adamw", function()
  local a = optimise("muon", {}, vector, of("n=2", { 1, 2 }), { of("n=2", { .5, .5 }) }, lr(.1))[1]
  near(a, { .9, 1.9 }, 1e-6)
end)
test("muon options pass to adamw by prefix", function()
  H.run("muon", { ["adamw.beta1"] = .8 })
end)
test("outer nesterov 4.1", function()
  local t = optimise("nesterov", {}, vector, of("n=2", { 1, -2 }), { of("n=2", { .1, -.2 }), of("n=2", { .05, .1 }), of("n=2", { -.02, .3 }) }, lr(.7))
  near(t[1], { .867, -1.734 }, 1e-9) near(t[2], { .7438, -1.7536 }, 1e-9) near(t[3], { .69102, -2.10724 }, 1e-9)
end)
test("adaptive scales with agreement", function()
  local function at(a) return optimise("adaptive", {}, vector, of("n=1", { 1 }), { of("n=1", { .1 }) }, { lr = of("", { 1 }), agreement = of("", { a }) })[1].data[1] end
  near(1 - at(1), .19, 1e-9) near(1 - at(-1), .0475, 1e-9)
end)
for _, name in ipairs { "sgd", "adamw", "muon", "adafactor", "lion", "nesterov", "adaptive", "sign" } do
  for kind, param in sorted { matrix = matrix, vector = vector } do
    test("optimiser " .. name .. " " .. kind, function()
      local list = kind == "matrix" and "head=1 dim=2 embed=3" or "embed=3"
      M.nodes = 0
      local t = optimise(name, name == "sgd" and { momentum = .9 } or {}, param, noise(list), { noise(list), noise(list) }, lr(.01))
      report[#report + 1] = ("%-12s %s %4d nodes for two steps"):format(name, kind, M.nodes)
      for _, v in ipairs(t[2].data) do assert(v == v, "NaN") end
    end)
  end
end

-- ---------------------------------------------------------------- schedules
local params = {}
for i = 0, 7 do params[#params + 1] = { name = "model.layers." .. i .. ".mlp.up_proj", layer = i, kind = "matrix" } end
params[#params + 1] = { name = "model.embed_tokens", kind = "table" }
local plan_fields = " steps inner fragment delay apply_at merge eager outer_lr clip codec exchange redundancy among micro_batches activations "
local codec_fields = " bits block keep of keep_share feedback transform tile "
for _, name in ipairs { "diloco", "streaming", "delayed", "eager", "sparse", "demo", "ring", "hierarchical", "pipeline", "plateau" } do
  test("schedule " .. name, function()
    local o, kind = H.run(name, {})
    assert(kind == "schedule")
    local s = o.init and o.init()
    local seen = {}
    for r = 0, 11 do
      local c = { round = r, rounds = 12, peers = 5, layers = 8, last = r > 0 and { loss = 3 - math.min(r, 4) * .1, agreement = .4, seconds = 20 } or false }
      local plan
      plan, s = o.round(c, s)
      assert(plan.steps >= 1 and plan.steps % 1 == 0 and plan.outer_lr >= 0, "steps, outer_lr")
      for k in pairs(plan) do assert(plan_fields:find(" " .. k .. " ", 1, true), "plan has no field " .. k) end
      for k in pairs(plan.codec) do assert(codec_fields:find(" " .. k .. " ", 1, true), "codec has no field " .. k) end
      if plan.fragment then seen[plan.fragment] = true end
      for i = 0, plan.steps - 1 do local v = o.lr(r * plan.steps + i, c); assert(v == v and v >= 0 and v < 1, "lr") end
    end
    if o.fragments then
      for _, p in ipairs(params) do local f = o.fragment(p); assert(f >= 0 and f < o.fragments and f % 1 == 0 and seen[f], "fragment of " .. p.name) end
    end
    if o.stages then local n = 0; for _, v in ipairs(o.stages { layers = 8 }) do n = n + v end; assert(n == 8) end
    if name == "plateau" then assert(s.scale < 1, "never halved") end
  end)
end
test("T-SCHED", function()
  local function at(step, given) local m = H.load("rate", given); return m.at(step, 100) end
  local base = { peak = 1, warmup = 10 }
  local function with(t) local o = clone(base); for k, v in pairs(t) do o[k] = v end; return o end
  for _, row in ipairs { { 0, 0, 0, 0 }, { 5, .5, .5, .5 }, { 10, 1, 1, 1 }, { 55, .5, .5, 1 }, { 85, .1667, .0670, .75 }, { 90, .1111, .0302, .5 }, { 99, .0111, .0003, .05 } } do
    near(at(row[1], with { shape = "linear" }), row[2], 6e-5) near(at(row[1], with { shape = "cosine" }), row[3], 6e-5)
    near(at(row[1], with { shape = "wsd", cooldown = 20 }), row[4], 6e-5)
  end
  near(at(90, with { shape = "cosine", floor = .1 }), .1271, 6e-5)
end)

-- ---------------------------------------------------------------- models
local llama_like = { num_hidden_layers = 2, num_attention_heads = 4, num_key_value_heads = 2, hidden_size = 8, intermediate_size = 6, vocab_size = 7, rms_norm_eps = 1e-6, head_dim = 4, rope_theta = 10000, tie_word_embeddings = true }
local function plus(t) local o = clone(llama_like); for k, v in pairs(t) do o[k] = v end; return o end
local configs = {
  llama = { llama_like, plus { tie_word_embeddings = false, sliding_window = 2, attention_bias = true } }, qwen3 = { llama_like },
  gemma = { plus { model_type = "gemma2", query_pre_attn_scalar = 4, attn_logit_softcapping = 50, final_logit_softcapping = 30, sliding_window = 2 }, plus { model_type = "gemma3_text", query_pre_attn_scalar = 4, sliding_window = 2 } },
  moe = { plus { num_experts = 4, num_experts_per_tok = 2, moe_intermediate_size = 5, norm_topk_prob = true, decoder_sparse_step = 1 } },
  vit = { { num_hidden_layers = 2, num_attention_heads = 2, hidden_size = 8, intermediate_size = 6, image_size = 4, patch_size = 2, num_labels = 5, layer_norm_eps = 1e-12 } },
  patch_series = { plus { patch = 2, horizon = 5, quantiles = 3 } },
}
local model_rows = { row = { why = "a model treats rows alike" } }
local function forward(m, c, w, b)
  M.sizes, M.forbid, M.labels = c.axes, model_rows, {}
  H.packed = m.data == "text"
  w.scope, w.layer = "", nil
  local x, extra_loss = m.embed(w, b, c), {}
  for layer = 0, c.layers - 1 do
    w.scope, w.layer = c.scope:format(layer) .. ".", layer
    H.scope = w.scope
    local y, a = m.block(w, x, b, c, layer)
    axes_are(y, table.concat(x.axes_, " "))
    if a then assert(getmetatable(a) == H.Average and a.grad, "a block's second result is an average"); extra_loss[#extra_loss + 1] = a end
    x = y
  end
  w.scope, w.layer = "", nil
  local out = m.head(w, x, b, c)
  M.sizes, M.forbid = nil, {}
  return out, extra_loss
end
local function model_batch(data, time)
  if data == "text" then
    local ids, seg = ints("row=2 time=" .. time, 7), M.of("row=2 time=" .. time, 1, "i32")
    local pos = M.of("row=2 time=" .. time, 0, "i32")
    for i = 1, #pos.data do pos.data[i] = (i - 1) % time end
    return { ids = ids, position = pos, segment = seg, real = M.of("row=2 time=" .. time, 1) }
  elseif data == "images" then return { image = noise("row=2 channel=3 height=4 width=4") }
  end
  return { series = noise("row=2 time=6"), observed = of("row=2 time=6", { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }) }
end
for name, list in sorted(configs) do
  for i, config in ipairs(list) do
    for _, lora in ipairs { false, { rank = 2, scale = 2 } } do
      test(("model %s #%d%s"):format(name, i, lora and " with adapters" or ""), function()
        local m, kind = H.run(name, {})
        assert(kind == "model")
        local c = m.config(config)
        local w = H.weights(lora or nil)
        M.nodes = 0
        local b = model_batch(m.data, 6)
        local out, aux = forward(m, c, w, (H.fields("model input", b)))
        local nodes = M.nodes
        axes_are(out.logits or out.forecast, m.data == "text" and "row time vocab" or m.data == "images" and "row class" or "row horizon quantile")
        assert((out.logits or out.forecast).grad)
        for _, v in ipairs((out.logits or out.forecast).data) do assert(v == v, "NaN") end
        if not lora then
          local n = 0
          for _, p in pairs(w.all) do n = n + #p.tensor.data end
          report[#report + 1] = ("%-14s %4d nodes  %3d tensors  %5d numbers  %s"):format(name .. "#" .. i, nodes, #w.order, n, #aux > 0 and "auxiliary loss" or "")
        end
        -- blocks alone and in any order declare the same parameters
        local again = H.weights(lora or nil)
        M.sizes, M.labels = c.axes, {}
        local x = m.embed(H.weights(lora or nil), b, c)
        for layer = c.layers - 1, 0, -1 do
          again.scope, again.layer = c.scope:format(layer) .. ".", layer
          H.scope = again.scope
          m.block(again, x, b, c, layer)
        end
        for full, p in pairs(again.all) do assert(w.all[full] and w.all[full].info.axes == p.info.axes, full) end
        if m.data == "text" then -- causal, and packing does not leak
          local d = clone(b)
          d.ids = of("row=2 time=6", { unpack(b.ids.data) }, "i32")
          d.ids.data[6] = (d.ids.data[6] + 1) % 7
          local other = forward(m, c, w, d)
          for k = 1, 5 * 7 do near(other.logits.data[k], out.logits.data[k], 1e-12, "causal") end
          local short = model_batch("text", 3)
          for r = 0, 1 do for t = 1, 3 do short.ids.data[r * 3 + t] = b.ids.data[r * 6 + 3 + t] end end
          local packed = clone(b)
          packed.segment = of("row=2 time=6", { 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2 }, "i32")
          packed.position = of("row=2 time=6", { 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 }, "i32")
          local p, q = forward(m, c, w, packed).logits, forward(m, c, w, short).logits
          for r = 0, 1 do for k = 1, 3 * 7 do near(p.data[r * 42 + 21 + k], q.data[r * 21 + k], 1e-9, "packed") end end
        end
        if m.data == "text" then -- the same script samples: token by token, attention alone remembers
          H.cache = {}
          for t = 0, 5 do
            H.cache.calls = 0
            local one = {}
            for k, v in pairs(b) do one[k] = v:trim("time", t, 5 - t) end
            local step = forward(m, c, w, one).logits
            for r = 0, 1 do for k = 1, 7 do near(step.data[r * 7 + k], out.logits.data[r * 42 + t * 7 + k], 1e-9, "sampling") end end
          end
          H.cache = nil
        end
        -- every optimiser takes every parameter of every model
        for _, opt in ipairs { "adamw", "muon", "adafactor" } do
          for _, full in ipairs(w.order) do
            local p = w.all[full]
            optimise(opt, {}, p.info, p.tensor:detach(), { noise(p.info.axes) }, lr(.01))
          end
        end
      end)
    end
  end
end
test("end to end: llama and chat_sft", function()
  local m = H.run("llama", {})
  local c, w = m.config(llama_like), H.weights()
  local b = model_batch("text", 6)
  local logits = forward(m, c, w, b).logits:rename("row", "batch"):shift("time", 1) -- index t is about token t
  local ids = b.ids:rename("row", "batch")
  local scored = M.of("batch=2 time=6", { 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1 })
  local o, f = objective("chat_sft", {}, { logprobs = logits:log_softmax("vocab"):gather("vocab", ids), mask = scored, scored = scored })
  near(loss(o, f), math.log(7), .5)
end)
test("parameter names are the file's", function()
  local m = H.run("qwen3", {})
  local w = H.weights()
  forward(m, m.config(llama_like), w, model_batch("text", 6))
  for _, n in ipairs { "model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_norm", "model.layers.1.mlp.down_proj", "model.norm" } do assert(w.all[n], n) end
  assert(not w.all.lm_head, "tied")
end)

-- ---------------------------------------------------------------- operators that few scripts use
test("operators", function()
  local T = M.tensor
  local x, i = of("a=2 k=3", { 1, 2, 3, 4, 5, 6 }), M.of("a=2 k=3", { 0, 2, 2, 1, 1, 0 }, "i32")
  near(x:scatter("k", i, "v=3"), { 1, 0, 5, 6, 9, 0 }) -- adjoint of gather: <scatter x, y> = <x, gather y>
  local y = noise("a=2 v=3")
  near((x:scatter("k", i, "v=3") * y):sum(), (x * y:gather("v", i)):sum().data[1], 1e-12)
  near(T.stack("s", { of("a=2", { 1, 2 }), of("a=2", { 3, 4 }) }):sum("a"), { 3, 7 })
  near(x:cumsum("k", { decay = .5 }), { 1, 2.5, 4.25, 4, 7, 9.5 }) near(x:cumsum("k", { reverse = true }), { 6, 5, 3, 15, 11, 6 })
  near(x:shift("k", 1), { 0, 1, 2, 0, 4, 5 }) near(x:shift("k", -1), { 2, 3, 0, 5, 6, 0 })
  near(of("a=4", { 3, 1, 3, 0 }):rank("a"), { 2, 1, 3, 0 }) near(of("a=4", { 1, 2, 4, 8 }):median("a"), { 3 })
  near(of("a=4", { 1, 2, 4, 8 }):median("a", of("a=4", { 1, 0, 1, 1 })), { 4 })
  near(of("a=3", { 1, 0 / 0, 3 }):mean("a", of("a=3", { 1, 0, 1 })), { 2 }) near(of("a=1", { 5 }):mean("a", of("a=1", { 0 })), { 0 })
  assert(x:axes() == "a=2 k=3" and x:has("k") and not x:has("v") and x:size("k") == 3)
  axes_are(x:merge("k a", "m"):split("m", "k=3 a"), "k a") near(x:merge("k a", "m"), { 1, 4, 2, 5, 3, 6 })
  near(x:dot(of("k=3", { 1, 0, 1 }), "k"), { 4, 10 }) axes_are(x:dot(of("a=2 b=2", 1), "a"), "k b")
  assert(x:dist2("a", "other").dt == "f64") near(x:dist2("a", "other"), { 0, 27, 27, 0 })
end)
test("a square matrix keeps its output apart", function()
  M.sizes = { embed = 3 }
  local w = H.weights()
  axes_are(w:linear(noise("row=2 embed=3"), "mix", "embed -> embed"), "row embed")
  axes_are(w.all.mix.tensor, "embed embed_out")
end)
refuses("exp of f64", "exp takes f32, got f64", function() of("a=2 k=1", { 1, 2 }):dist2("a", "b"):exp() end)
refuses("a name used for two shapes", "elsewhere", function()
  M.sizes = { embed = 3, vocab = 5, ffn = 4 }
  local w = H.weights()
  w:linear(noise("row=2 embed=3"), "m", "embed -> ffn")
  w:linear(noise("row=2 embed=3"), "m", "embed -> vocab")
end)

-- ---------------------------------------------------------------- rewards
local function score(name, given, r) local o, kind = H.run(name, given); assert(kind == "reward"); return o.score((H.fields("completion", r))) end
local function completion(t) local r = { prompt = {}, text = "", message = {}, reference = false, tokens = 10, truncated = false }; for k, v in pairs(t) do r[k] = v end; return r end
test("exact_match", function()
  assert(score("exact_match", {}, completion { text = "so \\boxed{3} or rather \\boxed{ 42.0 }", reference = "42" }) == 1)
  assert(score("exact_match", {}, completion { text = "The answer is Paris", reference = "paris" }) == 1)
  assert(score("exact_match", {}, completion { text = "no", reference = "yes" }) == 0)
end)
test("tool_call", function()
  local want = { { name = "get", arguments = '{"a":1,"b":[1,2]}' }, { name = "put", arguments = "{}" } }
  assert(score("tool_call", {}, completion { reference = want, message = { tool_calls = { { name = "put", arguments = "{ }" }, { name = "get", arguments = '{"b":[1,2],"a":1}' } } } }) == 1)
  assert(score("tool_call", {}, completion { reference = want, message = { tool_calls = { { name = "get", arguments = "{" } } } }) == .125)
  assert(score("tool_call", {}, completion { reference = "text" }) == nil)
end)
test("json_schema", function()
  local schema = { type = "object", required = { "n" }, additionalProperties = false, properties = { n = { type = "integer", minimum = 1 }, tags = { type = "array", items = { enum = { "a", "b" } } } } }
  assert(score("json_schema", {}, completion { text = ' {"n": 2, "tags": ["a"]} ', reference = schema }) == 1)
  for _, bad in ipairs { '{"n": 0}', '{"n": 2.5}', '{"tags": []}', '{"n": 2, "x": 1}', '{"n": 2, "tags": ["c"]}', "[1]", "nonsense" } do
    assert(score("json_schema", {}, completion { text = bad, reference = schema }) == 0, bad)
  end
end)
test("length_penalty and combine", function()
  for len, want in pairs { [16] = 0, [17] = -.25, [18] = -.5, [20] = -1, [40] = -1 } do near(score("length_penalty", { max_tokens = 20, buffer = 4 }, completion { tokens = len }), want, 1e-12) end
  near(score("combine", { ["length_penalty.max_tokens"] = 20, ["length_penalty.buffer"] = 4 }, completion { text = "7", reference = "7", tokens = 18 }), .95, 1e-12)
end)

-- ---------------------------------------------------------------- misuse is refused, by name
local folder = os.tmpname()
os.remove(folder)
local function inline(body)
  H.root = folder
  os.execute("mkdir -p " .. folder .. "/objectives")
  local g = assert(io.open(folder .. "/objectives/bad.lua", "w"))
  g:write(body)
  g:close()
end
local root = H.root
local function bad_loss(body)
  return function()
    inline("return objective { data = 'chat', loss = function(b) " .. body .. " end }")
    local ok, err = pcall(function() local o, f = objective("bad", {}, samples.chat()); return loss(o, f) end)
    H.root = root
    M.forbid = {}
    if not ok then error(err, 0) end
  end
end
refuses("a mean over rows in loss", "mean over batch: it depends", bad_loss "return average(b.logprobs - b.logprobs:mean('batch'))")
refuses("a tensor as a condition", "bad.lua:1: a comparison that nothing uses", bad_loss "if b.mask:gt(0) then return average(b.logprobs) end")
test("a result thrown away is a warning", function()
  warnings = {}
  bad_loss "local x = -b.logprobs; x:clamp(0, 1); return average(x)"()
  assert(warnings["bad.lua:1 (warning)"])
end)
refuses("a nil axis", "the axis is nil", bad_loss "return average(b.logprobs:sum(b.mask.time))")
refuses("a metric that depends on the cut", "in a loss it is an average or a total", bad_loss "metric('m', b.progress * 2); return average(b.logprobs)")
refuses("attention that does not say whether it is causal", "say causal", bad_loss "local q = b.hidden:rename('embed', 'dim'); return average(nn.attention(q, q, q, 'time', 'dim', {}))")
refuses("a plain tensor as loss", "loss returns an average", bad_loss "return (-b.logprobs):sum('time')")
refuses("a sum over everything", "sum over batch: it depends", bad_loss "return -b.logprobs:sum()")
refuses("a product of averages", "scales by a number", bad_loss "return average(b.logprobs) * average(b.logprobs)")
refuses("a weight with a gradient", "a weight carries no gradient", bad_loss "return average(b.logprobs, b.logprobs:exp())")
refuses("an accidental outer product", "neither holds all axes", bad_loss "return average(b.mask * tensor.full('vocab=7', 1))")
refuses("a field that this data has not", "batch has no reward; it has", bad_loss "return average(b.reward)")
refuses("a Lua comparison", "use x:lt%(y%)", bad_loss "if b.logprobs < b.mask then return 1 end")
refuses("a global by mistake", "assignment to global nll", bad_loss "nll = -b.logprobs; return average(nll)")
refuses("an unknown global", "no global os", bad_loss "return os.time()")
refuses("a tensor in a text", "a tensor is no text", bad_loss "return 'x' .. b.logprobs")
refuses("ids in arithmetic", "f32 meets i32", bad_loss "return average(b.logprobs * b.ids)")
refuses("no gradient", "no gradient reaches", bad_loss "return average(b.mask)")
refuses("a label drawn twice", "drawn twice", bad_loss "return average(b.logprobs + tensor.normal('time=6', 'x') + tensor.normal('time=6', 'x'))")
refuses("sorting along n", "n may only be summed", function()
  inline("return aggregator { combine = function(u) return u:sort('n'):mean('peer') end }")
  local ok, err = pcall(aggregate, "bad", {}, v7())
  H.root = root
  M.forbid = {}
  if not ok then error(err, 0) end
end)
refuses("state with peers", "has the axis peer", function()
  inline("return aggregator { init = function(u) return { old = tensor.zeros(u) } end, combine = function(u, c, s) return u:mean('peer'), s end }")
  local ok, err = pcall(aggregate, "bad", {}, v7())
  H.root = root
  M.forbid = {}
  if not ok then error(err, 0) end
end)
refuses("an unknown option", "has no option", function() H.run("grpo", { clip = .2 }) end)
refuses("an option out of range", "outside", function() H.run("grpo", { clip_low = 2 }) end)
refuses("too few peers for krum", "needs 5 peers", function() aggregate("krum", {}, of("peer=4 n=1", { 1, 2, 3, 4 })) end)
refuses("a fragment period that does not divide", "no multiple", function() H.run("streaming", { period = 30 }) end)

H.root = root
os.execute("rm -rf " .. folder)
table.sort(report)
if os.getenv("REPORT") then print(table.concat(report, "\n")) end
if os.getenv("REPORT") then for line in pairs(warnings) do print("unused value: " .. line) end end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1)
