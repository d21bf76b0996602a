"""Models of images and of time series under their objectives, by PyTorch in binary64: tests/golden/modalities.json. Run by hand: needs torch
and transformers (tests need none of it).

    python3 tools/oracle/modalities.py

The vision transformer is transformers'; the patch series model is written here from its definition (scripts/models/patch_series.lua is
another). Weights and batches come from the integer hash of tools/oracle/models.py. Told are the patch model's forecast and gradients, as
in tests/golden/models.json, and losses and norms of twenty steps of gradient descent of both: cross-entropy with label smoothing, and the
pinball loss of three quantiles on what is observed of the horizon. The norm of the gradient is held at 1.
"""
import json
import math
import os

import torch
import transformers as T
from models import fill, golden, weight, word

STEPS, ROWS, RATE, CLIP, SMOOTHING, LEVELS = 20, 3, 0.05, 1.0, 0.1, (0.1, 0.5, 0.9)
SERIES = dict(architectures=["RondoPatchSeries"], hidden_size=16, intermediate_size=12, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=100.0, patch=3, horizon=4, quantiles=3)
TIME = 15  # five patches


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + SERIES["rms_norm_eps"]) * self.weight


class Attention(torch.nn.Module):
    def __init__(self, size, heads, kv):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, size // heads
        self.q, self.o = torch.nn.Linear(size, size, bias=False), torch.nn.Linear(size, size, bias=False)
        self.k, self.v = (torch.nn.Linear(size, kv * self.dim, bias=False) for _ in range(2))

    def rotated(self, x):  # [row head patch dim]
        half = self.dim // 2
        angle = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * SERIES["rope_theta"] ** (-torch.arange(half, dtype=x.dtype) / half)[None, :]
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)

    def forward(self, h):
        rows, patches, _ = h.shape
        q, k, v = (f(h).view(rows, patches, -1, self.dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = self.rotated(q), self.rotated(k).repeat_interleave(self.heads // self.kv, 1)
        score = q @ k.transpose(-1, -2) / math.sqrt(self.dim) + torch.full((patches, patches), -math.inf, dtype=h.dtype).triu(1)
        y = score.softmax(-1) @ v.repeat_interleave(self.heads // self.kv, 1)
        return self.o(y.transpose(1, 2).reshape(rows, patches, -1))


class Gated(torch.nn.Module):
    def __init__(self, size, wide):
        super().__init__()
        self.gate_proj, self.up_proj = torch.nn.Linear(size, wide, bias=False), torch.nn.Linear(size, wide, bias=False)
        self.down_proj = torch.nn.Linear(wide, size, bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention_norm, self.mlp_norm = Norm(c["hidden_size"]), Norm(c["hidden_size"])
        self.attention = Attention(c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"])
        self.mlp = Gated(c["hidden_size"], c["intermediate_size"])

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class PatchSeries(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = torch.nn.ModuleDict({"patch": torch.nn.Linear(2 * c["patch"], c["hidden_size"])})
        self.layers = torch.nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"])
        self.forecast = torch.nn.Linear(c["hidden_size"], c["horizon"] * c["quantiles"])

    def forward(self, series, observed):  # [row time] -> [row horizon quantile]
        count = observed.sum(1, keepdim=True)
        mean = (series * observed).sum(1, keepdim=True) / count
        spread = (((series - mean) ** 2 * observed).sum(1, keepdim=True) / count).sqrt().clamp(min=1e-6)
        x = torch.where(observed > 0, (series - mean) / spread, 0.0)
        patches = torch.cat((x.view(len(x), -1, self.c["patch"]), observed.view(len(x), -1, self.c["patch"])), -1)
        h = self.embed["patch"](patches)
        for layer in self.layers:
            h = layer(h)
        raw = self.forecast(self.norm(h)[:, -1])
        return (raw * spread + mean).view(len(x), self.c["horizon"], self.c["quantiles"])


def past(name, step, rows):
    observed = torch.tensor([float((i + step) % 5 != 3) for i in range(rows * TIME)]).view(rows, TIME)
    return weight(name, (rows, TIME), 2.0), observed


def series_loss(model, step):
    series, observed = past(f"series.{step}", step, ROWS)
    seen = torch.tensor([float((i + step) % 4 != 1) for i in range(ROWS * SERIES["horizon"])]).view(ROWS, -1, 1).double()
    miss = weight(f"target.{step}", (ROWS, SERIES["horizon"], 1), 2.0).double() - model(series.double(), observed.double())
    level = torch.tensor(LEVELS, dtype=torch.float64)
    return (torch.maximum(level * miss, (level - 1) * miss) * seen).sum() / (seen.sum() * len(LEVELS))


def image_loss(model, step):
    labels = torch.tensor([word("label", step * ROWS + row) * model.config.num_labels >> 24 for row in range(ROWS)])
    logits = model(pixel_values=weight(f"image.{step}", (ROWS, 3, 8, 8), 2.0).double()).logits
    return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING)


def descend(model, loss_of):
    told = []
    for step in range(STEPS):
        model.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters())).item()
        with torch.no_grad():
            for p in model.parameters():
                p -= RATE * CLIP / max(norm, CLIP) * p.grad
        told.append({"loss": float(f"{loss.item():.9g}"), "norm": float(f"{norm:.9g}")})
    return told


def series_model():
    model = PatchSeries(SERIES)
    fill(model)
    return model


def vision_model():
    config = T.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=12, image_size=8, patch_size=4,
                         num_channels=3, num_labels=5, layer_norm_eps=1e-12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = T.ViTForImageClassification(config).eval()
    fill(model)
    said = json.loads(config.to_json_string())
    said = {k: said[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "image_size", "patch_size",
                                 "num_channels", "layer_norm_eps", "hidden_act", "qkv_bias", "hidden_dropout_prob")}
    return model, {**said, "num_labels": 5, "architectures": ["ViTForImageClassification"]}


if __name__ == "__main__":
    series = series_model()
    first = golden("patch series", "patch_series", SERIES, {"series": TIME}, series(*past("series", 0, 1))[0], series)
    vision, said = vision_model()
    told = {"forecast": first, "vision": {"script": "vit", "objective": "classify", "config": said, "steps": descend(vision.double(), image_loss)},
            "series": {"script": "patch_series", "objective": "forecast", "config": SERIES, "steps": descend(series_model().double(), series_loss)}}
    path = os.path.join(os.path.dirname(__file__), "../../tests/golden/modalities.json")
    with open(path, "w") as out:
        out.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in told.items()) + "\n}\n")
    print(path, "transformers", T.__version__, "torch", torch.__version__)
