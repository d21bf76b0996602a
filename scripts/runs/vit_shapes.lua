-- vit_shapes: a small vision transformer learns from nothing to tell four shapes in noise: every weight is trained.
-- rondo local scripts/runs/vit_shapes.lua
return {
  spec = {
    name = "vit-shapes",
    modality = "vision",
    base_model = "models/shapes",
    model = { script = "vit" },
    adapter = { kind = "none" },
    objective = { script = "classify" },
    inner = { script = "adamw" },
    outer = { script = "sgd" },
    aggregators = { { script = "mean" } },
    schedule = { script = "diloco", options = { inner_steps = 40, outer_lr = 1, bits = "8", ["rate.peak"] = 0.003,
                 ["rate.shape"] = "constant" } },
    rounds = 6,
    batch_tokens = 512,
    context = 16, -- patches of a picture: 32 pictures a step
    dataset = { files = { "models/shapes/train.jsonl" }, shards = 8,
                corpora = { { name = "shapes", licence = "Apache-2.0", share = "1" } } },
    trust = { tier = "known", admission = { mode = "allow-list" }, replicas = 1, spot_check = 0.1, challenge_rounds = 2,
              answer_rounds = 1, checkpoint_every = 1, correction = "refold" },
    kernel_class = "portable-f32-1",
    seed_lead = 20,
    quorum = { trainers = 2, round_ms = 120000, close_ms = 4000, drop_after = 3,
               grace = { factor = 3, min_ms = 5000, max_ms = 60000 } },
    committee = { size = 4, threshold = 3, view_ms = 1000, settle_ms = 200, release_threshold = 3 },
    payment = { ledger = "local", block_ms = 50, asset = "TNZO", budget = "600000", per_round = "100000",
                terms = { trainers = 0.8, syncers = 0.2, basis = "accepted" }, expiry_rounds = 20 },
    limits = { script_memory = 268435456, script_seconds = 60, payload_bytes = 4194304, trainers = 60 },
  },
  network = { trainers = 2, syncers = 4, eval = { data = "models/shapes/held_out.jsonl", rows = 64 } },
}
