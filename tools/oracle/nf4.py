"""A small model folder quantised by bitsandbytes, with and without double quantisation, and what bitsandbytes reads of it as float32.

    pip install torch bitsandbytes safetensors
    python tools/oracle/nf4.py tests/golden

writes nf4.safetensors (layers as transformers saves them: X.weight, X.weight.absmax, X.weight.quant_map, X.weight.nested_absmax,
X.weight.nested_quant_map, X.weight.quant_state.bitsandbytes__nf4; X.source, the weights that were quantised, bfloat16; X.hash, the
BLAKE2b-256 of the float32 bytes that dequantize_4bit gives)."""
import hashlib
import sys

import bitsandbytes.functional as bnb
import torch
from safetensors.torch import save_file

generator = torch.Generator().manual_seed(20261130)
SHAPES = {"plain": (24, 128), "double": (72, 256), "part": (5, 77)}  # 288 blocks: a whole group and a part; a last block in part
tensors = {}
for name, shape in SHAPES.items():
    x = (torch.randn(shape, generator=generator) * 0.05).bfloat16()
    x[0, :64] = 0  # a block of zeros
    x[1, 3] = 7.5
    packed, state = bnb.quantize_4bit(x.float(), quant_type="nf4", blocksize=64, compress_statistics=name == "double")
    tensors[name + ".source"] = x
    tensors[name + ".weight"] = packed
    for key, value in state.as_dict(packed=True).items():
        tensors[f"{name}.weight.{key}"] = value
    values = bnb.dequantize_4bit(packed, state)
    assert values.dtype == torch.float32 and values.shape == x.shape
    digest = hashlib.blake2b(values.numpy().tobytes(), digest_size=32).digest()
    tensors[name + ".hash"] = torch.tensor(list(digest), dtype=torch.uint8)
save_file({key: value.contiguous() for key, value in tensors.items()}, sys.argv[1] + "/nf4.safetensors", metadata={"format": "pt"})
