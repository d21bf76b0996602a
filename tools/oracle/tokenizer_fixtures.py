#!/usr/bin/env python3
"""Every case of ../shared/fixtures/tokenizer whose vocabulary is there, through `rondo tokenize`; needs nothing but Python.

    python3 tools/oracle/tokenizer_fixtures.py [--models FOLDER] [--rondo build/rondo]

    llama.cpp     its .inp and .out files: of the GGUF vocabularies beside them, and of llama-bpe and qwen2 with FOLDER
    iree, swift   their golden ids, of ranks, of GPT-2, and of the tokenizer.json files FOLDER/NAME (tools/oracle/run.sh gets them)
    split-regex   the pieces of each pattern: as a tokenizer of the WordLevel model whose entries are the pieces
                  (FOLDER/llama2 is the file of Mistral 7B Instruct v0.2, whatever its package is called.)
    tiny          the two files load

Prints the counts; exit status 1 if a case differs. A pattern that is refused by name is counted apart.
"""
import argparse, gzip, json, os, subprocess, sys, tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FIXTURES = os.path.join(os.environ.get("RONDO_FIXTURES", os.path.join(ROOT, "..", "shared", "fixtures")), "tokenizer")
GPT2 = FIXTURES + "/llama.cpp/ggml-vocab-gpt-2.gguf"
RANKS = FIXTURES + "/ranks/%s_base.tiktoken"
IREE = {"gpt2": GPT2, "distilbert/distilgpt2": GPT2, "tiktoken/cl100k_base": RANKS % "cl100k", "tiktoken/r50k_base": RANKS % "r50k", "tiktoken/o200k_base": "gptoss",
        "Qwen/Qwen2-7B": "qwen3", "Qwen/Qwen2.5-7B": "qwen3", "Qwen/Qwen3-0.6B": "qwen3", "deepseek-ai/DeepSeek-V3": "deepseek_v3", "unsloth/gemma-3-1b-it": "gemma3",
        "mistralai/Mistral-7B-Instruct-v0.2": "llama2", "NousResearch/Meta-Llama-3.1-8B": "llama3_1"}
SWIFT = {"swift_gpt2_encoded_tokens": GPT2, "swift_llama_3.2_encoded": "llama3_1"}


class Fixtures:
    def __init__(self, o):
        self.o, self.bad = o, 0

    def path(self, name):
        """A file, or a model of the folder; None if it is not there."""
        path = name if "/" in name else os.path.join(self.o.models, name, "tokenizer.json") if self.o.models else ""
        return path if os.path.exists(path) else None

    def run(self, path, texts, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.write("".join(json.dumps(x) + "\n" for x in texts))
            f.flush()
            done = subprocess.run([self.o.rondo, "tokenize", "--tokenizer", path, "--file", f.name, "--lines", *options], capture_output=True, text=True)
        return (done.returncode, done.stderr.strip()) if done.returncode else [[int(i) for i in line.split()] for line in done.stdout.split("\n")[:-1]]

    def check(self, what, path, texts, want, *options):
        got = self.run(path, texts, *options)
        if isinstance(got, tuple):
            sys.exit(f"{what}: {got[1]}")
        differ = [(x, g, w) for x, g, w in zip(texts, got, want, strict=True) if g != w]
        for x, g, w in differ[:2]:
            print(f"{what}: {x!r}\n  rondo    {g}\n  expected {w}")
        self.bad += len(differ)
        return len(texts), len(differ)

    def line(self, what, counts, note=""):
        print(f"{what:12} {sum(n for n, _ in counts):5} cases of {len(counts)} tokenizers, {sum(d for _, d in counts)} differ{note}", flush=True)

    def llama_cpp(self):
        counts = []
        for name, model in {"gpt-2": None, "phi-3": None, "starcoder": None, "llama-bpe": "llama3_1", "qwen2": "qwen3"}.items():
            base = f"{FIXTURES}/llama.cpp/ggml-vocab-{name}.gguf"
            path = self.path(model or base)
            if path:
                with open(base + ".inp", newline="") as f, open(base + ".out") as g:
                    texts, want = f.read().split("\n__ggml_vocab_test__\n"), [[int(i) for i in line.split()] for line in g.read().split("\n")]
                counts.append(self.check(f"llama.cpp {name}", path, texts, want[:len(texts)], "--no-special"))
        self.line("llama.cpp", counts)

    def iree(self):
        with open(FIXTURES + "/golden/iree_tokenizer_corpus.json") as f:
            models, counts = json.load(f)["models"], []
        for name, model in IREE.items():
            for special in (True, False) if self.path(model) and name in models else ():
                cases = [c for c in models[name]["tests"] if (c.get("add_special_tokens", True) and "tiktoken" not in name) == special]
                counts.append(self.check(f"iree {name}", self.path(model), [c["input"] for c in cases], [c["golden_ids"] for c in cases], "--parse-special",
                                         *([] if special else ["--no-special"])))
        self.line("iree", [c for c in counts if c[0]])

    def swift(self):
        counts = []
        for name, model in SWIFT.items():
            if self.path(model):
                with open(f"{FIXTURES}/golden/{name}.json") as f:
                    case = json.load(f)
                counts.append(self.check(name, self.path(model), [case["text"]], [case["token_ids"]], "--parse-special"))
        self.line("swift", counts)

    def split_regex(self):
        with open(FIXTURES + "/split-regex/splitRegexPatterns.json") as f, gzip.open(FIXTURES + "/split-regex/splitRegexOracle.json.gz") as g:
            file, oracle = json.load(f), json.load(g)["tokens"]
        patterns, default = {p["id"]: p["pattern"] for p in file["patterns"]}, file["defaults"]
        cases = [(p["id"], p["pattern"], p) for p in file["patterns"]] + [(a["name"], patterns[a["patternId"]], a) for a in file["additionalCases"]]
        counts, refused = [], []
        for name, pattern, case in (c for c in cases if c[0] in oracle):
            texts, pieces = case.get("inputs", default["inputs"]), oracle[name]
            vocabulary = {x: i for i, x in enumerate(dict.fromkeys(x for p in pieces for x in p if "\0" not in x))}  # no names with it in our JSON
            step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": case.get("behavior", default["behavior"]), "invert": case.get("invert", default["invert"])}
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                json.dump({"model": {"type": "WordLevel", "vocab": {**vocabulary, "\ufdd0": len(vocabulary)}, "unk_token": "\ufdd0"}, "pre_tokenizer": step}, f)
                f.flush()
                got = self.run(f.name, texts[:1])
                if isinstance(got, tuple):
                    refused.append((name, got[1]))
                else:
                    counts.append(self.check(f"split-regex {name}", f.name, texts, [[vocabulary.get(x, len(vocabulary)) for x in p] for p in pieces]))
        for name, why in refused:
            print(f"split-regex {name}: refused: {why.split(': ', 1)[-1]}")
        self.line("split-regex", counts, f"; {len(refused)} patterns refused by name")

    def tiny(self):
        files = [f"{FIXTURES}/tiny/bpe_bytelevel_{name}.json" for name in ("minimal", "unicode")]
        loaded = [self.run(f, ["hello"]) for f in files]
        print(f"tiny         {sum(isinstance(x, list) for x in loaded)} of {len(files)} load", *(x[1] for x in loaded if isinstance(x, tuple)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="")
    parser.add_argument("--rondo", default=os.path.join(ROOT, "build", "rondo"))
    f = Fixtures(parser.parse_args())
    for part in f.llama_cpp, f.iree, f.swift, f.split_regex, f.tiny:
        part()
    sys.exit(1 if f.bad else 0)


if __name__ == "__main__":
    main()
