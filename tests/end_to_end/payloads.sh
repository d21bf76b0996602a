#!/bin/sh
# payloads.sh: runs whose payloads say the largest values of each chunk, or the largest coefficients of each tile: trained, folded, replayed.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# NAME SCHEDULE OUTER AGGREGATOR: one round by two trainers, whose payloads come again bit for bit.
run() {
    sed -e "s|schedule = .*|schedule = { script = $2 } },|" -e "s|outer = {.*|outer = $3,|" -e "s|aggregators = .*|aggregators = { $4 },|" \
        -e 's|rounds = 3|rounds = 1|' -e 's|trainers = 3|trainers = 2|' tests/end_to_end/tiny.lua >"$work/$1.lua"
    "$rondo" local "$work/$1.lua" --home "$work/$1" --ledger-seed payloads --quiet --json >"$work/$1.out" || fail "the run $1"
    tail -1 "$work/$1.out" | grep -q '"round":1,"status":"final","accepted":2' || { cat "$work/$1.out"; fail "$1: two contributions were expected"; }
    id=$(tail -1 "$work/$1.out" | sed 's/.*"run":"\([^"]*\)".*/\1/')
    expect 0 "" replay "$id" 1 --home "$work/$1"
}

run sparse '"sparse", options = { inner_steps = 2, keep = 96, of = 1024, bits = "8", feedback = 0, ["rate.peak"] = 0.003' \
    '{ script = "sgd" }' '{ script = "sparse_mean", options = { among = "senders" } }'
run dct '"demo", options = { inner_steps = 2, keep_share = "0.05", tile = 32, momentum = 0, outer_lr = "0.001", ["rate.peak"] = 0.003' \
    '{ script = "sign" }' '{ script = "mean" }'

# What `run check` refuses, `local` does not begin.
sed -e 's|schedule = .*|schedule = { script = "delayed", options = { inner_steps = 2 } },|' tests/end_to_end/tiny.lua >"$work/late.lua"
expect 3 "a plan with \`delay\`" run check "$work/late.lua" --no-measure --home "$work/late"
said=$("$rondo" run check "$work/late.lua" --no-measure --home "$work/late" 2>&1 || true)
expect 3 "${said#rondo run check: }" local "$work/late.lua" --home "$work/late"
[ ! -e "$work/late/run.json" ] || fail "local made a run that is refused"
