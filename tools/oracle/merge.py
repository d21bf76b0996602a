"""Checks what `rondo model merge` writes against PEFT and against the quantisers of the `gguf` package.

    python3 -m venv build/oracle && build/oracle/bin/pip install torch transformers peft gguf
    build/oracle/bin/python tools/oracle/merge.py folder BASE               a folder: PEFT writes an adapter, Rondo merges it
    build/oracle/bin/python tools/oracle/merge.py gguf BASE.gguf ADAPTER    a GGUF file of architecture llama

folder: the logits of the merged folder in transformers must equal those of base and adapter in PEFT within 1e-4.
gguf: every tensor of the merged file, as F16, Q8_0 and Q4_0, must have the bytes that the package's quantiser gives for
W + (alpha / r) B A, and the keys of the base. Where llama_cpp is installed, it loads the file and evaluates a few tokens.
Exit status 1 when something differs.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

RONDO = os.environ.get("RONDO", "build/rondo")
NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def merge(base, adapter, out, kind):
    subprocess.run([RONDO, "model", "merge", out, "--model", base, "--adapter", adapter, "--type", kind, "--quiet"], check=True)


def folder(base):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    def load(path):
        return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)

    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as work, torch.no_grad():
        model = load(base)
        ids = torch.randint(3, model.config.vocab_size, (2, 48))
        before = model(ids).logits
        model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
        for name, values in model.named_parameters():
            if "lora_" in name:
                values.copy_(torch.randn_like(values) * 0.02)
        wanted = model(ids).logits
        model.save_pretrained(work + "/adapter")
        merge(base, work + "/adapter", work + "/merged", "f32")
        got = load(work + "/merged")(ids).logits
    off, moved = (got - wanted).abs().max().item(), (wanted - before).abs().max().item()
    print(f"folder: largest difference of logits {off:.3g}, the adapter moves them by {moved:.3g}")
    return off < 1e-4 and moved > 100 * off


def product(adapter, config, name):
    """(alpha / r) B A, summed over the rank in order, as binary32."""
    module = f"base_model.model.model.layers.{name}"
    if module + ".lora_A.weight" not in adapter:
        return None
    a, b = (adapter[f"{module}.lora_{part}.weight"].astype(np.float32) for part in "AB")
    total = np.zeros((b.shape[0], a.shape[1]), np.float32)
    for k in range(a.shape[0]):
        total += b[:, k : k + 1] * a[k]
    return np.float32(config["lora_alpha"] / config["r"]) * total


def interleaved(values, heads):
    rows, width = values.shape
    return values.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def expected(tensor, fields, adapter, config):
    """The merged values of one tensor of the base, in the file's order of rows."""
    from gguf.quants import dequantize

    values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    parts = tensor.name.split(".")
    if parts[0] != "blk" or parts[2] not in NAMES:
        return values
    more = product(adapter, config, f"{parts[1]}.{NAMES[parts[2]]}")
    if more is None:
        return values
    if parts[2] in ("attn_q", "attn_k"):
        key = "llama.attention.head_count" + ("_kv" if parts[2] == "attn_k" else "")
        more = interleaved(more, fields[key].contents())
    return values + more


def check_file(base, path, kind, adapter, config):
    import gguf
    from gguf.quants import quantize

    old, new = gguf.GGUFReader(base), gguf.GGUFReader(path)
    stored = {tensor.name: tensor for tensor in new.tensors}
    differ = 0
    for tensor in old.tensors:
        values = expected(tensor, old.fields, adapter, config)
        got = stored.pop(tensor.name)
        differ += quantize(values, got.tensor_type).tobytes() != got.data.tobytes()
        differ += got.tensor_type.name != (kind if values.ndim > 1 else "F32")
    keys = [name for name in old.fields if not name.startswith("GGUF.") and name != "general.file_type"]
    differ += len(stored) + sum(old.fields[name].contents() != new.fields[name].contents() for name in keys)
    print(f"gguf {kind}: {len(old.tensors)} tensors, {len(keys)} keys, {differ} differ")
    return differ == 0


def check_llama(path, kind):
    try:
        import llama_cpp
    except ImportError:
        return True
    model = llama_cpp.Llama(path, n_ctx=64, verbose=False)
    text = model("The capital of France is", max_tokens=8, temperature=0)["choices"][0]["text"]
    print(f"llama.cpp {kind}: {text!r}")
    return len(text) > 0


def file(base, folder_of_adapter):
    from safetensors.numpy import load_file

    adapter = load_file(os.path.join(folder_of_adapter, "adapter_model.safetensors"))
    config = json.load(open(os.path.join(folder_of_adapter, "adapter_config.json")))
    good = True
    for kind in ("F16", "Q8_0", "Q4_0"):
        with tempfile.TemporaryDirectory() as work:
            path = work + "/merged.gguf"
            merge(base, folder_of_adapter, path, kind.lower())
            good = check_file(base, path, kind, adapter, config) and good
            good = check_llama(path, kind) and good
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["folder"] and len(sys.argv) == 3:
        sys.exit(not folder(sys.argv[2]))
    if sys.argv[1:2] == ["gguf"] and len(sys.argv) == 4:
        sys.exit(not file(*sys.argv[2:]))
    sys.exit(__doc__)
