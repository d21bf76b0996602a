"""GGUF files of small models, written with llama.cpp's names (gguf's tables) and habits, against transformers: logits within 1e-4. Run by
tools/oracle/run.sh; needs build/tests/rondo_logits.

    python tools/oracle/gguf_models.py

Habits: rows of q and k interleaved for llama, norms of gemma plus one, one-dimensional tensors in binary32, matrices in binary32 too, but for
the last of each model in Q8_0.
"""
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers as T

from models import LLAMA3, fill, plain, word

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SIZES = dict(vocab_size=40, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, pad_token_id=None, bos_token_id=1, eos_token_id=2, head_dim=16)
GEMMA = dict(head_dim=32, query_pre_attn_scalar=32, sliding_window=8, layer_types=["sliding_attention", "full_attention"])


def cases():
    yield "llama", "llama", T.LlamaForCausalLM, T.LlamaConfig(**SIZES, rope_parameters=plain(500.0))
    yield "llama", "llama", T.LlamaForCausalLM, T.LlamaConfig(**SIZES, rope_parameters=LLAMA3)
    yield "qwen2", "qwen2", T.Qwen2ForCausalLM, T.Qwen2Config(**{**SIZES, "tie_word_embeddings": True}, rope_parameters=plain(500.0))
    yield "qwen3", "qwen3", T.Qwen3ForCausalLM, T.Qwen3Config(**{**SIZES, "head_dim": 32}, rope_parameters=plain(500.0))
    yield "gemma2", "gemma", T.Gemma2ForCausalLM, T.Gemma2Config(**{**SIZES, **GEMMA}, attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
                                                                   rope_parameters=plain(10000.0))
    both = {"sliding_attention": plain(10000.0), "full_attention": dict(rope_type="linear", rope_theta=1000.0, factor=8.0)}
    yield "gemma3", "gemma", T.Gemma3ForCausalLM, T.Gemma3TextConfig(**{**SIZES, **GEMMA, "num_hidden_layers": 6, "layer_types": None}, rope_parameters=both)


def permuted(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)


def llama3_divisors(rope, dim):
    """As llama.cpp's converter works them out."""
    freqs = 1.0 / (rope["rope_theta"] ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    factors = []
    for freq in freqs:
        wavelength = 2 * np.pi / freq
        smooth = (original / wavelength - low) / (high - low)
        factors.append(1.0 if wavelength < original / high else rope["factor"] if wavelength > original / low
                       else 1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def write(path, arch, config, model):
    out = gguf.GGUFWriter(path, arch)
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), config.num_hidden_layers)
    rope = (config.rope_parameters or {}).get("full_attention", config.rope_parameters)
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_key_length(config.head_dim)
    out.add_value_length(config.head_dim)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        out.add_tensor("rope_freqs.weight", llama3_divisors(rope, config.head_dim))
    if arch.startswith("gemma"):
        out.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
    for name, p in model.named_parameters():
        data, kind = p.detach().numpy().astype(np.float32), name.rsplit(".", 1)[1]
        if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
            data = permuted(data, config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads)
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            data = data + 1
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if "mlp.down_proj" in name and f".{config.num_hidden_layers - 1}." in name:
            out.add_tensor(to, gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            p.data = torch.tensor(gguf.quants.dequantize(gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0), gguf.GGMLQuantizationType.Q8_0))
        else:
            out.add_tensor(to, data)
        assert kind in ("weight", "bias") and to, name
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def compare(arch, script, cls, config):
    config._attn_implementation = "eager"
    model = cls(config).float().eval()
    fill(model)
    ids = [word("ids", t) % config.vocab_size for t in range(24)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        write(path, arch, config, model)
        with torch.no_grad():
            theirs = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()
        command = [os.path.join(ROOT, "build/tests/rondo_logits"), os.path.join(ROOT, f"scripts/models/{script}.lua"), path]
        out = subprocess.run(command + [str(i) for i in ids], stdout=subprocess.PIPE, check=True).stdout
    apart = float(np.abs(theirs - np.frombuffer(out, dtype="<f4").reshape(theirs.shape)).max())
    print(f"  {arch}: logits within {np.abs(theirs).max():.3g}, largest difference {apart:.2g}", flush=True)
    return apart <= 1e-4


if __name__ == "__main__":
    sys.exit(0 if all([compare(*c) for c in cases()]) else 1)
