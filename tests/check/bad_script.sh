#!/bin/sh
# A bad script is refused in one line that names file, hash and line, whatever it tries.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# script NAME: the file from standard input.
script() { cat >"$work/$1.lua"; }
# refused NAME LINE PATTERN
refused() { expect 3 "^rondo script check: $1\.lua@[0-9a-f]\{8\}:$2: .*$3" script check "$work/$1.lua"; }

echo 'local x = = 1' | script syntax
refused syntax 1 "unexpected symbol"
printf 'local n = 0\nwhile true do n = n + 1 end\n' | script endless
refused endless 2 "used up its instructions"
echo 'local s = string.rep("x", 10 * 2 ^ 30)' | script repeated
refused repeated 1 "more than 1048576 bytes"
echo 'return objectve { data = "chat" }' | script global
refused global 1 "no global objectve"
printf '\033LJ\002\000' | script bytecode
refused bytecode 1 "bytecode"
script axis <<'L'
return objective { data = "chat", loss = function(b)
  return average(-b.logprobs:sum("vocab"), b.mask)
end }
L
refused axis 2 "no axis vocab in \[batch=6 time=6\]"
script shape <<'L'
return objective { data = "chat", loss = function(b)
  local row = b.logprobs:mean("time"):rename("batch", "vocab")
  return average(-b.logprobs * row, b.mask)
end }
L
refused shape 3 "\[batch=6 time=6\] and \[vocab=6\]: neither holds all axes of the other"
script condition <<'L'
return objective { data = "chat", loss = function(b)
  if b.logprobs:gt(0) then return average(-b.logprobs, b.mask) end
  return average(b.logprobs, b.mask)
end }
L
refused condition 2 "a comparison that nothing uses.*use where"
script compared <<'L'
return objective { data = "chat", loss = function(b)
  if b.logprobs > 0 then return average(-b.logprobs, b.mask) end
  return average(b.logprobs, b.mask)
end }
L
refused compared 2 "attempt to compare.*x:gt(y)"
script mean <<'L'
return objective { data = "chat", loss = function(b)
  local rows = b.logprobs:mean("batch")
  return average(-rows, b.mask)
end }
L
refused mean 2 "depends on how the step is cut"

# What grows until memory ends has no line: the engine could not make one.
printf 'local t = {}\nfor i = 1, 1e9 do t[i] = ("x"):rep(1e6) .. i end\n' | script growing
expect 3 "growing.lua@[0-9a-f]\{8\}: the script needs more than its memory" script check "$work/growing.lua"

expect 3 "no option promt_weight (it has prompt_weight per)" script check chat_sft --option promt_weight=1
expect 3 "chat_sft.lua@[0-9a-f]*:2: option prompt_weight: 7 is outside \[0, 1\]" script check chat_sft --option prompt_weight=7
expect 2 "NAME=VALUE is needed" script check chat_sft --option prompt_weight
expect 3 "no script $work/absent.lua" script check "$work/absent.lua"
expect 3 "absent.json" script check llama --config "$work/absent.json"
expect 3 '"error":{"code":"shape","place":"axis.lua@' script check "$work/axis.lua" --json

# The same words from `try`, before anything is trained.
expect 3 "axis.lua@[0-9a-f]*:2: sum: no axis vocab" script try "$work/axis.lua"
expect 3 "a script of kind module plays no part" script try policy
expect 3 "the objective reads pairs, the row is none (give each row chosen and rejected" script try dpo
{ head -3 models/pocket/tools/train.jsonl; echo '{"messages":[{"role":"user","content":"a"},{"role":"asistant","content":"b"}]}'; } >"$work/row.jsonl"
expect 3 "round 1: $work/row.jsonl:4: messages\[1\].role: unknown role" script try chat_sft --data "$work/row.jsonl" --steps 2
expect 3 "no script nothere.lua (a path is taken from the current folder" script try nothere.lua

# Admitted, but wrong: a negative verdict.
sed 's/causal = true/causal = false/' scripts/models/decoder.lua >"$work/decoder.lua"
mkdir -p "$work/scripts"
cp -r scripts/* "$work/scripts"
cp "$work/decoder.lua" "$work/scripts/models/decoder.lua"
RONDO_SCRIPTS=$work/scripts
export RONDO_SCRIPTS
expect 1 "^wrong     logits depend on a later token (give attention causal = true)" script check llama
expect 1 '"fault":{"message":"logits depend' script check llama --json
expect 3 "llama: logits depend on a later token" script try llama --model models/pocket
