-- trace: the verbs of the host. Each loads the script, builds graphs from it and returns a plain table that tells what they are.
local R = ...
local native, raise, unbox = R.native, R.raise, R.native.unbox
local type, ipairs, concat = type, ipairs, table.concat
local format = native.format
local verbs = {}

local function expect(kind, wanted, label)
  if kind ~= wanted then native.fail(format("%s is needed here, not %s", "a script of kind " .. wanted, kind), nil, "type", label) end
end
local function list_axes(record) return R.axes_text(record) end
local function text(axes, sizes) -- "row time" with sizes -> "row=2 time=8", or nil and the axis that has none
  local out = {}
  for i, a in ipairs(R.words(axes)) do
    if not sizes[a] then return nil, a end
    out[i] = format("%s=%d", a, R.integer(sizes[a], "the size of axis " .. a, 1))
  end
  return concat(out, " ")
end

-- x with its axes in this order in memory (those not named come last), so that its bytes need no look at its shape.
local function ordered(x, axes)
  local r, order, seen = unbox(x), {}, {}
  for _, a in ipairs(R.words(axes)) do
    if r.n[a] then order[#order + 1] = a; seen[a] = true end
  end
  for _, a in ipairs(r.axes) do if not seen[a] then order[#order + 1] = a end end
  if concat(order, " ") == concat(r.axes, " ") then return x end
  return (R.node("transpose", { r, axes = R.axis_words(order) }, r.grad))
end
local function bare(axes) return concat((R.parse(axes)), " ") end

-- Calls a function of the script and insists that everything it made is used.
local function called(warnings, fn, ...)
  local a, b = fn(...)
  for _, x in next, { a or false, b or false } do R.use(x) end
  R.settle_unused(warnings)
  return a, b
end
local function metric_scalars(metrics)
  local out = R.list()
  for i, name in ipairs(R.keys(metrics)) do
    R.output("metric." .. name, metrics[name])
    out[i] = name
  end
  return out
end

-- A context whose fields are inputs of the graph: spec[name] = { axes, type, gradient }, sizes; read collects what was read.
local function inputs(what, prefix, spec, sizes, read, extra)
  return R.fields(what, function(name)
    local f = spec[name]
    if not f then return extra and extra[name] or nil end
    local axes, missing = text(f[1], sizes)
    if not axes then R.hint("this run has none", "%s.%s needs the size of axis %s", what, name, missing) end
    local full = prefix .. name
    local x = R.input(full, axes, f[2], f[3])
    read[#read + 1] = { name = full, axes = axes, type = f[2] or "f32", gradient = f[3] or false }
    return x
  end, function()
    local names = R.keys(spec)
    for _, k in ipairs(R.keys(extra or {})) do names[#names + 1] = k end
    table.sort(names)
    return names
  end)
end
local function by_name(read)
  table.sort(read, function(a, b) return a.name < b.name end)
  return R.list(read)
end

-- ---- describe ------------------------------------------------------------------------------------------------------
function verbs.describe(request)
  local out, kind, state = R.load(request)
  local meta = { kind = kind, hash = request.files[1].hash, options = state.options, imports = R.list(), log = state.log }
  for i, name in ipairs(R.keys(state.imports)) do meta.imports[i] = { name = name, hash = state.imports[name] } end
  if kind == "objective" then
    meta.data, meta.heads, meta.rollout, meta.prepare = out.data, R.list(R.copy(out.heads or {})), out.rollout, out.prepare ~= nil
  elseif kind == "aggregator" then
    meta.over, meta.robust, meta.trains, meta.state = out.over or "whole", out.robust == true, out.trains ~= nil, out.init ~= nil
  elseif kind == "model" then
    meta.data, meta.architectures = out.data, R.list(R.copy(out.architectures))
  elseif kind == "schedule" then
    meta.fragments, meta.stages, meta.state = out.fragments, out.stages ~= nil, out.init ~= nil
  elseif kind == "optimiser" then meta.state = out.init ~= nil
  end
  return meta
end

-- ---- model ---------------------------------------------------------------------------------------------------------
local model_inputs = {
  text = { ids = { "row time", "i32" }, position = { "row time", "i32" }, segment = { "row time", "i32" }, real = { "row time" } },
  images = { image = { "row channel height width" } },
  series = { series = { "row time" }, observed = { "row time" } },
}
local model_outputs = { text = "row time vocab", images = "row class", series = "row horizon quantile" }
local rows_alike = { row = { why = "a model treats rows alike" } }

-- Files that stretch positions often leave it to max_position_embeddings to say from which length, or, of longrope, how far.
local function stretched(config)
  for _, name in ipairs { "rope_scaling", "rope_parameters" } do
    local s = config[name]
    local kind = type(s) == "table" and (s.rope_type or s.type)
    if (kind == "dynamic" or kind == "yarn") and s.original_max_position_embeddings == nil then
      s.original_max_position_embeddings = config.max_position_embeddings
    end
    if kind == "longrope" or kind == "su" then
      local original = config.original_max_position_embeddings or s.original_max_position_embeddings or config.max_position_embeddings
      s.original_max_position_embeddings = original
      if s.factor == nil and original and config.max_position_embeddings then s.factor = config.max_position_embeddings / original end
    end
  end
end

local function read_config(out, config, meta)
  stretched(config)
  local seen = {}
  local h = setmetatable({}, {
    __index = function(_, name) seen[name] = true; return config[name] end,
    __newindex = function() raise("config is read only") end,
  })
  local c = out.config(h)
  if type(c) ~= "table" or type(c.axes) ~= "table" or type(c.scope) ~= "string" then raise("config returns a table with layers, scope and axes") end
  R.integer(c.layers, "layers", 1)
  for a, n in R.pairs(c.axes) do R.integer(n, "the size of axis " .. R.tostring(a), 1) end
  meta.unread = R.list()
  for _, k in ipairs(R.keys(config)) do if not seen[k] then meta.unread[#meta.unread + 1] = k end end
  return c
end

local function same_axes(x, y, what)
  local a, b = R.need(x, what), R.need(y, what)
  for _, n in ipairs(a.axes) do if a.n[n] ~= b.n[n] then R.shape_error(nil, "%s: %s becomes %s", what, R.show(a), R.show(b)) end end
  if #a.axes ~= #b.axes then R.shape_error(nil, "%s: %s becomes %s", what, R.show(a), R.show(b)) end
  return y
end
local function has_axes(x, axes, what)
  local r, want = R.need(x, what), R.words(axes)
  for _, a in ipairs(want) do if not r.n[a] then R.shape_error(nil, "%s is %s, wanted [%s]", what, R.show(r), axes) end end
  if #r.axes ~= #want then R.shape_error(nil, "%s is %s, wanted [%s]", what, R.show(r), axes) end
end

local function write_model_outputs(result, data, meta)
  if type(result) ~= "table" or unbox(result) then raise("head returns { logits = } or { forecast = }, and hidden =") end
  local main = data == "series" and "forecast" or "logits"
  has_axes(result[main], model_outputs[data], main)
  meta.outputs = R.list()
  for name, x in R.pairs(result) do
    if name ~= main and name ~= "hidden" then raise("head returns %s and hidden, not %s", main, R.tostring(name)) end
    x = ordered(x, name == main and model_outputs[data] or "row time")
    R.output(name, x)
    meta.outputs[#meta.outputs + 1] = { name = name, axes = list_axes(unbox(x)) }
  end
end

function verbs.model(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "model", state.label)
  local meta = { data = out.data, graph = 0, warnings = R.list(), log = state.log }
  local c = read_config(out, args.config or {}, meta)
  local sizes = R.copy(c.axes)
  for a, n in R.pairs(args.sizes) do sizes[a] = n end
  local t = { forbid = rows_alike, sizes = c.axes, length = args.length, training = args.training, packed = out.data == "text" }
  R.begin(t)
  local read = {}
  local b = inputs("b", "", model_inputs[out.data], sizes, read)
  local w, weights = R.weights(args)
  local x = called(meta.warnings, out.embed, w, b, c)
  meta.aux = R.list()
  local extra
  for layer = 0, c.layers - 1 do
    weights.scope, t.layer = format(c.scope, layer) .. ".", layer
    local y, average = called(meta.warnings, out.block, w, x, b, c, layer)
    x = same_axes(x, y, format("block %d", layer))
    if average ~= nil then
      local r = R.is_average(average) or raise("block %d: its second result is an average", layer)
      if not r.grad then raise("block %d: no gradient reaches its average", layer) end
      extra = extra and extra + average or average
      R.use(extra)
    end
  end
  weights.scope, t.layer = "", nil
  local result = called(meta.warnings, out.head, w, x, b, c)
  R.check_targets(weights)
  write_model_outputs(result, out.data, meta)
  if extra then meta.aux = R.write_terms("aux", extra) end
  meta.inputs, meta.params, meta.axes, meta.layers, meta.nodes = by_name(read), weights.order, c.axes, c.layers, native.graph_size(0)
  return meta
end

-- ---- objective -----------------------------------------------------------------------------------------------------
local function per_token(rows, time)
  local all = rows .. " " .. time
  return {
    ids = { all, "i32" }, mask = { all }, scored = { all }, bytes = { all }, logprobs = { all, nil, true }, entropy = { all, nil, true },
    ref_logprobs = { all }, logits = { all .. " vocab", nil, true }, hidden = { all .. " embed", nil, true },
    teacher_logits = { all .. " vocab" }, teacher_ids = { all .. " k", "i32" }, teacher_logprobs = { all .. " k" },
  }
end
local function fields_of(data, heads, rows)
  local f
  if data == "images" then
    f = { label = { "batch", "i32" }, logits = { "batch class", nil, true }, hidden = { "batch embed", nil, true } }
  elseif data == "series" then
    f = { target = { "batch horizon" }, observed = { "batch horizon" }, forecast = { "batch horizon quantile", nil, true },
          hidden = { "batch embed", nil, true } }
  else
    f = per_token(rows, "time")
    for _, head in ipairs(heads) do
      f[head] = { rows .. " time", nil, true }
      f[head .. "_end"] = { rows, nil, true }
    end
    if data == "labelled" then f.label = { rows } end
    if data == "rollouts" then
      f.old_logprobs, f.sampler_logprobs = { rows .. " time" }, { rows .. " time" }
      f.reward, f.valid, f.truncated = { rows }, { rows }, { rows }
    end
  end
  f.progress = { "" }
  return f
end
local function without_gradient(spec)
  local out = {}
  for name, f in next, spec do out[name] = { f[1], f[2], false } end
  return out
end

-- The context b of loss or prepare. `more`: what prepare returned, as fields.
local function batch(out, sizes, rows, read, loss, more)
  local heads = out.heads or {}
  local spec = fields_of(out.data, heads, rows)
  for name, f in next, more or {} do
    if spec[name] then raise("prepare's %s is a field already", name) end
    spec[name] = f
  end
  local shape = loss and function(s) return s end or without_gradient
  if out.data == "pairs" then
    local other = R.copy(sizes)
    other.time = sizes.rejected_time or sizes.time
    local side = shape(fields_of("pairs", heads, "pair"))
    side.progress = nil
    local sides = { chosen = inputs("b.chosen", "b.chosen.", side, sizes, read), rejected = inputs("b.rejected", "b.rejected.", side, other, read) }
    local own = { progress = { "" } }
    for name, f in next, more or {} do own[name] = f end
    return inputs("b", "b.", own, sizes, read, sides)
  end
  if out.data == "labelled" then
    local mismatched = shape(per_token(rows, "time"))
    return inputs("b", "b.", shape(spec), sizes, read, { mismatched = inputs("b.mismatched", "b.mismatched.", mismatched, sizes, read) })
  end
  return inputs("b", "b.", shape(spec), sizes, read)
end

local cut = { why = "it depends on how the step is cut", hint = "use average or total, or move it to prepare" }
local step_rows = { batch = cut, pair = cut, prompt = cut, sample = cut }

-- prepare: its graph, and the fields that loss finds afterwards.
local function prepare(out, args, meta, fields)
  local sizes = R.copy(args.sizes)
  sizes.batch = args.sizes.whole_batch or sizes.batch
  local g, read, more = R.begin {}, {}, {}
  local b = batch(out, sizes, out.data == "rollouts" and "prompt sample" or "batch", read, false)
  local result = called(meta.warnings, out.prepare, b)
  if type(result) ~= "table" or unbox(result) then raise("prepare returns { name = tensor }") end
  local outputs = R.list()
  for name, x in R.pairs(result) do
    if type(name) ~= "string" or not R.is(x) then raise("prepare: %s is no tensor", R.tostring(name)) end
    if unbox(x).n.prompt and not unbox(x).n.sample then x = R.node("expand", { unbox(x), axes = { "sample", sizes.sample } }) end
    x = ordered(x, "batch pair prompt sample")
    local r = unbox(x)
    R.output("b." .. name, x)
    outputs[#outputs + 1] = { name = "b." .. name, axes = list_axes(r), type = r.dt }
    local axes, rows = {}, false -- prompt and sample are one axis in loss: the same bytes
    for _, a in ipairs(r.axes) do
      if a == "prompt" or a == "sample" then rows = true else axes[#axes + 1] = a end
    end
    if rows then table.insert(axes, 1, "batch") end
    more[name] = { concat(axes, " "), r.dt, false, r.n }
  end
  meta.prepare = { graph = g, inputs = by_name(read), outputs = outputs, nodes = native.graph_size(g) }
  for _, f in ipairs(read) do fields[#fields + 1] = f.name end
  return more
end

function verbs.objective(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "objective", state.label)
  local meta, fields = { data = out.data, heads = R.list(R.copy(out.heads or {})), rollout = out.rollout, warnings = R.list(), log = state.log }, {}
  local more = out.prepare and prepare(out, args, meta, fields)
  local sizes = R.copy(args.sizes)
  for _, f in next, more or {} do
    for a, n in next, f[4] do sizes[a] = sizes[a] or n end
  end
  R.metrics = {}
  local g, read = R.begin { forbid = step_rows, averages = true }, {}
  local b = batch(out, sizes, "batch", read, true, more)
  local loss = called(meta.warnings, out.loss, b)
  local r = R.is_average(loss) or R.is_total(loss)
  if not r then R.hint("end with return average(x, weight)", "loss returns an average or a total, not a %s", R.type(loss)) end
  if not r.grad then raise("no gradient reaches the loss") end
  local metrics, gradients = R.list(), R.list()
  meta.loss = { graph = g, terms = R.write_terms("loss", loss) }
  for i, name in ipairs(R.keys(R.metrics)) do
    metrics[i] = { name = name, terms = R.write_terms("metric." .. name, R.metrics[name]) }
  end
  for _, f in ipairs(by_name(read)) do
    fields[#fields + 1] = f.name
    if f.gradient then gradients[#gradients + 1] = f.name end
  end
  meta.loss.inputs, meta.loss.metrics, meta.loss.nodes = R.list(read), metrics, native.graph_size(g)
  local seen, all = {}, R.list()
  for _, name in ipairs(fields) do if not seen[name] then seen[name] = true; all[#all + 1] = name end end
  table.sort(all)
  meta.fields, meta.gradients = all, gradients
  return meta
end

-- ---- optimiser -----------------------------------------------------------------------------------------------------
local function script_param(p) -- what a script sees of a parameter
  return { name = p.name, kind = p.kind, layer = p.layer, role = p.role, module = p.module, out = p.out, inp = p.inp }
end
local function check_state(s, what, refuse_peer)
  if type(s) ~= "table" or unbox(s) then raise("%s returns a flat table of tensors", what) end
  local out = R.list()
  for name, x in R.pairs(s) do
    if type(name) ~= "string" or not R.is(x) then raise("%s: state %s is no tensor", what, R.tostring(name)) end
    local r = unbox(x)
    if refuse_peer and r.n.peer then R.hint("members change", "%s: state %s has the axis peer", what, name) end
    out[#out + 1] = { name = name, axes = list_axes(r), type = r.dt }
  end
  return out
end
local function state_inputs(list)
  local s = {}
  for _, f in ipairs(list) do
    s[f.name] = R.input("s." .. f.name, f.axes, f.type)
    R.use(s[f.name])
  end
  return s
end
-- The state after a step: the names and axes of `list`, as outputs.
local function write_state(s, list, what)
  s = s or {}
  local now = check_state(s, what)
  local known = {}
  for _, f in ipairs(list) do
    known[f.name] = true
    if s[f.name] == nil then raise("%s: state %s is missing from the result", what, f.name) end
    local r, want = unbox(s[f.name]), R.words(f.axes)
    local have = R.set(list_axes(r))
    for _, a in ipairs(want) do if not have[a] then R.shape_error(nil, "%s: state %s was [%s], is %s", what, f.name, f.axes, R.show(r)) end end
    if #want ~= #r.axes or r.dt ~= f.type then R.shape_error(nil, "%s: state %s was %s [%s], is %s %s", what, f.name, f.type, f.axes, r.dt, R.show(r)) end
    R.output("s." .. f.name, ordered(s[f.name], bare(f.axes)))
  end
  for _, f in ipairs(now) do if not known[f.name] then raise("%s: state %s was not in init", what, f.name) end end
end

local function optimise_one(out, p, outer, meta)
  local call = { name = p.name, state = R.list() }
  local scalars = { lr = { "" }, agreement = outer and { "" } or nil }
  local extra = { param = script_param(p) }
  if out.init then
    call.init = R.begin {}
    local s = called(meta.warnings, out.init, R.input("p", p.axes), inputs("c", "", scalars, {}, {}, extra))
    call.state = check_state(s, "init")
    for _, f in ipairs(call.state) do R.output("s." .. f.name, s[f.name]) end
  end
  R.metrics = {}
  call.step = R.begin {}
  local x, g = R.input("p", p.axes), R.input("g", p.axes)
  local q, s = called(meta.warnings, out.step, x, g, inputs("c", "", scalars, {}, {}, extra), state_inputs(call.state))
  same_axes(x, q, "step")
  R.output("p", ordered(q, bare(p.axes)))
  write_state(s, call.state, "step")
  call.metrics = metric_scalars(R.metrics)
  return call
end

function verbs.optimiser(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "optimiser", state.label)
  local meta = { params = R.list(), warnings = R.list(), log = state.log }
  for i, p in ipairs(args.params) do meta.params[i] = optimise_one(out, p, args.outer, meta) end
  return meta
end

-- ---- aggregator ----------------------------------------------------------------------------------------------------
local block = { why = "the rule is run block by block along n; n may only be summed over",
                allow = R.set "sum mean norm max min dot dist2" }

local function count_of(axes)
  local names, sizes = R.parse(axes)
  local n = 1
  for _, a in ipairs(names) do n = n * sizes[a] end
  return n
end

-- One call of `combine`: what(graph) makes the argument u; axes of an update without peer (whole, tensor).
local function combine_one(out, args, meta, names, make_u, axes, param)
  local call = { params = names, state = R.list() }
  local peer = format("peer=%d", args.peers)
  local spec = { weight = { "peer" }, tokens = { "peer" }, quality = { "peer" }, sent = { "peer " .. axes.names }, anchor = { axes.names } }
  local sizes = R.copy(axes.sizes)
  sizes.peer = args.peers
  local extra = { round = args.round or 0, param = param }
  local forbid = (out.over or "whole") == "whole" and { n = block } or {}
  local function context(read) return inputs("c", "c.", spec, sizes, read, extra) end
  if out.init then
    call.init = R.begin { forbid = forbid }
    local s = called(meta.warnings, out.init, make_u(peer), context {})
    call.state = check_state(s, "init", true)
    for _, f in ipairs(call.state) do R.output("s." .. f.name, s[f.name]) end
  end
  R.metrics = {}
  call.combine = R.begin { forbid = forbid }
  local read = {}
  local result, s = called(meta.warnings, out.combine, make_u(peer), context(read), out.init and state_inputs(call.state) or nil)
  call.inputs = by_name(read)
  write_state(s, call.state, "combine")
  call.metrics = metric_scalars(R.metrics)
  return call, result
end
local function write_update(x, name, text_axes, call)
  local r = R.need(x, "combine")
  call.keeps_peer = r.n.peer ~= nil
  has_axes(x, (call.keeps_peer and "peer " or "") .. text_axes, "combine's result")
  R.output(name, ordered(x, "peer " .. text_axes))
end

local function adapters_of(params)
  local out, index = {}, {}
  for _, p in ipairs(params) do
    if p.role == "magnitude" then R.hint("take an aggregator over whole or tensor", "over adapter there is no rule for the magnitudes of DoRA") end
    if p.role then
      if not index[p.module] then index[p.module] = {}; out[#out + 1] = index[p.module] end
      index[p.module][p.role] = p
    end
  end
  return out
end

function verbs.aggregator(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "aggregator", state.label)
  local over = out.over or "whole"
  local meta = { over = over, robust = out.robust == true, calls = R.list(), warnings = R.list(), log = state.log }
  R.integer(args.peers, "peers", 1)
  local params = args.params or {}
  if out.trains then
    meta.trains = R.list()
    local kept = {}
    for _, p in ipairs(params) do
      local yes = out.trains(script_param(p), args.round or 0)
      if type(yes) ~= "boolean" then raise("trains returns true or false") end
      if yes then meta.trains[#meta.trains + 1] = p.name; kept[#kept + 1] = p end
    end
    params = kept
  end
  if over == "whole" then
    local names, n = R.list(), 0
    for i, p in ipairs(params) do names[i] = p.name; n = n + count_of(p.axes) end
    n = args.n or n
    local axes = format("n=%d", R.integer(n, "n", 1))
    local call, result = combine_one(out, args, meta, names, function(peer) return R.input("u", peer .. " " .. axes) end,
      { names = "n", sizes = { n = n } })
    write_update(result, "u", "n", call)
    meta.calls[1], meta.keeps_peer = call, call.keeps_peer
  elseif over == "tensor" then
    for i, p in ipairs(params) do
      local _, sizes = R.parse(p.axes)
      local call, result = combine_one(out, args, meta, R.list { p.name }, function(peer) return R.input("u", peer .. " " .. p.axes) end,
        { names = bare(p.axes), sizes = sizes }, script_param(p))
      write_update(result, "u", bare(p.axes), call)
      meta.calls[i], meta.keeps_peer = call, call.keeps_peer
    end
  else
    for i, pair in ipairs(adapters_of(params)) do
      if not pair.lora_a or not pair.lora_b then raise("adapter: a module has one factor only") end
      local function side(peer, key, p)
        return { start = R.input("u." .. key .. ".start", p.axes), update = R.input("u." .. key .. ".update", peer .. " " .. p.axes) }
      end
      local call, result = combine_one(out, args, meta, R.list { pair.lora_a.name, pair.lora_b.name },
        function(peer) return { a = side(peer, "a", pair.lora_a), b = side(peer, "b", pair.lora_b) } end, { names = "", sizes = {} },
        script_param(pair.lora_a))
      if type(result) ~= "table" or unbox(result) then raise("combine returns { a =, b = } over adapters") end
      write_update(result.a, "u.a", bare(pair.lora_a.axes), call)
      write_update(result.b, "u.b", bare(pair.lora_b.axes), call)
      meta.calls[i], meta.keeps_peer = call, call.keeps_peer
    end
  end
  return meta
end

-- ---- schedule ------------------------------------------------------------------------------------------------------
local plan_fields = R.set "steps inner fragment delay apply_at merge eager outer_lr clip codec exchange redundancy among micro_batches activations"
local codec_fields = R.set "bits block keep of keep_share feedback transform tile"
local integers = R.set "steps fragment delay apply_at redundancy micro_batches bits block keep of tile"
local choices = { inner = R.set "reset keep", exchange = R.set "committee ring gossip", among = R.set "all region", transform = R.set "dct" }

local function number_of(v) -- from the host: a number, or decimal text
  if type(v) == "string" then return native.to_number(v) or (v == "inf" and 1 / 0) or (v == "-inf" and -1 / 0) or v end
  return v
end
local function schedule_context(c)
  local last = c.last or false
  if last then
    local values = {}
    for _, name in ipairs { "loss", "agreement", "norm", "seconds", "bytes" } do
      if last[name] ~= nil then values[name] = number_of(last[name]) end
    end
    last = R.fixed("c.last", values)
  end
  return R.fixed("c", { round = c.round, rounds = c.rounds, peers = c.peers, layers = c.layers, last = last })
end

local function check_fields(t, known, what)
  if type(t) ~= "table" or unbox(t) then raise("%s is a table", what) end
  for name, v in R.pairs(t) do
    if not known[name] then R.hint("it has " .. concat(R.keys(known), " "), "%s has no field %s", what, R.tostring(name)) end
    if integers[name] then R.integer(v, what .. "." .. name, 0) end
    if choices[name] and not choices[name][v] then R.hint("it is " .. concat(R.keys(choices[name]), " or "), "%s.%s = %s", what, name, R.tostring(v)) end
    if type(v) == "number" and not (v >= 0 and v < 1 / 0) then raise("%s.%s = %s", what, name, R.tostring(v)) end
  end
end
local function check_plan(plan)
  check_fields(plan, plan_fields, "plan")
  if not plan.steps or plan.steps < 1 then raise("plan.steps is at least 1") end
  if type(plan.outer_lr) ~= "number" then raise("plan.outer_lr is missing") end
  if plan.merge ~= nil and plan.merge ~= "shift" and type(plan.merge) ~= "number" then raise("plan.merge is a share or \"shift\"") end
  check_fields(plan.codec, codec_fields, "plan.codec")
  if plan.activations ~= nil then check_fields(plan.activations, codec_fields, "plan.activations") end
end

-- State crosses with its types: { name = { number | text | flag = value } }.
local function state_out(s)
  if s == nil then return nil end
  if type(s) ~= "table" or unbox(s) then raise("round: the state is a flat table of plain values") end
  local out = {}
  for name, v in R.pairs(s) do
    local kind = ({ number = "number", string = "text", boolean = "flag" })[type(v)]
    if not kind or type(name) ~= "string" then raise("round: state %s is a %s", R.tostring(name), R.type(v)) end
    if v ~= v then raise("round: state %s is NaN", name) end
    out[name] = { [kind] = v }
  end
  return out
end
local function state_in(s)
  if not s then return nil end
  local out = {}
  for name, v in R.pairs(s) do
    if v.number ~= nil then out[name] = number_of(v.number) elseif v.text ~= nil then out[name] = v.text else out[name] = v.flag end
  end
  return out
end

function verbs.plan(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "schedule", state.label)
  local c = schedule_context(args.context)
  local s = state_in(args.state)
  if s == nil and out.init then s = out.init(c) end
  local plan, after = out.round(c, s)
  check_plan(plan)
  local meta = { plan = plan, state = state_out(after), fragments = out.fragments, log = state.log }
  if out.fragments then
    R.integer(out.fragments, "fragments", 1)
    if plan.fragment and plan.fragment >= out.fragments then raise("plan.fragment %d of %d", plan.fragment, out.fragments) end
    meta.fragment = {}
    for _, p in ipairs(args.params or {}) do
      local f = R.integer(out.fragment(script_param(p)), "fragment", 0)
      if f >= out.fragments then raise("fragment(%s) is %d of %d", p.name, f, out.fragments) end
      meta.fragment[p.name] = f
    end
  end
  if out.stages then
    local spans, sum = out.stages(c), 0
    for _, n in ipairs(spans) do sum = sum + R.integer(n, "stages", 1) end
    if sum ~= c.layers then raise("stages: %d layers of %d", sum, c.layers) end
    meta.stages = R.list(spans)
  end
  return meta
end

function verbs.rates(request)
  local args, out, kind, state = request.args, R.load(request)
  expect(kind, "schedule", state.label)
  local c, rates = schedule_context(args.context), R.list()
  for i = 1, args.count do
    local v = out.lr(args.first + i - 1, c)
    if type(v) ~= "number" or not (v >= 0 and v < 1 / 0) then raise("lr(%d) is %s", args.first + i - 1, R.tostring(v)) end
    rates[i] = v
  end
  return rates
end

-- ---- run files -----------------------------------------------------------------------------------------------------
function verbs.run(request)
  local out, kind, state = R.load(request)
  expect(kind, "run", state.label)
  return out
end

verbs.score = R.score

native.register("serve", function(request)
  local verb = verbs[request.verb]
  if not verb then raise("no verb %s", R.tostring(request.verb)) end
  return verb(request)
end)
