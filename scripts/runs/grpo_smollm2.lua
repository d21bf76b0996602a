-- grpo_smollm2: SmolLM2-135M-Instruct learns from rewards alone to answer yes or no, and the right one: the base mostly begins a sentence instead.
-- sh tools/real_run.sh --input-only && build/rondo local scripts/runs/grpo_smollm2.lua
-- The reward looks at the first word of the answer. The held-out pairs of numbers are none of the training set.
return {
  spec = {
    name = "grpo-smollm2",
    modality = "language",
    base_model = "build/real_input/SmolLM2-135M-Instruct.Q4_1.gguf",
    model = { script = "llama" },
    chat_template = "model",
    adapter = { kind = "lora", rank = 16, alpha = 32, targets = "all-linear" },
    objective = { script = "grpo", options = { samples = 8, updates = 2, max_tokens = 3, temperature = 1 } },
    reward = { script = "exact_match", options = { pattern = [[^\s*([A-Za-z]+)]] } },
    inner = { script = "adamw", options = { weight_decay = 0 } },
    outer = { script = "sgd" },
    aggregators = { { script = "mean" } },
    schedule = { script = "diloco", options = { inner_steps = 8, outer_lr = 1, bits = "8", ["rate.peak"] = 0.001,
                 ["rate.shape"] = "constant" } },
    rounds = 5,
    batch_tokens = 1024, -- 32 completions, of 4 prompts
    context = 32,
    dataset = { files = { "build/real_input/larger_train.jsonl" }, shards = 8,
                corpora = { { name = "larger", licence = "Apache-2.0", share = "1" } } },
    trust = { tier = "known", admission = { mode = "allow-list" }, replicas = 1, spot_check = 0.1, challenge_rounds = 2,
              answer_rounds = 1, checkpoint_every = 1, correction = "refold" },
    kernel_class = "portable-f32-1",
    seed_lead = 40,
    quorum = { trainers = 2, round_ms = 3600000, close_ms = 240000, drop_after = 3,
               grace = { factor = 3, min_ms = 60000, max_ms = 3600000 } },
    committee = { size = 4, threshold = 3, view_ms = 10000, settle_ms = 1000, release_threshold = 3 },
    payment = { ledger = "local", block_ms = 500, asset = "TNZO", budget = "500000", per_round = "100000",
                terms = { trainers = 0.8, syncers = 0.2, basis = "accepted" }, expiry_rounds = 20 },
    limits = { script_memory = 268435456, script_seconds = 600, payload_bytes = 67108864, trainers = 60 },
  },
  network = { trainers = 2, syncers = 4, eval = { data = "build/real_input/larger_held_out.jsonl", rows = 256 } },
}
