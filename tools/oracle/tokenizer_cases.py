#!/usr/bin/env python3
"""Writes tests/golden/text/: tokens.json, files and the ids that Hugging Face tokenizers (0.22.2) gives; steps.json, small files
that need each kind of step, with ids and decoded texts; bpe.model and unigram.model with the ids of sentencepiece (0.2.3).

    python3 tools/oracle/tokenizer_cases.py
"""
import io, json, os, random, tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

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


WORDS = ["the", "weather", " in", "Paris", "12", "7", "3.5", '{"a": 1}', "\n", "  ", "don't", "I'LL", "\u00fcn\u00ef", "\u6f22\u5b57", "\U0001f600", "_x_", "\t", "GPU", " Hello",
         "\u017f", "'re", "\u2026", "\u201cq\u201d", "\r\n", "\u00a0", "\u3000", "e\u0301", "\u0301", "\u0915\u094d\u0937", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u2167", "\u00bd", "\u00b2",
         "\ufb01", "\u0130", "a\u030a", "\u0344", "\uff8a\uff9e", "\u2014", "\u2581", "\u200d", "\ufeff", "<0x0A>", "</s>", "<unk>", "<tool>", "\U0001d518", "!!!", "'", "\u2028", "\u0085",
         "\ufdfa", "\u1abf", "\u08d3", "\u2e54", "\uff21"]
ADDED = [AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False), AddedToken("Paris", single_word=True, normalized=False),
         AddedToken("GPU", normalized=True, lstrip=True)]


def odd_texts(seed, count):
    r = random.Random(seed)
    return ["".join(r.choice(WORDS) + r.choice(["", " ", "", "  "]) for _ in range(r.randrange(0, 16))) for _ in range(count)]


def step_case(t):
    out = []
    for i, x in enumerate(odd_texts(4, 24)):
        ids = t.encode(x, add_special_tokens=i % 2 == 0).ids
        out.append([x, ids, t.decode(ids, skip_special_tokens=False)])
    return {"tokenizer": json.loads(t.to_str()), "cases": out}


def stepped(normalizer, pre, decoder, byte_level=False, **model):
    t = Tokenizer(models.BPE(**model) if byte_level else models.BPE(unk_token="<unk>", **model))
    for name, step in ("normalizer", normalizer), ("pre_tokenizer", pre), ("decoder", decoder):
        if step:
            setattr(t, name, step)
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] * bool(model.get("byte_fallback"))
    t.train_from_iterator(odd_texts(3, 300), trainers.BpeTrainer(vocab_size=len(special) + 150, limit_alphabet=90, special_tokens=special, show_progress=False))
    t.add_tokens(ADDED)
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return step_case(t)


def sentencepiece_files(folder):
    """The two small models and the map of characters of a few rules."""
    with tempfile.TemporaryDirectory() as d:
        rules = os.path.join(d, "rules.tsv")
        with open(rules, "w") as f:
            for a, b in ("FB01", "66 69"), ("65 301", "E9"), ("FF21", "41"), ("A0", "20"), ("3000", "20"), ("9", "20"), ("AD", ""), ("200D", ""):
                f.write(f"{a}\t{b}\n")
        for kind, options in ("unigram", {"normalization_rule_tsv": rules, "vocab_size": 150}), \
                             ("bpe", {"normalization_rule_name": "identity", "byte_fallback": True, "remove_extra_whitespaces": False, "vocab_size": 420}):
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(x.replace("\0", "") for x in odd_texts(3, 300)), model_writer=model, model_type=kind,
                                                     character_coverage=0.98, hard_vocab_limit=False, minloglevel=2, **options)
            with open(os.path.join(folder, kind + ".model"), "wb") as f:
                f.write(model.getvalue())
            p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
            yield {"path": f"tests/golden/text/{kind}.model", "cases": [[x, p.encode(x), p.decode(p.encode(x))] for x in odd_texts(5, 40)]}, p


def charsmap_of(model):
    """Field 2 of field 3 of the protocol buffer."""
    def fields(b):
        i = 0
        def number():
            nonlocal i
            n = shift = 0
            while True:
                c = b[i]; i += 1; n |= (c & 127) << shift; shift += 7
                if c < 128:
                    return n
        while i < len(b):
            key = number()
            size = {0: None, 1: 8, 2: -1, 5: 4}[key & 7]
            if size is None:
                yield key >> 3, number()
                continue
            size = number() if size < 0 else size
            yield key >> 3, b[i:i + size]
            i += size
    return dict(fields(dict(fields(model))[3]))[2]


def unigram_file(p, folder):
    with open(os.path.join(folder, "unigram.model"), "rb") as f:
        charsmap = charsmap_of(f.read())
    t = Tokenizer(models.Unigram([(p.id_to_piece(i), p.get_score(i)) for i in range(p.get_piece_size())], p.unk_id()))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    return step_case(t)


def wordpiece_file(**bert):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(**bert), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    t.train_from_iterator(odd_texts(3, 300), trainers.WordPieceTrainer(vocab_size=200, limit_alphabet=90, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return step_case(t)


def affixed(pre, decoder, alphabet=(), **affixes):
    """BPE whose tokens tell by their text where in a word they stand."""
    t = Tokenizer(models.BPE(unk_token="<unk>", **affixes))
    t.pre_tokenizer, t.decoder = pre, decoder
    t.train_from_iterator(odd_texts(3, 300), trainers.BpeTrainer(vocab_size=700 if alphabet else 400, limit_alphabet=600 if alphabet else 90, initial_alphabet=list(alphabet),
                                                                special_tokens=["<unk>", "<s>", "</s>"], show_progress=False, **affixes))
    t.add_tokens(ADDED)
    return step_case(t)


def wordlevel_file():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer, t.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    t.train_from_iterator(odd_texts(3, 60), trainers.WordLevelTrainer(vocab_size=120, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False))
    t.add_tokens(ADDED)
    return step_case(t)


def later_steps():
    p, d = pre_tokenizers, decoders
    yield affixed(p.Sequence([p.WhitespaceSplit(), p.Punctuation()]), d.BPEDecoder("</w>"), end_of_word_suffix="</w>")
    yield affixed(p.ByteLevel(add_prefix_space=False), d.ByteLevel(), p.ByteLevel.alphabet(), end_of_word_suffix="</w>")
    yield affixed(p.Whitespace(), d.WordPiece(prefix="##", cleanup=False), continuing_subword_prefix="##")
    yield affixed(p.Whitespace(), None, continuing_subword_prefix="@@", end_of_word_suffix="</w>")
    yield wordlevel_file()


def steps(folder):
    n, p, d = normalizers, pre_tokenizers, decoders
    llama = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    o200k = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    byte = lambda **k: p.ByteLevel(**{"add_prefix_space": False, **k})
    yield stepped(n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()]), p.Whitespace(), None)
    yield stepped(n.Sequence([n.NFKD(), n.Strip()]), p.Sequence([p.WhitespaceSplit(), p.Punctuation(), p.Digits(True)]), None, fuse_unk=True)
    yield stepped(n.NFKC(), p.Metaspace(prepend_scheme="first"), d.Metaspace(prepend_scheme="first"), byte_fallback=True)
    yield stepped(None, p.Sequence([p.Punctuation("contiguous"), p.Metaspace(prepend_scheme="always")]), d.Metaspace(prepend_scheme="always"), byte_fallback=True)
    yield stepped(n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")]), None, llama, byte_fallback=True, fuse_unk=True)
    yield stepped(n.Replace(Regex("[aeiou]+"), "_V_"), p.Split(" ", "merged_with_previous"), d.Fuse())
    yield stepped(None, p.Sequence([p.Split(Regex(r"\s+"), "merged_with_next"), p.Punctuation("removed")]), None)
    yield stepped(None, p.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True), None)
    yield stepped(None, p.Sequence([p.CharDelimiterSplit("e"), p.Split(Regex(r"[\p{P}\d]"), "contiguous")]), d.Fuse())
    yield stepped(None, p.ByteLevel(add_prefix_space=True), d.ByteLevel(), byte_level=True)
    yield stepped(n.NFC(), p.Sequence([p.Punctuation("contiguous"), byte(), p.Digits(False), p.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), d.ByteLevel(), byte_level=True)
    yield stepped(None, p.Sequence([p.Split(Regex(o200k), "isolated"), byte(use_regex=False)]), d.ByteLevel(), byte_level=True, ignore_merges=True)
    yield wordpiece_file()
    yield wordpiece_file(lowercase=False, strip_accents=False)
    for case, processor in sentencepiece_files(folder):
        yield case
        if case["path"].endswith("unigram.model"):
            yield unigram_file(processor, folder)
    yield from later_steps()


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
    with open(os.path.join(ROOT, "tests", "golden", "text", "steps.json"), "w") as f:
        json.dump(list(steps(os.path.join(ROOT, "tests", "golden", "text"))), f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
