"""Loads an adapter that Rondo wrote into PEFT on PyTorch, over its base model, and checks that it is used as meant.

    python3 -m venv build/oracle && build/oracle/bin/pip install torch transformers peft gguf
    build/oracle/bin/python tools/oracle/peft_adapter.py BASE ADAPTER      BASE is a folder or a .gguf file

Every tensor of the adapter must find its place, and the model with the adapter must give what W + (alpha / r) B A gives when it
is computed here. Prints the largest difference and how far the adapter moves the output; exit status 1 when something is off.
"""

import json
import os
import sys

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

PREFIX = "base_model.model."


def load_base(path):
    if path.endswith(".gguf"):
        folder, name = os.path.split(path)
        return AutoModelForCausalLM.from_pretrained(folder or ".", gguf_file=name, dtype=torch.float32)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)


def merged(base, adapter):
    """The base with the adapter added into its weights, without PEFT."""
    config = json.load(open(os.path.join(adapter, "adapter_config.json")))
    tensors = load_file(os.path.join(adapter, "adapter_model.safetensors"))
    scale = config["lora_alpha"] / config["r"]
    weights = base.state_dict()
    for name, a in tensors.items():
        if name.endswith(".lora_A.weight"):
            module = name[len(PREFIX) : -len(".lora_A.weight")]
            weights[module + ".weight"] += scale * tensors[PREFIX + module + ".lora_B.weight"] @ a
    return base, len(tensors)


def main(base_path, adapter):
    torch.manual_seed(1)
    base = load_base(base_path)
    ids = torch.randint(3, base.config.vocab_size, (2, 48))
    with torch.no_grad():
        before = base(ids).logits
        model = PeftModel.from_pretrained(base, adapter)
        loaded = [name for name, _ in model.named_parameters() if ".lora_" in name]
        through_peft = model(ids).logits
        by_hand, stored = merged(load_base(base_path), adapter)
        expected = by_hand(ids).logits
    difference = (through_peft - expected).abs().max().item()
    moved = (through_peft - before).abs().max().item()
    print(f"tensors stored {stored}, loaded {len(loaded)}; largest difference {difference:.3g}, the adapter moves logits by {moved:.3g}")
    return 0 if stored == len(loaded) and moved > 1000 * difference else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
