"""GGUF files of small models, written with llama.cpp's names (gguf's tables) and habits, against transformers: logits within 1e-4. Run by
tools/oracle/run.sh; needs build/tests/rondo_logits.

    python tools/oracle/gguf_models.py

Habits: rows of q and k interleaved for llama, norms of gemma plus one, matrices of gpt2 output first, experts in one tensor, LongRoPE's divisors as
tensors, one-dimensional tensors in binary32, matrices in binary32 too, but for the last of each model in Q8_0.
"""
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers as T

from models import LLAMA3, LONGROPE, fill, plain, word

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SIZES = dict(vocab_size=40, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, pad_token_id=None, bos_token_id=1, eos_token_id=2, head_dim=16)
LONGER = dict(LONGROPE, short_factor=2 * LONGROPE["short_factor"], long_factor=2 * LONGROPE["long_factor"])
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


    yield "phi3", "phi3", T.Phi3ForCausalLM, T.Phi3Config(**SIZES, sliding_window=8, rope_parameters=dict(plain(500.0), partial_rotary_factor=0.5))
    for original in (8, 64):
        yield "phi3", "phi3", T.Phi3ForCausalLM, T.Phi3Config(**SIZES, rope_parameters=dict(LONGER), original_max_position_embeddings=original)
    yield "olmo2", "olmo2", T.Olmo2ForCausalLM, T.Olmo2Config(**SIZES, rope_parameters=plain(500.0))
    yield "gpt2", "gpt2", T.GPT2LMHeadModel, T.GPT2Config(vocab_size=40, n_embd=64, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2)
    experts = dict(num_experts=4, num_experts_per_tok=2, rope_parameters=plain(500.0))
    yield "qwen3moe", "moe", T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(**{**SIZES, "head_dim": 32}, **experts, moe_intermediate_size=32, norm_topk_prob=True)
    yield "olmoe", "moe", T.OlmoeForCausalLM, T.OlmoeConfig(**SIZES, **experts, norm_topk_prob=False)


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


def rotary(out, arch, config):
    rope = (config.rope_parameters or {}).get("full_attention", config.rope_parameters)
    out.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        out.add_tensor("rope_freqs.weight", llama3_divisors(rope, config.head_dim))
    if arch == "phi3":
        width = config.hidden_size // config.num_attention_heads
        out.add_rope_dimension_count(int(width * rope.get("partial_rotary_factor", 1)))
        out.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
        out.add_sliding_window(config.sliding_window or 0)
    if rope["rope_type"] == "longrope":
        scale = config.max_position_embeddings / config.original_max_position_embeddings
        out.add_rope_scaling_attn_factors(np.sqrt(1 + np.log(scale) / np.log(config.original_max_position_embeddings)) if scale > 1 else 1.0)
        for kind in ("long", "short"):
            out.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[f"{kind}_factor"], dtype=np.float32))


def sizes(out, arch, config):
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    out.add_head_count(config.num_attention_heads)
    if arch == "gpt2":
        out.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    out.add_head_count_kv(config.num_key_value_heads)
    if arch not in ("phi3", "olmo2", "olmoe"):
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    rotary(out, arch, config)
    if arch.startswith("gemma"):
        out.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
    if arch in ("qwen3moe", "olmoe"):
        out.add_expert_count(config.num_experts)
        out.add_expert_used_count(config.num_experts_per_tok)
    if arch == "qwen3moe":
        out.add_expert_feed_forward_length(config.moe_intermediate_size)


def as_in_file(arch, config, names, name, data):
    """Pairs of the file's name and values."""
    if ".experts." in name:
        at = f"blk.{name.split('.')[2]}.ffn_"
        if name.endswith("down_proj"):
            return [(at + "down_exps.weight", data)]
        half = data.shape[1] // 2
        return [(at + "gate_exps.weight", np.ascontiguousarray(data[:, :half])), (at + "up_exps.weight", np.ascontiguousarray(data[:, half:]))]
    if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
        data = permuted(data, config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads)
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        data = data + 1
    if arch == "gpt2" and ".c_" in name and name.endswith("weight"):
        data = np.ascontiguousarray(data.T)
    to = names.get_name(name, try_suffixes=(".weight", ".bias"))
    assert to, name
    return [(to, data)]


def write(path, arch, config, model):
    out = gguf.GGUFWriter(path, arch)
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), config.num_hidden_layers)
    kind = gguf.GGMLQuantizationType.Q8_0
    sizes(out, arch, config)
    for name, p in model.named_parameters():
        for to, data in as_in_file(arch, config, names, name, p.detach().numpy().astype(np.float32)):
            if to.startswith(f"blk.{config.num_hidden_layers - 1}.ffn_down") and to.endswith("weight"):
                blocks = gguf.quants.quantize(data, kind)
                out.add_tensor(to, blocks, raw_dtype=kind)
                back = gguf.quants.dequantize(blocks, kind)
                p.data = torch.tensor(back.T.copy() if arch == "gpt2" else back)
            else:
                out.add_tensor(to, data)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def compare(arch, script, cls, config):
    config._attn_implementation = "eager"
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
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
