#!/usr/bin/env python3
"""Writes tests/golden/text/tokens.json with Hugging Face tokenizers (0.23): files and the ids they give.

    python3 tools/oracle/tokenizer_cases.py
"""
import json, os, random

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, decoders, trainers

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
GPT2_TEXT = ["Hello world", "don't we'll I'VE it's", "  two  spaces \n\n x\t\ty ", "12345 6,789.01", "ünïcode 漢字テスト 😀👍🏽", "a" * 200, "ab" * 90 + " end",
             "x=1;\n\n\n    y += 2  # comment\r\n", "<|endoftext|>a<|im_start|>user\nhi<|im_end|>", "", " ", "\n", "\u00a0nbsp\u2003em", "e\u0301 combining", "\u200d\u0000\u0001",
             "Привет мир", "שלום عالم", "३४५ Ⅷ ½ ²", "'s's'S 'tis", "!!!???...", "\u1680x\u3000y"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def texts(seed):
    r = random.Random(seed)
    words = ["the", "weather", "in", "Paris", "12", "7", "3.5", '{"a": 1}', "\n", "  ", "don't", "ünï", "漢字", "😀", "<|im_end|>", "_x_", "\t", "GPU"]
    return ["".join(r.choice(words) + r.choice(["", " ", " "]) for _ in range(r.randrange(1, 30))) for _ in range(30)]


def trained(pre, extra):
    t = Tokenizer(models.BPE(**extra))
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    alphabet = [] if extra.get("unk_token") or extra.get("_few") else pre_tokenizers.ByteLevel.alphabet()
    special = SPECIAL + ([extra["unk_token"]] if extra.get("unk_token") else [])
    t.train_from_iterator([x for x in GPT2_TEXT if "漢" not in x or not extra] + texts(1),
                          trainers.BpeTrainer(vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    return t


def case(t):
    return [[x, t.encode(x, add_special_tokens=False).ids] for x in GPT2_TEXT + texts(2)]


def main():
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = lambda p: pre_tokenizers.Split(Regex(p), "isolated")
    llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte])
    pocket = os.path.join(ROOT, "models", "pocket", "tokenizer.json")
    out = [{"path": "models/pocket/tokenizer.json", "cases": case(Tokenizer.from_file(pocket))}]
    few = trained(digits, {})
    lacking = json.loads(few.to_str())
    for t in [trained(byte, {}), few, trained(pre_tokenizers.Sequence([split(llama3), plain]), {"ignore_merges": True}),
              trained(byte, {"unk_token": "<unk>"}), trained(byte, {"unk_token": "<unk>", "fuse_unk": True})]:
        out.append({"tokenizer": json.loads(t.to_str()), "cases": case(t)})
    # A vocabulary that lacks the tokens of some bytes, and merges that use them.
    gone = [k for k in lacking["model"]["vocab"] if len(k) == 1 and (k in "eĊ" or ord(k) > 0x120)]
    lacking["model"]["vocab"] = {k: v for k, v in lacking["model"]["vocab"].items() if k in SPECIAL or not any(g in k for g in gone)}
    lacking["model"]["merges"] = [m for m in lacking["model"]["merges"] if not any(g in "".join(m) for g in gone)]
    out.append({"tokenizer": lacking, "cases": case(Tokenizer.from_str(json.dumps(lacking)))})
    with open(os.path.join(ROOT, "tests", "golden", "text", "tokens.json"), "w") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


main()
