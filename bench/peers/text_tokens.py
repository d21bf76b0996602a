"""Tokenizers of others on one thread: the peers of `rondo bench tokenize`.

    python3 bench/peers/text_tokens.py --library tokenizers|tiktoken --tokenizer FILE --text FILE

FILE is a tokenizer.json, or ranks of r50k or cl100k; tokenizers gets those of r50k as merges with GPT-2's rule, which is the same. A text that
is not there is made: 10 MB of prose, code and interface texts in many languages that this machine has. tokenizers encodes it by documents of
20,000 characters in one batch without offsets, which is its fastest way; tiktoken encodes it at once. A line on standard input asks for one
pass; its answer is a line of JSON: {"seconds", "cpu", "peak", "tokens"}. The first line out names the version. Ends with its input.
"""
import argparse
import base64
import glob
import json
import os
import random
import resource
import sys
import time

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
SIZE, DOCUMENT = 10_000_000, 20_000
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")


def some_of(patterns, size, chance):
    files = sorted(f for p in patterns for f in glob.glob(p, recursive=True) if os.path.isfile(f))
    chance.shuffle(files)
    while files and size > 0:
        with open(files.pop(), "rb") as f:
            data = f.read(200_000)
        if data[:4] in (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"):  # a catalogue of messages: those in other scripts
            data = b"\n".join(x for x in data.split(b"\0") if x and max(x) > 127)
        text = data.decode("utf8", "ignore")
        size -= len(data)
        yield from (text[i:i + DOCUMENT] for i in range(0, len(text), DOCUMENT))


def make_text(path):
    chance = random.Random(1)
    parts = [*some_of(["/usr/share/perl/**/*.pod", "/usr/share/doc/**/README*", "/usr/share/common-licenses/*", "docs/**/*.md"], 4_500_000, chance),
             *some_of(["/usr/lib/python3*/**/*.py", "/usr/include/**/*.h", "native/**/*.c", "runtime/**/*.c"], 3_500_000, chance),
             *some_of(["/usr/share/locale/*/LC_MESSAGES/*.mo", "/usr/lib/python3*/**/*.mo", "/usr/share/**/*.mo"], 2_500_000, chance)]
    text = ""
    while len(text.encode()) < SIZE:  # on a machine with little text some of it comes again
        chance.shuffle(parts)
        text += "\n".join(parts)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(text.encode()[:SIZE].decode("utf8", "ignore").encode())


def merges_of(ranks):
    """A token's last join is of the two parts that the ranks below its own make of it."""
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [bytes([b]) for b in token]
        while len(parts) > 2:
            joins = [ranks.get(a + b, rank) for a, b in zip(parts, parts[1:])]
            least = min(range(len(joins)), key=joins.__getitem__)
            if joins[least] >= rank:
                break
            parts[least:least + 2] = [parts[least] + parts[least + 1]]
        if len(parts) == 2:
            yield tuple(parts)


def by_tokenizers(path, ranks):
    import tokenizers
    from tokenizers import Tokenizer, models, pre_tokenizers

    if ranks is None:
        t = Tokenizer.from_file(path)
    else:
        upper = [b for b in range(256) if not (0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or 0xae <= b <= 0xff)]
        letter = {b: chr(256 + upper.index(b)) if b in upper else chr(b) for b in range(256)}
        write = lambda token: "".join(letter[b] for b in token)
        t = Tokenizer(models.BPE({write(k): v for k, v in ranks.items()}, [(write(a), write(b)) for a, b in merges_of(ranks)]))
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return "tokenizers " + tokenizers.__version__, lambda text: sum(
        len(e.ids) for e in t.encode_batch_fast([text[i:i + DOCUMENT] for i in range(0, len(text), DOCUMENT)], add_special_tokens=False))


def by_tiktoken(path, ranks):
    import tiktoken

    e = tiktoken.Encoding("ranks", pat_str=R50K if len(ranks) == 50256 else CL100K, mergeable_ranks=ranks, special_tokens={})
    return "tiktoken " + tiktoken.__version__, lambda text: len(e.encode_ordinary(text))


parser = argparse.ArgumentParser()
parser.add_argument("--library", choices=("tokenizers", "tiktoken"), required=True)
parser.add_argument("--tokenizer", required=True)
parser.add_argument("--text", required=True)
o = parser.parse_args()
ranks = None
if not o.tokenizer.endswith(".json"):
    with open(o.tokenizer, "rb") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f if line.strip())}
name, encode = (by_tokenizers if o.library == "tokenizers" else by_tiktoken)(o.tokenizer, ranks)
if not os.path.exists(o.text):
    make_text(o.text)
with open(o.text, newline="") as f:
    text = f.read()
print(json.dumps({"name": name}), flush=True)

for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    count = encode(text)
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "tokens": count,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
