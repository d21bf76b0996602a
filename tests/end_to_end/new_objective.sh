#!/bin/sh
# new_objective.sh: an objective that is not in the repository is checked, tried, and run by unchanged nodes; then measured and sampled.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

cat >"$work/focal_sft.lua" <<'L'
-- focal_sft: cross-entropy that fades on tokens the model already predicts (focal loss).
local gamma = spec.number("gamma", 2, { min = 0, max = 5, help = "0: plain cross-entropy" })

return objective {
  data = "chat",
  loss = function(b)
    local known = b.logprobs:exp():detach()                 -- [batch time], in [0, 1]
    local weight = b.mask * (1 - known) ^ gamma
    metric("known", average(known, b.mask))
    metric("nll", average(-b.logprobs, b.mask))
    return average(-b.logprobs, weight)
  end,
}
L
[ "$(wc -l <"$work/focal_sft.lua")" -le 20 ] || fail "more than 20 lines"

expect 0 "^reads     b.logprobs, b.mask" script check "$work/focal_sft.lua"
expect 0 "^ok " script check "$work/focal_sft.lua" --option gamma=0.5
expect 0 "gamma  *number  *2 >= 0 <= 5  0: plain" script describe "$work/focal_sft.lua"
expect 0 "step   1/2  loss [0-9.]*  known [0-9.]*  nll [0-9.]*  [0-9]* tokens/s" \
    script try "$work/focal_sft.lua" --steps 4 --data models/pocket/tools/held_out.jsonl
expect 0 '^{"version":1,"kind":"objective","first":' script try "$work/focal_sft.lua" --steps 4 --json

sed "s|objective = { script = \"chat_sft\" }|objective = { script = \"$work/focal_sft.lua\", options = { gamma = 1.5 } }|" \
    tests/end_to_end/tiny.lua >"$work/run.lua"
grep -q focal_sft "$work/run.lua" || fail "tiny.lua names no objective any more"
"$rondo" local "$work/run.lua" --home "$work/home" --ledger-seed objective --quiet --json >"$work/local" || fail "the run itself"
tail -1 "$work/local" | grep -q '"round":3,"status":"final"' || { cat "$work/local"; fail "three final rounds were expected"; }

expect 0 '"round":3,.*"before":{"loss":.*"after":{"loss":' eval "$work/run.lua" --home "$work/home" --before --json
expect 0 "^after  *[0-9.]*  *[0-9.]*  *[0-9]*  *16$" eval --home "$work/home" --data models/pocket/tools/held_out.jsonl --rows 16
expect 2 "no held-out data is named" eval --home "$work/home"

# The run's state and the adapter it wrote are the same model.
adapter=$(find "$work/home/runs" -name adapter -type d)
for from in "--home $work/home" "--model models/pocket --adapter $adapter"; do
    # shellcheck disable=SC2086
    "$rondo" sample $from --messages models/pocket/tools/held_out.jsonl --max-tokens 12 --quiet >"$work/text$((n = ${n:-0} + 1))"
done
cmp "$work/text1" "$work/text2" || fail "state and adapter say different things"
