"""llama.cpp at the shapes of SmolLM2-135M: a peer of `rondo bench decode`.

    python3 bench/peers/llama_decode.py --rows 8 --tokens 32 --threads 2

Needs llama-cpp-python and gguf: a file of random weights in F32 is made in a temporary folder. Prompts of one token, greedy, with its key-value
cache, all rows in one batch. A line on standard input asks for --tokens tokens of each row; its answer is a line of JSON:
{"seconds", "cpu", "peak"}. The first line out names the versions. Ends with its input.
"""
import argparse
import ctypes
import json
import resource
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=1)
parser.add_argument("--tokens", type=int, default=32)
parser.add_argument("--threads", type=int, default=2)
o = parser.parse_args()

import gguf  # noqa: E402
import llama_cpp  # noqa: E402
import numpy as np  # noqa: E402

EMBED, FFN, LAYERS, HEADS, KV, DIM, VOCAB = 576, 1536, 30, 9, 3, 64, 49152


def write_model(path):
    random, out = np.random.default_rng(1), gguf.GGUFWriter(path, "llama")
    out.add_context_length(8192)
    out.add_embedding_length(EMBED)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_freq_base(100000.0)
    out.add_vocab_size(VOCAB)
    out.add_tokenizer_model("no_vocab")

    def matrix(name, rows, width):
        out.add_tensor(name, random.standard_normal((rows, width), np.float32) * np.float32(0.02))

    def norm(name):
        out.add_tensor(name, np.ones(EMBED, np.float32))

    matrix("token_embd.weight", VOCAB, EMBED)
    norm("output_norm.weight")
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for name, rows, width in [("attn_q", HEADS * DIM, EMBED), ("attn_k", KV * DIM, EMBED), ("attn_v", KV * DIM, EMBED),
                                  ("attn_output", EMBED, HEADS * DIM), ("ffn_gate", FFN, EMBED), ("ffn_up", FFN, EMBED), ("ffn_down", EMBED, FFN)]:
            matrix(f"{at}{name}.weight", rows, width)
        norm(at + "attn_norm.weight")
        norm(at + "ffn_norm.weight")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def open_context(path):
    options = llama_cpp.llama_model_default_params()
    options.use_extra_bufts = False  # repacked weights fail with some types
    model = llama_cpp.llama_model_load_from_file(path.encode(), options)
    setting = llama_cpp.llama_context_default_params()
    setting.n_ctx, setting.n_batch, setting.n_seq_max = o.rows * max(64, o.tokens + 1), o.rows, o.rows
    setting.n_threads = setting.n_threads_batch = o.threads
    setting.type_k = setting.type_v = 0  # f32
    return llama_cpp.llama_init_from_model(model, setting)


@llama_cpp.llama_log_callback
def silent(level, text, data):
    pass


llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
with tempfile.TemporaryDirectory() as folder:
    write_model(folder + "/model.gguf")
    context = open_context(folder + "/model.gguf")
batch = llama_cpp.llama_batch_init(o.rows, 0, 1)


def step(ids, place):
    batch.n_tokens = o.rows
    for row, token in enumerate(ids):
        batch.token[row], batch.pos[row], batch.n_seq_id[row], batch.logits[row] = token, place, 1, True
        batch.seq_id[row][0] = row
    if llama_cpp.llama_decode(context, batch) != 0:
        sys.exit("llama_decode failed")
    return [int(np.argmax(np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, row), (VOCAB,)))) for row in range(o.rows)]


print(json.dumps({"name": f"llama.cpp (llama-cpp-python {llama_cpp.__version__})"}), flush=True)

for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    ids = list(range(100, 100 + o.rows))
    for place in range(o.tokens):
        ids = step(ids, place)
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
