"""Adapters between Rondo and PEFT on PyTorch, both ways, for each variant; the base is the pocket model that ships, and of QLoRA that model in
4 bits (`rondo model quantise`), whose matrices PEFT gets as this script reads them.

    PEFT -> Rondo -> PEFT     PEFT writes an adapter of random values; a run continues from it (adapter.start), trains, and exports
    Rondo -> PEFT             a run begins an adapter of its own, trains, and exports

Whatever adapter there is: log-probabilities of drawn tokens that `rondo sample` tells must be those of PEFT, and a base into which
`rondo model merge` has added it must give PEFT's logits, both within 1e-4. A run of one step with plain SGD must move the adapter by
PyTorch's gradient. An adapter that does not fit must be refused.
Run by tools/oracle/run.sh; needs torch, transformers and peft. Exit status 1 when something differs.
"""

import json
import os
import subprocess
import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

RONDO = os.environ.get("RONDO", "build/rondo")
POCKET = "models/pocket"
CLOSE = 1e-4
VARIANTS = [
    ("lora", dict(r=4, lora_alpha=8), 'kind = "lora", rank = 4, alpha = 8'),
    ("rslora", dict(r=8, lora_alpha=3, use_rslora=True), 'kind = "lora", rank = 8, alpha = 3, scaling = "root"'),
    ("dora", dict(r=4, lora_alpha=8, use_dora=True), 'kind = "dora", rank = 4, alpha = 8'),
    ("rslora + dora", dict(r=4, lora_alpha=2, use_dora=True, use_rslora=True), 'kind = "dora", rank = 4, alpha = 2, scaling = "root"'),
    ("qlora", dict(r=4, lora_alpha=8), 'kind = "lora", rank = 4, alpha = 8'),
    ("qdora", dict(r=4, lora_alpha=8, use_dora=True), 'kind = "dora", rank = 4, alpha = 8'),
    ("some targets", dict(r=4, lora_alpha=8, target_modules=["q_proj", "mlp.down_proj"]),
     'kind = "lora", rank = 4, alpha = 8, targets = { "q_proj", "mlp.down_proj" }'),
    ("patterns", dict(r=4, lora_alpha=8, rank_pattern={"down_proj": 2, "layers.1.self_attn.q_proj": 8}, alpha_pattern={"q_proj": 5, "o_proj": 3}),
     'kind = "lora", rank = 4, alpha = 8, rank_pattern = { down_proj = 2, ["layers.1.self_attn.q_proj"] = 8 }, alpha_pattern = { q_proj = 5, o_proj = 3 }'),
    ("dora patterns", dict(r=4, lora_alpha=8, use_dora=True, rank_pattern={"down_proj": 2}, alpha_pattern={"q_proj": 5}),
     'kind = "dora", rank = 4, alpha = 8, rank_pattern = { down_proj = 2 }, alpha_pattern = { q_proj = 5 }'),
    ("whole", dict(r=4, lora_alpha=8, modules_to_save=["embed_tokens", "model.norm", "0.input_layernorm"], ensure_weight_tying=True),
     'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "embed_tokens", "model.norm", "layers.0.input_layernorm" }'),
    ("dora whole", dict(r=4, lora_alpha=8, use_dora=True, modules_to_save=["2.mlp.up_proj", "model.norm"]),
     'kind = "dora", rank = 4, alpha = 8, modules_to_save = { "layers.2.mlp.up_proj", "model.norm" }'),
    ("head", dict(r=4, lora_alpha=8, modules_to_save=["lm_head", "embed_tokens", "model.norm"]),
     'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "lm_head", "embed_tokens", "model.norm" }'),
    ("qlora whole", dict(r=4, lora_alpha=8, modules_to_save=["embed_tokens", "lm_head", "0.self_attn.v_proj"], ensure_weight_tying=True),
     'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "embed_tokens", "self_attn.v_proj" }'),
]
RUN = """local spec = {{
  name = "round-trip", base_model = "{base}", model = {{ script = "llama" }},
  adapter = {{ {adapter} }},
  objective = {{ script = "chat_sft" }}, inner = {{ {inner} }}, outer = {{ script = "sgd" }}, aggregators = {{ {{ script = "mean" }} }},
  schedule = {{ script = "diloco", options = {{ inner_steps = {steps}, outer_lr = 1, bits = "32", ["rate.peak"] = "{rate}",
    ["rate.shape"] = "constant" }} }},
  rounds = 1, batch_tokens = 448, context = 448,
  dataset = {{ files = {{ "{data}" }}, shards = 1, corpora = {{ {{ name = "pocket", licence = "Apache-2.0", share = "1" }} }} }},
  trust = {{ tier = "known", admission = {{ mode = "allow-list" }} }}, seed_lead = 1000,
  quorum = {{ trainers = 1, round_ms = 60000, grace = {{ min_ms = 1, max_ms = 1 }} }},
  committee = {{ size = 1, threshold = 1, release_threshold = 1 }},
  payment = {{ ledger = "local", block_ms = 50, asset = "TNZO", budget = "1000", per_round = "100",
    terms = {{ trainers = "0.8", syncers = "0.2" }} }},
  limits = {{ script_seconds = 60 }},
}}
return {{ spec = spec, network = {{}} }}
"""


def rondo(*arguments, good=True):
    done = subprocess.run([RONDO, *arguments], capture_output=True, text=True)
    if good and done.returncode != 0:
        sys.exit(f"rondo {' '.join(arguments)}: {done.stderr}")
    return done.stderr if not good else done.stdout


def fit(path, work, adapter, steps, rate, inner='script = "adamw", options = { lora_plus = 4 }', data="models/pocket/tools/held_out.jsonl", good=True):
    home = tempfile.mktemp(dir=work)
    with open(home + ".lua", "w") as file:
        file.write(RUN.format(base=path, adapter=adapter, steps=steps, rate=rate, inner=inner, data=data))
    out = rondo("fit", home + ".lua", "--home", home, "--json", "--quiet", good=good)
    return json.loads(out.splitlines()[-1])["adapter"] if good else out


def dequantised(path):
    """The matrices of a folder that bitsandbytes, or `rondo model quantise`, wrote: NF4 with double quantisation."""
    stored = load_file(path + "/model.safetensors")
    for name in [name[: -len(".quant_map")] for name in stored if name.endswith(".quant_map") and ".nested" not in name]:
        state = json.loads(bytes(stored.pop(name + ".quant_state.bitsandbytes__nf4").tolist()))
        nested, scales = stored.pop(name + ".nested_quant_map"), stored.pop(name + ".nested_absmax")
        blocks = nested[stored.pop(name + ".absmax").long()]
        blocks = blocks * scales.repeat_interleave(256)[: len(blocks)] + state["nested_offset"]
        codes = stored[name].flatten().long()
        values = stored.pop(name + ".quant_map")[torch.stack([codes >> 4, codes & 15], 1).flatten()]
        stored[name] = (values * blocks.repeat_interleave(64)[: len(values)]).reshape(state["shape"])
    return stored


def base(path):
    model = AutoModelForCausalLM.from_pretrained(POCKET if path.endswith("pocket4") else path, dtype=torch.float32)
    if path.endswith("pocket4"):
        lacks, extra = model.load_state_dict(dequantised(path), strict=False)
        assert not extra and lacks in ([], ["lm_head.weight"]), (lacks, extra)
    return model


def is_adapter(name):
    return ".lora_" in name or ".modules_to_save." in name


def with_adapter(path, folder):
    return PeftModel.from_pretrained(base(path), folder).eval()


def sampled(path, folder, model, tokenizer):
    """The largest difference of log-probabilities over drawn tokens, and how many were compared."""
    most = count = 0
    for seed, prompt in enumerate(["The price", "How high was", "In 2024 the"] * 2):
        got = json.loads(rondo("sample", "--model", path, "--adapter", folder, "--prompt", prompt, "--temperature", "1", "--seed", str(seed),
                               "--max-tokens", "24", "--json", "--quiet").splitlines()[-1])
        ids = tokenizer(prompt)["input_ids"] + got["ids"]
        begin = got["prompt_tokens"]
        with torch.no_grad():
            logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
        for i, value in enumerate(got["logprobs"]):
            most = max(most, abs(logprobs[begin + i - 1, ids[begin + i]].item() - value))
            count += 1
    return most, count


def merged(path, work, folder, model, ids):
    out = tempfile.mktemp(dir=work)
    rondo("model", "merge", out, "--model", path, "--adapter", folder, "--type", "f32", "--quiet")
    with torch.no_grad():
        return (AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)(ids).logits - model(ids).logits).abs().max().item()


def check(path, work, what, folder, tokenizer):
    """Rondo's use of the adapter against PEFT's; every tensor must have been loaded."""
    model = with_adapter(path, folder)
    ids = torch.randint(3, model.config.vocab_size, (2, 48))
    with torch.no_grad():
        moved = (model(ids).logits - base(path)(ids).logits).abs().max().item()
    stored, loaded = len(load_file(folder + "/adapter_model.safetensors")), sum(is_adapter(name) for name, _ in model.named_parameters(remove_duplicate=False))
    drawn, count = sampled(path, folder, model, tokenizer)
    whole = merged(path, work, folder, model, ids)
    print(f"  {what}: {count} drawn tokens differ by {drawn:.2g}, merged logits by {whole:.2g}; the adapter moves logits by {moved:.2g}")
    return drawn < CLOSE and whole < CLOSE and moved > 100 * CLOSE and count > 20 and stored == loaded


def make(path, work, options):
    """An adapter of random values, as PEFT writes it."""
    model = get_peft_model(base(path), LoraConfig(**{"target_modules": "all-linear", "task_type": "CAUSAL_LM", **options}))
    with torch.no_grad():
        for name, values in model.named_parameters():
            if "lora_magnitude" in name:
                values.mul_(1 + 0.1 * torch.randn_like(values))
            elif "lora_" in name:
                values.copy_(torch.randn_like(values) * 0.05)
            elif "modules_to_save" in name:
                values.mul_(1 + 0.1 * torch.randn_like(values))
    folder = tempfile.mktemp(dir=work)
    model.save_pretrained(folder)
    return folder


def gradient(path, work, start, adapter):
    """One step of SGD at rate 1 on one conversation: start - end is the gradient. The largest error, relative to each tensor's largest."""
    row = work + "/one.jsonl"
    with open("models/pocket/tools/held_out.jsonl") as file, open(row, "w") as one:
        one.write(file.readline())
    end = load_file(fit(path, work, adapter, 1, 1, 'script = "sgd"', row) + "/adapter_model.safetensors")
    begin = load_file(start + "/adapter_model.safetensors")
    shown = json.loads(rondo("data", "preview", row, "--model", path, "--json", "--quiet").splitlines()[-1])["shown"][0]
    ids, weights = torch.tensor([shown["ids"]]), torch.tensor([shown["weights"]])
    model = PeftModel.from_pretrained(base(path), start, is_trainable=True)
    model(ids, labels=ids.masked_fill(weights == 0, -100)).loss.backward()
    norm = sum(values.grad.square().sum() for values in model.parameters() if values.grad is not None).sqrt().item()
    most = 0
    for name, values in model.named_parameters():
        if values.grad is None:
            continue
        stored = name.replace(".modules_to_save.default", "").replace(".default", "")
        stored = stored[: -len(".weight")] if "magnitude" in stored else stored
        wanted = values.grad / max(1, norm)  # the run clips at 1
        most = max(most, ((begin[stored] - end[stored] - wanted).abs().max() / wanted.abs().max()).item())
    print(f"  one step of SGD: the gradient, of norm {norm:.2g}, differs by {most:.2g} of its largest")
    return most < 1e-3


def with_head(path):
    """The pocket model with a head of its own."""
    model = AutoModelForCausalLM.from_pretrained(POCKET, dtype=torch.float32)
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight * (1 + 0.1 * torch.randn_like(model.lm_head.weight)))
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(POCKET).save_pretrained(path)


def refused(work, folder):
    """Adapters that do not fit, each with what the message must hold."""
    good = True
    for adapter, word in [('kind = "lora", rank = 8, alpha = 16, targets = "all-linear"', "adapter.rank = 4"),
                          ('kind = "lora", rank = 4, alpha = 16, targets = "all-linear"', "adapter.alpha = 8"),
                          ('kind = "dora", rank = 4, alpha = 8, targets = "all-linear"', 'adapter.kind = "lora"'),
                          ('kind = "lora", rank = 4, alpha = 8, targets = { "q_proj" }', "no such adapter"),
                          ('kind = "lora", rank = 4, alpha = 8, targets = { "qproj" }', "target qproj")]:
        said = fit(POCKET, work, adapter + f', start = "{folder}"', 1, 0.001, good=False)
        if word not in said or said.count("\n") != 1:
            print(f"  refusal lacks {word!r}: {said!r}")
            good = False
    return good


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    good = True
    with tempfile.TemporaryDirectory() as work:
        rondo("model", "quantise", work + "/pocket4", "--model", POCKET, "--quiet")
        with_head(work + "/head")
        for name, options, adapter in [v for v in VARIANTS if len(sys.argv) < 2 or v[0] in sys.argv[1:]]:
            print(f"{name}:", flush=True)
            path = work + "/pocket4" if name.startswith("q") else work + "/head" if name == "head" else POCKET
            good = check(path, work, "Rondo's own", fit(path, work, adapter, 8, 0.003), tokenizer) and good
            start = make(path, work, options)
            good = check(path, work, "PEFT's", start, tokenizer) and good
            on = fit(path, work, f'start = "{start}"', 4, 0.001)
            good = check(path, work, "continued", on, tokenizer) and good
            good = gradient(path, work, start, f'start = "{start}"') and good
        good = refused(work, make(POCKET, work, VARIANTS[0][1])) and good
    print("all equal" if good else "something differs")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
