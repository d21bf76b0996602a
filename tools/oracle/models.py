"""Logits and gradients of small models by transformers: tests/golden/models.json. Run by hand: needs torch and transformers (tests need
none of it).

    python3 tools/oracle/models.py

Weights, ids and pictures come from the integer hash of tests/fixture/fixture.c, by the names of the model file: norms within 0.25 of 1, biases
within 0.25 of 0, all else within 0.375 of 0. The gradient told of each tensor is that of sum(logits * weight("loss")), multiplied
element by element with weight("gradient." + name) and summed.
"""
import json
import math
import os

import torch
import transformers as T

MASK32 = 0xFFFFFFFF
TIME = 8


def word(name, i):
    x = 2166136261
    for byte in name.encode():
        x = (x ^ byte) * 16777619 & MASK32
    x ^= i * 0x9E3779B9 & MASK32
    x = (x ^ x >> 16) * 0x85EBCA6B & MASK32
    x = (x ^ x >> 13) * 0xC2B2AE35 & MASK32
    return (x ^ x >> 16) >> 8  # 24 bits


def weight(name, shape, scale, around=0.0):
    exact = torch.tensor([word(name, i) / 2**24 - 0.5 for i in range(math.prod(shape))], dtype=torch.float64)
    return (exact.float() * torch.tensor(scale).float() + torch.tensor(around).float()).reshape(shape)


VIT = {"vit.layers.": "vit.encoder.layer.", "attention.q_proj": "attention.attention.query", "attention.k_proj": "attention.attention.key",
       "attention.v_proj": "attention.attention.value", "attention.o_proj": "attention.output.dense", "mlp.fc1": "intermediate.dense",
       "mlp.fc2": "output.dense"}


def file_name(name):
    """transformers 5 has other names inside for some models than their files have."""
    if name.startswith("vit."):
        for inside, file in VIT.items():
            name = name.replace(inside, file)
    return name


def named(name, shape):
    if name.endswith("bias"):
        return weight(name, shape, 0.5)
    return weight(name, shape, 0.5, 1.0) if "norm" in name or ".ln_" in name else weight(name, shape, 0.75)


def each_expert(name, p, give):
    """transformers 5 holds all experts in one tensor; files hold one for each. give(file name, expert, rows of the second axis)"""
    at = name.split(".experts.")[0] + ".experts."
    for e in range(p.shape[0]):
        if name.endswith("gate_up_proj"):
            half = p.shape[1] // 2
            give(f"{at}{e}.gate_proj.weight", e, slice(0, half))
            give(f"{at}{e}.up_proj.weight", e, slice(half, 2 * half))
        else:
            give(f"{at}{e}.down_proj.weight", e, slice(None))


def fill(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if ".experts." in name and name.split(".")[-1] in ("gate_up_proj", "down_proj"):
                each_expert(name, p, lambda file, e, rows: p[e, rows].copy_(named(file, p[e, rows].shape)))
            else:
                p.copy_(named(file_name(name), p.shape))


def gradients(model):
    out = {}

    def add(file, grad):
        out[file] = (grad * weight("gradient." + file, grad.shape, 1.0)).double().sum().item()

    for name, p in model.named_parameters():
        if p.grad is None:
            continue
        if ".experts." in name and name.split(".")[-1] in ("gate_up_proj", "down_proj"):
            stacked = {}
            each_expert(name, p, lambda file, e, rows: stacked.setdefault(file.replace(f".experts.{e}.", ".experts.*."), []).append(p.grad[e, rows]))
            for file, parts in stacked.items():
                add(file, torch.stack(parts))
        else:
            add(file_name(name), p.grad)
    return out


SMALL = dict(vocab_size=16, hidden_size=16, intermediate_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, pad_token_id=None, bos_token_id=1, eos_token_id=2, initializer_range=0.02)
GPT = dict(vocab_size=16, n_embd=16, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16)


LONGROPE = dict(rope_type="longrope", rope_theta=100.0, short_factor=[1.0, 1.1, 1.5, 2.0], long_factor=[1.0, 2.5, 5.0, 9.0])


def plain(theta=100.0):
    return dict(rope_type="default", rope_theta=theta)


def text_cases():
    def case(name, script, cls, config, **options):
        extra = {k: options.pop(k) for k in ("flat",) if k in options}
        return name, script, cls, config(**{**(GPT if config is T.GPT2Config else SMALL), **options}), extra

    yield case("llama", "llama", T.LlamaForCausalLM, T.LlamaConfig, rope_parameters=plain())
    yield case("llama with biases, tied", "llama", T.LlamaForCausalLM, T.LlamaConfig, attention_bias=True, mlp_bias=True, head_dim=6,
               tie_word_embeddings=True, rope_parameters=plain(), flat=True)
    yield case("llama 3 frequencies", "llama", T.LlamaForCausalLM, T.LlamaConfig, head_dim=8, rope_parameters=LLAMA3)
    yield case("llama, linear frequencies", "llama", T.LlamaForCausalLM, T.LlamaConfig, flat=True,
               rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=3.0))
    yield case("llama, YaRN", "llama", T.LlamaForCausalLM, T.LlamaConfig, head_dim=8, rope_parameters=YARN)
    yield case("llama, dynamic frequencies", "llama", T.LlamaForCausalLM, T.LlamaConfig, head_dim=8, max_position_embeddings=4,
               rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=2.0))
    yield case("smollm3", "llama", T.SmolLM3ForCausalLM, T.SmolLM3Config, num_hidden_layers=4, no_rope_layer_interval=2,
               tie_word_embeddings=True, rope_parameters=plain())
    yield case("mistral", "llama", T.MistralForCausalLM, T.MistralConfig, sliding_window=3, head_dim=8, rope_parameters=plain())
    yield case("qwen2", "qwen2", T.Qwen2ForCausalLM, T.Qwen2Config, tie_word_embeddings=True, rope_parameters=plain())
    yield case("qwen2 with windows", "qwen2", T.Qwen2ForCausalLM, T.Qwen2Config, use_sliding_window=True, sliding_window=3,
               max_window_layers=1, rope_parameters=plain())
    yield case("qwen3", "qwen3", T.Qwen3ForCausalLM, T.Qwen3Config, head_dim=8, rope_parameters=plain())
    yield case("gemma 2", "gemma", T.Gemma2ForCausalLM, T.Gemma2Config, head_dim=8, query_pre_attn_scalar=6, sliding_window=3,
               attn_logit_softcapping=2.0, final_logit_softcapping=3.0, rope_parameters=plain())
    both = {"sliding_attention": plain(50.0), "full_attention": dict(rope_type="linear", rope_theta=1000.0, factor=8.0)}
    yield case("gemma 3", "gemma", T.Gemma3ForCausalLM, T.Gemma3TextConfig, head_dim=8, query_pre_attn_scalar=6, sliding_window=3,
               layer_types=["sliding_attention", "full_attention"], rope_parameters=both)
    yield case("phi3", "phi3", T.Phi3ForCausalLM, T.Phi3Config, rope_parameters=plain(), original_max_position_embeddings=64)
    yield case("phi3, windows, half of a head rotated", "phi3", T.Phi3ForCausalLM, T.Phi3Config, num_attention_heads=2, num_key_value_heads=1,
               sliding_window=3, rope_parameters=dict(plain(), partial_rotary_factor=0.5), original_max_position_embeddings=64)
    for name, original in (("phi3, LongRoPE, short", 32), ("phi3, LongRoPE, long", 4)):
        yield case(name, "phi3", T.Phi3ForCausalLM, T.Phi3Config, num_attention_heads=2, num_key_value_heads=1, rope_parameters=dict(LONGROPE),
                   original_max_position_embeddings=original)
    yield case("olmo2", "olmo2", T.Olmo2ForCausalLM, T.Olmo2Config, rope_parameters=plain())
    yield case("gpt2", "gpt2", T.GPT2LMHeadModel, T.GPT2Config)
    yield case("qwen3 moe", "moe", T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig, head_dim=8, num_experts=4, num_experts_per_tok=2,
               moe_intermediate_size=6, norm_topk_prob=True, rope_parameters=plain())
    yield case("olmoe", "moe", T.OlmoeForCausalLM, T.OlmoeConfig, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False,
               rope_parameters=plain())


def as_file(config, cls, flat):
    """config.json as transformers 5 writes it; flat: as files of before 5 say rotary positions."""
    said = json.loads(config.to_json_string())
    said["architectures"] = [cls.__name__]
    for key in ("transformers_version", "dtype", "initializer_range", "use_cache", "attention_dropout", "bos_token_id", "eos_token_id",
                "pad_token_id"):
        said.pop(key, None)
    if flat:
        rope = said.pop("rope_parameters")
        said["rope_theta"] = rope.pop("rope_theta")
        said["rope_scaling"] = None if rope["rope_type"] == "default" else {"type": rope.pop("rope_type"), **rope}
    return said


def golden(name, script, config, inputs, out, model):
    seed = weight("loss", out.shape, 1.0)
    (out * seed).sum().backward()
    return {"name": name, "script": script, "config": config, **inputs, "logits": [float(f"{v:.7g}") for v in out.flatten().tolist()],
            "gradients": {k: float(f"{v:.6g}") for k, v in sorted(gradients(model).items())}}


def text_golden(name, script, cls, config, extra):
    config._attn_implementation = "eager"
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    model = cls(config).float().eval()
    fill(model)
    ids = torch.tensor([[word("ids", t) % 16 for t in range(TIME)]])
    out = model(input_ids=ids, use_cache=False).logits[0]
    return golden(name, script, as_file(config, cls, extra.get("flat")), {"ids": ids[0].tolist()}, out, model)


def vit_golden():
    config = T.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=12, image_size=8, patch_size=4,
                         num_channels=3, num_labels=5, layer_norm_eps=1e-12)
    model = T.ViTForImageClassification(config).float().eval()
    fill(model)
    out = model(pixel_values=weight("image", (1, 3, 8, 8), 2.0)).logits[0]
    said = json.loads(config.to_json_string())
    said["architectures"] = ["ViTForImageClassification"]
    for key in ("transformers_version", "dtype", "initializer_range"):
        said.pop(key, None)
    return golden("vit", "vit", said, {"height": 8, "width": 8}, out, model)


if __name__ == "__main__":
    cases = [text_golden(*c) for c in text_cases()] + [vit_golden()]
    path = os.path.join(os.path.dirname(__file__), "../../tests/golden/models.json")
    with open(path, "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(path, len(cases), "models; transformers", T.__version__, "torch", torch.__version__)
