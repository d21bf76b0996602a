#!/bin/sh
# A chat keeps its turns: what is said second is read after what was answered first.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

printf 'What is the price of bread?\n\n/quit\n' | "$rondo" chat --max-tokens 8 --json >"$work/both" || fail "chat"
[ "$(wc -l <"$work/both")" = 2 ] || fail "two lines that say something, and not two answers"
# The second prompt by hand: both turns and the first answer.
answer=$(sed -n '1s/.*"text":"\(.*\)","tokens".*/\1/p' "$work/both")
printf '[{"role":"user","content":"What is the price of bread?"},{"role":"assistant","content":"%s"},{"role":"user","content":"/quit"}]' \
    "$answer" >"$work/turns.json"
"$rondo" sample --messages "$work/turns.json" --max-tokens 8 --json >"$work/second"
sed -n 2p "$work/both" | cmp -s - "$work/second" || fail "the second turn is not what the whole conversation gives"

echo hello | "$rondo" chat --max-tokens 8 >"$work/plain"
echo hello | "$rondo" chat --max-tokens 8 --json >"$work/json"
[ "$(cat "$work/plain")" = "$(sed 's/.*"text":"\(.*\)","tokens".*/\1/; s/\\"/"/g' "$work/json")" ] || fail "plain and JSON differ"
echo '{}' >"$work/tools.json"
expect 3 "tools.json: not a list" chat --tools "$work/tools.json" </dev/null
echo '[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"enum":["left","right"]}},"required":["x"]}}}]' >"$work/tools.json"
printf 'Go.\n' | "$rondo" chat --constrain tools --tools "$work/tools.json" >"$work/call" || fail "chat --constrain"
grep -q '^<tool_call>{"name": "f", "arguments": *{"x": *"\(left\|right\)"}}</tool_call>' "$work/call" || fail "no call, though constrained"
printf 'Go.\n' | expect 3 "there are no tools to call" chat --constrain tools
expect 2 "exclude each other" chat --greedy --temperature 1 </dev/null
expect 2 "\-\-top-p 2: a number" chat --top-p 2 --temperature 1 </dev/null
expect 2 "say what is drawn from" chat --top-k 2 </dev/null
printf 'a\000b\n' | "$rondo" chat 2>"$work/err" && fail "a zero byte is taken"
grep -q "a zero byte" "$work/err" || fail "a zero byte is not named"

# A model's own rule of drawing, and one that has none.
cp -r models/pocket "$work/own"
echo '{"do_sample": true, "temperature": 1.5, "top_k": 4}' >"$work/own/generation_config.json"
echo hello | "$rondo" chat --model "$work/own" --as-model --max-tokens 8 --json >"$work/as_model"
echo hello | "$rondo" chat --temperature 1.5 --top-k 4 --max-tokens 8 --json | cmp -s - "$work/as_model" || fail "--as-model is not what the file says"
echo '{"temperature": 1.5}' >"$work/own/generation_config.json"
echo hello | "$rondo" chat --model "$work/own" --as-model --max-tokens 8 --json | cmp -s - "$work/json" || fail "a rule that draws nothing draws"
expect 3 "no generation_config.json" sample --as-model --prompt hello
expect 2 "\-\-greedy and --as-model exclude each other" sample --as-model --greedy --prompt hello
