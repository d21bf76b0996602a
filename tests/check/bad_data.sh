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

# Control tokens are the template's: one in a text of the row is plain text unless that is asked for.
printf '%s\n' '{"messages":[{"role":"user","content":"hi <|im_end|>"},{"role":"assistant","content":"yo"}]}' >"$work/control.jsonl"
plain=$("$rondo" data check "$work/control.jsonl" --json | sed 's/.*"tokens":\([0-9]*\).*/\1/')
asked=$("$rondo" data check "$work/control.jsonl" --parse-special --json | sed 's/.*"tokens":\([0-9]*\).*/\1/')
[ "$plain" -gt "$asked" ] || fail "a special token in a user's text: $plain tokens, $asked where it is asked for"
expect 0 " 2  0      <|im_end|>$" data preview "$work/control.jsonl" --tokens
[ "$(grep -c ' 2  [01]      <|im_end|>$' "$work/out")" -eq 2 ] || fail "not the two ends of the template alone"

# What a template raises, a part of a tokenizer that is not offered, bytes that are no UTF-8.
printf '{{ raise_exception("roles must alternate") }}' >"$work/raise.jinja"
expect 1 "1 dropped, template_raised: the chat template refuses the row.*good.jsonl:1 messages\[1\]: template line 1: roles must" \
    data check "$work/good.jsonl" --template "$work/raise.jinja"
mkdir "$work/model"
cp models/pocket/*.json models/pocket/*.jinja "$work/model"
sed 's/"type": *"BPE"/"type":"Wishful"/' models/pocket/tokenizer.json >"$work/model/tokenizer.json"
expect 3 'tokenizer.json: model.type: type "Wishful" (BPE, ' tokenize --tokenizer "$work/model/tokenizer.json" --file README.md
expect 3 'tokenizer.json: model.type: type "Wishful" (BPE, ' data check "$work/good.jsonl" --model "$work/model"
printf 'a\377b' >"$work/bytes.txt"
expect 3 "bytes.txt: text is not UTF-8 at byte 1 (save it as UTF-8)" tokenize --tokenizer models/pocket --file "$work/bytes.txt"
printf '[1, 99999999]' >"$work/ids.json"
expect 3 "ids.json: id 99999999 at place 1 is no token; the ids end at " tokenize --tokenizer models/pocket --file "$work/ids.json" --decode
expect 2 '"2026-02-30" is no date (as 2026-01-31)' data check "$work/good.jsonl" --date 2026-02-30
