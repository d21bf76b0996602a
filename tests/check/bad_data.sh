#!/bin/sh
# A bad row is named by file, line and field; a row that gives no example is counted with its reason.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

good='{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"}]}'
# rows NAME ROW: a good row, then this one.
rows() { printf '%s\n%s\n' "$good" "$2" >"$work/$1.jsonl"; }
refused() {
    expect 3 "^rondo data check: .*/$1.jsonl:2: $2" data check "$work/$1.jsonl"
    expect 3 "$1.jsonl:2: $2" data preview "$work/$1.jsonl"
}

rows json '{"messages": [}'
refused json "column 15: "
rows twice '{"messages":[],"messages":[]}'
refused twice ".*duplicate"
rows role '{"messages":[{"content":"hi"},{"role":"assistant","content":"yo"}]}'
refused role "messages\[0\].role: missing"
rows name '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"type":"function","function":{"arguments":"{}"}}]}]}'
refused name "messages\[1\].tool_calls\[0\].function.name: missing"
rows bytes "$(printf '{"messages":[{"role":"user","content":"\377"}]}')"
refused bytes "column 39: "
expect 3 "absent.jsonl: cannot open" data check "$work/absent.jsonl"

rows long "{\"messages\":[{\"role\":\"user\",\"content\":\"$(seq 1 900 | tr '\n' ' ')\"},{\"role\":\"assistant\",\"content\":\"yo\"}]}"
expect 1 "1 dropped, too_long: .*shorten the conversation.*long.jsonl:2 messages\[1\]: [0-9]* tokens, context 1024" \
    data check "$work/long.jsonl"
expect 0 "1 dropped, too_long" data preview "$work/long.jsonl"
expect 1 '"dropped":\[{"reason":"too_long","count":1,' data check "$work/long.jsonl" --json

# A template that prints no tools may not be used with rows that have them.
printf "{%% for m in messages %%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%% endfor %%}{%% if add_generation_prompt %%}<|im_start|>assistant\n{%% endif %%}" >"$work/plain.jinja"
head -1 models/pocket/tools/held_out.jsonl >"$work/tools.jsonl"
expect 1 "1 dropped, tools_not_printed" data check "$work/tools.jsonl" --template "$work/plain.jinja"
printf '{%% if %%}' >"$work/broken.jinja"
expect 3 "broken.jinja: line 1" data check "$work/tools.jsonl" --template "$work/broken.jinja"

# The mask, with and without colour.
printf '%s\n' "$good" >"$work/good.jsonl"
expect 0 "^⟦yo<|im_end|>⟧$" data preview "$work/good.jsonl"
expect 0 " 1      <|im_end|>$" data preview "$work/good.jsonl" --tokens
expect 0 '"shown":\[{"line":1,"turn":1,"call":false,"ids":\[' data preview "$work/good.jsonl" --json
expect 0 "1 rows, 1 examples, 12 tokens, 3 trained" data check "$work/good.jsonl"
: >"$work/empty.jsonl"
expect 1 "0 rows" data check "$work/empty.jsonl"

# Texts are one stream: none is too long.
printf '{"text": "%s"}\n' "$(seq 1 900 | tr '\n' ' ')" >"$work/text.jsonl"
expect 0 "1 rows, 1 examples" data check "$work/text.jsonl"
expect 0 '"context":null' data check "$work/text.jsonl" --json
