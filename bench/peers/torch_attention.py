"""PyTorch's attention, forward and backward: the peer of `rondo bench attention`.

    python3 bench/peers/torch_attention.py --length 2048 --threads 2

scaled_dot_product_attention in float32, causal, at the heads of SmolLM2-135M (9 of queries over 3 of keys, 64 wide). A line on standard
input asks for one forward and backward pass; its answer is a line of JSON, as of torch_step.py.
"""
import argparse
import json
import resource
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

parser = argparse.ArgumentParser()
parser.add_argument("--length", type=int, default=2048)
parser.add_argument("--threads", type=int, default=2)
o = parser.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(1)
q, k, v = (torch.randn(1, heads, o.length, 64, requires_grad=True) for heads in (9, 3, 3))
dy = torch.randn(1, 9, o.length, 64)
print(json.dumps({"name": f"torch {torch.__version__}"}), flush=True)

for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    y = scaled_dot_product_attention(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), is_causal=True)
    y.backward(dy)
    q.grad = k.grad = v.grad = None
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
