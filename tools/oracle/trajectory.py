"""Loss trajectories of a tiny llama by PyTorch in binary64: tests/golden/trajectory.json. Run by hand: needs torch (tests need none of it).

    python3 tools/oracle/trajectory.py

Model, weights and batches are those of tests/fixture/fixture.c and tests/unit/trajectory_test.c, made from the same integer hash. The
forward pass is written here from the architecture's definition; backward and AdamW are PyTorch's own.
"""
import json
import math
import os

import torch

EMBED, FFN, HEADS, KV, DIM, LAYERS, VOCAB, TIME, ROWS = 16, 24, 2, 1, 8, 2, 32, 32, 2
RANK, SCALE, EPS, THETA, CLIP, DECAY = 2, 2.0, 1e-5, 10000.0, 1.0, 0.1
MASK32 = 0xFFFFFFFF


def word(name, i):
    x = 2166136261
    for byte in name.encode():
        x = (x ^ byte) * 16777619 & MASK32
    x ^= i * 0x9E3779B9 & MASK32
    x = (x ^ x >> 16) * 0x85EBCA6B & MASK32
    x = (x ^ x >> 13) * 0xC2B2AE35 & MASK32
    return (x ^ x >> 16) >> 8  # 24 bits


def weight(name, shape, scale, around=0.0):
    count = math.prod(shape)
    exact = torch.tensor([word(name, i) / 2**24 - 0.5 for i in range(count)], dtype=torch.float64)
    rounded = (exact.float() * torch.tensor(scale).float() + torch.tensor(around).float()).double()  # as the file holds it
    return rounded.reshape(shape)


LINEAR = {"self_attn.q_proj": (EMBED, EMBED), "self_attn.k_proj": (DIM, EMBED), "self_attn.v_proj": (DIM, EMBED),
          "self_attn.o_proj": (EMBED, EMBED), "mlp.gate_proj": (FFN, EMBED), "mlp.up_proj": (FFN, EMBED), "mlp.down_proj": (EMBED, FFN)}


def make_weights():
    w = {"model.embed_tokens.weight": weight("model.embed_tokens.weight", (VOCAB, EMBED), 1.0),
         "lm_head.weight": weight("lm_head.weight", (VOCAB, EMBED), 1.0),
         "model.norm.weight": weight("model.norm.weight", (EMBED,), 0.5, 1.0)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name, shape in LINEAR.items():
            w[at + name + ".weight"] = weight(at + name + ".weight", shape, 0.75)
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[at + name + ".weight"] = weight(at + name + ".weight", (EMBED,), 0.5, 1.0)
    return w


def make_adapters():
    a = {}
    for layer in range(LAYERS):
        for name, (out, inp) in LINEAR.items():
            at = f"model.layers.{layer}.{name}."
            a[at + "lora_A.weight"] = weight(at + "lora_A.weight", (RANK, inp), 0.5)
            a[at + "lora_B.weight"] = weight(at + "lora_B.weight", (out, RANK), 0.1)
    return a


def make_magnitudes(base):
    """Where a DoRA begins: the norms of the base's rows."""
    return {name[: -len("weight")] + "lora_magnitude_vector": w.norm(dim=1) for name, w in base.items() if "_proj." in name}


def batch(step):
    ids, mask = torch.zeros(ROWS, TIME, dtype=torch.long), torch.zeros(ROWS, TIME)
    for row in range(ROWS):
        length = 12 + (5 * step + 7 * row) % 20
        for t in range(length):
            ids[row, t] = word("ids", step * 64 + row * 32 + t) >> 19
            if t >= length // 3:
                mask[row, t] = 0.5 if t % 3 == 0 else 1.0
    return ids, mask


def rmsnorm(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS) * w


def rope(x):  # [row head time dim]
    half = DIM // 2
    angle = torch.arange(TIME)[:, None] * THETA ** (-torch.arange(half) / half)[None, :]
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def forward(w, ids):
    def linear(x, name):
        y = x @ w[name + ".weight"].T
        if name + ".lora_A.weight" in w:
            y = y + SCALE * (x @ w[name + ".lora_A.weight"].T) @ w[name + ".lora_B.weight"].T
        if name + ".lora_magnitude_vector" in w:
            v = w[name + ".weight"] + SCALE * w[name + ".lora_B.weight"] @ w[name + ".lora_A.weight"]
            y = y * w[name + ".lora_magnitude_vector"] / v.norm(dim=1).detach()
        return y

    x = w["model.embed_tokens.weight"][ids]
    causal = torch.full((TIME, TIME), -math.inf).triu(1)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        h = rmsnorm(x, w[at + "input_layernorm.weight"])
        q = linear(h, at + "self_attn.q_proj").view(ROWS, TIME, HEADS, DIM).transpose(1, 2)
        k = linear(h, at + "self_attn.k_proj").view(ROWS, TIME, KV, DIM).transpose(1, 2)
        v = linear(h, at + "self_attn.v_proj").view(ROWS, TIME, KV, DIM).transpose(1, 2)
        q, k = rope(q), rope(k)
        score = q @ k.transpose(-1, -2) / math.sqrt(DIM) + causal  # one key head serves both
        y = (score.softmax(-1) @ v).transpose(1, 2).reshape(ROWS, TIME, HEADS * DIM)
        x = x + linear(y, at + "self_attn.o_proj")
        h = rmsnorm(x, w[at + "post_attention_layernorm.weight"])
        x = x + linear(torch.nn.functional.silu(linear(h, at + "mlp.gate_proj")) * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    return linear(rmsnorm(x, w["model.norm.weight"]), "lm_head")


def train(w, trained, steps):
    for p in trained.values():
        p.requires_grad_(True)
    flat = [p for p in trained.values() if p.dim() == 1]
    rest = [p for p in trained.values() if p.dim() > 1]
    opt = torch.optim.AdamW([{"params": rest, "weight_decay": DECAY}, {"params": flat, "weight_decay": 0.0}], betas=(0.9, 0.95), eps=1e-8)
    told = []
    for step in range(steps):
        ids, mask = batch(step)
        logp = forward({**w, **trained}, ids).log_softmax(-1)
        nll = -logp[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
        loss = (nll * mask[:, 1:]).sum() / mask[:, 1:].sum()
        opt.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((p.grad ** 2).sum() for p in trained.values()))
        for p in trained.values():
            p.grad *= CLIP / max(norm.item(), CLIP)
        for group in opt.param_groups:
            group["lr"] = 0.003 * (1 + step % 3)
        opt.step()
        told.append({"loss": loss.item(), "norm": norm.item()})
    return told


WHOLE = ("lm_head.weight", "embed_tokens.weight", "model.norm.weight", "input_layernorm.weight")


def main():
    base = make_weights()
    whole = {name: w.clone() for name, w in base.items() if name.endswith(WHOLE)}
    golden = {"lora": train(base, make_adapters(), 50), "dora": train(base, {**make_adapters(), **make_magnitudes(base)}, 50),
              "whole": train(base, {**make_adapters(), **whole}, 50), "full": train({}, base, 50)}
    path = os.path.join(os.path.dirname(__file__), "../../tests/golden/trajectory.json")
    with open(path, "w") as out:
        json.dump(golden, out, indent=1)
        out.write("\n")
    print(path, torch.__version__)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
