#!/bin/sh
# Text is the same for the same seed and any number of threads, and ends where it should.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# text NAME OPTION ...: twenty tokens into a file.
text() {
    name=$1
    shift
    "$rondo" sample --prompt "The price index of" --max-tokens 20 --quiet "$@" >"$work/$name" || fail "sample $*"
}
same() { cmp -s "$work/$1" "$work/$2" || { head "$work/$1" "$work/$2"; fail "$1 and $2 differ"; }; }

text greedy
text greedy1 --greedy --threads 1
same greedy greedy1
text cold --temperature 0.0001 --seed 5
same greedy cold
text seven --temperature 2 --seed 7
text seven1 --temperature 2 --seed 7 --threads 1
same seven seven1
text eight --temperature 2 --seed 8
! cmp -s "$work/seven" "$work/eight" || fail "two seeds give one text"

expect 0 '"end":"length"' sample --prompt hello --max-tokens 3 --json
expect 0 '"prompt_tokens":[0-9]\{3\}' sample --messages models/pocket/tools/held_out.jsonl --max-tokens 3 --json
expect 0 '"tokens":' sample --messages models/pocket/tools/held_out.jsonl --max-tokens 3 --json
echo '[{"role":"user","content":"hi"}]' >"$work/list.json"
expect 0 '"prompt_tokens":' sample --messages "$work/list.json" --max-tokens 3 --json
echo '[{"content":"hi"}]' >"$work/bad.json"
expect 3 "messages\[0\].role" sample --messages "$work/bad.json"
expect 2 "either --prompt TEXT or --messages FILE" sample
expect 2 "a number from 0 to 100" sample --prompt x --temperature hot
expect 2 "exclude each other" sample --prompt x --temperature 1 --greedy
expect 3 "the prompt is empty" sample --prompt ""
expect 3 "the prompt has [0-9]* tokens, the model's context 1024" sample --prompt "$(seq 1 900 | tr '\n' ' ')"
expect 3 "adapter_config.json: cannot open" sample --prompt x --adapter "$work/absent"
expect 2 "a run has its model" sample --prompt x --run bafk --adapter x

# Calls are whole and right by their schemas, however little the model knows of them: three turns of noise, one short of tokens.
for seed in 1 2 3; do
    expect 0 '"text":"<tool_call>{\\"name\\": \\"[a-z_]*\\", \\"arguments\\": *{.*}}</tool_call>".*"end":"end_of_turn"' sample --constrain tools --messages models/pocket/tools/held_out.jsonl --max-tokens 9$seed --temperature 50 --seed $seed --json
done
# With a choice the answer may be text, and may be shorter than any call.
expect 0 '"text":' sample --constrain tools-or-text --messages models/pocket/tools/held_out.jsonl --max-tokens 20 --json
expect 3 "the shortest call takes" sample --constrain tools --messages models/pocket/tools/held_out.jsonl --max-tokens 20
expect 3 "a text calls no tools" sample --constrain tools --prompt x
expect 3 "there are no tools to call" sample --constrain tools --messages "$work/list.json"
expect 2 "tools or tools-or-text is what answers can be constrained to" sample --constrain json --prompt x
expect 2 "exclude each other" sample --constrain tools --stop x --prompt x
# Nothing is left behind.
mkdir "$work/tmp"
TMPDIR=$work/tmp "$rondo" sample --prompt x --max-tokens 1 --quiet >/dev/null
[ -z "$(ls -A "$work/tmp")" ] || fail "a folder is left in TMPDIR"
