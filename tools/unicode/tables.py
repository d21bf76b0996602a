#!/usr/bin/env python3
"""Writes native/text/unicode_tables.c: what Hugging Face tokenizers takes each code point for.

    pip install unicodedata2==16.0.0 tokenizers==0.23.3
    python3 tools/unicode/tables.py

Categories are Unicode 16's, which that library's regular expressions use; its normal forms know only what Unicode 9 had, so
decompositions and combining classes of later characters are left out. Both are asked of the library here, for every code
point, and a difference stops the script.
"""
import os

import unicodedata2 as ucd
from tokenizers import Regex, normalizers, pre_tokenizers

OUT = os.path.join(os.path.dirname(__file__), "..", "..", "native", "text", "unicode_tables.c")
PAGE = 128
TABLED = 0x32400  # beyond: marks at E0100-E01EF, nothing else
SPACES = {9, 0xb, 0xc, 0x20, 0x85, 0xa0, 0x1680, *range(0x2000, 0x200b), 0x2028, 0x2029, 0x202f, 0x205f, 0x3000}
KINDS = {"Lu": 1, "Ll": 2, "Lt": 3, "Lm": 4, "Lo": 5, "Nd": 7, "Nl": 14, "No": 8, "Pc": 13}
ODD_WORDS = {0xb2, 0xb3, 0xb9, 0xbc, 0xbd, 0xbe, *range(0x24b6, 0x24ea), *range(0x1f130, 0x1f14a), *range(0x1f150, 0x1f16a), *range(0x1f170, 0x1f18a)}
COMPOSES, DECOMPOSES, COMPATIBLE, LOWERS = 0x10, 0x20, 0x40, 0x80
POINTS = [c for c in range(0x110000) if not 0xd800 <= c <= 0xdfff]


def kind(c):
    if c in (10, 13):
        return 12
    if c in SPACES:
        return 11
    g = ucd.category(chr(c))
    return KINDS.get(g) or {"M": 6, "P": 9, "S": 10}.get(g[0], 0)


def check(kinds):
    """The library's regular expressions agree with the categories."""
    for pattern, of in [(r"\p{Lu}", {1}), (r"\p{Ll}", {2}), (r"\p{Lt}", {3}), (r"\p{Lm}", {4}), (r"\p{Lo}", {5}), (r"\p{M}", {6}),
                        (r"\d", {7}), (r"\p{N}", {7, 8, 14}), (r"\p{P}", {9, 13}), (r"\p{S}", {10}), (r"\s", {11, 12}), (r"\p{L}", {1, 2, 3, 4, 5}),
                        (r"\w", {1, 2, 3, 4, 5, 6, 7, 13, 14})]:
        split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        found = {ord(p) for p, _ in split.pre_tokenize_str("".join(map(chr, POINTS)))}
        differ = found ^ {c for c in POINTS if kinds[c] in of or (pattern == r"\w" and c in ODD_WORDS)}
        if differ:
            raise SystemExit(f"{pattern}: {len(differ)} differ, {[hex(c) for c in sorted(differ)[:20]]}")


def decompositions(form):
    form = form()
    return {c: text for c in POINTS if not 0xac00 <= c <= 0xd7a3 for text in [form.normalize_str(chr(c))] if text != chr(c)}


def classes(nfd):
    """Combining classes of the characters that the library reorders."""
    out = {}
    for c in POINTS:
        n = ucd.combining(chr(c))
        if not n:
            continue
        text = "\u0345" + chr(c) if n < 240 else chr(c) + "\u0334"
        if c in (0x345, 0x334) or nfd.normalize_str(text) == nfd.normalize_str(text[::-1]):
            out[c] = n
    return out


def compositions(canonical, ccc):
    nfc, out = normalizers.NFC(), []
    for c in canonical:
        parts = ucd.decomposition(chr(c)).split()
        if len(parts) == 2 and nfc.normalize_str(canonical[c]) == chr(c):
            out.append((int(parts[0], 16), int(parts[1], 16), c))
    return sorted(out)


def library_sets():
    """What steps of the library that have tables of their own take: 1 punctuation, 2 accent, 4 BERT's accent, 8 BERT's control,
    16 a digit that is none in Unicode 16 (the language that the library is written in is at 17)."""
    out = {}
    mark = lambda c, bit: out.__setitem__(c, out.get(c, 0) | bit)
    kept = {c for p, _ in pre_tokenizers.Punctuation("removed").pre_tokenize_str("".join(map(chr, POINTS))) for c in map(ord, p)}
    accents, bert = normalizers.StripAccents(), normalizers.BertNormalizer(False, False, True, False)
    clean, digits = normalizers.BertNormalizer(True, False, False, False), pre_tokenizers.Digits(True)
    for c in POINTS:
        number = len(digits.pre_tokenize_str("a" + chr(c))) == 2
        if kind(c) in (7, 8, 14):
            assert number, hex(c)
        elif number:
            mark(c, 16)
        if c not in kept:
            mark(c, 1)
        for bit, step in (2, accents), (4, bert), (8, clean):
            if step.normalize_str(chr(c)) == "":
                mark(c, bit)
    return out


def ranges(of):
    out = []
    for c in sorted(of):
        if out and out[-1][1] == c - 1 and out[-1][2] == of[c]:
            out[-1][1] = c
        else:
            out.append([c, c, of[c]])
    return out


def lines(items, width=126):
    out, row = [], "    "
    for item in items:
        if len(row) + len(item) + 2 > width:
            out.append(row.rstrip())
            row = "    "
        row += item + ", "
    return "\n".join(out + [row.rstrip()])


def number(n):
    return f"{n:#x}" if n > 9 else str(n)


def main():
    kinds = {c: kind(c) for c in POINTS}
    check(kinds)
    canonical, compatible = decompositions(normalizers.NFD), decompositions(normalizers.NFKD)
    ccc = classes(normalizers.NFD())
    pairs = compositions(canonical, ccc)
    primary = {c for _, _, c in pairs}
    lower = {c: text for c in POINTS for text in [normalizers.Lowercase().normalize_str(chr(c))] if text != chr(c)}
    seconds = {b for _, b, _ in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11a8, 0x11c3))
    flags = {}
    for c in POINTS:
        f = kinds[c]
        f |= COMPOSES if c in ccc or c in seconds or (c in canonical and c not in primary) else 0
        f |= DECOMPOSES if c in ccc or c in canonical or 0xac00 <= c <= 0xd7a3 else 0
        f |= COMPATIBLE if c in compatible and compatible[c] != canonical.get(c) else 0
        f |= LOWERS if c in lower else 0
        flags[c] = f
    pages, index = [], []
    for start in range(0, TABLED, PAGE):
        page = tuple(flags.get(c, 0) for c in range(start, start + PAGE))
        if page not in pages:
            pages.append(page)
        index.append(pages.index(page))
    assert all(flags[c] == (6 if 0xe0100 <= c <= 0xe01ef else 0) for c in POINTS if c >= TABLED)
    pool, places = [], {}

    def place(text):
        if text not in places:
            places[text] = len(pool)
            pool.extend(map(ord, text))
        return places[text]

    entries = []
    for c in sorted(set(canonical) | set(compatible)):
        full, plain = compatible.get(c, canonical.get(c)), canonical.get(c, "")
        entries.append(f"{{ {c:#x}, {place(full)}, {len(full)}, {place(plain) if plain else 0}, {len(plain)} }}")
    odd = {c: t for c, t in lower.items() if len(t) != 1}
    assert odd == {0x130: "i\u0307"}, odd
    with open(OUT, "w") as f:
        f.write("/* Written by tools/unicode/tables.py (unicodedata2 16.0.0, tokenizers 0.23.3); do not edit. */\n")
        f.write("/* clang-format off */\n#include \"native/text/unicode.h\"\n\n")
        f.write(f"const uint16_t UNICODE_INDEX[{len(index)}] = {{\n{lines(map(str, index))}\n}};\n\n")
        f.write(f"const uint8_t UNICODE_PAGES[{len(pages)}][{PAGE}] = {{\n")
        for page in pages:
            same = len(set(page)) == 1
            body = f"[0 ... {PAGE - 1}] = {page[0]}" if same else ",".join(map(str, page))
            f.write(f"    {{ {body} }},\n")
        f.write("};\n\n")
        f.write("const uint32_t UNICODE_POOL[] = {\n" + lines(map(number, pool)) + "\n};\n\n")
        f.write("const struct unicode_decomposition UNICODE_DECOMPOSITIONS[] = {\n" + lines(entries) + "\n};\n")
        f.write(f"const unsigned UNICODE_DECOMPOSITION_COUNT = {len(entries)};\n\n")
        rows = [f"{{ {a:#x}, {b:#x}, {c:#x} }}" for a, b, c in pairs]
        f.write("const struct unicode_composition UNICODE_COMPOSITIONS[] = {\n" + lines(rows) + "\n};\n")
        f.write(f"const unsigned UNICODE_COMPOSITION_COUNT = {len(rows)};\n\n")
        rows = [f"{{ {a:#x}, {b:#x}, {n} }}" for a, b, n in ranges(ccc)]
        f.write("const struct unicode_range UNICODE_COMBINING[] = {\n" + lines(rows) + "\n};\n")
        f.write(f"const unsigned UNICODE_COMBINING_COUNT = {len(rows)};\n\n")
        rows = [f"{{ {a:#x}, {b:#x}, {n} }}" for a, b, n in ranges(library_sets())]
        f.write("const struct unicode_range UNICODE_LIBRARY[] = {\n" + lines(rows) + "\n};\n")
        f.write(f"const unsigned UNICODE_LIBRARY_COUNT = {len(rows)};\n\n")
        rows = [f"{{ {c:#x}, {ord(lower[c][0]):#x} }}" for c in sorted(lower)]
        f.write("const struct unicode_case UNICODE_LOWER[] = {\n" + lines(rows) + "\n};\n")
        f.write(f"const unsigned UNICODE_LOWER_COUNT = {len(rows)};\n")


main()
