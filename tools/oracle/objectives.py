#!/usr/bin/env python3
"""objectives.py: what the objective scripts must give, from PyTorch: losses and gradients of GRPO and its kin, preferences, distillation.

    python3 tools/oracle/objectives.py tests/golden/objectives.json        (torch 2.x; the test is tests/unit/objectives_test.c)

Written from the formulas of the papers, apart from the scripts: GRPO (Shao et al. 2024), Dr. GRPO (Liu et al. 2025), DAPO (Yu et al. 2025),
GSPO (Zheng et al. 2025), PPO (Schulman et al. 2017), RLOO (Ahmadian et al. 2024), DPO (Rafailov et al. 2023), robust DPO (Chowdhury et al. 2024),
SLiC (Zhao et al. 2023), IPO (Azar et al. 2023), KTO (Ethayarajh et al. 2024), ORPO (Hong et al. 2024), SimPO (Meng et al. 2024), GKD (Agarwal et al.
2024), DFT (Wu et al. 2025). Everything in binary64; the numbers given are multiples of 2^-10, exact in binary32 too.
"""
import json
import sys

import torch

torch.set_default_dtype(torch.float64)
random = torch.Generator().manual_seed(7)
PROMPTS, SAMPLES, TIME, PAIRS, SHORT, BATCH, VOCAB, K = 3, 4, 6, 4, 5, 6, 7, 3


def draw(*shape, low=-1.0, high=1.0):
    x = torch.rand(*shape, generator=random) * (high - low) + low
    return torch.round(x * 1024) / 1024


def spans(rows, time):
    """A mask a row: from 1 or 2 on, of different lengths, now and then with a hole (a token that a tool wrote)."""
    mask = torch.zeros(rows, time)
    for r in range(rows):
        first, last = 1 + r % 2, time - r % 3
        mask[r, first:last] = 1
        if r % 4 == 3 and last - first > 2:
            mask[r, first + 1] = 0
    return mask


def logs(*shape):
    return draw(*shape, low=-2.5, high=-0.05)


def near(x, by):
    return torch.clamp(x + draw(*x.shape, low=-by, high=by), max=-1 / 1024)


def rollouts():
    rows = PROMPTS * SAMPLES
    now = logs(rows, TIME)
    old = near(now, 0.4)
    return {
        "mask": spans(rows, TIME), "logprobs": now, "old_logprobs": old, "sampler_logprobs": near(old, 1.0), "ref_logprobs": near(now, 0.5),
        "reward": torch.tensor([1, 0, 0.5, 0, 0.25, 0, 1, 0.75, 0.5, 0.5, 0.5, 0.5]),
        "valid": torch.tensor([1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1.0]),
        "truncated": torch.tensor([0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0.0]),
        "value": draw(rows, TIME), "entropy": draw(rows, TIME, low=0.1, high=1.9),
    }


def side(rows, time):
    now = logs(rows, time)
    return {"logprobs": now, "ref_logprobs": near(now, 0.4), "mask": spans(rows, time), "score_end": draw(rows)}


def pairs():
    out = {f"chosen.{k}": v for k, v in side(PAIRS, TIME).items()}
    out.update({f"rejected.{k}": v for k, v in side(PAIRS, SHORT).items()})
    return out


def labelled():
    out = {k: v for k, v in side(BATCH, TIME).items() if k != "score_end"}
    out.update({f"mismatched.{k}": v for k, v in side(BATCH, TIME).items() if k != "score_end"})
    out["label"] = torch.tensor([1, 0, 1, 1, 0, 0.0])
    return out


def chat():
    teacher = torch.round(torch.log_softmax(draw(BATCH, TIME, VOCAB, low=-2, high=2), -1) * 1024) / 1024
    ids = torch.stack([torch.stack([torch.randperm(VOCAB, generator=random)[:K] for _ in range(TIME)]) for _ in range(BATCH)])
    return {
        "logits": draw(BATCH, TIME, VOCAB, low=-2, high=2), "teacher_logits": draw(BATCH, TIME, VOCAB, low=-2, high=2),
        "teacher_ids": ids, "teacher_logprobs": torch.gather(teacher, -1, ids), "logprobs": logs(BATCH, TIME), "mask": spans(BATCH, TIME),
        "scored": torch.cat([torch.zeros(BATCH, 1), torch.ones(BATCH, TIME - 1)], 1),
    }


# ---- policy gradients --------------------------------------------------------------------------------------------------------


def advantages(b, scale, eps):
    out = torch.zeros(PROMPTS * SAMPLES)
    for g in range(PROMPTS):
        rows = [g * SAMPLES + i for i in range(SAMPLES) if b["valid"][g * SAMPLES + i] > 0]
        r = b["reward"][rows]
        if len(rows) == 0 or r.max() == r.min():
            continue
        if scale == "leave_one_out":
            a = torch.stack([r[i] - torch.cat([r[:i], r[i + 1:]]).mean() for i in range(len(rows))])
        else:
            a = r - r.mean()
            if scale != "centred":
                a = a / (r.std(unbiased=scale == "sample_std") + eps)
        out[rows] = a
    return out


def clipped(rho, a, low, high, dual):
    loss = -torch.minimum(rho * a, rho.clamp(1 - low, 1 + high) * a)
    return torch.where(a < 0, torch.minimum(loss, -dual * a), loss) if dual > 0 else loss


def grpo(b, o):
    a = advantages(b, o.get("advantage", "std"), float(o.get("eps", 1e-6)))
    mask = b["mask"].clone()
    if not o.get("keep_truncated", True):
        mask[b["truncated"] > 0] = 0
    if not o.get("keep_constant", True):
        mask[a == 0] = 0
    rho = (b["logprobs"] - b["old_logprobs"]).exp()
    loss = clipped(rho, a[:, None], float(o.get("clip_low", 0.2)), float(o.get("clip_high", 0.28)), float(o.get("dual_clip", 0)))
    if float(o.get("sampler_cap", 0)) > 0:
        loss = loss * (b["old_logprobs"] - b["sampler_logprobs"]).exp().clamp(max=float(o["sampler_cap"]))
    if float(o.get("kl", 0)) > 0:
        d = b["logprobs"] - b["ref_logprobs"]
        loss = loss + float(o["kl"]) * (d * d / 2 if o.get("kl_kind") == "k2" else (-d).exp() - 1 + d)
    rows = [r for r in range(mask.shape[0]) if mask[r].sum() > 0]
    per = o.get("per", "token")
    if per == "token":
        return (loss * mask).sum() / mask.sum()
    if per == "sequence":
        return torch.stack([(loss[r] * mask[r]).sum() / mask[r].sum() for r in rows]).mean()
    return torch.stack([(loss[r] * mask[r]).sum() / float(o.get("length", 1024)) for r in rows]).mean()


def gspo(b, o):
    a = advantages(b, "std", 1e-6)
    mask, d = b["mask"], b["logprobs"] - b["old_logprobs"]
    s = ((d * mask).sum(1) / mask.sum(1)).exp()
    return clipped(s, a, float(o.get("clip_low", 3e-4)), float(o.get("clip_high", 4e-4)), 0).mean()


def ppo(b, o):
    kl, gamma, lam = 0.05, 1.0, 0.95
    rows, time = b["mask"].shape
    a, returns = torch.zeros(rows, time), torch.zeros(rows, time)
    value = b["value"].detach()
    for r in range(rows):
        at = [t for t in range(time) if b["mask"][r, t] > 0]
        ahead, after = 0.0, 0.0
        for i in reversed(range(len(at))):
            t = at[i]
            reward = -kl * (b["old_logprobs"][r, t] - b["ref_logprobs"][r, t]) + (b["reward"][r] if i == len(at) - 1 else 0)
            ahead = reward + gamma * after - value[r, t] + gamma * lam * ahead
            after = value[r, t]
            a[r, t], returns[r, t] = ahead, ahead + value[r, t]
    mask = b["mask"]
    mean = (a * mask).sum() / mask.sum()
    variance = ((a - mean) ** 2 * mask).sum() / (mask.sum() - 1)
    a = (a - mean) / (variance + 1e-8).sqrt()
    rho = (b["logprobs"] - b["old_logprobs"]).exp()
    policy = (clipped(rho, a, 0.2, 0.2, 0) * mask).sum() / mask.sum()
    held = value + (b["value"] - value).clamp(-0.2, 0.2)
    miss = torch.maximum((b["value"] - returns) ** 2, (held - returns) ** 2) / 2
    loss = policy + 0.1 * (miss * mask).sum() / mask.sum()
    return loss - float(o.get("entropy_weight", 0)) * (b["entropy"] * mask).sum() / mask.sum()


# ---- preferences -------------------------------------------------------------------------------------------------------------


def sums(b, name, field="logprobs"):
    return (b[f"{name}.{field}"] * b[f"{name}.mask"]).sum(1), b[f"{name}.mask"].sum(1)


def gains(b, mean=False):
    out = []
    for name in ("chosen", "rejected"):
        now, count = sums(b, name)
        before, _ = sums(b, name, "ref_logprobs")
        out.append((now - before) / count if mean else now - before)
    return out


def dpo(b, o):
    beta, e = float(o.get("beta", 0.1)), float(o.get("label_smoothing", 0))
    chosen, rejected = gains(b, o.get("length_normalised", False))
    d = beta * (chosen - rejected)
    if o.get("form") == "hinge":
        return torch.relu(1 - d).mean()
    right, wrong = -torch.nn.functional.logsigmoid(d), -torch.nn.functional.logsigmoid(-d)
    if o.get("form") == "robust":
        return (((1 - e) * right - e * wrong) / (1 - 2 * e)).mean()
    return ((1 - e) * right + e * wrong).mean()


def ipo(b, o):
    chosen, rejected = gains(b, o.get("per_token", True))
    return ((chosen - rejected - 1 / (2 * 0.1)) ** 2).mean()


def simpo(b, o):
    (c, nc), (r, nr) = sums(b, "chosen"), sums(b, "rejected")
    return -torch.nn.functional.logsigmoid(2 * (c / nc - r / nr) - 1).mean()


def orpo(b, o):
    (c, nc), (r, nr) = sums(b, "chosen"), sums(b, "rejected")
    odds = [x - torch.log(1 - torch.exp(x)) for x in (c / nc, r / nr)]
    return -c.sum() / nc.sum() - 0.1 * torch.nn.functional.logsigmoid(odds[0] - odds[1]).mean()


def reward_model(b, o):
    c, r = b["chosen.score_end"], b["rejected.score_end"]
    loss = -torch.nn.functional.logsigmoid(c - r).mean()
    return loss + float(o.get("centre", 0)) * ((c + r) ** 2).mean()


def kto(b, o):
    beta = 0.1
    gain = ((b["logprobs"] - b["ref_logprobs"]) * b["mask"]).sum(1)
    zero = ((b["mismatched.logprobs"] - b["mismatched.ref_logprobs"]) * b["mismatched.mask"]).sum(1).mean().clamp(min=0).detach()
    good = float(o.get("good_weight", 1))
    return torch.where(b["label"] > 0, good * (1 - torch.sigmoid(beta * (gain - zero))), 1 - torch.sigmoid(beta * (zero - gain))).mean()


# ---- given text ----------------------------------------------------------------------------------------------------------------


def masked(x, mask):
    return (x * mask).sum() / mask.sum()


def chat_sft(b, o):
    weight = b["mask"] + float(o.get("prompt_weight", 0)) * (b["mask"] == 0) * b["scored"]
    if o.get("per") == "example":
        return ((-b["logprobs"] * weight).sum(1) / weight.sum(1)).mean()
    return masked(-b["logprobs"], weight)


def dft(b, o):
    return masked(-b["logprobs"].exp().detach() * b["logprobs"], b["mask"])


def distill(b, o):
    tau = float(o.get("temperature", 1))
    s = torch.log_softmax(b["logits"] / tau, -1)
    if o.get("teacher", "full") == "full":
        t = torch.log_softmax(b["teacher_logits"] / tau, -1)
    else:
        t, s = b["teacher_logprobs"], torch.gather(s, -1, b["teacher_ids"])
        tail = o.get("tail", "bucket")
        if tail == "renormalise":
            t, s = torch.log_softmax(t, -1), torch.log_softmax(s, -1)
        elif tail == "bucket":
            t, s = (torch.cat([x, torch.log(1 - x.exp().sum(-1, keepdim=True))], -1) for x in (t, s))
    direction = o.get("direction", "forward")
    if direction == "forward":
        kl = (t.exp() * (t - s)).sum(-1)
    elif direction == "reverse":
        kl = (s.exp() * (s - t)).sum(-1)
    else:
        m = torch.log(0.5 * t.exp() + 0.5 * s.exp())
        kl = 0.5 * (t.exp() * (t - m)).sum(-1) + 0.5 * (s.exp() * (s - m)).sum(-1)
    return masked(kl, b["mask"])


CASES = [
    ("rollouts", grpo, {}), ("rollouts", grpo, {"per": "sequence", "kl": "0.04", "clip_high": "0.2"}),
    ("rollouts", grpo, {"per": "constant", "length": 8, "advantage": "centred"}),
    ("rollouts", grpo, {"per": "constant", "length": 8, "advantage": "centred", "kl": "0.1", "kl_kind": "k2", "keep_truncated": False}),
    ("rollouts", grpo, {"advantage": "sample_std", "eps": "0.0001", "sampler_cap": 2, "keep_constant": False}),
    ("rollouts", grpo, {"advantage": "leave_one_out", "dual_clip": "1.5", "per": "sequence", "keep_truncated": False}),
    ("rollouts", gspo, {}), ("rollouts", gspo, {"clip_low": "0.2", "clip_high": "0.28"}),
    ("rollouts", ppo, {}), ("rollouts", ppo, {"entropy_weight": "0.01"}),
    ("pairs", dpo, {}), ("pairs", dpo, {"label_smoothing": "0.1"}), ("pairs", dpo, {"form": "robust", "label_smoothing": "0.1"}),
    ("pairs", dpo, {"form": "hinge"}), ("pairs", dpo, {"length_normalised": True, "beta": 5}), ("pairs", ipo, {}), ("pairs", ipo, {"per_token": False}),
    ("pairs", simpo, {}), ("pairs", orpo, {}), ("pairs", reward_model, {}), ("pairs", reward_model, {"centre": "0.01"}),
    ("labelled", kto, {}), ("labelled", kto, {"good_weight": "1.33"}),
    ("chat", chat_sft, {}), ("chat", chat_sft, {"per": "example"}), ("chat", chat_sft, {"prompt_weight": "0.3"}), ("chat", dft, {}),
    ("chat", distill, {}), ("chat", distill, {"direction": "reverse"}), ("chat", distill, {"direction": "jsd"}), ("chat", distill, {"temperature": 2}),
    ("chat", distill, {"teacher": "topk"}), ("chat", distill, {"teacher": "topk", "tail": "drop"}),
    ("chat", distill, {"teacher": "topk", "tail": "renormalise", "direction": "reverse"}),
]
TRAINED = {"logprobs", "chosen.logprobs", "rejected.logprobs", "chosen.score_end", "rejected.score_end", "value", "entropy", "logits"}
SIZES = {
    "rollouts": {"batch": PROMPTS * SAMPLES, "prompt": PROMPTS, "sample": SAMPLES, "time": TIME},
    "pairs": {"batch": PAIRS, "pair": PAIRS, "time": TIME, "rejected_time": SHORT}, "labelled": {"batch": BATCH, "time": TIME},
    "chat": {"batch": BATCH, "time": TIME, "vocab": VOCAB, "k": K},
}


def written(x):
    return [float(f"{v:.9g}") for v in x.flatten().tolist()]


def main():
    inputs = {"rollouts": rollouts(), "pairs": pairs(), "labelled": labelled(), "chat": chat()}
    cases = []
    for kind, objective, options in CASES:
        b = {k: v.clone().requires_grad_(k in TRAINED) for k, v in inputs[kind].items()}
        loss = objective(b, options)
        loss.backward()
        gradients = {f"b.{k}": written(v.grad) for k, v in b.items() if v.grad is not None and bool((v.grad != 0).any())}
        cases.append({"script": objective.__name__, "options": options, "inputs": kind, "loss": float(f"{loss.item():.12g}"), "gradients": gradients})
    golden = {"sizes": SIZES, "inputs": {kind: {f"b.{k}": v.flatten().tolist() for k, v in b.items()} for kind, b in inputs.items()}, "cases": cases}
    with open(sys.argv[1], "w") as out:
        out.write('{"sizes": ' + json.dumps(golden["sizes"]) + ',\n"inputs": ' + json.dumps(golden["inputs"], separators=(",", ":")) + ',\n"cases": [\n')
        out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")


main()
