#!/bin/sh
# Rows of preferences, images and series: read, shown, converted, and named by file, line and field where they are bad.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# refused NAME ROW MESSAGE: the row alone is a fault.
refused() {
    printf '%s\n' "$2" >"$work/$1.jsonl"
    expect 3 "^rondo data check: .*/$1.jsonl:1: $3" data check "$work/$1.jsonl"
}

cat >"$work/pairs.jsonl" <<'END'
{"prompt": "One and one is", "chosen": " two.", "rejected": " three."}
{"messages": [{"role": "user", "content": "hi"}], "chosen": "yo", "rejected": {"role": "assistant", "content": "no"}}
{"prompt": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "ho"}], "chosen": [{"role": "assistant", "content": "a"}], "rejected": "b"}
END
expect 0 "^3 rows, 6 examples" data check "$work/pairs.jsonl"
expect 0 "^One and one is⟦ three.⟧" data preview "$work/pairs.jsonl"
expect 0 "pairs.jsonl:3 rejected" data preview "$work/pairs.jsonl" --rows 6
expect 0 '"side":"chosen"' data preview "$work/pairs.jsonl" --json
printf '{"prompt": "a", "chosen": "", "rejected": "b"}\n' >"$work/empty.jsonl"
expect 1 "1 dropped, nothing_trained: .*empty.jsonl:1 chosen" data check "$work/empty.jsonl"
expect 1 "3 dropped, too_long" data check "$work/pairs.jsonl" --context 8
refused none '{"prompt": "a", "chosen": "b"}' "rejected: this field is missing"
refused lone '{"chosen": "a", "rejected": "b"}' "prompt: no prompt"
refused both '{"messages": [], "prompt": "a", "chosen": "a", "rejected": "b"}' "both messages and prompt"
refused turn '{"messages": [{"role": "user", "content": "a"}], "chosen": {"role": "user", "content": "b"}, "rejected": "b"}' "chosen: not one turn"

expect 0 "^256 rows, 256 examples" data check models/shapes/train.jsonl
expect 0 "image 1 x 8 x 8, label 0" data preview models/shapes/train.jsonl
expect 0 '"shape":\[1,8,8\],"values":' data preview models/shapes/train.jsonl --json
expect 0 "^series 4.13 " data preview models/waves/train.jsonl
expect 0 '"target":\[1.5' data preview models/waves/train.jsonl --json
refused shape '{"image": {"shape": [1, 2], "values": [1, 2]}, "label": 0}' "image.shape: not three sizes"
refused count '{"image": {"shape": [1, 1, 2], "values": [1]}, "label": 0}' "image.values: not 2 numbers"
refused digits '{"image": {"shape": [1, 1, 1], "bytes": "0g"}, "label": 0}' "image.bytes: byte 0"
refused label '{"image": {"shape": [1, 1, 1], "values": [1]}, "label": -1}' "label: not a class"
refused value '{"series": [1, "a"], "target": [1]}' "series: value 1 is no number"
refused target '{"series": [1]}' "target: not a list"

# Pictures take the place of their paths, which are seen from the data file.
printf 'P6\n# two pixels\n2 1\n255\n\001\002\003\004\005\006' >"$work/colour.ppm"
printf '\001\002' >"$work/raw"
cat >"$work/paths.jsonl" <<'END'
{"image": "colour.ppm", "label": 1}
{"image": "raw", "shape": [1, 2, 1], "label": 0}
{"image": "absent.ppm", "label": 0}
END
expect 3 "image: a path, not a picture (rondo data convert" data check "$work/paths.jsonl"
expect 1 "paths.jsonl:3: image: .*absent.ppm" data convert "$work/paths.jsonl" "$work/out.jsonl"
grep -q '^{"image":{"shape":\[3,1,2\],"bytes":"010402050306"},"label":1}$' "$work/out.jsonl"
grep -q '^{"image":{"shape":\[1,2,1\],"bytes":"0102"},"label":0}$' "$work/out.jsonl"
expect 0 "^2 rows, 2 examples" data check "$work/out.jsonl"
