"""transformers' generate at the shapes of SmolLM2-135M: the peer of `rondo bench decode`.

    python3 bench/peers/torch_decode.py --rows 8 --tokens 32 --threads 2

Float32, random weights, prompts of one token, greedy, with its key-value cache. A line on standard input asks for --tokens tokens of each row; its
answer is a line of JSON: {"seconds", "cpu", "peak"}. The first line out names the versions. Ends with its input.
"""
import argparse
import json
import os
import resource
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=1)
parser.add_argument("--tokens", type=int, default=32)
parser.add_argument("--threads", type=int, default=2)
o = parser.parse_args()
os.environ.update(OMP_NUM_THREADS=str(o.threads), MKL_NUM_THREADS=str(o.threads), TRANSFORMERS_VERBOSITY="error")

import torch  # noqa: E402 - the threads are set before
import transformers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

torch.set_num_threads(o.threads)
torch.manual_seed(1)
config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                     num_key_value_heads=3, rope_theta=100000.0, rms_norm_eps=1e-5, tie_word_embeddings=True,
                     max_position_embeddings=8192, attn_implementation="sdpa", bos_token_id=None, eos_token_id=None,
                     pad_token_id=0)
model = LlamaForCausalLM(config).eval()
ids = torch.arange(100, 100 + o.rows).view(o.rows, 1)
print(json.dumps({"name": f"transformers {transformers.__version__}, torch {torch.__version__}"}), flush=True)

for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=o.tokens, min_new_tokens=o.tokens,
                             do_sample=False, use_cache=True)
    assert out.shape == (o.rows, 1 + o.tokens)
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
