"""An adapter with whole modules beside its factors, as PEFT writes it over the small llama of tests/fixture/fixture.c: tests/golden/peft_whole,
with the log-probabilities that PyTorch gives under it. Run by hand: needs torch, transformers and peft (tests need none of them).

    python3 tools/oracle/peft_whole.py
"""
import json
import os
import shutil

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

import trajectory as t

FOLDER = os.path.join(os.path.dirname(__file__), "../../tests/golden/peft_whole")


def main():
    torch.manual_seed(7)
    config = LlamaConfig(vocab_size=t.VOCAB, hidden_size=t.EMBED, intermediate_size=t.FFN, num_hidden_layers=t.LAYERS, num_attention_heads=t.HEADS,
                         num_key_value_heads=t.KV, head_dim=t.DIM, rms_norm_eps=t.EPS, rope_theta=t.THETA, tie_word_embeddings=False)
    model = LlamaForCausalLM(config)
    model.load_state_dict({name: w.float() for name, w in t.make_weights().items()})
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=3, target_modules=["q_proj", "down_proj"],
                                             modules_to_save=["lm_head", "embed_tokens", "model.norm", "1.post_attention_layernorm", "0.mlp.up_proj"])).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.requires_grad:
                values.add_(torch.randn_like(values) * 0.1)
        ids, mask = t.batch(0)
        logprobs = model(ids).logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    shutil.rmtree(FOLDER, ignore_errors=True)
    model.save_pretrained(FOLDER)
    os.remove(FOLDER + "/README.md")
    with open(FOLDER + "/logprobs.json", "w") as out:  # of the tokens that are scored, row by row
        json.dump([[value.item() for value, weight in zip(row, weights[1:]) if weight > 0] for row, weights in zip(logprobs, mask)], out)
        out.write("\n")


if __name__ == "__main__":
    main()
