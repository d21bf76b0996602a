"""PyTorch's training step at the shapes of SmolLM2-135M: the peer of `rondo bench step`.

    python3 bench/peers/torch_step.py --mode lora|full --rows 4 --time 256 [--trained 0.25] [--rank 16] --threads 2

Through transformers, and PEFT for adapters (every linear of the blocks), in float32 with AdamW; random weights, random tokens. A line on
standard input asks for one step; its answer is a line of JSON: {"seconds", "cpu", "peak"}: wall clock, processor time of the process, bytes of
its greatest resident set so far. The first line out, before any step, names the versions. Ends with its input.
"""
import argparse
import json
import os
import resource
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices=("lora", "full"), default="lora")
parser.add_argument("--rows", type=int, default=4)
parser.add_argument("--time", type=int, default=256)
parser.add_argument("--trained", type=float, default=1.0)
parser.add_argument("--rank", type=int, default=16)
parser.add_argument("--threads", type=int, default=2)
o = parser.parse_args()
os.environ.update(OMP_NUM_THREADS=str(o.threads), MKL_NUM_THREADS=str(o.threads), TRANSFORMERS_VERBOSITY="error")

import torch  # noqa: E402 - the threads are set before
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

torch.set_num_threads(o.threads)
torch.manual_seed(1)
config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                     num_key_value_heads=3, rope_theta=100000.0, rms_norm_eps=1e-5, tie_word_embeddings=True,
                     max_position_embeddings=8192, attn_implementation="sdpa", use_cache=False)
model = LlamaForCausalLM(config)
name = f"torch {torch.__version__}"
if o.mode == "lora":
    import peft

    name += f", peft {peft.__version__}"
    linears = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = peft.get_peft_model(model, peft.LoraConfig(r=o.rank, lora_alpha=2 * o.rank, lora_dropout=0.0, target_modules=linears))
model.train()
trained = [p for p in model.parameters() if p.requires_grad]
optimiser = torch.optim.AdamW(trained, lr=1e-4)
ids = torch.randint(0, config.vocab_size, (o.rows, o.time))
labels = torch.where(torch.rand(o.rows, o.time) < o.trained, ids, -100)
print(json.dumps({"name": name, "parameters": sum(p.numel() for p in trained)}), flush=True)

for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    optimiser.zero_grad(set_to_none=True)
    loss = model(input_ids=ids, labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimiser.step()
    value = loss.item()
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "loss": value,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
