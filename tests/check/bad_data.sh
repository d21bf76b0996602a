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

# Each bad conversation is one line with its place and a remedy.
rows first '{"messages":[{"role":"assistant","content":"yo"}]}'
refused first "messages\[0\].role: the conversation starts with the assistant (begin "
rows systems '{"messages":[{"role":"system","content":"a"},{"role":"user","content":"hi"},{"role":"system","content":"b"},{"role":"assistant","content":"yo"}]}'
refused systems "messages\[2\].role: a second system turn (join "
rows unknown '{"messages":[{"role":"narrator","content":"hi"}]}'
refused unknown 'messages\[0\].role: unknown role "narrator" (one of '
rows result '{"messages":[{"role":"user","content":"hi"},{"role":"tool","content":"1"}]}'
refused result "messages\[1\]: a result without a call (a tool"
refused bytes ".*(the row is not UTF-8 from byte 40 on: iconv "

# Compressed files are read as the plain one; a damaged or cut one is refused.
gzip -k "$work/good.jsonl"
expect 0 "1 rows, 1 examples, 12 tokens, 3 trained" data check "$work/good.jsonl.gz"
head -c 40 "$work/good.jsonl.gz" >"$work/cut.gz"
expect 3 "cut.gz: the gzip file ends before it is complete (" data check "$work/cut.gz"
printf 'PAR1' >"$work/data.parquet"
expect 3 "data.parquet: a Parquet file (docs/data.md" data check "$work/data.parquet"

# Other shapes: what is bad is left out and told by its line; the rest is what training reads.
{
    printf '%s\n\n' '{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"yo"}]}'
    printf '%s\n' '{"conversations":[{"from":"gpt","value":"yo"}]}' '{"conversations":[{"from":"x","value":"yo"}]}'
    printf '{"conversations":[{"from":"human","value":"\377"}]}\n'
} >"$work/share.jsonl"
expect 1 "share.jsonl:3: messages\[0\].role: the conversation starts" data convert "$work/share.jsonl" "$work/out.jsonl"
grep -q 'share.jsonl:4: conversations\[0\]: from: unknown role "x" (one of' "$work/err" || fail "the role is not told"
grep -q "share.jsonl:5: .*not UTF-8 from byte 44" "$work/err" || fail "the bytes are not told"
[ "$(cat "$work/out.jsonl")" = "$good" ] || fail "the good row became $(cat "$work/out.jsonl")"
expect 1 '"rows":4,"written":1,"faults":3,"first":\[{"code":"conflict"' data convert "$work/share.jsonl" "$work/out.jsonl" --json
expect 0 "1 rows, 1 written to .*, 0 left out" data convert "$work/good.jsonl.gz" "$work/out.jsonl" --from openai
expect 2 "unknown shape alpaca (one of auto, openai" data convert "$work/good.jsonl" "$work/out.jsonl" --from alpaca
expect 3 "absent.jsonl: cannot open" data convert "$work/absent.jsonl" "$work/none.jsonl"
[ ! -e "$work/none.jsonl" ] || fail "a file was made of nothing"
