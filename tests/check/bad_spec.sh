#!/bin/sh
# bad_spec.sh: a run file that cannot be run is refused with status 3 and one line: the field's path, what is wrong, what is allowed.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=tests/end_to_end/tiny.lua
fail() {
    echo "FAILED: $*"
    echo "$1" >>"$work/failed" # a pipe's end is a process of its own
}

# refuses NAME TEXT... < run file: every TEXT must stand in the one line that is told.
refuses() {
    name=$1
    shift
    cat >"$work/run.lua"
    status=0
    timeout 60 "$rondo" run check "$work/run.lua" --no-measure --quiet --home "$work/home" >"$work/out" 2>"$work/errors" || status=$?
    lines=$(wc -l <"$work/errors")
    for text in "$@"; do
        grep -qF -- "$text" "$work/errors" || { echo "$name: not told: $text"; status="$status, untold"; }
    done
    if [ "$status" != 3 ] || [ "$lines" -ne 1 ] || [ -s "$work/out" ]; then
        fail "$name: status $status, $lines lines"
        cat "$work/errors"
    fi
}
# with SED: the good run file, changed.
with() { sed "$1" "$good"; }

status=0
"$rondo" run check "$good" --no-measure --quiet --home "$work/home" >"$work/out" 2>"$work/errors" || status=$?
[ "$status" -eq 0 ] || { echo "FAILED: the good run file is refused"; cat "$work/errors"; exit 1; }

with 's/name = "tiny",/name = "tiny", colour = "blue",/' | refuses "unknown field" 'unknown field "colour"' "known:"
with 's/spot_check/spot_chekc/' | refuses "unknown field inside" 'trust: unknown field "spot_chekc"' 'did you mean "spot_check"?'
with 's/network = {/network = { capacities = { 4 },/' | refuses "unknown field of network" 'network: unknown field "capacities"' "capacity and regions"
with 's/network = {/nettwork = {/' | refuses "unknown part of a run file" 'unknown field "nettwork"' "returns { spec = {...}, network = {...} }"
with 's/aggregators = .*/aggregators = {},/' | refuses "no aggregator" "aggregators: a list with something in it is expected"
with 's/rounds = 3,/rounds = 3, amendable = { "all" },/' | refuses "what nobody may amend" 'amendable[0]: unknown choice "all"; known: end pause'
with 's/network = { trainers = 3/network = { trainers = 61/' | refuses "more trainers than a machine runs" "network.trainers: a whole number from 1 to 60 is needed"
with 's/network = {/network = { capacity = { 4, 0 },/' | refuses "capacity of nothing" "network.capacity[1]: 0 is below 1" "a whole number from 1"
with 's/network = {/network = { capacity = { "4" },/' | refuses "capacity as text" "network.capacity[0]: another kind of value" "a whole number from 1 a trainer"
with 's/eval = { data = "[^"]*"/eval = { data = "no\/such.jsonl"/' | refuses "eval without a file" "network.eval.data: there is no file no/such.jsonl"
echo '{"messages": [{"role": "user"}]}' >"$work/held_out.jsonl"
with "s,eval = { data = \"[^\"]*\",eval = { data = \"$work/held_out.jsonl\"," | refuses "eval that is no conversation" "network.eval.data: $work/held_out.jsonl:1: messages[0].content"
with 's/rows = 16/rows = 0/' | refuses "eval of no rows" "network.eval.rows: a whole number from 1 is needed"
with 's,base_model = "models/pocket",base_model = "README.md",' | refuses "model that is a text" "base_model: README.md is neither" "ends in .gguf"
with 's/rounds = 3/rounds = 0/' | refuses "number too small" "rounds: 0 is not between 1 and"
with 's/rounds = 3/rounds = "three"/' | refuses "number as text" "rounds: an integer is expected"
with 's/rounds = 3,/rounds = 2.5,/' | refuses "broken number" "rounds: an integer is expected"
with 's/spot_check = 0.3/spot_check = 1.5/' | refuses "share above one" "trust.spot_check: 1.5 is not between 0 and 1"
with 's/batch_tokens = 448/batch_tokens = -1/' | refuses "negative number" "batch_tokens: -1 is not between"
with 's/ threshold = 3/ threshold = 5/' | refuses "threshold above the committee" "committee.threshold: 5 of 4: more than half, at most all"
with 's/ threshold = 3/ threshold = 2/' | refuses "threshold of a half" "committee.threshold: 2 of 4" "two halves could decide differently"
with 's/release_threshold = 3/release_threshold = 9/' | refuses "release threshold" "committee.release_threshold: 9 of a panel of 4"
with 's/size = 4/size = 5/' | refuses "size and panel" "committee.size: the size is 5, the panel has 4"
with 's/budget = "3000"/budget = "2999"/' | refuses "budget" "payment.budget: 2999 does not cover 3 rounds of 1000" "raise the budget"
with 's/budget = "3000"/budget = "3,000"/' | refuses "amount" "payment.budget: \"3,000\" is not a whole amount" 'write it as "1000"'
with 's/trainers = 0.8/trainers = 0.9/' | refuses "terms" "payment.terms: the shares add up to more than 1"
with 's/expiry_rounds = 20/expiry_rounds = 3/' | refuses "expiry" "payment.expiry_rounds: 3, at least 8 are needed"
with 's/seed_lead = 30/seed_lead = 3/' | refuses "seed lead" "seed_lead: 150 ms of blocks, one view takes 1000 ms" "raise seed_lead"
with 's/quorum = { trainers = 2/quorum = { trainers = 4/' | refuses "quorum" "quorum.trainers: 4 trainers are needed" "3 are allowed"
with 's/max_ms = 20000/max_ms = 500/' | refuses "grace" "quorum.grace: min_ms 1000, max_ms 500, round_ms 60000 do not ascend"
with 's/tier = "known"/tier = "opne"/' | refuses "choice" 'trust.tier: unknown tier "opne"' "known: open known"
with 's/tier = "known"/tier = "attested"/' | refuses "later tier" "trust.tier: the attested tier: not offered by this version"
with 's/tier = "known"/tier = "replicated"/' | refuses "one replica" "trust.replicas: 1 replicas: the replicated tier has two at least"
with 's/tier = "known"/tier = "replicated"/; s/replicas = 1/replicas = 16/' | refuses "too few machines" "quorum.trainers: "
with 's/mode = "allow-list"/mode = "open"/' | refuses "open admission that costs nothing" "open admission without deposit or stake"
with 's/aggregators = { { script = "norm_clip" }, /aggregators = { /; s/tier = "known"/tier = "open"/' |
    refuses "open without a robust rule" "aggregators: the open tier needs an aggregator that declares robust = true" "trimmed_mean"
with 's/"llama"/"lama"/' | refuses "script" "model: " "lama"
with 's/momentum = 0.9/momentun = 0.9/' | refuses "script option" "outer: " "momentun"
with 's/momentum = 0.9/momentum = 9/' | refuses "option out of range" "outer: " "momentum"
with 's/inner_steps = 3/inner_steps = 0/' | refuses "schedule option" "schedule: " "inner_steps"
with 's/inner_steps = 3/inner_steps = 2000000/' |
    refuses "more steps than a log holds" "plan of round 1: schedule: 2000000 steps in a round, which has at most 1048576" "inner_steps"
with 's/base_model = "models.pocket"/base_model = "models\/none"/' | refuses "model" "base_model: models/none cannot be read"
with 's/files = { "models.pocket.tools.held_out.jsonl" }/files = { "none.jsonl" }/' | refuses "data" "dataset: " "none.jsonl"
head -40 models/pocket/tools/held_out.jsonl >"$work/rows.jsonl"
echo '{"messages": [{"role": "user"}]}' >>"$work/rows.jsonl"
with "s,files = { \"[^\"]*\",files = { \"$work/rows.jsonl\"," | refuses "row that is no conversation" "$work/rows.jsonl:41: messages[0].content"
with 's/eval = { data = "[^"]*"/eval = { data = "none.jsonl"/' | refuses "evaluation data" "network.eval.data: there is no file none.jsonl"
with 's/shards = 4/shards = 0/' | refuses "shards" "dataset.shards: 0 is not between 1 and"
with '/^    rounds = 3/d' | refuses "missing field" "rounds: this field is missing"
with 's/^return {/return { {/' | refuses "syntax" "run.lua" "expected"
echo 'while true do end' | refuses "endless loop" "run.lua"
echo 'return 3' | refuses "no table" "run.lua"
echo 'return { network = {} }' | refuses "no spec" "run.lua" "a script of kind run is needed"
"$rondo" run check "$work/none.lua" --home "$work/home" >"$work/out" 2>"$work/errors" && fail "missing file: status 0"
grep -q "there is no run file" "$work/errors" || fail "missing file"

# Rows of several examples: what cannot be packed is found by a step.
stepped() {
    cat >"$work/run.lua"
    timeout 120 "$rondo" run check "$work/run.lua" --quiet --home "$work/home" >"$work/out" 2>&1 || true
    grep -q -- "$1" "$work/out" || { fail "nothing like: $1"; tail -3 "$work/out"; }
}
example='s/script = "chat_sft"/script = "chat_sft", options = { per = "example" }/'
with 's/context = 448,/context = 448, packing = "segments", coalesce = true, template_date = "2026-07-01",/' |
    stepped '^rows     each row of 448 tokens holds several .*(packing), .*(coalesce), strftime_now prints 2026-07-01'
with "s/context = 448,/context = 448, packing = \"segments\",/; $example" | stepped 'packing: the objective works along a row (mean).*weigh token by token)'
with "s/context = 448,/context = 448, coalesce = true,/; $example" | stepped 'coalesce: the objective works along a row (mean)'
sed 's|    local o = { bias|    x = x + x:shift("time", 1)\n    local o = { bias|' scripts/models/llama.lua >"$work/mixing.lua"
with "s|context = 448,|context = 448, packing = \"segments\",|; s|model = { script = \"[a-z]*\" }|model = { script = \"$work/mixing.lua\" }|" |
    stepped 'packing: the model mixes tokens along a row (shift).*by attention alone)'

# Who can train and not trace a step would lose each dispute by silence; where a replay decides nobody traces.
traced='a step traced for a dispute needs [0-9]* bytes of memory, training alone [0-9]*'
RONDO_MEMORY=15M && export RONDO_MEMORY
with 's/x/x/' | stepped "$traced, and a trainer like this one has 15728640"
with 's/checkpoint_every = 1/checkpoint_every = 2/' | stepped '^memory   trainer .*a disputed step 0 B'
"$rondo" run check "$good" --no-measure --home "$work/home" 2>&1 | grep -q "$traced: who has less" || fail "no warning of a dispute's memory"
timeout 120 "$rondo" local "$good" --home "$work/here" 2>&1 | grep -q "$traced, and a trainer like this one has 15728640" || fail "local: a dispute's memory"
unset RONDO_MEMORY

# Evidence that is too large to be sent: nothing is started either.
shown='nobody could show that a value of dot is wrong: its operands have [0-9]* bytes, at most 67108864 are sent (lower batch_tokens'
with 's/batch_tokens = 448/batch_tokens = 65536/' | stepped "$shown"
timeout 120 "$rondo" local "$work/run.lua" --home "$work/here" >"$work/out" 2>&1 && fail "local: status 0"
grep -q "$shown" "$work/out" || fail "local: a dispute's evidence"
[ ! -e "$work/here/ledger/ledger.db" ] || fail "local: a ledger was started"

# With --json the same stands in one object.
with 's/budget = "3000"/budget = "1"/' >"$work/run.lua"
"$rondo" run check "$work/run.lua" --no-measure --json --home "$work/home" >"$work/out" 2>/dev/null && fail "--json: status 0"
grep -q '"code":"range".*"place":"[^"]*payment.budget"' "$work/out" || { fail "--json"; cat "$work/out"; }
[ -z "$(ls "$work/home" 2>/dev/null)" ] || { fail "something is left in the home"; ls "$work/home"; }
[ ! -e "$work/failed" ] && echo "every bad run file is refused with its field"
