#!/bin/sh
# Tool calls that a model writes are judged, row by row; what was no call is said to be none.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

echo '{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}]}' >"$work/one.jsonl"
cat "$work/one.jsonl" >"$work/rows.jsonl"
echo '{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"no call, so no case"}]}' >>"$work/rows.jsonl"
cat "$work/one.jsonl" >>"$work/rows.jsonl"
expect 0 '"cases":2,"right":0,"accuracy":0.0,"why":{"[a-z]*":2}' eval --generate --data "$work/rows.jsonl" --json
expect 0 '"cases":1,.*"each":\[{"row":1,"right":false,"why":"[a-z]*","text":"' eval --generate --each --rows 1 --data "$work/rows.jsonl" --json
expect 0 '0.000 of 1 tool calls are right' eval --generate --data "$work/one.jsonl"
sed -n 2p "$work/rows.jsonl" >"$work/none.jsonl"
expect 3 "none.jsonl: no row calls a tool" eval --generate --data "$work/none.jsonl"
expect 2 "is read where a model writes" eval --model models/pocket --each --data "$work/rows.jsonl"

# What is written does not depend on how many are written at once.
held_out=models/pocket/tools/held_out.jsonl
for batch in 1 4; do
    "$rondo" eval --generate --each --rows 6 --batch $batch --max-tokens 24 --data $held_out --json | sed 's/.*"each"//; s/"peak_bytes".*//' >"$work/$batch"
done
grep -q '"row":6,' "$work/1" && cmp "$work/1" "$work/4" || { echo "other answers with --batch 4"; exit 1; }

# Constrained, every answer is a call that obeys its schema: what is wrong with it is its name or its values.
expect 0 '"cases":6,.*"why":{"[nv]a[a-z]*":[0-9]*,*\("[nvr][ai][a-z]*":[0-9]*,*\)*},' eval --generate --constrain tools --rows 6 --max-tokens 120 --data $held_out --json
expect 2 "tools or tools-or-text is what answers can be constrained to" eval --generate --constrain json --data $held_out
expect 2 "is read where a model writes" eval --constrain tools --model models/pocket --data $held_out

# The loss of a model that is in no run.
expect 0 '"loss":[0-9.]*,"tool_call_accuracy":[0-9.]*,"calls":6,"exact":[0-9]*,"rows":6,"dropped":0,"data":"'$held_out'"' eval --model models/pocket --rows 6 --data $held_out --json
expect 0 "^model  *[0-9.]*  *[0-9.]*  *6  *6$" eval --model models/pocket --rows 6 --data $held_out
expect 2 "leave --before out" eval --model models/pocket --before --data $held_out
expect 2 "leave --model" eval --home "$work" --run x --model models/pocket --data $held_out
expect 2 "leave --before out" eval --generate --before --data "$work/rows.jsonl"
expect 2 "no held-out data is named" eval --generate
expect 3 "absent.jsonl" eval --generate --data "$work/absent.jsonl"

# Of two choices the one that the model would write, wherever it stands.
sure=$("$rondo" sample --prompt "The price index of" --max-tokens 4 --quiet)
sure=$(printf '%s' "$sure" | sed 's/["\\]//g')
printf '{"prompt":"The price index of","choices":["%s"," qzxv jjq"],"answer":0}\n' "$sure" >"$work/choices.jsonl"
printf '{"prompt":"The price index of","choices":[" qzxv jjq","%s"],"answer":1}\n' "$sure" >>"$work/choices.jsonl"
printf '{"messages":[{"role":"user","content":"hello"}],"choices":["a","b"],"answer":1}\n' >"$work/talk.jsonl"
expect 0 '"cases":2,"right":2,"accuracy":1.0,"right_by_byte":2,' eval --choices --data "$work/choices.jsonl" --json
expect 0 'of 1 choices are right' eval --choices --data "$work/talk.jsonl"
echo '{"prompt":"x","choices":["a"],"answer":0}' >"$work/bad.jsonl"
expect 3 "bad.jsonl:1: choices: a list of two" eval --choices --data "$work/bad.jsonl"
echo '{"prompt":"x","choices":["a","b"],"answer":2}' >"$work/bad.jsonl"
expect 3 "bad.jsonl:1: answer: the number" eval --choices --data "$work/bad.jsonl"
expect 2 "exclude each other" eval --choices --generate --data "$work/bad.jsonl"
