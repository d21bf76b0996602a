-- smollm2_agent_sft: SmolLM2-135M-Instruct learns function calls by LoRA, three rounds of two trainers.
-- sh tools/real_run.sh fetches model and data and runs it; about half an hour on two cores.
return {
  spec = {
    name = "smollm2-agent-sft",
    modality = "language",
    base_model = "build/real_input/SmolLM2-135M-Instruct.Q4_1.gguf",
    model = { script = "llama" },
    chat_template = "scripts/runs/chatml_tools.jinja", -- the model's own prints neither tools nor calls
    adapter = { kind = "lora", rank = 16, alpha = 32, targets = "all-linear" },
    objective = { script = "chat_sft" },
    inner = { script = "adamw", options = { weight_decay = 0 } },
    outer = { script = "sgd" },
    aggregators = { { script = "norm_clip" }, { script = "mean" } },
    schedule = { script = "diloco", options = { inner_steps = 20, rewarm = 2, outer_lr = 1, bits = "4",
                 ["rate.peak"] = 0.002, ["rate.shape"] = "linear", ["rate.floor"] = 0.1 } },
    rounds = 3,
    batch_tokens = 1024,
    context = 1024,
    dataset = { files = { "build/real_input/train.jsonl" }, shards = 8,
                corpora = { { name = "bfcl", licence = "Apache-2.0", share = "1" } } },
    trust = { tier = "known", admission = { mode = "allow-list" }, replicas = 1, spot_check = 0.1, challenge_rounds = 2,
              answer_rounds = 1, checkpoint_every = 1, correction = "refold" },
    kernel_class = "portable-f32-1",
    seed_lead = 40,
    quorum = { trainers = 2, round_ms = 3600000, close_ms = 240000, drop_after = 3,
               grace = { factor = 3, min_ms = 60000, max_ms = 3600000 } },
    committee = { size = 4, threshold = 3, view_ms = 10000, settle_ms = 1000, release_threshold = 3 },
    payment = { ledger = "local", block_ms = 500, asset = "TNZO", budget = "300000", per_round = "100000",
                terms = { trainers = 0.8, syncers = 0.2, basis = "accepted" }, expiry_rounds = 20 },
    limits = { script_memory = 268435456, script_seconds = 60, payload_bytes = 67108864, trainers = 60 },
  },
  network = { trainers = 2, syncers = 4, eval = { data = "build/real_input/held_out.jsonl" } },
}
